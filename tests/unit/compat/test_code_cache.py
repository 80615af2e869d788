"""The folder of compiled code: where it is, whom it is trusted to, what is removed. Nothing is compiled."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from magpy_core._compat import code_cache
from magpy_core._compat.code_cache import CodeCache, limit, usual_folder


@pytest.fixture
def cache(tmp_path: Path) -> CodeCache:
    made = CodeCache(tmp_path / "magpy" / "inductor")
    assert made.refusal() == ""
    return made


def put(cache: CodeCache, name: str, size: int, age: float = 0.0) -> Path:
    path = cache.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (time.time() - age,) * 2)
    return path


def names(cache: CodeCache) -> set[str]:
    return {file.path.name for file in cache.files()}


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert usual_folder({}, "linux") == Path("/home/me/.cache/magpy/inductor")
    assert usual_folder({"XDG_CACHE_HOME": "/c"}, "linux") == Path("/c/magpy/inductor")
    assert usual_folder({"XDG_CACHE_HOME": "relative"}, "linux") == Path("/home/me/.cache/magpy/inductor")
    assert usual_folder({}, "darwin") == Path("/home/me/Library/Caches/magpy/inductor")
    assert usual_folder({"LOCALAPPDATA": "/l"}, "win32") == Path("/l/magpy/inductor")


@pytest.mark.parametrize(
    "given, want",
    [("", 4 << 30), ("1000", 1000), ("500M", 500 << 20), ("2g", 2 << 30), ("3 GiB", 3 << 30), ("much", 4 << 30)],
)
def test_its_limit(given: str, want: int) -> None:
    assert limit({"MAGPY_CACHE_SIZE": given}) == want


def test_only_the_user_can_write_there(cache: CodeCache) -> None:
    for folder in (cache.folder, cache.folder.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        for mode in (0o720, 0o702):
            folder.chmod(mode)
            assert "written by others" in cache.refusal()
        folder.chmod(0o755)
        assert cache.refusal() == ""


def test_another_users_folder(cache: CodeCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert "another user" in cache.refusal()


def test_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert CodeCache(tmp_path / "file" / "inductor").refusal()
    assert "home" in CodeCache(Path("~/x")).refusal()
    target = tmp_path / "elsewhere"
    target.mkdir()
    (tmp_path / "magpy").mkdir(mode=0o700)
    (tmp_path / "magpy" / "inductor").symlink_to(target)
    assert "not a folder" in CodeCache(tmp_path / "magpy" / "inductor").refusal()


def test_what_has_another_size_is_removed(cache: CodeCache) -> None:
    files = [put(cache, f"ab/{n}", 100) for n in ("a.py", "b.cpp", "c")]
    cache.record()
    assert cache.remove_incomplete() == 0
    os.truncate(files[0], 0)
    os.truncate(files[1], 50)
    assert cache.remove_incomplete() == 2 and names(cache) == {"c"}


def test_what_nobody_has_recorded_is_removed_when_it_is_old(cache: CodeCache) -> None:
    put(cache, "aa/old", 10, age=3600)
    put(cache, "aa/new", 10)
    put(cache, "aa/new.so", 10)  # no library, though it says so
    put(cache, "locks/old.lock", 0, age=3600)
    assert cache.remove_incomplete() == 2 and names(cache) == {"new", "old.lock"}


def test_a_library_that_is_being_built_stays(cache: CodeCache) -> None:
    import fcntl

    put(cache, "aa/key.main.so", 10)
    lock = put(cache, "locks/key.lock", 0)
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert cache.remove_incomplete() == 0
        cache.record()
    assert cache.remove_incomplete() == 1


def test_a_library_that_was_cut_off() -> None:
    import torch

    library = next((Path(torch.__file__).parent / "lib").glob("libshm.so"))
    assert code_cache._is_complete(library)
    assert not code_cache._is_complete(library.with_name("no such file"))


@pytest.mark.parametrize("part", [0.0, 0.5, 0.99])
def test_a_part_of_a_library(tmp_path: Path, part: float) -> None:
    import torch

    whole = next((Path(torch.__file__).parent / "lib").glob("libshm.so")).read_bytes()
    (tmp_path / "part.so").write_bytes(whole[: int(len(whole) * part)])
    assert not code_cache._is_complete(tmp_path / "part.so")


def test_a_record_that_can_not_be_read(cache: CodeCache) -> None:
    for text in ("", "[1]", "{"):
        put(cache, "aa/a.py", 10)
        cache.record()
        (cache.folder / "magpy-sizes.json").write_text(text)
        assert cache.remove_incomplete() == 1 and names(cache) == set()


def test_the_least_recently_used_goes(cache: CodeCache) -> None:
    for i in range(10):
        put(cache, f"aa/{i}", 100, age=10.0 * i)
    assert cache.prune(2000) == 0
    (cache.folder / "magpy-pruned").unlink()
    assert cache.prune(700) == 500 and names(cache) == {"0", "1", "2", "3", "4"}
    put(cache, "aa/more", 1000)
    assert cache.prune(700) == 0  # once in an hour
    assert cache.prune(700, now=time.time() + 3700) > 0 and cache.size() <= 560


def test_clear(cache: CodeCache) -> None:
    put(cache, "aa/bb/a", 100), put(cache, "c", 23)
    put(cache, "aotautograd/key/1", 1), put(cache, "aotautograd/key/2", 1)
    cache.record()
    assert cache.entries() == 1
    assert cache.clear() == 125 and not [path for path in cache.folder.rglob("*") if path.is_file()]
    assert cache.clear() == 0 and CodeCache(cache.folder / "none").clear() == 0


def test_several_at_once(cache: CodeCache) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(30):
                put(cache, f"{number}/{i}", 100)
                (cache.record, cache.remove_incomplete, cache.clear, lambda: cache.prune(500, now=time.time() + 1e5))[
                    i % 4
                ]()
        except FileNotFoundError:
            pass  # our own file, which another has just removed
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_it_imports_no_torch() -> None:
    code = "import sys, magpy_core.runner.compiled_code, lsp_server.cli.cache; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_a_crashed_process_had_loaded_is_removed(cache: CodeCache) -> None:
    def loads() -> tuple[Path, Path]:
        library, entry = put(cache, "kernels/a.so", 10), put(cache, "fxgraph/b/c", 10)
        cache.is_loading([library])
        cache.has_loaded()
        cache.is_loading([entry.parent, Path("/somewhere/else")])
        return library, entry

    library, entry = loads()
    assert cache.ended(os.getpid(), crashed=False) == 0 == cache.ended(os.getpid(), crashed=True)
    loads()
    assert cache.ended(os.getpid(), crashed=True) == 2 and not library.exists() and not entry.exists()
    loads()
    assert cache.remove_half_loaded() == 0  # this process is running
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    marker = code_cache.loaded_folder(cache.folder) / f"{os.getpid()}.json"
    marker.rename(marker.with_stem(ended.stdout.strip()))
    assert cache.remove_half_loaded() == 1 and library.exists() and not entry.exists()
    assert list(marker.parent.iterdir()) == []


def test_a_file_of_another_content_is_removed_before_it_is_used(cache: CodeCache) -> None:
    path = put(cache, "kernels/a.cpp", 30)
    other = put(cache, "b.py", 20)
    cache.record()
    assert not cache.removed_if_damaged(path) and not cache.removed_if_damaged(other)
    path.write_bytes(b"x" * 29 + b"y")
    cache.record()  # another compilation has ended: what was known of the file holds
    assert CodeCache(cache.folder).removed_if_damaged(path) and not path.exists()
    assert not cache.removed_if_damaged(path)
    unknown = put(cache, "c.so", 10)
    assert not cache.removed_if_damaged(unknown) and unknown.exists()
    (cache.folder / "magpy-sizes.json").write_text('{"b.py": 20, "c.so": [10, ""]}')  # as an earlier version wrote it
    assert cache.remove_incomplete() == 0 and not cache.removed_if_damaged(other)
    cache.record()
    other.write_bytes(b"y" * 20)
    assert cache.removed_if_damaged(other)
