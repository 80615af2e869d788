"""One line per finding: ``file:line:col: MP102 [warning] message``. Key function: lines."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from lsp_server.formats import guards
from lsp_server.formats.view import View
from magpy_core.findings import Report


def lines(report: Report, view: View) -> Iterator[Text]:
    others, guard_findings = guards.split(report.findings)
    for finding in others:
        yield view.header(finding)
    yield from guards.grouped(guard_findings, view)
