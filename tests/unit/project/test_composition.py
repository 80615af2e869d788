"""Objects stay small: no class of the engine's stages holds more than fifteen fields, those of its base classes included."""

from __future__ import annotations

import ast
from pathlib import Path

import magpy_core

ROOT = Path(magpy_core.__file__).parent
STAGES = ("recording", "capture", "regions", "guards", "replay", "refgraph", "opgraph")
MOST = 15
# To be split; this list only shrinks.
LARGE = {"OpRecorder"}


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
    for stage in STAGES:
        for file in sorted((ROOT / stage).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef):
                    bases = [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases]
                    found.setdefault(node.name, []).append((_fields(node), bases))
    return found


def test_no_class_has_too_many_fields() -> None:
    classes = _classes()

    def all_fields(name: str, below: frozenset[str] = frozenset()) -> set[str]:
        out: set[str] = set()
        for own, bases in classes.get(name, []) if name not in below else []:
            out |= own.union(*(all_fields(base, below | {name}) for base in bases))
        return out

    sizes = {name: len(all_fields(name)) for name in classes}
    assert {name: size for name, size in sizes.items() if size > MOST and name not in LARGE} == {}
    assert {name for name in LARGE if sizes.get(name, 0) <= MOST} == set(), "small now: take it off the list"
