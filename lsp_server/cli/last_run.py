"""The report of the last run in a folder, kept for ``explain-run``. Key functions: keep, find; key type: LastRun."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from lsp_server.cli.settings import ResolvedSettings
from lsp_server.formats import as_json
from lsp_server.formats.view import View
from magpy_core.findings import Report
from magpy_core.runner import compiled_code


@dataclass(frozen=True)
class LastRun:
    """``command``: the program with its arguments; ``at``: when it ended, in local time."""

    command: str
    at: str
    report: Report


def keep(settings: ResolvedSettings, report: Report) -> None:
    """Keeps the report of a run that has ended, for the current folder."""
    command = shlex.join([settings.title, *settings.args])
    small = replace(report, details=None, kernels=None)
    kept = {
        "command": command,
        "at": datetime.now().isoformat(" ", "seconds"),
        "report": json.loads(as_json.text(small, View())),
    }
    compiled_code.keep_report(Path.cwd(), json.dumps(kept))


def find() -> LastRun | None:
    """Of the current folder, else of the nearest one above. None: there was none, or another version has written it."""
    text = compiled_code.kept_report(Path.cwd())
    if text is None:
        return None
    try:
        kept = json.loads(text)
        return LastRun(str(kept["command"]), str(kept["at"]), Report.from_json(kept["report"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
