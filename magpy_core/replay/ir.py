"""Replay IR: how to rebuild values that leave the region, and its side effects.

Value expressions: Const, Outside, GraphValue, Scalar, Build. Statements: Effect. Plans: Plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch.fx

from magpy_core.findings import Unsupported
from magpy_core.opgraph.scalars import Sym
from magpy_core.refgraph.source import Source


class MadeInside(Unsupported):
    """The region stores an object that replay can't create in external state, perhaps only as a one-time initialisation."""


@dataclass(frozen=True)
class Const:
    value: Any


@dataclass(frozen=True)
class Outside:
    """The object at ``source`` on entry to the region."""

    source: Source


@dataclass(frozen=True)
class GraphValue:
    """A tensor computed by the operator graph."""

    node: torch.fx.Node


@dataclass(frozen=True)
class Scalar:
    """A symbolic scalar, computed at each call."""

    sym: Sym


@dataclass(eq=False)
class Build:
    """An object created by the region: replay creates it empty (``how``), then fills it, to preserve sharing and cycles.

    ``how``: ``list dict set deque`` (filled in place), ``tuple frozenset call`` (items first), ``object`` (``__new__``, then
    state). ``extra``: a defaultdict's factory, or a deque's ``maxlen``.
    """

    how: str
    type: type
    items: list[Any] = field(default_factory=list)  # expressions; pairs for dict
    attrs: list[tuple[str, Any]] = field(default_factory=list)  # instance __dict__
    slots: list[tuple[str, Any]] = field(default_factory=list)
    extra: Any = None


Expr = Const | Outside | GraphValue | Scalar | Build


@dataclass
class Effect:
    """One side effect. ``op`` is a Change op, or ``print``, ``log``, ``warn``, ``set_field`` (a tensor's ``.grad``),
    ``set_class`` (a number of a class), ``set_context`` (a context variable),
    ``advance`` (a counter, ``value`` times).

    ``replaced``: the source of the value that it replaces, if the call has read it."""

    op: str
    target: Expr | None
    key: Any  # an expression
    value: Any  # an expression, or a list of them
    describe: str
    sites: list[Any] = field(default_factory=list)
    target_type: type = object
    replaced: Source | None = None


@dataclass
class Plan:
    """The steps after the graph has run: apply effects in order, then return or raise ``result``."""

    result: Expr
    raises: bool
    effects: list[Effect] = field(default_factory=list)
    outputs: list[torch.fx.Node] = field(default_factory=list)  # graph values the plan uses, in order of use
