"""Compiled code is kept in MagPy's folder from run to run: the user's own torch.compile, and damage, change nothing."""

from __future__ import annotations

import getpass
import os
import pickle
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch._inductor import cpu_vec_isa

from magpy_core._compat.code_cache import CodeCache
from magpy_core._compat.torch import inductor_cache
from magpy_core._compat.torch.inductor_start import _best_set, _library_of, _probe_once
from magpy_core.backends import background, cache
from magpy_core.regions.session import Session

PROGRAM = """
import os, sys, time, torch, magpy_core
from torch._dynamo.utils import counters
from magpy_core.backends import fair_share
from magpy_core.limits import Limits
from magpy_core.regions.api import region_of

# other tests may leave no core free, and the code saves nothing
fair_share.LIMITS = Limits(compile_at_once=1000.0, most_gain=1e6)
before = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
net = torch.nn.Linear(4, 4)
with torch.no_grad():
    net.weight.fill_(0.5), net.bias.zero_()
f = magpy_core.compile(lambda x: net(x).sin().sum(), wait="background" not in sys.argv)
for i in range(3 if "background" not in sys.argv else 600):
    if i > 2:
        time.sleep(0.1)
        if region_of(f).hits >= 2:
            break
    x = torch.full((2, 4), float(i), requires_grad=True)
    y = f(x)
    y.backward()
want = net(x).sin().sum()
assert torch.allclose(y, want) and torch.allclose(x.grad, torch.autograd.grad(net(x).sin().sum(), x, allow_unused=True)[0])
assert region_of(f).hits >= 2, region_of(f).findings
stored = int("torch._inductor.compile_fx" not in sys.modules)  # then no compiler was needed
assert os.environ.get("TORCHINDUCTOR_CACHE_DIR") == before, os.environ.get("TORCHINDUCTOR_CACHE_DIR")
if "own" in sys.argv:
    print(torch.compile(lambda x: x.cos() * 3)(torch.zeros(3)).tolist(), os.environ["TORCHINDUCTOR_CACHE_DIR"])
print("found", counters["aot_autograd"]["autograd_cache_hit"] + stored)
"""


def run(folder: Path, *arguments: str, **more: str) -> str:
    env = {k: v for k, v in os.environ.items() if k != "TORCHINDUCTOR_CACHE_DIR"}
    env |= {"XDG_CACHE_HOME": str(folder / "caches"), "TMPDIR": str(folder / "tmp"), **more}
    (folder / "tmp").mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, *arguments], env=env, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_the_next_run_finds_it_and_damage_is_repaired(tmp_path: Path) -> None:
    place = tmp_path / "caches" / "magpy" / "inductor"
    assert run(tmp_path) == "found 0\n"
    kept = {path for path in files(place) if path.suffix == ".so"}
    assert kept and place.stat().st_mode & 0o777 == 0o700
    assert run(tmp_path) == "found 1\n"
    for stored in (place / "graphs").iterdir():
        stored.unlink()
    assert run(tmp_path) == "found 1\n"  # in torch's caches
    for part in (0.0, 0.5):  # every file is cut off
        for path in files(place):
            os.truncate(path, int(path.stat().st_size * part))
        assert run(tmp_path) == "found 0\n"
        assert run(tmp_path) == "found 1\n"


@pytest.mark.slow
def test_code_that_is_damaged_at_equal_size_is_compiled_again(tmp_path: Path) -> None:
    """It would end the process, or compute something else."""
    place = tmp_path / "caches" / "magpy" / "inductor"
    assert run(tmp_path) == "found 0\n"
    for kinds, stored in (((".so",), True), ((".so",), False), ((".py", ".cpp", ""), False)):
        if not stored:  # then it is found in torch's caches
            shutil.rmtree(place / "graphs")
        damaged = [
            path for path in files(place) if path.suffix in kinds and path.parts[-3] != "locks" and path.stat().st_size
        ]
        assert damaged
        for path in damaged:
            size = path.stat().st_size
            with open(path, "r+b") as opened:
                opened.seek(size // 4)
                opened.write(b"\xcc" * (size // 2))
            assert path.stat().st_size == size
        run(tmp_path)  # compares its results with eager mode's
        assert run(tmp_path) == "found 1\n"


class Planted:
    def __reduce__(self) -> Any:
        return os.mkdir, (os.environ["PLANTED"],)


@pytest.mark.slow
@pytest.mark.parametrize("wait", ["", "background"])
def test_without_a_folder_of_its_own_nothing_is_loaded_that_others_may_have_planted(tmp_path: Path, wait: str) -> None:
    """torch's default folder is in the temporary folder, under a name that anybody can make first."""
    place = tmp_path / "caches" / "magpy" / "inductor"
    assert run(tmp_path) == "found 0\n"
    default = tmp_path / "tmp" / f"torchinductor_{getpass.getuser()}"
    shutil.copytree(place, default, dirs_exist_ok=True)
    with mock.patch.dict(os.environ, PLANTED=str(tmp_path / "executed")):
        evil = pickle.dumps(Planted())
    entries = [path for path in files(default) if path.relative_to(default).parts[0] in ("aotautograd", "fxgraph")]
    assert entries
    for path in entries:
        path.write_bytes(evil)
    place.chmod(0o777)
    before = sorted(files(default))
    for _ in range(2):  # in the background, it finds what its own process has compiled
        assert run(tmp_path, wait) == f"found {int(wait == 'background')}\n"
    assert not (tmp_path / "executed").exists()
    assert [path.name for path in (tmp_path / "tmp").iterdir() if path.name.startswith("magpy")] == []
    assert {path.read_bytes() for path in entries} == {evil} and sorted(files(default)) == before


@pytest.mark.slow
def test_torch_compile_keeps_its_folder(tmp_path: Path) -> None:
    own = run(tmp_path, "own")
    folder = own.split()[-3]
    assert folder.startswith(str(tmp_path / "tmp")) and files(Path(folder) / "fxgraph")
    set_by_user = run(tmp_path, "own", TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "mine"))
    assert str(tmp_path / "mine") in set_by_user and len(list((tmp_path / "mine" / "aotautograd").iterdir())) == 2


def test_whose_folder_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    for given, own in (("", False), (default_cache_dir(), False), (str(tmp_path), True)):
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", given)
        assert inductor_cache.has_own_folder() is own
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    assert not inductor_cache.has_own_folder()


def test_what_was_just_compiled_is_loaded_without_a_look(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    looked: list[str] = []
    for name in ("remove_incomplete", "record", "prune"):
        monkeypatch.setattr(CodeCache, name, lambda *args, name=name: looked.append(name) or 0)
    with cache.loading(), cache.kept():
        assert os.environ["TORCHINDUCTOR_CACHE_DIR"].startswith(str(tmp_path))
    assert looked == []
    with cache.kept():
        pass
    assert looked == ["remove_incomplete", "record", "prune"]


def finished() -> list[str]:
    """The findings of a session with two compiled regions."""
    session = Session(mode="compiled", backend="aot_eager")
    for name in ("first", "second"):
        region = session.region(name, kind="function", name=name, file=__file__, line=1, target=lambda x: x + 1)
        for _ in range(2):
            region(torch.ones(1))
    session.finish()
    return [f"{f.code} {f.region}: {f.message}" for f in session.findings]


def test_what_is_wrong_with_the_folder_is_one_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache._Found, "refusal", "")
    monkeypatch.setattr(cache._Found, "removed", 0)
    assert finished() == []
    place = tmp_path / "magpy" / "inductor"
    place.mkdir(parents=True)
    (place / "cut.so").write_bytes(b"")
    with cache.kept():
        pass
    text = "In the cache of compiled code, a damaged file was found and removed; what was in it is compiled again."
    assert finished() == [f"MP405 first: {text}"] and not list(place.glob("*.so"))
    place.chmod(0o777)
    with cache.kept():
        pass
    text = f"Compiled code is not kept for the next run: {place} can be written by others."
    assert finished() == [f"MP405 first: {text}"]


def test_damage_that_a_compiling_process_found_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache._Found, "refusal", "")
    monkeypatch.setattr(cache._Found, "removed", 0)
    compilation = background.Compilation()
    compilation.start(lambda: cache.note_removed(2))
    end = time.monotonic() + 60
    while not compilation.ended():
        assert time.monotonic() < end
        time.sleep(0.01)
    assert compilation.result.removed == 2 and "2 damaged files were found" in cache.cache_problem()


def test_everything_is_put_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache
    from torch._inductor import codecache
    from torch._inductor.cpu_vec_isa import VecISA

    def state() -> list[object]:
        owners = (AOTAutogradCache, codecache.FxGraphCache, codecache.CppCodeCache, codecache.PyCodeCache, VecISA)
        names = ("_get_tmp_dir_for_key", "_load_library", "load_by_key_path", "_probe_load")
        return [vars(o).get(n) for o in owners for n in names] + [
            codecache.write, codecache._precompile_header, codecache._HEADER_DIR, codecache._HEADER_LOCK_DIR
        ]  # fmt: skip

    for before in (None, "/somewhere"):
        if before is None:
            monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
        else:
            monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", before)
        was = state()
        with pytest.raises(ZeroDivisionError), inductor_cache.caching_in(tmp_path):
            assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path) and state() != was
            raise ZeroDivisionError
        assert state() == was and os.environ.get("TORCHINDUCTOR_CACHE_DIR") == before


def test_no_folder_of_torchs_is_used_where_ours_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from torch._inductor import codecache

    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache._Found, "refusal", "")
    monkeypatch.setattr(cache._Private, "folder", None)
    (tmp_path / "magpy" / "inductor").mkdir(parents=True)
    (tmp_path / "magpy" / "inductor").chmod(0o777)
    headers = tmp_path / "torchinductor" / "precompiled_headers"
    monkeypatch.setattr(codecache, "_HEADER_DIR", str(headers))
    monkeypatch.setattr(codecache, "_HEADER_LOCK_DIR", str(headers / "locks"))
    used = []
    for is_private in (True, False):
        if not is_private:
            headers.parent.chmod(0o777)
        with cache.kept():
            used.append(Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]))
            assert Path(codecache._HEADER_DIR) == (headers if is_private else used[0] / "precompiled_headers")
            assert Path(codecache._HEADER_LOCK_DIR) == Path(codecache._HEADER_DIR) / "locks"
        assert Path(codecache._HEADER_DIR) == headers and Path(codecache._HEADER_LOCK_DIR) == headers / "locks"
    assert used[0] == used[1] == cache.folder() and used[0].stat().st_mode & 0o777 == 0o700
    assert tmp_path not in used[0].parents and "can be written by others" in cache.cache_problem()
    cache._remove_private(used[0], os.getpid() + 1)
    assert used[0].exists()  # another process's
    cache._remove_private(used[0], os.getpid())
    assert not used[0].exists()


def test_a_probe_is_remembered_for_its_library(tmp_path: Path) -> None:
    library, asked = tmp_path / "x.so", list[str]()

    def probe(isa: object, path: str) -> bool:
        asked.append(path)
        return bool(len(asked) % 2)

    def answers(count: int) -> list[bool]:
        return [_probe_once(None, probe, str(library)) for _ in range(count)]

    assert answers(2) == [True, False] and len(asked) == 2  # there is no library
    library.write_bytes(b"1")
    assert answers(3) == [True] * 3 and len(asked) == 3
    library.write_bytes(b"22")
    assert answers(3) == [False] * 3 and len(asked) == 4
    library.with_name("x.so.json").write_text("[1")
    assert answers(2) == [True] * 2 and len(asked) == 5


def test_the_library_of_a_source() -> None:
    assert _library_of("/a/b.main.cpp") == Path("/a/b.main.so") and _library_of("/a/b.cpp") == Path("/a/b.so")
    assert torch.__version__


class Set:
    """An instruction set of a processor, or one that the C++ compiler does not know."""

    def __init__(self, names: str, works: bool) -> None:
        self.names, self.works, self.tests = names, works, 0

    def __str__(self) -> str:
        return self.names

    def __bool__(self) -> bool:
        self.tests += 1
        return self.works


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the sets of other processors are not tested one by one")
def test_only_the_instruction_set_that_is_used_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = [Set("avx512 amx_tile", True), Set("avx512", False), Set("avx2", True), Set("sse4", True)]
    monkeypatch.setattr(cpu_vec_isa, "supported_vec_isa_list", sets)
    monkeypatch.setattr(cpu_vec_isa, "x86_isa_checker", lambda: ["sse4", "avx2", "avx512"])
    all_sets = cpu_vec_isa.valid_vec_isa_list.__wrapped__
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    assert _best_set(all_sets) == [sets[2]] == all_sets()[:1]
    assert [one.tests for one in sets] == [0, 2, 2, 1]  # the last one by `all_sets` alone
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    assert _best_set(all_sets) == sets[2:]
