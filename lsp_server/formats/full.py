"""Findings with source excerpt, reason, hint, call path and docs link. Key function: lines."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from lsp_server.formats import guards
from lsp_server.formats.view import STYLES, View, clean, cost, count, first_line, shorten
from lsp_server.links import in_text
from magpy_core.findings import Finding, Range, Report, lookup

_TAB = "    "
_ELLIPSIS = "…"
_PATH_SHOWN = 6


def lines(report: Report, view: View) -> Iterator[Text]:
    others, guard_findings = guards.split(report.findings)
    for finding in others:
        yield from _block(finding, view)
        yield Text()
    if guard_findings:
        yield Text(
            f"{count(len(guard_findings), 'guard')}: compiled code is used only while these values stay the same "
            "(magpy-lsp explain MP204)",
            "bold",
        )
        yield from guards.grouped(guard_findings, view)
        yield Text()


def _block(finding: Finding, view: View) -> Iterator[Text]:
    code = lookup(finding.code)
    yield view.header(finding)
    for more in clean(finding.message, lines=True).split("\n")[1:]:
        yield Text(f"    {more.rstrip()}")
    yield from _excerpt(finding, view)
    yield _note("why", code.reason)
    # the underlined expression, or the name of the function that it calls, is in the message
    values = [v for v in finding.values if v.name not in ("expression", "call") or v.repr not in finding.message]
    if values:
        yield _note("with", ", ".join(f"{clean(v.name)} = {shorten(first_line(v.repr), 60)}" for v in values))
    if spent := cost([finding]):
        yield _note("cost", spent)
    if advice := clean(finding.advice):
        yield _note("hint", " ".join(advice.split()))
    if len(finding.path) > 1:
        yield _note("path", _call_path(finding, view))
    yield _note("docs", in_text(code, view.docs_url))


def _note(label: str, text: str) -> Text:
    return Text.assemble((f"    {label + ':':<6}", "dim"), text)


def _call_path(finding: Finding, view: View) -> str:
    """From the region down to the finding; the middle of a deep path is omitted."""
    steps = [
        f"{view.path(at.file)}:{at.range.start.line + 1}" + (f" in {clean(at.function)}" if at.function else "")
        for at in finding.path
    ]
    if len(steps) > _PATH_SHOWN:
        left_out = len(steps) - _PATH_SHOWN
        steps[_PATH_SHOWN // 2 : -(_PATH_SHOWN // 2)] = [f"{_ELLIPSIS} {left_out} more"]
    return " -> ".join(steps)


def _excerpt(finding: Finding, view: View) -> Iterator[Text]:
    """The first line of the range, underlined."""
    span = finding.location.range
    line = view.sources.line(finding.location.file, span.start.line)
    if line is None or not line.strip():
        return
    shown, start, end = _clip(line, *_columns(line, span), max(view.width - 12, 40))
    number = str(span.start.line + 1)
    gutter = " " * max(len(number), 4)
    yield Text.assemble((f"{number:>{len(gutter)}} | ", "dim"), shown)
    underline = "^" * max(end - start, 1)
    more = span.end.line - span.start.line
    underline += f" to line {span.end.line + 1}" if more > 0 and span.end.character > 0 else ""
    yield Text.assemble((f"{gutter} | ", "dim"), " " * start, (underline, STYLES[finding.severity]))


def _columns(line: str, span: Range) -> tuple[int, int]:
    """Start and end character of the range on its first line; the whole text of the line if the range is empty."""
    text_start = len(line) - len(line.lstrip())
    text_end = len(line.rstrip())
    start = min(span.start.character, text_end)
    end = min(span.end.character, text_end) if span.end.line == span.start.line else text_end
    if span.start == span.end or end <= start:
        return text_start, text_end
    return max(start, text_start) if start < text_start < end else start, end


def _clip(line: str, start: int, end: int, width: int) -> tuple[str, int, int]:
    """What to show of ``line`` (indentation and far ends cut) and the terminal cells of ``start`` and ``end`` in it."""

    def cells(text: str) -> str:
        return clean(text).replace("\t", _TAB)

    indent = min(len(line) - len(line.lstrip()), start)
    line, start, end = line[indent:].rstrip(), start - indent, end - indent
    before, marked, after = cells(line[:start]), cells(line[start:end]), cells(line[end:])
    if cell_len(before) + cell_len(marked) > width:
        before = _ELLIPSIS + before[-width // 4 :] if cell_len(before) > width // 4 else before
        marked = shorten(marked, width - cell_len(before))
    after = shorten(after, max(width - cell_len(before) - cell_len(marked), 1)) if after else ""
    return before + marked + after, cell_len(before), cell_len(before) + cell_len(marked)
