"""``--baseline`` and ``--update-baseline``: hide what is known, drop what is gone. Key functions: open_baseline, settle."""

from __future__ import annotations

import os
from collections import Counter

import click

from lsp_server.baseline import Baseline, BaselineError, Entry
from lsp_server.cli.publish import ToolError
from lsp_server.cli.settings import Effective
from lsp_server.formats.view import View, count
from magpy_core.findings import Finding, Severity


def open_baseline(effective: Effective) -> Baseline | None:
    """Before the program runs, so that a baseline that can't be used costs no minutes."""
    if effective.baseline is None:
        return None
    try:
        return Baseline.load(effective.baseline)
    except BaselineError as error:
        if effective.update_baseline:
            return Baseline(effective.baseline)
        raise ToolError(str(error)) from None


def settle(
    effective: Effective, baseline: Baseline | None, findings: list[Finding], view: View, *, whole: bool
) -> list[Finding]:
    """The findings that are new. ``whole``: the run came to its end, so what it did not find is gone."""
    if baseline is None:
        return findings
    run = effective.run_name
    try:
        if effective.update_baseline and whole:
            least = max(effective.fail_on, Severity.INFORMATION, key=lambda s: s.rank)
            written = baseline.replace(run, effective.steps, findings, least, view.sources)
            baseline.write()
            click.echo(f"magpy-lsp: the baseline {baseline.file} has {count(written, 'finding')} of this run.", err=True)
        judged = baseline.judge(run, findings, view.sources)
        view.known += judged.known
        if effective.update_baseline and not whole:
            click.echo("magpy-lsp: the run did not come to its end, so the baseline was not updated.", err=True)
        elif whole and judged.gone:
            _shrink(effective, baseline, judged.gone)
    except BaselineError as error:
        raise ToolError(str(error)) from None
    return judged.new


def _shrink(effective: Effective, baseline: Baseline, gone: Counter[Entry]) -> None:
    dropped = baseline.shrink(effective.run_name, effective.steps, gone, effective.selection.enabled)
    if not dropped:
        return
    what = f"{count(dropped, 'finding')} of the baseline {'is' if dropped == 1 else 'are'} gone"
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        click.echo(f"magpy-lsp: {what}: run it once outside of CI, and commit the smaller {baseline.file.name}.", err=True)
        return
    baseline.write()
    click.echo(f"magpy-lsp: {what}: dropped from {baseline.file}.", err=True)
