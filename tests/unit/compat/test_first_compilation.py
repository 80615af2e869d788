"""The first compilation on a machine tests no more than it must, and precompiles no header that would not pay."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch._inductor import cpu_vec_isa

from magpy_core._compat.torch import first_compilation
from magpy_core._compat.torch.first_compilation import builds, header_pays, triton_version

CODE = 'extern "C" int f() { return 1; }\n'


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where sources are written."""
    monkeypatch.setattr("torch._inductor.codecache.cache_dir", lambda: str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    return tmp_path


def refuse(isa: Any, code: str) -> bool:
    raise AssertionError("torch's own check builds a library with all of torch's headers")


needs_x86 = pytest.mark.skipif(
    platform.machine() != "x86_64" or torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
    reason="other processors are tested as torch does",
)


@needs_x86
def test_what_the_compiler_takes_can_be_used(sources: Path) -> None:
    best = cpu_vec_isa.VecAVX2()
    assert builds(best, refuse, best._avx_code) and builds(best, refuse, CODE)
    built = sorted(sources.rglob("*.so"))
    assert len(built) == 2 and not [one for one in sources.rglob("*") if one.suffix == f".{os.getpid()}"]
    before = [one.stat().st_mtime_ns for one in built]
    assert builds(best, refuse, best._avx_code) and [one.stat().st_mtime_ns for one in built] == before, "known"


@needs_x86
def test_what_the_compiler_refuses_can_not(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    best = cpu_vec_isa.VecAVX2()
    assert not builds(best, refuse, "no C++")
    monkeypatch.setattr(best, "_arch_flags", "-mno-such-set")
    assert not builds(best, refuse, best._avx_code)
    assert not [*sources.rglob("*.so")]


@needs_x86
def test_the_quick_answers_are_torchs() -> None:
    sets = [one for one in cpu_vec_isa.supported_vec_isa_list if str(one).split()[0] in cpu_vec_isa.x86_isa_checker()]
    named = [one for one in sets if all(name in cpu_vec_isa.x86_isa_checker() for name in str(one).split())]
    assert named and all(first_compilation._torch_uses(one) for one in named)


def test_a_set_that_torch_does_not_use_is_tested_by_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    asked = []

    def check(isa: Any, code: str) -> bool:
        asked.append(code)
        return True

    assert builds(cpu_vec_isa.VecAVX512(), check, "code") and asked == ["code"]


def test_the_header_is_not_precompiled_for_the_first_sources(tmp_path: Path) -> None:
    assert [header_pays(tmp_path, 2) for _ in range(4)] == [False, False, True, True]
    assert header_pays(tmp_path, 0) and not header_pays(tmp_path, 3) and header_pays(tmp_path, 3)
    assert header_pays(tmp_path / "missing", 2), "torch decides where nothing can be noted"


def test_the_version_stands_for_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__="9.1"))
    assert triton_version() == "9.1"
    monkeypatch.setitem(sys.modules, "triton", None)
    assert triton_version() is None


@pytest.mark.slow
def test_a_first_compilation_takes_neither_header_nor_torchs_check(tmp_path: Path) -> None:
    """In a new environment: what runs the C++ compiler, by its arguments."""
    calls = tmp_path / "calls"
    (shim := tmp_path / "g++").write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexec {shutil.which("g++")} "$@"\n')
    shim.chmod(0o755)
    program = textwrap.dedent("""
        import torch, magpy_core
        step = magpy_core.compile(lambda x: (x * 2 + x.sin()).relu(), wait=True)
        for _ in range(3):
            x = torch.randn(64, 64)
            assert torch.allclose(step(x), (x * 2 + x.sin()).relu())
    """)
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "caches"), "TMPDIR": str(tmp_path), "MAGPY_VERIFY": "0"}
    env["PATH"] = f"{tmp_path}{os.pathsep}{env['PATH']}"
    env.pop("TORCHINDUCTOR_CACHE_DIR", None)
    subprocess.run([sys.executable, "-c", program], env=env, check=True, timeout=300)
    built = [line.split() for line in calls.read_text().splitlines() if "-o" in line.split()]
    outputs = [line[line.index("-o") + 1] for line in built]
    assert len([one for one in outputs if one.endswith(".so")]) == 1 and not [one for one in outputs if ".gch" in one]
