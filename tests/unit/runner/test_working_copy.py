"""Each run of `magpy-lsp verify` has a fresh copy of the working folder, at one path."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from magpy_core.limits import LIMITS
from magpy_core.runner import working_copy
from magpy_core.runner.working_copy import WorkingCopy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / ".git").mkdir(parents=True)
    (made / ".git" / "config").write_text("x")
    (made / "venv").mkdir()
    (made / "venv" / "pyvenv.cfg").write_text("x")
    (made / "train.py").write_text("print(1)")
    (made / "data").mkdir()
    (made / "data" / "corpus.txt").write_text("abc")
    return made


def test_a_run_finds_the_folder_as_it_was_and_leaves_what_it_changed(folder: Path, tmp_path: Path) -> None:
    copy = WorkingCopy(folder, tmp_path / "base")
    for number in range(2):
        copy.prepare()
        assert sorted(one.name for one in copy.path.rglob("*")) == ["corpus.txt", "data", "train.py"]
        (copy.path / "data" / "corpus.txt").write_text("changed")
        (copy.path / "out").mkdir()
        (copy.path / "out" / "last.pt").write_text("new")
        (folder / "train.py").write_text(f"print({number + 2})")  # by the user, meanwhile
        copy.keep(tmp_path / f"kept{number}")
        kept = tmp_path / f"kept{number}"
        assert sorted(p.relative_to(kept).as_posix() for p in kept.rglob("*.*")) == ["data/corpus.txt", "out/last.pt"]
    assert (folder / "data" / "corpus.txt").read_text() == "abc" and not (folder / "out").exists()


def test_a_script_in_the_folder_is_that_of_the_copy(folder: Path, tmp_path: Path) -> None:
    copy = WorkingCopy(folder, tmp_path / "base")
    assert copy.inside(str(folder / "train.py"), None) == "train.py"
    assert copy.inside("train.py", str(folder)) == "train.py"
    assert copy.inside(str(tmp_path / "other.py"), None) == str(tmp_path / "other.py")


@pytest.mark.parametrize("limit", [{"copied_bytes": 4}, {"copied_files": 1}])
def test_a_large_folder_is_used_in_place(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: dict[str, int]
) -> None:
    monkeypatch.setattr(working_copy, "LIMITS", replace(LIMITS, **limit))
    copy = WorkingCopy(folder, tmp_path / "base")
    copy.prepare()
    copy.keep(tmp_path / "kept")
    assert copy.path == folder and copy.why_not and not (tmp_path / "kept").exists()
