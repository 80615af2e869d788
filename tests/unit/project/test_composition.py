"""Objects stay small: no class of the engine holds more than fifteen fields, those of its base classes included."""

from __future__ import annotations

import ast
from pathlib import Path

import magpy_core

ROOT = Path(magpy_core.__file__).parent
MOST = 15
#: Flat because they are documents: a line of the report's schema, the options of a run as they go to its process, those of a
#: region, the table of limits, and the names of a recording's parts.
RECORDS = {"RegionSummary", "RunRequest", "Options", "Limits", "Context"}


def _fields(cls: ast.ClassDef) -> set[str]:
    declared = [part for part in cls.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)]
    found = {ast.unparse(part.target) for part in declared if "ClassVar" not in ast.unparse(part.annotation)}
    for node in ast.walk(cls):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            found.add(node.attr)
    return found


def _classes() -> dict[str, list[tuple[set[str], list[str]]]]:
    """Own fields and names of base classes, by name of class."""
    found: dict[str, list[tuple[set[str], list[str]]]] = {}
    for file in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases = [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases]
                found.setdefault(node.name, []).append((_fields(node), bases))
    return found


def test_no_class_has_too_many_fields() -> None:
    classes = _classes()

    def fields(own: set[str], bases: list[str]) -> set[str]:
        """With those of base classes; where several classes have a base's name, of the largest."""
        inherited = [max((fields(*one) for one in classes.get(base, [])), key=len, default=set()) for base in bases]
        return own.union(*inherited)

    sizes = {name: max(len(fields(*one)) for one in defined) for name, defined in classes.items()}
    assert {name: size for name, size in sizes.items() if size > MOST and name not in RECORDS} == {}


def test_every_tracker_has_tests_that_build_it_alone() -> None:
    classes = _classes()
    bases = {name for name in classes if name.endswith("Tracker")}
    trackers = {name for name, defined in classes.items() for _, of in defined if not bases.isdisjoint(of)} - bases
    assert len(trackers) > 40
    tests = "".join(file.read_text("utf-8") for file in (Path(__file__).parents[1] / "recording").glob("*.py"))
    built = {name for name in trackers if f"{name}(" in tests or f"build({name}" in tests}
    assert trackers - built == set()
