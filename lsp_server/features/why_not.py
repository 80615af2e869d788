"""Why something in the program is not compiled, in an editor: a page, a message, code actions.

Key functions: page, message, actions, find.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lsprotocol import types

from lsp_server.features.documents import Document
from lsp_server.features.markdown import code, plain
from lsp_server.features.run_findings import RunFindings
from lsp_server.formats import why_not
from magpy_core.findings import WhyNot

SHOW_WHY_NOT, TELL_WHY_NOT = "magpy.showWhyNot", "magpy.whyNotCompiled"
"""The extension's own command, which shows a page, and the server's, which shows a message. The argument is a region's id;
empty: the training step."""
TITLE = "Why is this not compiled?"


def actions(
    document: Document, lines: range, runs: Iterable[RunFindings], only: Sequence[str], *, own: bool
) -> list[types.CodeAction]:
    """An action for each region at the 0-based ``lines`` that is not compiled. ``own``: the client is our extension."""
    kind = types.CodeActionKind.QuickFix
    if only and not any(kind.value == wanted or not wanted for wanted in only):
        return []
    found = {one.region: one for run in runs for line in lines for one in run.why_not_at(document.key, line)}
    command = SHOW_WHY_NOT if own else TELL_WHY_NOT
    made = []
    for region, one in found.items():
        title = TITLE if len(found) == 1 else f"{TITLE} ({why_not.name(one)})"
        made.append(types.CodeAction(title, kind, command=types.Command(title, command, arguments=[region])))
    return made


def find(region: str, runs: Iterable[RunFindings]) -> WhyNot | None:
    """Of the latest run that has the region, by its id."""
    return next((one for run in reversed(list(runs)) for one in run.why_not if one.region == region and one.reason), None)


def page(found: Iterable[WhyNot]) -> str:
    """Markdown."""
    parts = [part for one in found for part in _paragraphs(one)] or ["Everything that MagPy can compile is compiled."]
    return "\n\n".join([f"# {TITLE}", *parts]) + "\n"


def _paragraphs(found: WhyNot) -> Iterator[str]:
    yield f"**{plain(why_not.name(found))}**: {plain(why_not.head(found))}."
    for label, text in why_not.facts(found, why_not.base_name(found)):
        yield f"*{label.capitalize()}:* {code(text) if label == 'value' else plain(text)}"


def message(found: WhyNot) -> str:
    """Plain text."""
    facts = (text for label, text in why_not.facts(found, why_not.base_name(found)) if label != "value")
    return f"{why_not.name(found)}: {why_not.head(found)}. {' '.join(facts)}"
