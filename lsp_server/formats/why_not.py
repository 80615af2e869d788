"""Why regions are not fully compiled, in a terminal and as sentences. Key functions: lines, head, share, facts.

Does not import rich at first, because the server uses the sentences for its hovers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from magpy_core.findings import Report, WhyNot
from magpy_core.findings.explanation import explain

if TYPE_CHECKING:
    from rich.text import Text

    from lsp_server.formats.view import View

TITLE = "Not fully compiled"
_STATES = {"compiled": "compiled", "partly": "partly compiled", "eager": "eager mode"}
_STYLES = {"compiled": "green", "partly": "yellow", "eager": "yellow"}
_LISTED = 5  # at the end of a run
_BY_THE_WAY = ("small", "replaced", "inside")  # need no action: a line for all of them


def of_report(report: Report) -> list[WhyNot]:
    """Those of a finished run; of a report of an older version, or of a run that goes on, as far as it shows them."""
    return report.why_not or explain(report)


def by_weight(found: Sequence[WhyNot]) -> list[WhyNot]:
    """What is not compiled, by its share of a step, largest first."""
    others = [one for one in found if one.reason and one.reason not in _BY_THE_WAY]
    return sorted(others, key=lambda one: -(one.share or 0.0))


def name(found: WhyNot) -> str:
    return found.name.replace(": ", " ", 1)


def head(found: WhyNot) -> str:
    """``partly compiled, at most 34% of a step in eager mode``; ``eager mode, 12% of a step``."""
    return ", ".join(filter(None, (_STATES[found.state], share(found))))


def share(found: WhyNot) -> str:
    """Empty for what is compiled."""
    if not found.reason:
        return ""
    if found.share is None:
        return "its share of a step was not measured"
    most, eager = "at most " if found.is_limit else "", "" if found.state == "eager" else " in eager mode"
    return f"{most}{percent(found.share)} of a step{eager}"


def percent(value: float) -> str:
    """Two digits: ``0.52%``, ``34%``, ``100%``."""
    if value < 0.1:
        return "under 0.1%"
    return f"{value:.0f}%" if value >= 9.95 else f"{value:.2g}%"


def facts(found: WhyNot, place: str) -> Iterator[tuple[str, str]]:
    """What to say of it below its head, as labels and texts. ``place``: of the cause, as people read it."""
    yield "why", found.why
    if found.cause:
        yield "because", f"{found.code} at {place}: {found.cause.splitlines()[0]}"
    if found.value:
        yield "value", found.value
    if found.rewrite:
        yield "rewrite", found.rewrite


def base_name(found: WhyNot) -> str:
    """``train.py:12``; empty if it has no place."""
    return f"{os.path.basename(found.file)}:{found.line}" if found.file and found.line else ""


def lines(found: Sequence[WhyNot], view: View, *, in_full: bool = False) -> Iterator[Text]:
    """``in_full``: with a line for each region that is compiled; else one line for all of them."""
    from rich.text import Text

    from lsp_server.formats.view import clean

    weighty = by_weight(found)
    for one in weighty if in_full else weighty[:_LISTED]:
        yield _head(one, view)
        for label, text in facts(one, _place(one, view)):
            yield Text.assemble((f"    {label + ':':<9}", "dim"), clean(" ".join(text.split())))
    if not in_full and len(weighty) > _LISTED:
        yield Text(f"and {len(weighty) - _LISTED} more, which `magpy-lsp explain-run` lists", "dim")
    if rest := [clean(name(one)) for one in found if one.reason in _BY_THE_WAY]:
        few = ", ".join(rest[:3]) + (f" and {len(rest) - 3} more" if len(rest) > 3 else "")
        yield Text(f"In eager mode, too small to gain anything, or compiled in parts that are listed, too: {few}", "dim")
    compiled = [one for one in found if not one.reason]
    if in_full:
        yield from (Text.assemble(_head(one, view), f": {clean(one.why)}") for one in compiled)
    elif compiled:
        yield Text(f"Compiled: {', '.join(clean(name(one)) for one in compiled)}.", "green")


def _head(found: WhyNot, view: View) -> Text:
    from rich.text import Text

    from lsp_server.formats.view import clean

    place = _place(found, view)
    text = Text.assemble((clean(name(found)), "bold"), (f" ({place})" if place and not found.cause else "", "dim"), ": ")
    return text.append(head(found), _STYLES[found.state])


def _place(found: WhyNot, view: View) -> str:
    if not found.file:
        return ""
    return view.path(found.file) + (f":{found.line}" if found.line else "")
