"""Kernels that were compiled before are not compiled again, unless something that they depend on has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.capture.build import Capture
from magpy_core.findings import Kernel, KernelCode, KernelLine, KernelWork
from magpy_core.opgraph import naming
from magpy_core.products.targets import kept, lowering
from magpy_core.products.targets.devices import parse_target

pytest.importorskip("triton")
H100 = parse_target("h100")
MADE = Kernel(
    "r", "forward", "k", "triton", ("sin",), (KernelLine("m.py", 3),), 2, KernelWork(8, 8, 2, "float32"), 2.5, "launch",
    KernelCode("@triton.jit", ".ptx", 16, 0, 0, 4, (1, 1, 1)),
)  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    return tmp_path / "magpy" / "inductor"


def captured(fn: Callable[..., Any], *args: Any) -> Capture:
    (capture,) = magpy_core.monitor(fn)(*args).captures
    return capture


def named(fn: Callable[..., Any], *args: Any) -> str:
    name = kept.name_of("r", "function", captured(fn, *args), H100)
    assert len(name) == 64
    return name


def scaled(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    return torch.softmax(x.sin() * by, -1)


X = torch.ones(4, 8)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The regions that are compiled, here and without a compiler."""
    found: list[str] = []

    def kernels(self: Any) -> dict[str, list[Any]]:
        found.append(self.captured.region)
        return {"kernels": [replace(MADE, region=self.captured.region)], "graphs": [], "unfused": []}

    monkeypatch.setattr(lowering._Work, "_compiled", kernels)
    monkeypatch.setattr(lowering, "results_of", lambda work: ((i, one()) for i, one in enumerate(work)))
    return found


def test_nothing_is_compiled_twice(compiled: list[str], folder: Path) -> None:
    def of(*regions: str) -> list[lowering.Captured]:
        return [lowering.Captured(region, "function", captured(scaled, X)) for region in regions]

    progress: list[tuple[int, int]] = []
    first = lowering.kernels_of(of("a", "b"), H100, on_progress=lambda *at: progress.append(at))
    assert compiled == ["a", "b"] and progress == [(0, 2), (1, 2), (2, 2)]
    progress.clear()
    again = lowering.kernels_of(of("a", "c", "b"), H100, on_progress=lambda *at: progress.append(at))
    assert compiled == ["a", "b", "c"] and progress == [(2, 3), (3, 3)]
    assert [kernel.region for kernel in again.kernels] == ["a", "c", "b"]
    assert [again.kernels[0], again.kernels[2]] == first.kernels
    assert len(list((folder / "kernels").iterdir())) == 3


def test_the_kernels_of_one_line_are_not_kept_as_those_of_all(compiled: list[str]) -> None:
    one = [lowering.Captured("a", "function", captured(scaled, X))]
    line = (__file__, scaled.__code__.co_firstlineno + 1)
    for _ in range(2):
        lowering.kernels_of(one, H100, line)
    assert compiled == ["a", "a"]
    for _ in range(2):
        lowering.kernels_of(one, H100)
    lowering.kernels_of(one, H100, line)
    assert compiled == ["a", "a", "a"], "what is kept of all of them has those of the line"


def test_what_failed_is_tried_again(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    one = [lowering.Captured("a", "function", captured(scaled, X))]

    def fails(self: Any) -> dict[str, list[Any]]:
        raise RuntimeError("no such instruction")

    with monkeypatch.context() as patch:
        patch.setattr(lowering._Work, "_compiled", fails)
        assert (
            lowering.kernels_of(one, H100).problems[0].message.startswith("RuntimeError: no such instruction (test_kept.py:")
        )
    assert lowering.kernels_of(one, H100).kernels and compiled == ["a"]


def test_the_same_graph_has_the_same_name() -> None:
    assert named(scaled, X) == named(scaled, torch.zeros(4, 8))


@pytest.mark.slow
def test_the_name_is_that_of_any_process(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(
        "import torch, magpy_core\n"
        "from magpy_core.products.targets import kept\n"
        "from magpy_core.products.targets.devices import parse_target\n"
        "f = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU())\n"
        "(c,) = magpy_core.monitor(f)(torch.ones(2, 4)).captures\n"
        "print(kept.name_of('r', 'module', c, parse_target('h100')))\n"
    )
    names = [
        subprocess.run(
            [sys.executable, "m.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert names[0] == names[1] and len(names[0].strip()) == 64, names


def test_another_input_operation_or_place_is_another_name() -> None:
    def moved(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
        return torch.softmax(x.sin() * by, -1)

    names = [
        named(scaled, X), named(scaled, torch.ones(4, 9)), named(scaled, X.double()), named(scaled, torch.ones(8, 4).t()),
        named(scaled, X.clone().requires_grad_()), named(scaled, X, 3.0), named(moved, X), named(lambda x: x.T, X),
        named(lambda x: x.H, X),
    ]  # fmt: skip
    assert len(set(names)) == len(names)


@pytest.fixture
def changes() -> Iterator[dict[str, Callable[[pytest.MonkeyPatch], None]]]:
    precision = torch.get_float32_matmul_precision()
    yield {
        "tf32": lambda patch: torch.set_float32_matmul_precision("high"),
        "cudnn": lambda patch: patch.setattr(torch.backends.cudnn, "allow_tf32", False),
        "environment": lambda patch: patch.setenv("TRITON_DEFAULT_FP_FUSION", "0"),
        "source": lambda patch: patch.setattr(kept, "_versions", lambda: "edited"),
    }
    torch.set_float32_matmul_precision(precision)


@pytest.mark.parametrize("what", ["tf32", "cudnn", "environment", "source"])
def test_another_setting_is_another_name(what: str, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    before = named(scaled, X)
    with monkeypatch.context() as patch:
        changes[what](patch)
        assert named(scaled, X) != before


def test_with_other_settings_of_compilers_it_is_compiled_each_time() -> None:
    from torch._inductor import config

    one = captured(scaled, X)
    with config.patch(max_autotune=True):
        assert kept.name_of("r", "function", one, H100) == ""


def test_the_region_the_kind_and_the_device_are_in_the_name() -> None:
    one = captured(scaled, X)
    with torch.no_grad():
        without_gradients = captured(scaled, X)
    names = {
        kept.name_of("r", "function", one, H100), kept.name_of("s", "function", one, H100),
        kept.name_of("r", "optimizer", one, H100), kept.name_of("r", "function", one, parse_target("a100")),
        kept.name_of("r", "function", one, replace(H100, bandwidth=1.0)),
        kept.name_of("r", "function", without_gradients, H100),
    }  # fmt: skip
    assert len(names) == 6 and "" not in names


def test_operators_that_torch_defines_in_python_have_names() -> None:
    """``x ** 2`` calls a function whose own name is ``pow``, which its module does not have."""
    operators = [
        getattr(torch.Tensor, name) for name in ("__pow__", "__rsub__", "__rtruediv__", "__floordiv__", "norm", "split")
    ]
    names = [naming.target_name(one) for one in operators]
    assert names[:2] == ["method __pow__", "method __rsub__"] and len(set(names)) == len(names)


def test_a_function_that_has_no_name_is_compiled_each_time() -> None:
    for target in (lambda x: x, test_the_same_graph_has_the_same_name, X.sum, scaled):
        with pytest.raises(naming.Unnamed):
            naming.target_name(target)
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(lambda x: x, (x,)))
    segment = SimpleNamespace(expected=(), module=lambda: torch.fx.GraphModule(torch.nn.Module(), graph))
    one: Any = SimpleNamespace(modes=(True,), segments=[segment], trace=SimpleNamespace(inputs=()))
    assert kept.name_of("r", "function", one, H100) == ""
    assert kept.file_of("") is None and kept.read(None) is None


def test_a_damaged_file_is_as_good_as_none(folder: Path) -> None:
    file = kept.file_of(named(scaled, X))
    assert file is not None and kept.read(file) is None
    kept.write(file, {"kernels": [asdict(MADE)]})
    assert kept.read(file) is not None and [file] == list((folder / "kernels").iterdir())
    for text in (file.read_text()[:-9], "[]", '{"kernels": [{"name": "k"}]}', '{"problems": []}', ""):
        file.write_text(text)
        assert kept.read(file) is None, text


def test_a_folder_of_the_users_own_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "own"))
    assert kept.file_of(named(scaled, X)) is None
