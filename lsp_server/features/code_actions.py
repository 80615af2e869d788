"""Code actions on findings: quick fixes, ignore comments, documentation and the operator graph.

Key functions: actions_for, starting.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from lsprotocol import types

from lsp_server.features.documents import Document
from lsp_server.features.entrypoint import is_not_imported
from lsp_server.features.fixes import Fix, Problem, fixes_for
from lsp_server.features.fixes.problem import Edit
from lsp_server.features.positions import from_units, to_units
from lsp_server.features.run_findings import RunFindings, shown_location
from lsp_server.features.syntax import parse
from lsp_server.suppress import directives
from magpy_core.findings import Finding, Position, Range, lookup

EXPLAIN, SHOW_DOCUMENTATION, SHOW_GRAPH = "magpy.explainCode", "magpy.showDocumentation", "magpy.showOperatorGraph"
OPEN_REPRODUCER = "magpy.openReproducer"
_NEVER_IGNORED = ("MP905", "MP910", "MP912")  # the program raised; the table is wrong; an ignore comment does nothing
Placed = tuple[RunFindings, Finding, types.Range]


@dataclass(frozen=True)
class ActionRequest:
    """The request and the client's capabilities. ``own``: our extension, which has its own commands. ``shows_documents``: it
    opens a file or an address for us."""

    diagnostics: Sequence[types.Diagnostic]
    only: Sequence[str]
    encoding: str
    own: bool
    shows_documents: bool


def actions_for(
    document: Document, found: Sequence[Placed], runs: Sequence[RunFindings], request: ActionRequest
) -> list[types.CodeAction]:
    """The actions for the findings at the cursor, fixes first, without duplicates from several runs."""
    actions: dict[tuple[str, str], types.CodeAction] = {}
    tree = parse(tuple(document.lines))
    for action in (*_fixes(document, tree, found, runs, request), *_plain(document, found, request)):
        if _wanted(action, request.only):
            edits = repr(action.edit) if action.edit is not None else repr(action.command)
            first = actions.setdefault((action.title, edits), action)
            if first is not action and action.diagnostics:
                first.diagnostics = [*(first.diagnostics or ()), *action.diagnostics]
    return list(actions.values())


def _wanted(action: types.CodeAction, only: Sequence[str]) -> bool:
    kind = str(getattr(action.kind, "value", action.kind))
    return not only or any(kind == wanted or kind.startswith(f"{wanted}.") or not wanted for wanted in only)


def _fixes(
    document: Document,
    tree: ast.Module | None,
    found: Iterable[Placed],
    runs: Sequence[RunFindings],
    request: ActionRequest,
) -> Iterator[types.CodeAction]:
    if tree is None:
        return  # not valid Python at the moment
    is_whole_program = cache(partial(is_not_imported, document.path or "", document.lines))
    for _, finding, where in found:
        if shown_location(finding) != finding.location:
            continue  # the line is in a library; only the call is the user's
        place = _points(document, where, request.encoding)
        problem = Problem(finding, place, document.lines, tree, document.key, runs, is_whole_program)
        for fix in fixes_for(problem):
            yield _action(document, fix, _diagnostics_of(request, finding, where), request.encoding)


def _points(document: Document, where: types.Range, encoding: str) -> Range:
    ends = [
        Position(p.line, from_units(document.lines[min(p.line, len(document.lines) - 1)], p.character, encoding))
        for p in (where.start, where.end)
    ]
    return Range(*ends)


def _diagnostics_of(request: ActionRequest, finding: Finding, where: types.Range) -> list[types.Diagnostic] | None:
    """The client's diagnostics that an action is about."""
    return [d for d in request.diagnostics if d.code == finding.code and d.range == where] or None


def _action(
    document: Document, fix: Fix, diagnostics: list[types.Diagnostic] | None, encoding: str, *, ignores: bool = False
) -> types.CodeAction:
    edits = [
        types.TextEdit(
            types.Range(_lsp(document, edit.range.start, encoding), _lsp(document, edit.range.end, encoding)),
            edit.text.replace("\n", document.eol),
        )
        for edit in fix.edits
    ]
    return types.CodeAction(
        title=fix.title,
        kind=types.CodeActionKind.RefactorRewrite if fix.rewrite else types.CodeActionKind.QuickFix,
        diagnostics=diagnostics,
        is_preferred=None if fix.rewrite or ignores else True,
        edit=_workspace_edit(document, edits),
    )


def _workspace_edit(document: Document, edits: Sequence[types.TextEdit]) -> types.WorkspaceEdit:
    """An edit bound to the document's version, so that a client does not apply it to a later text."""
    identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, list(edits))])


def _lsp(document: Document, at: Position, encoding: str) -> types.Position:
    if at.line >= len(document.lines):  # the end of a last line without a line end
        last = document.lines[-1]
        return types.Position(len(document.lines) - 1, to_units(last, len(last), encoding))
    return types.Position(at.line, to_units(document.lines[at.line], at.character, encoding))


def starting(
    lenses: Iterable[types.CodeLens], wanted: types.Range, request: ActionRequest, titles: Mapping[str, str]
) -> list[types.CodeAction]:
    """What the lenses of these lines do, for a client without lenses. ``titles``: of the commands in question; if empty, the
    lens's own."""
    actions = [
        types.CodeAction(f"MagPy: {titles[command.command] or command.title}", types.CodeActionKind.Source, command=command)
        for lens in lenses
        if (command := lens.command) is not None and command.command in titles
        if wanted.start.line <= lens.range.start.line <= wanted.end.line
    ]
    return [action for action in actions if _wanted(action, request.only)]


# Actions for every finding


def _plain(document: Document, found: Sequence[Placed], request: ActionRequest) -> Iterator[types.CodeAction]:
    if request.shows_documents:
        for _, finding, where in found:
            if finding.reproducer and os.path.isfile(finding.reproducer):
                diagnostics = _diagnostics_of(request, finding, where)
                yield _command("Open reproducer", OPEN_REPRODUCER, finding.reproducer, diagnostics)
    codes = {finding.code: (finding, where) for run, finding, where in found if run.is_diagnosed(finding, finding.severity)}
    for code, (finding, where) in codes.items():
        diagnostics = _diagnostics_of(request, finding, where)
        if lookup(code).code not in _NEVER_IGNORED:
            here = _ignored_here(document, code, where)
            if here is not None:
                yield _action(document, here, diagnostics, request.encoding, ignores=True)
            yield _action(document, _ignored_in_file(document, code), diagnostics, request.encoding, ignores=True)
        if request.own or request.shows_documents:
            command = EXPLAIN if request.own else SHOW_DOCUMENTATION
            yield _command(f"Show documentation of {code}", command, code, diagnostics)
    if request.own:
        for region in dict.fromkeys(finding.region for run, finding, _ in found if _has_graph(run, finding.region)):
            yield _command(f"Open the operator graph of {region}", SHOW_GRAPH, str(region), None)


def _has_graph(run: RunFindings, region: str | None) -> bool:
    return region in run.regions and run.regions[region].captures > 0


def _command(title: str, command: str, argument: str, diagnostics: list[types.Diagnostic] | None) -> types.CodeAction:
    return types.CodeAction(
        title,
        types.CodeActionKind.QuickFix,
        diagnostics=diagnostics,
        command=types.Command(title, command, arguments=[argument]),
    )


def _ignored_here(document: Document, code: str, where: types.Range) -> Fix | None:
    """A comment at the end of the finding's last or first line, wherever a comment is possible (not inside a string)."""
    for number in dict.fromkeys((where.end.line, where.start.line)):
        line = document.lines[number]
        known = next(
            (d for d in directives(document.text) if d.line == number and not d.whole_file and d.entries[0].prefix), None
        )
        if known is not None:
            end = known.entries[-1].range.end
            return Fix(f"Ignore {code} here", (Edit(Range(end, end), f", {code}"),))
        text = f"  # magpy: ignore[{code}]"
        changed = [*document.lines[:number], line.rstrip() + text, *document.lines[number + 1 :]]
        if any(d.line == number and not d.whole_file for d in directives("\n".join(changed))) and _same(
            document.lines, changed
        ):
            return Fix(
                f"Ignore {code} here",
                (Edit(Range(Position(number, len(line.rstrip())), Position(number, len(line))), text),),
            )
    return None


def _same(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether two texts are the same program; False if one is not valid Python."""
    trees = [parse(tuple(lines)) for lines in (before, after)]
    return None not in trees and ast.dump(trees[0]) == ast.dump(trees[1])  # type: ignore[arg-type]


def _ignored_in_file(document: Document, code: str) -> Fix:
    """A comment at the top, below shebang and encoding lines; a code is added to an existing comment."""
    title = f"Ignore {code} in this file"
    known = next((d for d in directives(document.text) if d.whole_file and d.entries and d.entries[0].prefix), None)
    if known is not None:
        end = known.entries[-1].range.end
        return Fix(title, (Edit(Range(end, end), f", {code}"),))
    line = 0
    while line < min(2, len(document.lines) - 1) and (
        document.lines[line].startswith("#!") or (document.lines[line].startswith("#") and "coding" in document.lines[line])
    ):
        line += 1
    at = Position(line, 0)
    return Fix(title, (Edit(Range(at, at), f"# magpy: ignore-file[{code}]\n"),))
