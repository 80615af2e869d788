"""The kernels of a program as the answer of a tool. Key functions: settings_of, answer."""

from __future__ import annotations

import os
from itertools import groupby
from typing import Any

from lsp_server.agents.answers import Kernels, OneKernel
from lsp_server.agents.programs import Program, checked
from lsp_server.agents.reports import problem
from lsp_server.cli import kernels as command
from lsp_server.cli.follow import Finished, last_lines
from lsp_server.cli.settings import ResolvedSettings
from lsp_server.formats import kernels as formats
from lsp_server.formats.view import clean, shorten
from magpy_core.findings import Kernel, TargetReport
from magpy_core.findings.kernels import total_bytes, total_launches, total_us

_HOTTEST = 8  # lines of the program
_TRITON = 4000  # characters of one kernel
Line = tuple[str, int] | None


def settings_of(program: Program, line: str | None, target: str | None) -> tuple[ResolvedSettings, Line]:
    """``line``: ``FILE:LINE``; a script may end in ``:LINE`` instead."""
    given: dict[str, Any] = {**program.options(), "target": target, "line": line, "color": "never", "output_format": "json"}
    script, colon, number = (program.script or "").rpartition(":")
    path = os.path.join(os.path.abspath(program.cwd or os.curdir), script)
    if colon and number.isdigit() and line is None and os.path.exists(path):
        given |= {"entrypoint": path, "line": f"{path}:{number}"}
    return checked(program, lambda: command.settings_of(program.args, given))


def answer(finished: Finished, line: Line, limit: int) -> Kernels:
    outcome = finished.outcome
    if outcome.kind != "ok":
        return Kernels(outcome=outcome.kind, problem=problem(finished), output=last_lines(finished))
    report = whole = outcome.report.kernels
    if report is None:
        return Kernels(outcome="ok", problem=" ".join(map(clean, command.why_none(outcome.report))))
    if line is not None:
        report = command.only(report, *line)
    problems = [f"{clean(one.region)}: {clean(one.message)}" for one in report.problems]
    if line is not None and not report.kernels:
        return Kernels(outcome="ok", problem=command.no_kernel(whole, *line), device=report.device, problems=problems)
    ranked = sorted(report.kernels, key=lambda kernel: -kernel.total_us)
    return Kernels(
        outcome="ok",
        device=f"{report.device} ({report.target})",
        summary=[*_graphs(report), *_hottest(report)],
        kernels=[_kernel(kernel, with_source=line is not None) for kernel in ranked[:limit]],
        kernels_left_out=max(len(ranked) - limit, 0),
        problems=problems,
    )


def _graphs(report: TargetReport) -> list[str]:
    """``model: Net, forward: 3 launches, at least 12.0 µs, 1.5 MB``, of each graph."""
    found = []
    for (region, graph), group in groupby(report.kernels, key=lambda kernel: (kernel.region, kernel.graph)):
        kernels = list(group)
        figures = f"{total_launches(kernels):,} launches, at least {formats.us(total_us(kernels))}"
        found.append(f"{clean(region)}, {graph}: {figures}, {formats.size(total_bytes(kernels))} moved")
    return found


def _hottest(report: TargetReport) -> list[str]:
    named = [cost for cost in report.lines if cost.file][:_HOTTEST]
    return [f"{clean(cost.file)}:{cost.line}: at least {formats.us(cost.us)} of a step" for cost in named]


def _kernel(kernel: Kernel, *, with_source: bool) -> OneKernel:
    code = kernel.code
    return OneKernel(
        computes=formats.computes(kernel).plain,
        graph=f"{clean(kernel.region)}, {kernel.graph}",
        lines=formats.lines(kernel),
        launches=kernel.launches,
        us=round(kernel.us, 2),
        bytes=kernel.work.bytes_moved,
        bound=kernel.bound,
        registers=code.registers if code else None,
        spill_bytes=code.spill_bytes if code and code.spill_bytes else None,
        triton=shorten(code.triton, _TRITON) if code and with_source else "",
    )
