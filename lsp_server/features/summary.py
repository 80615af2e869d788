"""One-line and table summaries of a run, as text. Key functions: region_line, findings_line, run_table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from magpy_core.findings import Finding, RegionSummary, Severity


def count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def region_line(region: RegionSummary) -> str:
    """``1 graph · 0 breaks · 14 guards · 2 side effects``, with the speed-up when it was measured."""
    parts = [
        count(region.captures, "graph"),
        count(region.graph_breaks, "break"),
        count(region.guards, "guard"),
        count(region.side_effects, "side effect"),
    ]
    if region.eager_ms is not None and region.compiled_ms is not None:
        parts.append(f"{region.eager_ms:.2f} → {region.compiled_ms:.2f} ms")
    if region.speedup is not None:
        parts.append(f"{region.speedup:.2f}x")
    return " · ".join(parts)


def severity_counts(findings: Iterable[Severity]) -> dict[str, int]:
    counts = {severity.value: 0 for severity in Severity}
    for severity in findings:
        counts[severity.value] += 1
    return counts


def findings_line(counts: dict[str, int]) -> str:
    """``2 warnings · 5 notes``; guards and the like (hints) are counted last."""
    nouns = (("error", "error"), ("warning", "warning"), ("information", "note"), ("hint", "hint"))
    parts = [count(counts[key], noun) for key, noun in nouns if counts.get(key)]
    return " · ".join(parts) or "no findings"


def _cell(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:.2f}{unit}"


def run_table(regions: Sequence[RegionSummary]) -> str:
    """What ``run`` ends with: per region calls, captures, times and speed-up, then why it was captured again."""
    if not regions:
        return "No regions: the program never called a module, optimizer or named function."
    head = ("region", "calls", "captures", "complete", "eager ms", "compiled ms", "speed-up")
    rows = [
        (
            r.name,
            str(r.calls),
            str(r.captures),
            "yes" if r.complete else "no",
            _cell(r.eager_ms),
            _cell(r.compiled_ms),
            _cell(r.speedup, "x"),
        )
        for r in regions
    ]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        # The first column is text, the others are read as numbers: right-aligned.
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        return "  ".join(cells).rstrip()

    out = [line(head), "  ".join("-" * w for w in widths), *(line(row) for row in rows)]
    for region in regions:
        for again in region.recompiles:
            where = f" ({again.file}:{again.line})" if again.file else ""
            out.append(f"{region.name}: captured again at call {again.call}: {again.name} {again.old} -> {again.new}{where}")
    return "\n".join(out)


def finding_line(finding: Finding, severity: Severity) -> str:
    """``file:line:col: warning MP102 message``, 1-based as editors link it."""
    start = finding.location.range.start
    return f"{finding.location.file}:{start.line + 1}:{start.character + 1}: {severity.value} {finding.code} {finding.message}"
