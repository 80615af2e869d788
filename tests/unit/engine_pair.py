"""A target beside its compiled twin: every call runs both and compares results, exceptions, arguments and state.

Key type: Pair; key functions: same, outcome.
"""

from __future__ import annotations

import copy
import enum
import math
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

import magpy_core
from magpy_core.regions.api import region_of
from magpy_core.regions.region import Region


def same(a: Any, b: Any) -> bool:
    """Equal in type and content, tensors bit for bit in shape, strides and dtype, dicts in order."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        facts = [(t.shape, t.stride(), t.dtype, t.requires_grad) for t in (a, b)]
        return facts[0] == facts[1] and torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, (list, tuple, deque)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True)) and same(vars_of(a), vars_of(b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, torch.nn.Module):
        return same(a.state_dict(), b.state_dict()) and a.training == b.training
    if isinstance(a, (enum.Enum, type)) or callable(a):
        return a is b
    own = vars_of(a)
    return same(own, vars_of(b)) if own else bool(a == b)


def vars_of(obj: Any) -> dict[str, Any]:
    own = dict(getattr(obj, "__dict__", {}))
    for cls in type(obj).__mro__:
        for name in getattr(cls, "__slots__", ()):
            if hasattr(obj, name):
                own[name] = getattr(obj, name)
    return own


def outcome(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[str, Any]:
    try:
        return "returned", fn(*args, **kwargs)
    except Exception as error:
        return "raised", (type(error), error.args)


class Pair:
    """``make()`` gives a fresh (target, state); the state is what the target changes besides its arguments."""

    def __init__(self, make: Callable[[], tuple[Callable[..., Any], Any]], **options: Any) -> None:
        self.plain, self.plain_state = make()
        target, self.state = make()
        self.compiled = magpy_core.compile(target, **{"backend": "eager", **options})
        self.region: Region = region_of(self.compiled)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        memo: dict[int, Any] = {}
        plain_args, plain_kwargs = copy.deepcopy((args, kwargs), memo)
        torch.manual_seed(0)
        want = outcome(self.plain, *plain_args, **plain_kwargs)
        torch.manual_seed(0)
        got = outcome(self.compiled, *args, **kwargs)
        assert same(got, want), f"compiled {got!r}, plain {want!r}"
        assert same(list(args), list(plain_args)), f"arguments: compiled {args!r}, plain {plain_args!r}"
        assert same(self.state, self.plain_state), f"state: compiled {self.state!r}, plain {self.plain_state!r}"
        return got[1]

    def calls(self, *argument_lists: Any) -> Pair:
        for arguments in argument_lists:
            self(*arguments)
        return self

    @property
    def counts(self) -> tuple[int, int]:
        """(captures, hits)"""
        return len(self.region.captures), self.region.hits

    @property
    def codes(self) -> list[str]:
        return sorted(f.code for f in self.region.findings.values())


def plainly(target: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of something compiled, computed by eager mode."""
    with magpy_core.disabled():
        return target(*args, **kwargs)


def pair(fn: Callable[..., Any], **options: Any) -> Pair:
    """A pair of a function without state of its own."""
    return Pair(lambda: (fn, None), **options)


def code_of(target: Any) -> Any:
    """The newest capture of something compiled."""
    return magpy_core.captures(target)[0]
