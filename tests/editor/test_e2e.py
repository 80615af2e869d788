"""The extension in a real VS Code in a real browser: ``make e2e``, or ``pytest -m e2e`` here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXTENSION = Path(__file__).parents[2] / "vscode-extension"


@pytest.mark.e2e
@pytest.mark.timeout(1500)
def test_a_person_checks_and_runs_the_example() -> None:
    if shutil.which("npm") is None or not (EXTENSION / "node_modules").is_dir():
        pytest.skip("the extension's tools are not installed: npm --prefix vscode-extension ci")
    env = {**os.environ, "MAGPY_PYTHON": os.environ.get("MAGPY_PYTHON", sys.executable)}
    ended = subprocess.run(["npm", "run", "--silent", "e2e"], cwd=EXTENSION, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]
    assert "end to end: passed" in ended.stdout
