"""No imports run in a circle, those for types and those inside of functions included; but for `TYPES`.

import-linter's contract says the same of the engine's folders; here it is each file, of both packages.
"""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Collection
from pathlib import Path

import pytest

import magpy_core

ROOT = Path(magpy_core.__file__).parents[1]
TYPES = "magpy_core.recording.context"  # imports the parts of a recording, for their types only, and each of them imports it


def imports_of(source: str, modules: Collection[str]) -> set[str]:
    """Which of ``modules`` the source of one imports, wherever in it: ``from a import b`` is ``a.b`` if that is a module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else node.module for name in names}
    return found.intersection(modules)


def circle_in(modules: dict[str, str]) -> list[str]:
    """The modules of a circle, each importing the one before it; empty if there is none."""
    graph = {name: imports_of(source, modules) - {name} for name, source in modules.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_a_circle_for_types_only_is_found() -> None:
    modules = {
        "p.a": "from p.b import B",
        "p.b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import a",
        "p.c": "import p.a",
    }
    assert set(circle_in(modules)) == {"p.a", "p.b"}
    assert circle_in({**modules, "p.b": ""}) == []


@pytest.mark.parametrize("package", ["magpy_core", "lsp_server"])
def test_no_imports_run_in_a_circle(package: str) -> None:
    modules = {}
    for file in sorted((ROOT / package).rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file.read_text("utf-8")
    assert len(modules) > 50
    if TYPES in modules:
        tree = ast.parse(modules[TYPES])
        at_runtime = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        assert {getattr(node, "module", "") for node in at_runtime} == {"__future__", "typing"}
        modules[TYPES] = ""
    assert circle_in(modules) == []
