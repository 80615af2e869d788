"""Fetches the external objects that a replay needs, before its first effect. Key function: ``prefetch``."""

from __future__ import annotations

from typing import Any

from magpy_core.guards.codegen import GuardWriter
from magpy_core.replay.ir import Build, ErrorLinks, Outside, Plan, Scalar


def prefetch(w: GuardWriter, plan: Plan) -> None:
    """Fetches external objects before any effect, while their access paths are still valid."""
    seen: set[int] = set()

    def visit(e: Any) -> None:
        if isinstance(e, Outside):
            w.var(e.source)
        elif isinstance(e, Scalar):
            for leaf in e.sym.leaves():
                if leaf.kind == "source":
                    w.var(leaf.payload)
        elif isinstance(e, Build) and id(e) not in seen:
            seen.add(id(e))
            visit(e.items)
            visit([v for _, v in e.attrs])
            visit([v for _, v in e.slots])
            visit(e.extra)
        elif isinstance(e, ErrorLinks):
            visit([e.cause, e.context, *(v for _, v in e.fields)])
        elif type(e) in (list, tuple):
            for part in e:
                visit(part)
        elif type(e) is dict:
            visit(list(e.values()))

    visit(plan.result)
    for effect in plan.effects:
        visit(effect.target)
        if effect.op != "warn":  # whose key is a location with the module's globals
            visit(effect.key)
        visit(effect.value)
        if effect.op in ("set_attr", "del_attr") and isinstance(effect.target, Outside):
            w.dict_of(effect.target.source)
