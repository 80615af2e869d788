"""What kernels a program launches on a target, as JSON. Key function: data."""

from __future__ import annotations

from typing import Any

from lsp_server.formats.view import View
from magpy_core.findings import TargetReport


def data(report: TargetReport, view: View, *, ptx: bool) -> dict[str, Any]:
    """As in the schema of a report. Each line of the program has its text, by which ``magpy-lsp diff`` finds it in another
    revision; PTX, which is long, is there on request only."""
    found = report.to_json()
    places = [at for kernel in found["kernels"] for at in kernel["lines"]]
    places += [pair[at] for pair in found["unfused"] for at in ("written", "read")]
    for at in places:
        at["text"] = " ".join((view.sources.line(at["file"], at["line"] - 1) or "").split())
    for kernel in found["kernels"]:
        if kernel["code"] is not None and not ptx:
            kernel["code"]["ptx"] = ""
    return found
