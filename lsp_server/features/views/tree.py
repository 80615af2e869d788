"""The tree of the runs: entrypoint, region, capture, findings. Key function: entrypoint_tree."""

from __future__ import annotations

from lsp_server.features.run_findings import shown_location
from lsp_server.features.summary import count, region_line
from lsp_server.features.views.shown import Json, Shown
from lsp_server.formats import step_text
from lsp_server.server.runs import RunState
from magpy_core.findings import Finding, RegionSummary, Severity
from magpy_core.findings.details import CaptureDetail

_GUARD = "MP204"  # listed with the capture's guards


def entrypoint_tree(shown: Shown) -> Json:
    run = shown.run
    regions = [_region(shown, region) for region in shown.found.regions.values()]
    known = set(shown.found.regions)
    others = [(f, s) for f, s in shown.found.shown() if f.region not in known]
    return {
        "key": shown.key,
        "label": shown.label,
        "uri": shown.found.uri,
        "mode": run.mode if run else "check",
        "state": (run.state if run else RunState.SUPERSEDED).value,
        "summary": run.summary() if run else "",
        "step": step_text.line(run.outcome.report) if run and run.outcome else "",
        "endedAt": shown.ended_at,
        "seconds": round(run.ended_at - run.started_at, 1) if run and not run.state.active else None,
        "older": bool(shown.found.edited()) or shown.run is None,
        "regions": regions,
        "findings": [_finding(shown, f, s) for f, s in others],
    }


def _region(shown: Shown, region: RegionSummary) -> Json:
    found = [(f, s) for f, s in shown.found.shown() if f.region == region.id and f.code != _GUARD]
    detail = shown.found.detail_of(region.id)
    captures = detail.captures if detail is not None else []
    first = max(len(captures) - len(region.per_capture), 0)
    rows = []
    for number, capture in enumerate(captures[::-1], start=1):
        at = number - 1 - first
        hits = region.per_capture[at].hits if 0 <= at < len(region.per_capture) else None
        rows.append(_capture(shown, capture, number, hits))
    return {
        "id": region.id,
        "kind": region.kind,
        "name": region.name,
        "complete": region.complete,
        "summary": region_line(region),
        "place": shown.lines.place(region.file, region.line),
        "end": shown.lines.place(region.file, region.last_line),
        "captures": rows,
        "findings": [_finding(shown, f, s) for f, s in found if not _is_effect(f)],
        "sideEffects": [_finding(shown, f, s) for f, s in found if _is_effect(f)],
    }


def _is_effect(finding: Finding) -> bool:
    return finding.code.startswith("MP3")


def _capture(shown: Shown, capture: CaptureDetail, number: int, hits: int | None) -> Json:
    operations = sum(node.kind != "placeholder" for node in capture.nodes) + capture.cut
    segments = len({node.segment for node in capture.nodes if node.kind != "placeholder"})
    writes = [
        {"text": f"{o.name}: {fact.text}", "place": shown.lines.place(fact.file, fact.line)}
        for o in capture.objects
        for fact in o.writes
    ]
    parts = [count(segments, "graph"), count(operations, "operation"), count(len(capture.guards), "guard")]
    if hits is not None:
        parts.append(count(hits, "replay"))
    return {
        "number": number,
        "summary": " · ".join(parts),
        "guards": len(capture.guards),
        "operations": operations,
        "objects": len(capture.objects),
        "writes": writes,
        "generated": len(capture.generated_code),
    }


def _finding(shown: Shown, finding: Finding, severity: Severity) -> Json:
    at = shown_location(finding)
    start = at.range.start
    return {
        "code": finding.code,
        "severity": severity.value,
        "message": finding.message,
        "count": finding.count,
        "place": shown.lines.place(at.file, start.line + 1),
    }
