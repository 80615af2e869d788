"""Runs a program compiled and in eager mode, and has what they leave compared. Key type: PairedRuns. No torch.

One run after the other, each in a fresh copy of the working folder; their output is kept, not shown.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from magpy_core.limits import LIMITS
from magpy_core.runner.bootstrap import engine_command
from magpy_core.runner.request import SESSIONS, Outcome, Record, RunRequest
from magpy_core.runner.working_copy import WorkingCopy

#: Names of runs: what a user is told of them while they run.
RUNS = {
    "compiled": "compiled",
    "eager": "in eager mode",
    "again": "in eager mode again",
    "noise": "in eager mode, with rounding noise",
    "origin": "compiled again, to find the operation that differs",
}


class JudgeFailed(Exception):
    """The runs could not be compared."""


class PairedRuns:
    """``base``: an empty folder for what the runs leave. ``copy``: whether each run has a copy of its working folder.
    ``origin_seconds``: for finding the operation that first differs (verification/origin.py)."""

    def __init__(
        self,
        request: RunRequest,
        base: Path,
        launch: Callable[[RunRequest], Any],
        *,
        copy: bool = True,
        origin_seconds: float = LIMITS.origin_seconds,
    ) -> None:
        self._base, self._launch, self._origin_seconds = base, launch, origin_seconds
        self._work = WorkingCopy(Path(request.cwd or "."), base, wanted=copy)
        script = None if request.script is None else self._work.inside(request.script, request.cwd)
        self.request = replace(request, cwd=str(self._work.path), script=script)
        self.outcomes: dict[str, Outcome] = {}
        self._between: tuple[int, int] = (
            0,
            0,
        )  # the last step after which states were equal, and the first with a difference

    @property
    def why_no_files(self) -> str:
        """Why the program runs in its own folder, and no files are compared; empty if it does not."""
        return self._work.why_not

    def run(self, kind: str) -> Outcome:
        """Makes a run: one of ``RUNS``. The compiled one is first."""
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
            return replace(self._compiled(folder, 0), record=Record(str(folder)))
        if kind == "origin":
            equal, first = self._between
            return replace(self._compiled(folder, equal), steps=first or self.request.steps, record=Record(str(folder), []))
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

    def _compiled(self, folder: Path, after: int) -> RunRequest:
        """A compiled run, which looks for the first difference after a step."""
        verify = (
            f"origin:{after}:{self._origin_seconds:g}:{folder}" if self.request.verify == "first" else self.request.verify
        )
        return replace(self.request, mode="run", compile="foreground", verify=verify)

    def judge(self) -> dict[str, Any]:
        """What can be said of the runs made so far (``RunVerdict.to_json``)."""
        judged = "from magpy_core.verification.runs.verdict import main\nmain()"
        done = subprocess.run(
            engine_command(self.request.python or sys.executable, judged, str(self._base)),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=self.request.env,
        )  # fmt: skip
        try:
            found: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            raise JudgeFailed(f"The runs could not be compared: {done.stderr.strip()[-500:] or done.returncode}.") from None
        self._between = found["between"]
        if (origin := found.get("origin")) is not None:
            origin["where"] = origin["where"].replace(str(self._work.path), str(self._work.folder))
        return found
