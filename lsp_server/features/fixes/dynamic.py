"""Marks a varying size before the first call: ``torch._dynamo.maybe_mark_dynamic``. Key function: mark_dynamic.

Only for torch.compile, which compiles for the first size and again when it changes. MagPy detects varying sizes itself.
"""

from __future__ import annotations

import ast
import re

from lsp_server.features.fixes.callers import only_call
from lsp_server.features.fixes.problem import Edit, Fix, Problem, imports_torch
from lsp_server.features.syntax import argument_for
from magpy_core.findings import Position, Range

_SIZE = re.compile(r"([A-Za-z_]\w*)\.shape\[(\d+)\]$")
_CHANGE = re.compile(r"(\d+) -> (\d+)$")


def mark_dynamic(problem: Problem) -> Fix | None:
    """Inserts the mark before the only call of the function, for the argument whose size changed once."""
    finding, function = problem.finding, problem.function
    if not finding.values or function is None or not imports_torch(problem.tree):
        return None
    size, change = _SIZE.match(finding.values[0].name), _CHANGE.match(finding.values[0].repr)
    # Sizes 0 and 1 are compiled separately; a second change means that the program needs the exact size.
    if size is None or change is None or "version 2 of" not in finding.message or {"0", "1"} & set(change.groups()):
        return None
    name, dim = size[1], size[2]
    again = [f for run in problem.runs for f in run.findings.values() if f.code == "MPD201" and f.values and f != finding]
    if any(f.values[0].name == finding.values[0].name for f in again):
        return None
    site = only_call(problem, function)
    if site is None or not problem.alone_on_its_lines(site.statement):
        return None
    given = argument_for(name, function, site.call)
    if not isinstance(given, ast.Name):
        return None
    # Not mark_dynamic, which raises if the program needs the exact size.
    mark = f"torch._dynamo.maybe_mark_dynamic({given.id}, {dim})"
    if any(mark in line for line in problem.lines):
        return None
    at = Position(site.statement.lineno - 1, 0)
    line = f"{problem.indent_of(site.statement)}{mark}\n"
    return Fix(f"Mark dimension {dim} of `{given.id}` as dynamic", (Edit(Range(at, at), line),))
