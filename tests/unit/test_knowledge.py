"""What is known of callables is written once: each rule has an entry, and no other table names what has one."""

from __future__ import annotations

import importlib
import math
import pkgutil
import types
from collections.abc import Iterator
from typing import Any

import pytest

import magpy_core
from magpy_core.knowledge import policy
from magpy_core.knowledge.callables import CALLABLES, Callback, Reads, entry
from magpy_core.knowledge.methods import METHODS, Fate, method
from magpy_core.knowledge.modules import MODULES, Verdict
from magpy_core.opgraph.scalars import CARRYING
from magpy_core.recording.calls.rules import RULES

# Tables of something else, which happen to name functions or methods too.
ALLOWED = {
    "magpy_core.recording.calls.rules.RULES": "the rules themselves",
    "magpy_core.opgraph.scalars.CARRYING": "held to the entries by test_numbers_are_computed_where_the_graph_can_follow",
}
# Stages that name callables for their code generation, or what torch's methods of the same names are.
OTHER_STAGES = ("magpy_core.knowledge.", "magpy_core.opgraph.", "magpy_core.backends.", "magpy_core.runner.")


def tables() -> Iterator[tuple[str, Any]]:
    """Every set, and the keys of every dict, that a module of the engine defines at its top level."""
    for found in pkgutil.walk_packages(magpy_core.__path__, "magpy_core."):
        if found.name.startswith(OTHER_STAGES):
            continue
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            own = not name.startswith("__") and getattr(value, "__module__", found.name) == found.name
            if own and type(value) in (set, frozenset, dict, tuple) and f"{found.name}.{name}" not in ALLOWED:
                yield f"{found.name}.{name}", value


def test_print():
    for n, t in tables():
        names = [x for x in t if isinstance(x, str) and x in METHODS]
        fns = [x for x in t if callable(x) and any(x is c for c in CALLABLES)]
        if names: print("M", n, names)
        if fns: print("F", n, fns)
    assert 0
