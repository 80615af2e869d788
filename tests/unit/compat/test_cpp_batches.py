"""Inductor's C++ kernels are compiled several at a time; the results, and what later processes load, stay the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import magpy_core
from magpy_core._compat.torch import cpp_batches
from magpy_core._compat.torch.cpp_batches import _parsed, batched_kernels

UNARY = [torch.sin, torch.cos, torch.tanh, torch.sigmoid, torch.exp, torch.sqrt, torch.log1p, torch.erf, torch.neg]


def parts(x: torch.Tensor, w: torch.Tensor, n: int) -> torch.Tensor:
    """``n`` kernels with products of matrices between them."""
    for i in range(n):
        x = UNARY[i % len(UNARY)](x.abs() / (i + 2)) @ w
    return x


def libraries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.main.so"))


def agrees(n: int, *, threads: int = 1) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(8, 8), torch.randn(8, 8)
    compiled = magpy_core.compile(parts, backend="inductor", wait=True, options={})
    from torch._inductor import config

    with torch.no_grad(), config.patch(compile_threads=threads):
        for _ in range(3):
            torch.testing.assert_close(compiled(x, w, n), parts(x, w, n))
    (capture,) = magpy_core.captures(compiled)
    assert capture.is_ready and capture.hits >= 1


@pytest.mark.parametrize("threads", [1, 2])
def test_one_library_has_all_kernels(empty_compiler_cache: Path, threads: int) -> None:
    n = 5 + threads  # torch keeps what it has loaded in this process
    agrees(n, threads=threads)
    (library,) = libraries(empty_compiler_cache)
    source = library.with_suffix(".cpp").read_text()
    assert [source.count(f"namespace kernel_{i} {{") for i in range(n + 1)] == [1] * n + [0]
    assert source.count("#include <torch/csrc/inductor/cpp_prefix.h>") == 1


def test_many_kernels_are_divided(empty_compiler_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpp_batches, "_MOST", 2)
    agrees(5)
    assert len(libraries(empty_compiler_cache)) == 3


def test_one_kernel_is_compiled_as_torch_does(empty_compiler_cache: Path) -> None:
    agrees(1)
    (library,) = libraries(empty_compiler_cache)
    assert "namespace" not in library.with_suffix(".cpp").read_text()


PROGRAM = """
import torch
from torch._inductor import cpp_builder
import magpy_core
from tests.unit.compat.test_cpp_batches import agrees

build, built = cpp_builder.CppBuilder.build, []
def noting(self):
    built.append(self.get_target_file_path())
    build(self)
cpp_builder.CppBuilder.build = noting
agrees(4)
print(len([path for path in built if path.endswith(".main.so")]))
"""


@pytest.mark.slow
def test_later_processes_compile_nothing(empty_compiler_cache: Path) -> None:
    counts = []
    for _ in range(2):
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        counts.append(done.stdout.split())
    assert counts == [["1"], ["0"]]


def test_what_is_not_a_single_function_is_compiled_alone() -> None:
    function = 'extern "C"  void kernel(const float* in_ptr0, float* out_ptr0)\n{\n}\n'
    include = "\n#include <torch/csrc/inductor/cpp_prefix.h>\n"
    found = _parsed(["const float*", "float*"], include + function)
    assert found is not None and found.includes == include and found.function == function.split('"C"  ')[1]
    template = "template <bool b> inline void kernel_micro(float* x) {}\n"
    for source in (include + template + function, include + "#define N 3\n" + function, include + 2 * function, template):
        assert _parsed([], source) is None


def test_torch_is_as_before() -> None:
    from torch._inductor.async_compile import AsyncCompile

    before = AsyncCompile.cpp_pybinding, AsyncCompile.wait
    with pytest.raises(ZeroDivisionError), batched_kernels():
        assert AsyncCompile.wait is not before[1]
        raise ZeroDivisionError
    assert (AsyncCompile.cpp_pybinding, AsyncCompile.wait) == before
