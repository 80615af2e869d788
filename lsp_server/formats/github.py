"""GitHub workflow commands: an annotation on the line of each finding. Key function: lines.

Facts and hints are omitted: GitHub keeps ten annotations of each kind per step.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from lsp_server.formats.view import View, clean
from lsp_server.links import in_text
from magpy_core.findings import Finding, Report, Severity, lookup

COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFORMATION: "notice"}


def lines(report: Report, view: View) -> Iterator[Text]:
    """Most severe first, since only the first ten of each kind are shown."""
    shown = sorted((f for f in view.shown(report.findings) if f.severity in COMMANDS), key=lambda f: f.severity.rank)
    for finding in shown:
        yield Text(_command(finding, view))


def _command(finding: Finding, view: View) -> str:
    span, code = finding.location.range, lookup(finding.code)
    where = {"file": view.uri_path(finding.location.file), "line": str(span.start.line + 1)}
    if span.start.line == span.end.line:
        # GitHub drops annotations that have both columns and more than one line.
        where |= {"col": str(span.start.character + 1), "endColumn": str(max(span.end.character, span.start.character + 1))}
    else:
        where["endLine"] = str(span.end.line + (1 if span.end.character else 0))
    where["title"] = f"{finding.code} {code.name}"
    properties = ",".join(f"{key}={_property(value)}" for key, value in where.items())
    hint = " ".join(clean(finding.advice).split())
    times = f" ({finding.count:,} times)" if finding.count > 1 else ""
    message = "\n".join(filter(None, (clean(finding.message, lines=True) + times, hint, in_text(code, view.docs_url))))
    return f"::{COMMANDS[finding.severity]} {properties}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
