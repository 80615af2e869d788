"""Hovers on a region's definition and on a guarded value. Key functions: region_text, guard_text."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from lsp_server.features.documents import Document
from lsp_server.features.markdown import code, plain
from lsp_server.features.run_findings import RunFindings
from lsp_server.features.seen import GuardSeen, guards_at
from lsp_server.features.summary import count
from lsp_server.features.syntax import parse, range_of
from lsp_server.formats import why_not
from lsp_server.formats.step_parts import PartRow, row_of, share_of
from magpy_core.findings import Position, Range, Recompile, RegionSummary, StepReport, WhyNot

_LISTED = 5
_CHECKS = {
    "is": "is this object",
    "absent": "is absent",
    "plain_module": "is an unchanged module",
    "type": "has this type",
}


def region_text(document: Document, line: int, runs: Sequence[RunFindings]) -> str | None:
    """The regions defined on ``line``, in Markdown that is also readable as plain text. If several programs run them, each
    text names its programs, and is there once."""
    programs: dict[str, list[str]] = {}
    for run in runs:
        for region in run.regions.values():
            if run.region_line_of(region) == (document.key, line):
                programs.setdefault("\n".join(_region(region, run)), []).append(run.program)
    several = len({name for names in programs.values() for name in names}) > 1
    blocks = [f"{_in(names)}{text}" if several else text for text, names in programs.items()]
    return "\n\n".join(blocks) or None


def _in(programs: Sequence[str]) -> str:
    return f"In {' and '.join(code(name) for name in dict.fromkeys(programs))}: "


def _region(region: RegionSummary, run: RunFindings) -> list[str]:
    graph = "one complete graph" if region.complete else "incomplete graph"
    engine = " under torch.compile" if region.engine == "dynamo" else ""
    lines = [f"Region {code(region.name)} ({plain(region.kind)}){engine}: {count(region.calls, 'call')}, {graph}", ""]
    lines.append(f"- {count(region.captures, 'capture')}, {region.hits} of {count(region.calls, 'call')} replayed")
    detail = run.detail_of(region.id)
    newest = detail.captures[0] if detail is not None and detail.captures else None
    breaks = count(region.graph_breaks, "graph break")
    if newest is not None:
        operations = sum(node.kind != "placeholder" for node in newest.nodes) + newest.cut
        lines.append(f"- {count(operations, 'operation')} in {count(max(region.graphs, 1), 'graph')}, {breaks}")
    else:
        lines.append(f"- {count(region.graphs, 'graph')}, {breaks}")
    checked = f", {region.guard_ms * 1e3:.0f} µs per check" if region.guard_ms else ""
    lines.append(f"- {count(region.guards, 'guard')}{checked}, {count(region.side_effects, 'side effect')}")
    if region.host_reads:
        lines.append(f"- Python waits for {count(region.host_reads, 'tensor value')} per call")
    if region.compile_s is not None:
        lines.append(f"- compiled in {region.compile_s:.1f} s")
    if region.speedup is not None and region.eager_ms is not None and region.compiled_ms is not None:
        interval = ""
        if region.speedup_low is not None and region.speedup_high is not None:
            interval = f" ({region.speedup_low:.2f}x to {region.speedup_high:.2f}x with 95% confidence)"
        lines.append(
            f"- {region.speedup:.2f}x{interval}: {region.eager_ms:.3g} ms eager, {region.compiled_ms:.3g} ms compiled"
        )
    part = row_of(run.step, region.id)
    if run.step is not None and part is not None and part.share is not None:
        lines.append(f"- {_part(part, run.step)}")
    lines += [f"- {_why_not(one)}" for one in run.why_not if one.region == region.id and one.reason]
    if region.recompiles:
        lines.append(f"- recompiled because of {_changes(region.recompiles)}")
    if run.kernels is not None:
        from lsp_server.formats.kernels import of_region  # here, so that the server starts faster

        lines += [f"- {plain(line.plain.strip())}" for line in of_region(region, run.kernels)]
    return lines


def _why_not(found: WhyNot) -> str:
    """``eager mode, 12% of a step: ...``, with the value or the line, and what to do."""
    at = f" {plain(found.code)} at {code(why_not.base_name(found))}." if found.cause else ""
    value = f" {code(found.value)}." if found.value else ""
    return f"{why_not.head(found)}: {plain(found.why)}{at}{value} {plain(found.rewrite)}".rstrip()


def _part(part: PartRow, step: StepReport) -> str:
    """The region's share of a step, and the speedup of the whole step."""
    measured = ((part.plain, "eager"), (part.compiled, "compiled"))
    times = ", ".join(f"{split.total_text} ms {how}{split.note}" for split, how in measured if split.total is not None)
    whole = f"; the whole step: {step.shown_speedup:.2f}x" if step.shown_speedup is not None else ""
    return f"{part.share:.0f}% of the {share_of(step)} step: {times}{whole}"


def _changes(recompiles: Sequence[Recompile]) -> str:
    calls = [f" (call {r.call})" if r.call else "" for r in recompiles]
    shown = [f"{code(r.name)} {code(r.old)} → {code(r.new)}{call}" for r, call in zip(recompiles, calls, strict=True)][
        -_LISTED:
    ]
    more = f", and {len(recompiles) - _LISTED} before" if len(recompiles) > _LISTED else ""
    return ", ".join(shown) + more


def guard_text(document: Document, at: Position, runs: Sequence[RunFindings]) -> tuple[str, Range] | None:
    """The guards on the name or attribute at a position, and its range."""
    found = list(guards_at(runs, document.key, at.line))
    tree = parse(tuple(document.lines)) if found else None
    node = _innermost(tree, document.lines, at) if tree is not None else None
    if node is None:
        return None
    text = ast.unparse(node)
    exact = [g for g in found if g.guard.name == text]
    # Inside a module's own methods a guard's name starts at the region: `self.lin.weight` for `self.weight`.
    ends = f".{node.attr}" if isinstance(node, ast.Attribute) else None
    own = exact or [g for g in found if ends is not None and g.guard.name.endswith(ends)]
    below = own or [g for g in found if g.guard.name.startswith((f"{text}.", f"{text}["))]
    if not below:
        return None
    return "\n".join(f"- {_guard(seen)}" for seen in below[:_LISTED]), range_of(node, document.lines)


def _guard(seen: GuardSeen) -> str:
    checked = _CHECKS.get(seen.guard.check, "stays the same")
    value = "" if seen.guard.check in ("absent", "plain_module") else f" = {code(seen.value)}"
    failed = "never failed in this run"
    if seen.changes:
        failed = f"failed {count(len(seen.changes), 'time')}: {_changes(seen.changes)}"
    return f"Guard of {code(seen.region.name)}: valid while {code(seen.guard.name)}{value} {checked}; {failed}"


def _innermost(tree: ast.AST, lines: Sequence[str], at: Position) -> ast.expr | None:
    best: ast.expr | None = None
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and node.lineno - 1 <= at.line:
            where = range_of(node, lines)
            if where.start <= at <= where.end and (best is None or where.start > range_of(best, lines).start
                                                   or where.end < range_of(best, lines).end):  # fmt: skip
                best = node
    return best
