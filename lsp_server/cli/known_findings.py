"""``--baseline`` and ``--update-baseline``: hide known findings. Key functions: open_baseline, apply_baseline."""

from __future__ import annotations

import os
from collections import Counter

import click

from lsp_server.baseline import Baseline, BaselineError, Entry
from lsp_server.cli.publish import ToolError
from lsp_server.cli.settings import ResolvedSettings
from lsp_server.formats.view import View, count
from magpy_core.findings import Finding, Severity


def open_baseline(effective: ResolvedSettings) -> Baseline | None:
    """Loads the baseline before the program runs, so that an unusable file is reported at once."""
    if effective.baseline is None:
        return None
    try:
        return Baseline.load(effective.baseline)
    except BaselineError as error:
        if effective.update_baseline:
            return Baseline(effective.baseline)
        raise ToolError(str(error)) from None


def apply_baseline(
    effective: ResolvedSettings, baseline: Baseline | None, findings: list[Finding], view: View, *, completed: bool
) -> list[Finding]:
    """The new findings. ``completed``: the run reached its end, so known findings that it lacks no longer occur."""
    if baseline is None:
        return findings
    run = effective.run_name
    try:
        if effective.update_baseline and completed:
            least = max(effective.fail_on, Severity.INFORMATION, key=lambda s: s.rank)
            written = baseline.replace(run, effective.steps, findings, least, view.sources)
            baseline.write()
            click.echo(f"magpy-lsp: {count(written, 'finding')} of this run written to {baseline.file}.", err=True)
        result = baseline.compare(run, findings, view.sources)
        view.known += result.known
        if effective.update_baseline and not completed:
            click.echo("magpy-lsp: the run did not complete, so the baseline was not updated.", err=True)
        elif completed and result.not_found:
            _shrink(effective, baseline, result.not_found)
    except BaselineError as error:
        raise ToolError(str(error)) from None
    return result.new


def _shrink(effective: ResolvedSettings, baseline: Baseline, not_found: Counter[Entry]) -> None:
    dropped = baseline.shrink(effective.run_name, effective.steps, not_found, effective.selection.enabled)
    if not dropped:
        return
    what = f"{count(dropped, 'finding')} of the baseline no longer {'occurs' if dropped == 1 else 'occur'}"
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        click.echo(f"magpy-lsp: {what}: run outside CI, and commit the smaller {baseline.file.name}.", err=True)
        return
    baseline.write()
    click.echo(f"magpy-lsp: {what}: removed from {baseline.file}.", err=True)
