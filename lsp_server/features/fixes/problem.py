"""A finding in the current text, with queries about its context. Key types: Problem, Fix, Edit."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from lsp_server.features.documents import key_of
from lsp_server.features.run_findings import RunFindings
from lsp_server.features.syntax import Function, enclosing_functions, range_of
from magpy_core.findings import Finding, Position, Range
from magpy_core.findings.details import NodeDetail


@dataclass(frozen=True)
class Edit:
    """Replaces ``range`` (code points, in the current text) with ``text``, which has LF line ends."""

    range: Range
    text: str


@dataclass(frozen=True)
class Fix:
    """A quick fix. ``rewrite``: it is only a suggestion and does not remove the finding by itself."""

    title: str
    edits: tuple[Edit, ...]
    rewrite: bool = False


@dataclass
class Problem:
    """``range``: the current range of ``finding`` in ``lines``; ``runs``: all shown runs; ``key``: the file's key."""

    finding: Finding
    range: Range
    lines: Sequence[str]
    tree: ast.Module
    key: str
    runs: Sequence[RunFindings] = ()
    is_whole_program: Callable[[], bool] = lambda: False
    """Whether the file is a complete program: an entrypoint that no file in its folder imports."""
    _parents: dict[ast.AST, ast.AST] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def range_of(self, node: ast.expr | ast.stmt) -> Range:
        return range_of(node, self.lines)

    def text_of(self, node: ast.expr | ast.stmt) -> str:
        where = self.range_of(node)
        if where.start.line == where.end.line:
            return self.lines[where.start.line][where.start.character : where.end.character]
        return ast.unparse(node)

    @property
    def function(self) -> Function | None:
        """The innermost function around the finding."""
        found = enclosing_functions(self.tree, self.range.start.line)
        return found[-1] if found else None

    def expression(self) -> ast.expr | None:
        """The expression whose range is exactly the finding's."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.expr) and node.lineno == self.range.start.line + 1 and self.range_of(node) == self.range:
                return node
        return None

    def statement(self) -> ast.stmt | None:
        """The innermost statement that contains the finding's range."""
        held = [n for n in ast.walk(self.tree) if isinstance(n, ast.stmt) and self._holds(n)]
        return max(held, key=lambda n: (n.lineno, n.col_offset), default=None)

    def _holds(self, node: ast.stmt) -> bool:
        where = self.range_of(node)
        return where.start <= self.range.start and self.range.end <= where.end

    def nodes_at(self, line: int) -> list[list[NodeDetail]]:
        """Operations in the newest capture of each region for a 0-based line of the current text."""
        groups = [[n for n in nodes if _now(run, n) == line] for run in self.runs for nodes in _nodes(run, self.key)]
        return [nodes for nodes in groups if nodes]

    def alone_on_its_lines(self, statement: ast.stmt) -> bool:
        """Whether its lines contain nothing else but a comment, so that whole lines can be removed or inserted."""
        where = self.range_of(statement)
        before = self.lines[where.start.line][: where.start.character]
        after = self.lines[where.end.line][where.end.character :].strip()
        return not before.strip() and (not after or after.startswith("#"))

    def indent_of(self, statement: ast.stmt) -> str:
        line = self.lines[statement.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def whole_lines(self, statement: ast.stmt) -> Range:
        where = self.range_of(statement)
        return Range(Position(where.start.line, 0), Position(where.end.line + 1, 0))


def _nodes(run: RunFindings, key: str) -> Iterator[list[NodeDetail]]:
    for region in run.details.regions if run.details is not None else ():
        nodes = region.captures[0].nodes if region.captures else ()
        yield [node for node in nodes if node.kind != "placeholder" and node.file and key_of(node.file) == key]


def _now(run: RunFindings, node: NodeDetail) -> int | None:
    tracked = run.tracker.file(node.file)
    return None if tracked is None else tracked.place(node.line - 1, node.line - 1)


def names_in(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def is_number(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def imports_torch(tree: ast.Module) -> bool:
    """Whether ``torch`` is imported at the top, and nothing else has that name."""
    imported = any(
        isinstance(s, ast.Import) and any(a.name.split(".")[0] == "torch" and a.asname in (None, "torch") for a in s.names)
        for s in tree.body
    )
    stored = any(isinstance(n, ast.Name) and n.id == "torch" and not isinstance(n.ctx, ast.Load) for n in ast.walk(tree))
    shadowed = any(isinstance(n, ast.arg) and n.arg == "torch" for n in ast.walk(tree))
    return imported and not stored and not shadowed
