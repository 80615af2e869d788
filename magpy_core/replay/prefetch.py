"""What a replay needs of the outside, fetched before its first effect. Key function: ``prefetch``."""

from __future__ import annotations

from typing import Any

from magpy_core.guards.codegen import GuardWriter
from magpy_core.replay.ir import Build, ErrorLinks, Outside, Plan, Scalar


def prefetch(w: GuardWriter, plan: Plan) -> None:
    """Outside objects that replay needs are fetched while their paths still lead to them (before any effect)."""
    seen: set[int] = set()
    _fetch(w, plan.result, seen)
    for effect in plan.effects:
        _fetch(w, effect.target, seen)
        if effect.op != "warn":  # whose key is a location with the module's globals
            _fetch(w, effect.key, seen)
        _fetch(w, effect.value, seen)
        if effect.op in ("set_attr", "del_attr") and isinstance(effect.target, Outside):
            w.dict_of(effect.target.source)


def _fetch(w: GuardWriter, e: Any, seen: set[int]) -> None:
    if isinstance(e, Outside):
        w.var(e.source)
    elif isinstance(e, Scalar):
        for leaf in e.sym.leaves():
            if leaf.kind == "source":
                w.var(leaf.payload)
    elif isinstance(e, Build) and id(e) not in seen:
        seen.add(id(e))
        for part in (e.items, [v for _, v in e.attrs], [v for _, v in e.slots], e.extra):
            _fetch(w, part, seen)
    elif isinstance(e, ErrorLinks):
        _fetch(w, [e.cause, e.context, *(v for _, v in e.fields)], seen)
    elif type(e) in (list, tuple):
        for part in e:
            _fetch(w, part, seen)
    elif type(e) is dict:
        _fetch(w, list(e.values()), seen)
