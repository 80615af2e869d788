"""Entry: the target and the arguments of a call become roots of the reference graph. Key function: enter."""

from __future__ import annotations

import types
from typing import Any

import torch

from magpy_core.guards import kinds as guard
from magpy_core.recording.context import Context
from magpy_core.recording.ledger import Ledger
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a


def enter(
    context: Context, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments for the call of ``target``: dynamic numbers are private copies that carry their symbols."""
    sources = context.ledger.sources
    fn = target
    if is_a(fn, types.MethodType):
        _add_self(context.ledger, fn.__self__)
        fn = fn.__func__
    if is_a(fn, types.FunctionType):
        context.roots.const_root(fn)
        context.functions.guard(fn)
    elif kinds.kind_of(fn) == kinds.OBJECT:
        _add_self(context.ledger, fn)
        context.classes.member(type(fn), "__call__", None)
    names = parameter_names(target)
    if args and is_a(args[0], torch.nn.Module) and not is_a(target, torch.nn.Module):
        names = [*(names[:1] or ["self"]), *parameter_names(args[0])]  # nn.Module.__call__ itself
    names += [f"args[{i}]" for i in range(len(names), len(args))]
    if args and is_a(args[0], torch.optim.Optimizer):
        names[0] = "optimizer"
    read = context.values.read
    new_args = tuple(read(sources.arg(i, names[i]), a, None, to_program=True) for i, a in enumerate(args))
    return new_args, {k: read(sources.kwarg(k), v, None, to_program=True) for k, v in kwargs.items()}


def _add_self(ledger: Ledger, target: Any) -> None:
    """Add the called object or the method's object as a root: it is always the same one, but its class may change."""
    source = ledger.sources.const(target, "self")
    ledger.refgraph.add(target, source)
    ledger.refgraph.read(source, guard.TYPE, type(target), None)


def parameter_names(target: Any) -> list[str]:
    """Names of the positional parameters for callers of ``target``."""
    fn = target
    if is_a(fn, torch.nn.Module):
        fn = fn.forward
    skip = 0
    if is_a(fn, types.MethodType):
        fn, skip = fn.__func__, 1
    code = getattr(fn, "__code__", None)
    return list(code.co_varnames[skip : code.co_argcount]) if code is not None else []
