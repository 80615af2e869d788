"""Findings that repeat, as one finding with a count. Key functions: merged, pattern.

One statement leads to a finding for each parameter, each slot of a list and each capture. Such findings are of one code,
region and place, and their messages differ only in subscripts and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from lsp_server.formats.guards import GUARD
from lsp_server.sources import is_library
from magpy_core.findings import Finding, Severity

_SUBSCRIPT = re.compile(r"\[[^\[\]]*\]")
_NUMBER = re.compile(r"\d[\d.,]*(?:e[+-]?\d+)?")
_SUBJECT = re.compile(r"`([^`]+)`")
_NAMED = 3
_VALUES = 5


@lru_cache(maxsize=4096)
def pattern(message: str) -> str:
    """The message without subscripts and numbers."""
    while (less := _SUBSCRIPT.sub("", message)) != message:
        message = less
    return _NUMBER.sub("#", message)


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Every group of repeats as its first finding, in order. Guards are not merged: each names a value of its own. What a
    statement calls in a library is shown once, in whichever region it was found."""
    groups: dict[Any, list[Finding]] = {}
    for number, finding in enumerate(findings):
        alike: int | str = number if finding.code == GUARD else pattern(finding.message)
        region = finding.region
        is_fact = finding.code.startswith("MP1") and finding.severity is Severity.INFORMATION
        if is_fact and finding.path and is_library(finding.path[-1].file):
            alike, region = "", None
        key = (finding.code, region, finding.location, finding.severity, finding.ranks, alike)
        groups.setdefault(key, []).append(finding)
    return [_merge(group) if len(group) > 1 else group[0] for group in groups.values()]


def _merge(group: list[Finding]) -> Finding:
    first = group[0]
    costs = [f.cost_ms for f in group if f.cost_ms is not None]
    total = max if first.code.startswith(("MP2", "MPD2")) else sum  # of a recompile: each time
    values = tuple(dict.fromkeys(value for f in group for value in f.values))
    return replace(
        first,
        message=_with_others(first.message, [f.message for f in group[1:]]),
        values=values[: max(_VALUES, len(first.values))],
        count=sum(f.count for f in group),
        steps=max(f.steps for f in group),
        cost_ms=total(costs) if costs else None,
        at_most_ms=max((f.at_most_ms for f in group if f.at_most_ms is not None), default=None),  # of the same region
        step_ms=max((f.step_ms for f in group if f.step_ms is not None), default=None),
    )


def _with_others(message: str, others: list[str]) -> str:
    """The message, with the subjects of the others behind its first line."""
    subjects = [found[1] for text in (message, *others) if (found := _SUBJECT.search(text))]
    names = [name for name in dict.fromkeys(subjects) if name != subjects[0]] if subjects else []
    if not names:
        return message
    named = ", ".join(f"`{name}`" for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    head, newline, rest = message.partition("\n")
    return f"{head} (also {named}{more}){newline}{rest}"
