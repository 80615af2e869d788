"""Merges several reports into one. Key function: merge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from magpy_core.findings import Finding, Kernel, LineCost, Report, TargetGraph, TargetProblem, TargetReport, Unfused
from magpy_core.findings.details import Details

T = TypeVar("T", Kernel, TargetProblem, TargetGraph, Unfused, LineCost)


def merge(named: Iterable[tuple[str, Report]], programs: Mapping[str, str] | None = None) -> Report:
    """Each region gets its entrypoint. A finding of several programs (in shared code) becomes one, with its counts added.

    ``programs``: the program of each name, if one program ran more than once. The step is kept only then: steps of
    different programs are not one step, and each program's own report has its step.
    """
    merged = Report("")
    names = []
    alone = programs is not None and len(set(programs.values())) == 1
    findings: dict[Any, Finding] = {}
    for name, report in named:
        program = name if programs is None else programs[name]
        names.append(program)
        own = "" if alone else program
        merged.regions += [replace(r, id=f"{name}/{r.id}", entrypoint=own) for r in report.regions]
        merged.why_not += [replace(one, region=one.region and f"{name}/{one.region}") for one in report.why_not]
        for finding in report.findings:
            region = f"{name}/{finding.region}" if finding.region is not None else None
            key = (finding.code, finding.location, finding.message)
            if key in findings:
                findings[key] = replace(findings[key], count=findings[key].count + finding.count)
            else:
                findings[key] = replace(finding, region=region)
        if report.details is not None:
            merged.details = merged.details or Details()
            merged.details.regions += [replace(d, region=f"{name}/{d.region}") for d in report.details.regions]
            merged.details.calls += [replace(c, region=f"{name}/{c.region}") for c in report.details.calls]
            merged.details.graphs += [replace(g, region=f"{name}/{g.region}") for g in report.details.graphs]
        if alone and report.step is not None and merged.step is None:
            parts = [replace(part, region=part.region and f"{name}/{part.region}") for part in report.step.parts]
            merged.step = replace(report.step, parts=parts)
        if report.kernels is not None:
            merged.kernels = _joined(merged.kernels, report.kernels, name)
        merged.timings |= {f"{name}: {phase}": seconds for phase, seconds in report.timings.items()}
        merged.timings["total"] = max(merged.timings.get("total", 0.0), report.timings.get("total", 0.0))
        merged.numerics = merged.numerics or report.numerics
        merged.steps = max(merged.steps, report.steps)
        if report.stopped_after is not None:
            merged.stopped_after = max(merged.stopped_after or 0, report.stopped_after)
    merged.entrypoint = ", ".join(dict.fromkeys(names))
    merged.findings = list(findings.values())
    return merged


def _joined(known: TargetReport | None, more: TargetReport, name: str) -> TargetReport:
    """Kernels of several programs, all for one target."""
    base = known or replace(more, kernels=[], problems=[], graphs=[], unfused=[], lines=[])
    return replace(
        base,
        kernels=[*base.kernels, *_of(name, more.kernels)],
        problems=[*base.problems, *_of(name, more.problems)],
        graphs=[*base.graphs, *_of(name, more.graphs)],
        unfused=[*base.unfused, *_of(name, more.unfused)],
        lines=sorted([*base.lines, *_of(name, more.lines)], key=lambda cost: -cost.us),
    )


def _of(name: str, items: list[T]) -> list[T]:
    """What belongs to the regions of a program."""
    return [replace(one, region=f"{name}/{one.region}") for one in items]
