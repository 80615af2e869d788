"""Runs a program compiled and in eager mode, and has what they leave compared. Key type: PairedRuns. No torch.

One run after the other, each in a fresh copy of the working folder; their output is kept, not shown.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import magpy_core
from magpy_core.runner.bootstrap import WITHOUT_FOLDER
from magpy_core.runner.request import SESSIONS, Outcome, Record, RunRequest
from magpy_core.runner.working_copy import WorkingCopy

#: Names of runs: what a user is told of them while they run.
RUNS = {
    "compiled": "compiled",
    "eager": "in eager mode",
    "again": "in eager mode again",
    "noise": "in eager mode, with rounding noise",
}


class JudgeFailed(Exception):
    """The runs could not be compared."""


class PairedRuns:
    """``base``: an empty folder for what the runs leave. ``copy``: whether each run has a copy of its working folder."""

    def __init__(self, request: RunRequest, base: Path, launch: Callable[[RunRequest], Any], *, copy: bool = True) -> None:
        self._base, self._launch = base, launch
        self._work = WorkingCopy(Path(request.cwd or "."), base, wanted=copy)
        script = None if request.script is None else self._work.inside(request.script, request.cwd)
        self.request = replace(request, cwd=str(self._work.path), script=script)
        self.outcomes: dict[str, Outcome] = {}

    @property
    def why_no_files(self) -> str:
        """Why the program runs in its own folder, and no files are compared; empty if it does not."""
        return self._work.why_not

    def run(self, kind: str) -> Outcome:
        """Makes a run: ``compiled``, ``eager``, ``again`` or ``noise``. The compiled one is first."""
        number = sum(name.startswith("noise") for name in self.outcomes)
        name = f"noise-{number}" if kind == "noise" else kind
        folder = self._base / name
        folder.mkdir()
        self._work.prepare()
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
            request = replace(self._requested(kind, folder, number), stdout=out.fileno(), stderr=err.fileno())
            with self._launch(request) as handle:
                for _ in handle:
                    pass
                outcome: Outcome = handle.outcome
        outcome = replace(outcome, message=outcome.message.replace(str(self._work.path), str(self._work.folder)))
        self._work.keep(folder / "files")
        self.outcomes[name] = outcome
        return outcome

    def _requested(self, kind: str, folder: Path, number: int) -> RunRequest:
        if kind == "compiled":
            return replace(self.request, mode="run", compile="foreground", record=Record(str(folder)))
        written = self._base / "compiled" / "index.json"
        index: dict[str, Any] = (
            json.loads(written.read_text("ascii")) if written.exists() else {"states": {}, "itself": True}
        )
        steps = [int(label) for label in index["states"] if label.isdigit()]
        return replace(
            self.request,
            mode="check",
            session_factory=SESSIONS["eager"],
            # a compiled step may have several optimizer steps in it, after which the program is stopped
            steps=index["steps"] if self.request.steps and not index["itself"] else self.request.steps,
            record=Record(str(folder), steps, number if kind == "noise" else None),
        )

    def judge(self) -> dict[str, Any]:
        """What can be said of the runs made so far (``RunVerdict.to_json``)."""
        root = os.path.dirname(os.path.dirname(os.path.abspath(magpy_core.__file__)))
        source = f"{WITHOUT_FOLDER}sys.path.append({root!r})\nfrom magpy_core.verification.runs.verdict import main\nmain()"
        done = subprocess.run(
            [self.request.python or sys.executable, "-c", source, str(self._base)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=self.request.env,
        )  # fmt: skip
        try:
            found: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            raise JudgeFailed(f"The runs could not be compared: {done.stderr.strip()[-500:] or done.returncode}.") from None
        return found
