"""Programs with threads under `run`: they print what they print in eager mode, and nothing of ours fails meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from magpy_core.runner.request import SESSIONS
from tests.programs import threads
from tests.programs.runner_help import Ran, under_magpy
from tests.programs.spare import printed

FOLDER = Path(threads.__file__).parent


def run(folder: Path, name: str, **options: Any) -> Ran:
    shutil.copy(FOLDER / f"{name}.py", folder / "prog.py")
    return under_magpy(
        folder, script="prog.py", session_factory=SESSIONS["magpy"], mode="run", steps=0, timeout=300.0, **options
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["serve_and_train", "fetch_and_evaluate"])
@pytest.mark.parametrize(
    "options",
    [{"backend": "eager", "compile": "foreground"}, {"backend": "inductor", "compile": "background"}],
    ids=["foreground", "background"],
)
def test_threads(tmp_path: Path, name: str, options: dict[str, str]) -> None:
    ran = run(tmp_path, name, **options)
    assert (ran.outcome.kind, ran.stderr) == ("ok", b"")
    assert ran.stdout == printed(tmp_path)
    assert "MP901" not in ran.codes
    shared = [name for name in ran.regions() if name.startswith(("shared: ", "small: ", "frozen: "))]
    assert not [name for name in shared if "#" in name], "one module is one region, whichever thread calls it first"
