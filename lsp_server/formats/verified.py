"""What `run --verify` has compared with eager mode: a table, a row for each region. Key function: table."""

from __future__ import annotations

from collections import Counter

from rich import box
from rich.table import Table
from rich.text import Text

from lsp_server.formats.view import clean, count
from magpy_core.findings import RegionSummary, Report

HEAD = ("steps compared", "differ", "largest difference", "in step")


def compared(report: Report) -> list[RegionSummary]:
    """The regions of which later calls were compared, and those whose code was wrong in its first call already."""
    return [region for region in report.regions if region.samples or region.wrong]


def _wrong_at_first(region: RegionSummary) -> int:
    """How many graphs gave another result before a later call could be compared."""
    return max(0, region.wrong - sum(one.is_difference for one in region.samples))


def cells(region: RegionSummary) -> tuple[str, ...]:
    """By `HEAD`. A difference is a part of the largest element of the tensor that it is in."""
    checked = [one for one in region.samples if not one.unchecked]
    worst = max(checked, key=lambda one: one.apart, default=None)
    return (
        f"{len({one.step for one in checked}):,}",
        f"{sum(one.is_difference for one in checked) + _wrong_at_first(region):,}",
        "-" if worst is None else f"{worst.apart:.1e}" if worst.apart else "0",
        "-" if worst is None or not worst.apart else f"{worst.step:,}",
    )


def reasons(region: RegionSummary) -> list[str]:
    """Why calls could not be compared, or were not."""
    first = _wrong_at_first(region)
    wrong = [f"{count(first, 'graph')} not used: another result in its first call"] if first else []
    found = Counter(one.unchecked for one in region.samples if one.unchecked)
    return wrong + [f"{count(number, 'call')} not compared: {clean(reason)}" for reason, number in found.most_common(3)]


def numerics(report: Report) -> str:
    """Of a run with ``--verify=strict``: whether torch helps; empty for others."""
    if report.numerics == "strict":
        return "Compiled with torch's strict numerics, which give eager mode's bits wherever Inductor can."
    if report.numerics == "default":
        return "This version of torch has no strict numerics: code that gives other bits than eager mode is not used."
    return ""


def table(report: Report) -> Table | None:
    """None if nothing was compared but the first calls, and these were right."""
    regions = compared(report)
    if not regions:
        return None
    shown = Table(
        box=box.SIMPLE_HEAD,
        title="Compared with eager mode",
        title_justify="left",
        caption=" ".join(("Differences as a part of the tensor's largest element.", numerics(report))).strip(),
        caption_justify="left",
        pad_edge=False,
        padding=0,
    )
    shown.add_column("region", overflow="fold", min_width=12)
    for heading in HEAD:
        shown.add_column(heading, justify="right")
    for region in regions:
        name = Text.assemble((clean(region.name), "bold"), *(f"\n{reason}" for reason in reasons(region)))
        steps, differ, *others = cells(region)
        shown.add_row(name, steps, Text(differ, "" if differ == "0" else "red"), *others)
    return shown
