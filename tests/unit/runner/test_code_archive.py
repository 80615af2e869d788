"""Archives of compiled code: what is saved is loaded; an archive that is damaged, extended or for another machine is not."""

from __future__ import annotations

import json
import stat
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from magpy_core._compat.code_cache import CodeCache, digest_of, runs_folder, usual_folder
from magpy_core.runner.code_archive import ArchiveError, load, save

MANIFEST = "magpy-compiled-code.json"
HERE = {"torch": "2.13.0", "Python": "3.11.7", "instruction set": " ".join(f"feature{n}" for n in range(40))}
RUN = f"{'ab' * 32}.json"
FILES = {"graphs/one.json": "{}", "ab/kernel.main.so": "machine code", "fxgraph/ab/key/entry": "pickle"}


@pytest.fixture(autouse=True)
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of compiled code, and an archive of it."""
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "first"))
    monkeypatch.setattr("magpy_core._compat.code_cache._is_complete", lambda library: True)
    for cache in (CodeCache(usual_folder()), CodeCache(runs_folder())):
        assert not cache.refusal()
    for name, text in {**FILES, "header.h.gch": "large"}.items():
        file = usual_folder() / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    CodeCache(usual_folder()).record()
    (runs_folder() / RUN).write_text('{"seconds": 1.0, "saves": {}, "ahead": 0.5}')
    archive = tmp_path / "code.zip"
    saved = save(archive, HERE, "g++ 12")
    assert (saved.files, saved.size) == (4, sum(map(len, FILES.values())) + (runs_folder() / RUN).stat().st_size)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "second"))
    return archive


def found() -> dict[str, str]:
    """All files below the folder of MagPy's caches."""
    root = usual_folder().parent
    return {str(file.relative_to(root)): file.read_text() for file in root.rglob("*") if file.is_file()}


def rewritten(archive: Path, change: Callable[[dict[str, Any], dict[str, bytes]], object], **attributes: int) -> None:
    """The archive anew, with a changed manifest and other files. ``attributes``: of all files."""
    with zipfile.ZipFile(archive) as zipped:
        content = {info.filename: zipped.read(info) for info in zipped.infolist()}
    manifest = json.loads(content.pop(MANIFEST))
    change(manifest, content)
    with zipfile.ZipFile(archive, "w") as zipped:
        for name, data in {**content, MANIFEST: json.dumps(manifest).encode()}.items():
            info = zipfile.ZipInfo(name)
            for attribute, value in attributes.items():
                setattr(info, attribute, value)
            zipped.writestr(info, data)


def refused(archive: Path, *, environment: dict[str, str] = HERE) -> str:
    """Why it is, and nothing has been written then."""
    before = found()
    with pytest.raises(ArchiveError) as caught:
        load(archive, environment)
    assert found() == before
    return str(caught.value)


def test_what_was_saved_is_loaded_for_the_user_alone(filled: Path) -> None:
    assert stat.S_IMODE(filled.stat().st_mode) == 0o600
    loaded = load(filled, HERE)
    files = found()
    assert loaded.files == 4 and {f"inductor/{name}": text for name, text in FILES.items()}.items() <= files.items()
    assert set(files) == {*(f"inductor/{name}" for name in FILES), f"runs/{RUN}", "inductor/magpy-sizes.json"}
    for path in usual_folder().parent.rglob("*"):
        if path.name != "magpy-sizes.json":
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    cache = CodeCache(usual_folder())
    assert sorted(cache.undamaged()) == sorted(FILES) and cache.remove_incomplete() == 0


def test_the_same_code_makes_the_same_archive(filled: Path, tmp_path: Path) -> None:
    load(filled, HERE)
    save(tmp_path / "again.zip", HERE, "g++ 12")
    assert digest_of(tmp_path / "again.zip") == digest_of(filled)


def test_what_is_there_is_replaced(filled: Path) -> None:
    load(filled, HERE)
    library = usual_folder() / "ab/kernel.main.so"
    library.write_text("MACHINE CODE")  # as long, so that only its digest shows that it is another one
    (usual_folder() / "graphs/other.json").write_text("{}")
    load(filled, HERE)
    cache = CodeCache(usual_folder())
    assert library.read_text() == "machine code" and not cache.removed_if_damaged(library)
    assert "graphs/other.json" in cache.undamaged()


def test_damaged_files_are_not_saved(filled: Path, tmp_path: Path) -> None:
    load(filled, HERE)
    (usual_folder() / "ab/kernel.main.so").write_text("MACHINE CODE")
    save(tmp_path / "again.zip", HERE, "")
    with zipfile.ZipFile(tmp_path / "again.zip") as zipped:
        assert "inductor/ab/kernel.main.so" not in zipped.namelist()


def test_without_code_there_is_no_archive(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="There is no compiled code in"):
        save(tmp_path / "empty.zip", HERE, "")
    assert not (tmp_path / "empty.zip").exists()


def test_an_archive_that_cannot_be_written_leaves_nothing(filled: Path, tmp_path: Path) -> None:
    load(filled, HERE)
    with pytest.raises(ArchiveError, match="can't be written: No such file"):
        save(tmp_path / "missing" / "code.zip", HERE, "")
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    "name, value, said",
    [
        ("torch", "2.12.0", "torch 2.13.0, and here it is 2.12.0"),
        ("Python", "3.13.1", "Python 3.11.7, and here it is 3.13.1"),
        ("instruction set", "feature1 amx", "instruction set (only it has feature0 feature10"),
    ],
)
def test_another_environment_is_named(filled: Path, name: str, value: str, said: str) -> None:
    text = refused(filled, environment={**HERE, name: value})
    assert text.startswith("The code is for another environment: ") and said in text


def test_what_an_archive_does_not_name_differs(filled: Path) -> None:
    assert "processor not named, and here it is x86" in refused(filled, environment={**HERE, "processor": "x86"})


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_changed_byte_is_found(filled: Path, is_listed: bool) -> None:
    """Also of a file whose digest is not in the list."""
    if not is_listed:
        rewritten(filled, lambda manifest, content: manifest["files"]["inductor/ab/kernel.main.so"].__setitem__(1, ""))
    data = bytearray(filled.read_bytes())
    with zipfile.ZipFile(filled) as zipped:
        info = zipped.getinfo("inductor/ab/kernel.main.so")
    at = info.header_offset + 30 + len(info.filename) + 5
    data[at] ^= 0xFF
    filled.write_bytes(data)
    assert refused(filled) == "The archive is damaged: inductor/ab/kernel.main.so."


def test_other_content_is_found(filled: Path) -> None:
    rewritten(filled, lambda manifest, content: content.update({"inductor/graphs/one.json": b"[]"}))
    assert refused(filled) == "The archive is damaged: inductor/graphs/one.json."


def test_an_archive_that_was_cut_off_is_none(filled: Path) -> None:
    filled.write_bytes(filled.read_bytes()[:-100])
    assert "has been cut off" in refused(filled)


def test_other_files_are_no_archives(filled: Path, tmp_path: Path) -> None:
    assert "can't be read: No such file" in refused(tmp_path / "missing.zip")
    with zipfile.ZipFile(filled, "w") as zipped:
        zipped.writestr("inductor/graphs/one.json", "{}")
    assert "is not an archive of compiled code" in refused(filled)


@pytest.mark.parametrize("format", [None, 2, "1"])
def test_another_format_is_refused(filled: Path, format: Any) -> None:
    rewritten(filled, lambda manifest, content: manifest.update(format=format))
    assert "another version of MagPy" in refused(filled)


@pytest.mark.parametrize("files", [None, [], {"inductor/x": 1}, {"inductor/x": ["a", "b"]}])
def test_a_damaged_list_is_refused(filled: Path, files: Any) -> None:
    rewritten(filled, lambda manifest, content: manifest.update(files=files))
    assert "damaged" in refused(filled)


@pytest.mark.parametrize(
    "name",
    [
        "inductor/../../../evil.so", "../evil.so", "/tmp/evil.so", "inductor//tmp/evil", "inductor/./x", "inductor/a\\..\\x",
        "inductor/magpy-sizes.json", "inductor/locks/x.lock", "inductor/.hidden", "inductor/ab/.x.tmp", "inductor/x.gch",
        "runs/sub/x.json", "runs/x.so", "elsewhere/x", "inductor/a\nb", "inductor/c:x", "loaded/1.json",
    ],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_refused(filled: Path, name: str) -> None:
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"  # of "x"

    def add(manifest: Any, content: dict[str, bytes]) -> None:
        manifest["files"][name] = [1, digest]
        content[name] = b"x"

    rewritten(filled, add)
    assert "a name that compiled code never has" in refused(filled)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO])
def test_links_are_refused(filled: Path, kind: int) -> None:
    rewritten(filled, lambda manifest, content: None, external_attr=(kind | 0o777) << 16)
    assert "a link or something else that is no file" in refused(filled)


def test_files_that_are_not_listed_are_refused(filled: Path) -> None:
    rewritten(filled, lambda manifest, content: content.update({"inductor/x": b"x"}))
    assert "its list does not have: 'inductor/x'" in refused(filled)


def test_files_that_are_missing_are_named(filled: Path) -> None:
    rewritten(filled, lambda manifest, content: content.pop("inductor/graphs/one.json"))
    assert refused(filled) == "The archive is damaged: inductor/graphs/one.json is missing."


def test_two_files_of_one_name_are_refused(filled: Path) -> None:
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(filled, "a") as zipped:
        zipped.writestr("inductor/graphs/one.json", "{}")
    assert "several files of one name" in refused(filled)


def test_no_more_is_unpacked_than_is_listed(filled: Path) -> None:
    """A small archive may unpack to any size."""
    rewritten(filled, lambda manifest, content: content.update({"inductor/graphs/one.json": b" " * 100_000}))
    assert refused(filled) == "The archive is damaged: inductor/graphs/one.json has another size."


def test_more_code_than_the_folder_may_have_is_refused(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGPY_CACHE_SIZE", "10")
    assert "more than the folder may have (MAGPY_CACHE_SIZE)" in refused(filled)


def test_an_archive_that_others_can_write_is_refused(filled: Path) -> None:
    filled.chmod(0o666)
    assert "can be written by others" in refused(filled)


def test_a_folder_that_others_can_write_is_refused(filled: Path) -> None:
    load(filled, HERE)
    usual_folder().chmod(0o777)
    assert "can't be used" in refused(filled) and "can be written by others" in refused(filled)
    with pytest.raises(ArchiveError, match="can be written by others"):
        save(filled, HERE, "")


def test_nothing_is_written_through_a_link(filled: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert not CodeCache(usual_folder()).refusal()
    (usual_folder() / "ab").symlink_to(elsewhere)
    with pytest.raises(ArchiveError, match="it is a link"):
        load(filled, HERE)
    assert not list(elsewhere.iterdir()) and not list(usual_folder().parent.glob("loading-*"))


def test_a_folder_of_torchs_is_not_touched(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/elsewhere")
    assert "compiled code is kept in /elsewhere" in refused(filled)
