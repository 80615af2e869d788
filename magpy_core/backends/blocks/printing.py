"""Operations as keys: what is called, with which constants, on which named values. Key function: `printed`."""

from __future__ import annotations

from collections.abc import Mapping
from types import EllipsisType, MethodType, NoneType
from typing import Any

import torch
import torch.fx
from torch.fx.node import map_aggregate

#: Types whose constants are the same if their `repr` is; any other constant is the same only if it is the same object.
_PRINTED = frozenset(
    {bool, int, float, complex, str, bytes, NoneType, EllipsisType}
    | {torch.dtype, torch.device, torch.layout, torch.memory_format}
)  # fmt: skip


class _Name(str):
    """Stands for a value in printed arguments; no constant has the same `repr`."""

    def __repr__(self) -> str:
        return f"%{self}"


def printed(node: torch.fx.Node, names: Mapping[torch.fx.Node, str]) -> tuple[Any, ...]:
    """A key that is equal for operations that do the same with the values of these ``names``; values without a name are
    considered equal."""

    def leaf(value: Any) -> Any:
        if isinstance(value, torch.fx.Node):
            return _Name(names.get(value, ""))
        return value if type(value) in _PRINTED else _Name(f"object {id(value)}")

    target = node.target
    what = target if isinstance(target, str | MethodType) else id(target)
    return node.op, what, repr(map_aggregate((node.args, node.kwargs), leaf))
