"""Headers that a killed compiler has left incomplete are compiled anew, and MagPy's own compilations leave none."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from magpy_core._compat.torch.compiled_headers import is_incomplete, whole_headers
from magpy_core.backends import background
from magpy_core.backends.background import Compilation


class Builder:
    def __init__(self, path: Path) -> None:
        self._path = path

    def get_target_file_path(self) -> str:
        return str(self._path)


def test_what_is_incomplete_is_removed_before_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import codecache

    seen: list[bool] = []

    def compile_missing(lock_path: str, cpp_builders: Any) -> None:
        seen.extend(Path(one.get_target_file_path()).exists() for one in cpp_builders)

    monkeypatch.setattr(codecache, "_worker_compile_cpp", compile_missing)
    files = {"half.h.gch": b"gpcWrite...", "empty.h.gch": b"", "whole.h.gch": b"gpch+014...", "other.so": b"gpcWrite"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with whole_headers():
        codecache._worker_compile_cpp(str(tmp_path / "lock"), [Builder(tmp_path / name) for name in [*files, "none.h.gch"]])
    assert seen == [False, False, True, True, False]
    assert codecache._worker_compile_cpp is compile_missing


@pytest.mark.slow
def test_a_cancelled_compilation_leaves_no_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "inductor_is_imported", lambda: True)
    source, compiled = tmp_path / "x.h", tmp_path / "x.h.gch"
    source.write_text("#include <torch/csrc/inductor/cpp_prefix.h>\n")
    include = Path(torch.__file__).parent / "include"
    command = ["g++", "-std=c++20", "-fPIC", f"-I{include}", "-DCPU_CAPABILITY_DEFAULT", "-o", str(compiled), str(source)]
    pid = tmp_path / "pid"

    def work() -> None:
        compiler = subprocess.Popen(command)
        pid.write_text(str(compiler.pid))
        compiler.wait()

    one = Compilation()
    one.start(work)
    until(lambda: compiled.exists() and pid.exists() and pid.read_text())
    one.cancel()
    until(lambda: not runs(int(pid.read_text())))
    assert not is_incomplete(str(compiled))


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
