"""``check`` and ``run``: run programs, report, and determine the exit status. Key functions: execute, judge, exit_status.

The report goes to stdout after the programs have ended, so it never interrupts a program's own output. The tool's own
messages (progress, errors) go to stderr.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import click

from lsp_server.budgets import check_budgets, unknown_regions, unmeasured, without_target
from lsp_server.cli.follow import Finished, Handle, Launch, Runs, show_output
from lsp_server.cli.known_findings import apply_baseline, open_baseline
from lsp_server.cli.last_run import keep
from lsp_server.cli.merge import merge
from lsp_server.cli.next_command import next_commands
from lsp_server.cli.publish import publish
from lsp_server.cli.settings import ResolvedSettings
from lsp_server.formats.view import View, clean
from lsp_server.repeats import merged
from lsp_server.selection import apply, sort_key, unused
from magpy_core.findings import Finding, Report, Severity
from magpy_core.runner.request import Outcome, RunRequest

INTERRUPTED = 130
# Exit statuses, most severe first: the tool failed, a program failed, findings, none.
_WORST_FIRST = (2, 3, 1, 0)


def launch_run(request: RunRequest, nproc: int) -> Handle:
    from magpy_core.runner.launch import launch

    return launch(request, nproc)


def execute(effectives: Sequence[ResolvedSettings], launch: Launch = launch_run) -> int:
    """Runs the programs and reports; returns the exit status."""
    open_baseline(effectives[0])  # reports an unusable file before anything runs
    return report_on(Runs(effectives, launch).follow())


@dataclass
class Judged:
    """Runs with what counts of them: ``report`` has the findings that are left of all of them, merged and sorted."""

    programs: list[tuple[Finished, Report]]
    report: Report
    view: View
    unneeded: list[Finding]


def judge(runs: list[Finished]) -> Judged:
    """Applies budgets, selection, comments and the baseline to the runs."""
    common = runs[0].effective
    view = View(
        fail_on=common.fail_on, docs_url=common.docs_url, selection=common.selection, in_detail=common.in_detail,
        ptx=common.ptx, began_ns=min(run.began_ns for run in runs),
    )  # fmt: skip
    baseline = open_baseline(common)
    runs = [replace(run, outcome=_with_budgets(run)) for run in runs]
    unneeded = _unneeded_entries(runs, view) if all(run.completed for run in runs) else []
    reports: list[tuple[Finished, Report]] = []
    for run in runs:
        selected = apply(run.outcome.report.findings, common.selection, view.sources, flag_unused=False)
        view.suppressed += selected.suppressed
        new = apply_baseline(run.effective, baseline, selected.findings, view, completed=run.completed)
        reports.append((run, replace(run.outcome.report, findings=new)))
    report = reports[0][1] if len(reports) == 1 else _merged(reports)
    if len(reports) > 1:
        view.programs = [(run.effective.title, own) for run, own in reports]
    report.findings = sorted(merged([*report.findings, *unneeded]), key=sort_key)
    return Judged(reports, report, view, unneeded)


def report_on(runs: list[Finished]) -> int:
    """Writes the report of the runs; returns the exit status."""
    judged = judge(runs)
    common, runs = runs[0].effective, [run for run, _ in judged.programs]
    for run, own in judged.programs:
        _print_outcome(run, own, alone=len(runs) == 1)
    for sentence in next_commands(runs):
        click.echo(f"magpy-lsp: {clean(sentence)}", err=True)
    if not all(_has_no_report(run) for run in runs):
        if common.mode == "run":
            keep(common, judged.report)
        publish(common, judged.report, judged.view)
    if any(run.interrupted for run in runs):
        return INTERRUPTED
    statuses = {
        exit_status(run.outcome, [*own.findings, *judged.unneeded], common.fail_on, common.exit_zero)
        for run, own in judged.programs
    }
    return next(status for status in _WORST_FIRST if status in statuses)


def _merged(reports: list[tuple[Finished, Report]]) -> Report:
    if not reports[0][0].effective.compared:
        return merge((run.effective.title, report) for run, report in reports)
    programs = {run.effective.title: run.effective.title.removesuffix(f" [{run.effective.engine}]") for run, _ in reports}
    return merge(((run.effective.title, report) for run, report in reports), programs)


def _with_budgets(run: Finished) -> Outcome:
    """Adds the findings of exceeded budgets, before selection and comments, which apply to them as well."""
    effective, report, budgets = run.effective, run.outcome.report, run.effective.budgets
    if effective.compared and effective.engine != "magpy":
        return run.outcome  # budgets apply to only one of the two runs
    found = check_budgets(report, budgets, compiled=effective.mode == "run" and not run.interrupted)
    if effective.mode == "check" and not effective.compared:
        found += unmeasured(report, budgets)
        found += without_target(report, budgets) if not effective.target else []
    return replace(run.outcome, report=replace(report, findings=[*report.findings, *found]))


def _unneeded_entries(runs: list[Finished], view: View) -> list[Finding]:
    """Comments and budgets that apply to nothing in any of these runs, all of which must be complete."""
    common, files = runs[0].effective, set()
    for run in runs:
        effective = run.effective
        files |= {r.file for r in run.outcome.report.regions if r.file and not r.file.startswith("<")}
        if effective.script is not None:
            files.add(os.path.abspath(os.path.join(effective.cwd or "", effective.script)))
    found = [f for run in runs for f in run.outcome.report.findings]
    engines = {run.effective.engine for run in runs}
    findings = unused(found, common.selection, view.sources, files, engines)
    if common.config_file is not None:
        regions = [region for run in runs for region in run.outcome.report.regions]
        budgets = unknown_regions(regions, common.budgets, str(common.config_file), common.region_lines)
        findings += apply(budgets, common.selection, view.sources, flag_unused=False).findings
    return findings


def _has_no_report(run: Finished) -> bool:
    """Whether nothing ran, so that only the error is reported. A machine-readable document is still written."""
    nothing_ran = run.outcome.kind in ("bad-entrypoint", "tool-error") and not run.outcome.report.regions
    outputs = run.effective.outputs
    return nothing_ran and not outputs.document_on_stdout and not outputs.files and run.effective.html is None


def exit_status(outcome: Outcome, findings: Iterable[Finding], fail_on: Severity, exit_zero: bool) -> int:
    """0 no findings at or above ``fail_on`` / 1 findings / 2 usage or tool error / 3 the program failed / 130 interrupted.

    ``exit_zero`` affects findings only: it never hides a failure of the tool or the program.
    """
    if outcome.cli_exit_code:
        return outcome.cli_exit_code
    bad = any(f.severity.rank <= fail_on.rank for f in findings)
    return 1 if bad and not exit_zero else 0


def _print_outcome(run: Finished, report: Report, *, alone: bool) -> None:
    """Prints to stderr how the run ended, unless the report on stdout contains it as a finding."""
    who = "" if alone else f"{clean(run.effective.title)}: "
    if run.interrupted:
        click.echo(f"magpy-lsp: {who}interrupted; the findings up to that point follow.", err=True)
        return
    outcome = run.outcome
    if outcome.kind != "ok":
        show_output(run)
    to_stdout = run.effective.outputs.stdout in ("full", "concise")
    shown = to_stdout and not _has_no_report(run)
    if outcome.message and not (shown and any(f.message == outcome.message for f in report.findings)):
        click.echo(f"magpy-lsp: {who}{clean(outcome.message)}", err=True)
