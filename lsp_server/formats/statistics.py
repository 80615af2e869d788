"""The number of findings per code, most frequent first. Key function: lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.text import Text

from lsp_server.formats.view import STYLES
from magpy_core.findings import Report, lookup


def lines(report: Report) -> Iterator[Text]:
    counts = Counter(f.code for f in report.findings)
    severities = {f.code: f.severity for f in report.findings}
    for code, number in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        severity = severities[code]
        yield Text.assemble(f"{number:>6}  ", (code, STYLES[severity]), f"  [{severity.value}]  {lookup(code).title}")
