"""The hover text of findings: the reason, the values, the hint and a link. Key function: hover_text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from lsp_server.features.markdown import code as code_span
from lsp_server.features.markdown import plain
from lsp_server.formats.view import cost, ranks
from lsp_server.links import in_editor, in_text
from magpy_core.findings import Code, Finding, Severity, lookup

_IN_FULL = 3
_LISTED = 12
_ALIKE = 3  # at most this many diagnostics of one code are shown on one range, so the editor shows all their messages

Rated = tuple[Finding, Severity]


def hover_text(
    found: Sequence[Rated],
    *,
    markdown: bool,
    is_above: Callable[[Finding, Severity], bool] = lambda finding, severity: False,
    docs_url: str | None = None,
) -> str:
    """The most severe codes in full with their findings, the others one line each. ``found`` must not be empty.

    ``is_above``: whether the editor itself shows the finding's message above the hover.
    ``docs_url``: the address of the project's published pages of codes.
    """
    ordered = sorted(found, key=lambda pair: (pair[1].rank, pair[0].code, not is_above(*pair), pair[0].message))
    groups = [list(group) for _, group in groupby(ordered, key=lambda pair: (pair[1].rank, pair[0].code, is_above(*pair)))]
    write = _markdown if markdown else _text
    between = "\n\n" if markdown else "\n"
    blocks = [between.join(write(group, not is_above(*group[0]), docs_url)) for group in groups[:_IN_FULL]]
    rest = [pair for group in groups[_IN_FULL:] for pair in group]
    if rest:
        bold = "**" if markdown else ""
        listed = [f"- {bold}{f.code}{bold} {plain(f.message) if markdown else f.message}" for f, _ in rest[:_LISTED]]
        blocks.append("\n".join(listed + _more(len(rest))))
    return ("\n\n---\n\n" if markdown else "\n\n").join(blocks)


def _markdown(group: Sequence[Rated], messages: bool, docs_url: str | None) -> Iterator[str]:
    """The paragraphs for all findings of one code."""
    code, severity = lookup(group[0][0].code), group[0][1]
    yield f"**{code.code}** {code.name} · {severity.value}"
    if messages and len(group) == 1:
        yield plain(group[0][0].message)
    if code.reason:
        yield f"*Why:* {plain(code.reason)}"
    if len(group) == 1 or (not messages and len(group) <= _ALIKE):
        values = [f"- {code_span(v.name)} = {code_span(v.repr)}" for finding, _ in group for v in finding.values]
    else:
        values = [f"- {plain(finding.message)}{_values(finding)}" for finding, _ in group]
    if values:
        yield "\n".join(values[:_LISTED] + _more(len(values)))
    for hint in _hints(group, code):
        yield f"*What to do:* {plain(hint)}"
    facts = _facts(group)
    yield " · ".join([*map(plain, facts), f"[{code.code} documentation]({in_editor(code, docs_url)})"])


def _text(group: Sequence[Rated], messages: bool, docs_url: str | None) -> Iterator[str]:
    """The same as plain lines."""
    code, severity = lookup(group[0][0].code), group[0][1]
    yield f"{code.code} {code.name} ({severity.value})"
    listed = []
    for finding, _ in group:
        if messages or len(group) > 1:
            listed.append(finding.message)
        listed += [f"  {v.name} = {v.repr}" for v in finding.values]
    yield from listed[:_LISTED] + _more(len(listed))
    if code.reason:
        yield f"Why: {code.reason}"
    for hint in _hints(group, code):
        yield f"What to do: {hint}"
    facts = _facts(group)
    if facts:
        yield " · ".join(facts)
    yield in_text(code, docs_url)


def _hints(group: Sequence[Rated], code: Code) -> list[str]:
    """The distinct hints."""
    hints = dict.fromkeys(finding.advice for finding, _ in group)
    return [hint for hint in hints if hint]


def _facts(group: Sequence[Rated]) -> list[str]:
    regions = dict.fromkeys(finding.region for finding, _ in group if finding.region)
    facts = [f"region {name}" for name in regions]
    seen = sum(finding.count for finding, _ in group)
    if seen > len(group):
        facts.append(f"found {seen} times")
    if only := dict.fromkeys(ranks(finding) for finding, _ in group if finding.ranks):
        facts.append(f"only {', '.join(only)}")
    if spent := cost([finding for finding, _ in group]):
        facts.append(f"costs {spent}")
    return facts


def _values(finding: Finding) -> str:
    return "".join(
        f"{', ' if i else ': '}{code_span(v.name)} = {code_span(v.repr)}" for i, v in enumerate(finding.values[:_LISTED])
    )


def _more(number: int) -> list[str]:
    return [f"- and {number - _LISTED} more"] if number > _LISTED else []
