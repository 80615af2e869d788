"""A summary in Markdown, for a job summary or a comment on a pull request. Key function: text. Parts
for other documents: table, finding_row, code, escape.

Text from the program (messages, names) is escaped, so it can't break a table or mention a person. On GitHub Actions,
locations link to the line in the commit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from lsp_server.formats import engines, regions, step_text
from lsp_server.formats.step_parts import HEAD, rows, share_of
from lsp_server.formats.view import View, clean, count, first_line
from lsp_server.links import web
from magpy_core.findings import Finding, RegionSummary, Report, Severity, StepReport, lookup

ROWS = 50
_GUARD = "MP204"
_MARKS = {Severity.ERROR: "🛑", Severity.WARNING: "⚠️", Severity.INFORMATION: "💡", Severity.HINT: "·"}


def text(report: Report, view: View, environ: Mapping[str, str] = os.environ) -> str:
    parts = [f"## MagPy: {code(report.entrypoint)}", _verdict(report, view)]
    step = None if engines.compared(report) else report.step
    if step is not None:
        parts.append(escape(step_text.line(report)))
    shown = [f for f in view.shown(report.findings) if f.code != _GUARD or f.severity_override is not None]
    shown.sort(key=lambda f: f.severity.rank)
    if shown:
        parts.append(table(("", "code", "where", "what"), (finding_row(f, view, environ) for f in shown[:ROWS])))
    if len(shown) > ROWS:
        parts.append(f"… and {count(len(shown) - ROWS, 'finding')} more.")
    if step is not None and step.parts:
        parts.append(f"<details><summary>Parts of a step (share: of the {share_of(step)} step)</summary>")
        parts += [table(("part", *HEAD), _parts(step)), "</details>"]
    if report.regions:
        head = ("region", "calls", "captures", "graph", "guards", "side effects", "eager ms", "compiled ms", "speedup")
        rows_of_regions = table(head, (_region(r, view) for r in report.regions))
        number = len(report.regions)
        if engines.compared(report):
            head, number = ("region", "engine", *engines.HEAD), len(engines.pairs(report))
            rows_of_regions = f"{table(head, _side_by_side(report))}\n\n{engines.NOTE}"
        parts.append(f"<details{' open' if not shown else ''}><summary>{count(number, 'region')}</summary>")
        parts += [rows_of_regions, "</details>"]
    return "\n\n".join(parts) + "\n"


def _verdict(report: Report, view: View) -> str:
    failing = sum(f.severity.rank <= view.fail_on.rank for f in report.findings)
    summary = next(regions.totals(report, view)).plain
    end = f" {regions.stopped(report.stopped_after)}" if report.stopped_after is not None else ""
    return f"{'❌' if failing else '✅'} {summary}{end}"


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, tuple("---" for _ in head), *rows)]
    return "\n".join(lines)


def finding_row(finding: Finding, view: View, environ: Mapping[str, str]) -> tuple[str, ...]:
    known = lookup(finding.code)
    address = web(known, view.docs_url)
    times = f" ({finding.count:,} times)" if finding.count > 1 else ""
    return (
        f"{_MARKS[finding.severity]} {finding.severity.value}",
        finding.code if address is None else f'[{finding.code}]({address} "{known.title}")',
        _place(finding, view, environ),
        escape(first_line(finding.message)) + times,
    )


def _place(finding: Finding, view: View, environ: Mapping[str, str]) -> str:
    path, line = view.uri_path(finding.location.file), finding.location.range.start.line + 1
    shown = code(f"{path}:{line}")
    server, repository, commit = (environ.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY", "SHA"))
    if not (server and repository and commit) or Path(path).is_absolute():
        return shown
    return f"[{shown}]({server}/{repository}/blob/{commit}/{quote(path)}#L{line})"


def _region(region: RegionSummary, view: View) -> tuple[str, ...]:
    graph = "complete" if region.complete else count(region.graph_breaks, "break") if region.captures else "none"
    where = f" {code(f'{view.uri_path(region.file)}:{region.line}')}" if region.file and region.line else ""
    speedup = f"{region.shown_speedup:.2f}x" if region.shown_speedup is not None else "-"
    numbers = (region.calls, region.captures, graph, region.guards, region.side_effects)
    times = ("-" if v is None else f"{v:,.3f}" for v in (region.eager_ms, region.compiled_ms))
    return (f"**{escape(region.name)}**{where}", *map(str, numbers), *times, speedup)


def _parts(step: StepReport) -> Iterator[tuple[str, ...]]:
    for row in rows(step):
        yield (f"**{escape(row.name)}**" if row.region else escape(row.name), *row.cells)


def _side_by_side(report: Report) -> Iterator[tuple[str, ...]]:
    for pair in engines.pairs(report):
        for n, (name, cells) in enumerate(engines.rows(pair)):
            yield (f"**{escape(pair.region.name)}**" if n == 0 else "", name, *cells)


def code(text: str) -> str:
    """``text`` as a code span, also inside a table."""
    text = clean(text).replace("|", "\\|")
    fence = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def escape(text: str) -> str:
    """``text`` escaped for Markdown; text between backticks becomes a code span."""
    parts = re.split(r"(`[^`]+`)", clean(text))
    return "".join(code(p[1:-1]) if p.startswith("`") and len(p) > 2 else _plain(p) for p in parts)


def _plain(text: str) -> str:
    return re.sub(r"[\\`*_{}\[\]<>|#@~&]", lambda found: f"&#{ord(found[0])};", text)
