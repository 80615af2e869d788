"""Replay IR: how a value that leaves the region is made again, and the effects on what is outside.

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
    """The region makes something that replay can't make, and puts it outside: perhaps to set itself up, once."""


@dataclass(frozen=True)
class Const:
    value: Any


@dataclass(frozen=True)
class Outside:
    """The object at ``source`` when the region was entered."""

    source: Source


@dataclass(frozen=True)
class GraphValue:
    """A tensor computed by the operator graph."""

    node: torch.fx.Node


@dataclass(frozen=True)
class Scalar:
    """A symbolic scalar, computed anew at each call."""

    sym: Sym


@dataclass(frozen=True)
class ActiveError:
    """The exception that is being handled where the region is called, or None."""


@dataclass(frozen=True)
class ErrorLinks:
    """What an exception points to besides its arguments: expressions; ``fields`` are attributes that C code holds."""

    cause: Any
    context: Any
    suppress: bool
    fields: tuple[tuple[str, Any], ...]


@dataclass(eq=False)
class Build:
    """An object the region made: created empty (``how``), then filled, so that sharing and cycles survive.

    ``how``: ``list dict set deque`` (filled in place), ``tuple`` (items first), ``object`` (``__new__`` then state),
    ``exception``, ``method``, ``partial``, ``array`` (of plain numbers, a copy of which is ``extra``), ``array_view``.
    """

    how: str
    type: type
    items: list[Any] = field(default_factory=list)  # expressions; pairs for dict
    attrs: list[tuple[str, Any]] = field(default_factory=list)  # instance __dict__
    slots: list[tuple[str, Any]] = field(default_factory=list)
    extra: Any = None


Expr = Const | Outside | GraphValue | Scalar | Build | ActiveError


@dataclass
class Effect:
    """One change to the outside. ``op`` is a Change op, or ``print``, ``log``, ``set_field`` (a tensor's ``.grad``)."""

    op: str
    target: Expr | None
    key: Any  # an expression
    value: Any  # an expression, or a list of them
    describe: str
    sites: list[Any] = field(default_factory=list)


@dataclass
class Plan:
    """What replay does after the graph ran: effects in order, then return ``result`` (or raise it)."""

    result: Expr
    raises: bool
    effects: list[Effect] = field(default_factory=list)
    outputs: list[torch.fx.Node] = field(default_factory=list)  # graph values the plan uses, in order of use
