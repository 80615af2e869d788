"""Locations related to a finding: its call path, and the code that changes its value.

Key types: Place; key functions: call_path, value_changes. Outside regions the program is not monitored, so changes of
an external value are found in the source: assignments to the attribute, and the argument at the call.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lsp_server.features.run_findings import RunFindings, shown_location
from lsp_server.features.syntax import argument_for, calls_at, enclosing_functions, parse, range_of
from lsp_server.sources import is_library
from magpy_core.findings import Finding, Location

_VALUE_CODES = ("MP201", "MP202", "MP205", "MPD201")
_EFFECTS = ("MP301", "MP302", "MP303", "MP304", "MP306")
_SHOWN = 4
_METADATA = re.compile(r"\.(?:shape|stride\(\)|dtype|device|requires_grad)(?:\[-?\d+\])?$")


@dataclass(frozen=True)
class Place:
    """A location and its relation to the finding."""

    location: Location
    text: str


def call_path(finding: Finding) -> Iterator[Place]:
    """The calls from the region down to the line, outermost first, and the line inside a library if there is one.

    Omits library frames and the location of the diagnostic itself.
    """
    shown = shown_location(finding)
    for step in finding.path:
        if not is_library(step.file) and step not in (finding.location, shown):
            yield Place(step, f"call in {step.function}" if step.function else "call")
    if shown != finding.location:
        inside = finding.location.function
        yield Place(finding.location, f"inside {inside}" if inside else "inside the library")


def value_changes(finding: Finding, run: RunFindings) -> list[Place]:
    """Where the source changes or passes the value that caused a recompile."""
    if not finding.code.startswith(_VALUE_CODES) or not finding.values:
        return []
    name = _METADATA.sub("", finding.values[0].name)
    found: list[Place] = []
    for other in run.findings.values():
        if other.code in _EFFECTS and any(value.repr == name for value in other.values):
            found.append(Place(other.location, f"the region changes `{name}` here"))
    root, _, rest = name.partition(".")
    if root.isidentifier() and not rest:
        found += _given(root, finding, run)
    attribute = re.search(r"\.([A-Za-z_]\w*)$", name)
    if attribute:
        found += _assigned(attribute[1], run)
    places = {place.location: place for place in found if place.location != finding.location}
    return list(places.values())[:_SHOWN]


def _given(name: str, finding: Finding, run: RunFindings) -> Iterator[Place]:
    """The argument at the calls of the region, taken from the call paths of its findings."""
    region = run.regions.get(finding.region or "")
    if region is None:
        return
    tree = parse(tuple(run.tracker.lines(region.file) or ()))
    functions = enclosing_functions(tree, finding.location.range.start.line) if tree else []
    if not functions:
        return
    calls = [f.path[0] for f in run.findings.values() if f.region == finding.region and f.path]
    for call in sorted({call for call in calls if not is_library(call.file)}):
        text = run.tracker.lines(call.file) or []
        tree = parse(tuple(text))
        for node in calls_at(tree, text, call.range) if tree else ():
            given = argument_for(name, functions[-1], node)
            if given is not None:
                yield Place(Location(call.file, range_of(given, text), call.function), f"`{name}` is passed here")


def _assigned(attribute: str, run: RunFindings) -> Iterator[Place]:
    """Assignments to ``.attribute`` outside ``__init__`` in the files of the run."""
    for file in sorted(run.files()):
        lines = run.tracker.lines(file)
        tree = parse(tuple(lines)) if lines and os.path.isabs(file) else None
        if tree is None or not lines:
            continue
        beginnings = {
            id(node)
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef) and function.name == "__init__"
            for node in ast.walk(function)
        }
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and node.attr == attribute
                and id(node) not in beginnings
            ):
                yield Place(Location(file, range_of(node, lines)), f"`{ast.unparse(node)}` is assigned here")
