"""Constructors: tensors created without torch's dispatch, recorded as equivalent operations.

Key type: Constructors.
"""

from __future__ import annotations

from typing import Any

import torch

from magpy_core.findings import Unsupported
from magpy_core.knowledge.torch_functions import CPU_TENSOR_TYPES
from magpy_core.monitor.events import MaybeSite
from magpy_core.opgraph.calls import LARGEST_ARRAY, array_parts, from_array, make_variable
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.arrays import is_array
from magpy_core.refgraph.kinds import is_a

_CPU = torch.device("cpu")


def _plain_numbers(data: Any) -> bool:
    """Whether ``data`` consists of numbers in lists or tuples of any depth, whose values guards can fix."""
    return all(type(v) in (int, float, bool) or (type(v) in (list, tuple) and _plain_numbers(v)) for v in data)


class Constructors(Tracker):
    """``torch.Tensor(...)``, ``Variable``, ``from_numpy``."""

    def constructor_call(self, site: MaybeSite, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``torch.Tensor([1, 2])``, ``torch.LongTensor(2, 3)``: recorded as the equivalent function if there is one."""
        if kwargs or self.ledger.ops.op_depth:
            return
        dtype = torch.get_default_dtype() if cls is torch.Tensor else cls.dtype
        if cls is not torch.Tensor and cls not in CPU_TENSOR_TYPES:
            return
        if all(type(a) is int for a in args) or (len(args) == 1 and type(args[0]) is torch.Size):
            size = tuple(args[0]) if args and type(args[0]) is torch.Size else args or (0,)  # no arguments: no elements
            self.context.one_node.apply(site, torch.empty, (size,), {"dtype": dtype, "device": _CPU})
        elif len(args) == 1 and type(args[0]) in (list, tuple, range) and _plain_numbers(args[0]):
            self.context.numbers.escape_all(site, args)
            self.context.one_node.apply(site, torch.tensor, (list(args[0]),), {"dtype": dtype, "device": _CPU})
        elif len(args) == 1 and self.context.arrays.is_plain_array(args[0]):
            self.from_array(site, args[0], dtype)
        elif len(args) == 1 and is_a(args[0], torch.Tensor) and cls is torch.Tensor:
            self.context.one_node.apply(site, torch.ops.aten.alias.default, args, {})

    def makes_of_array(self, site: MaybeSite, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether this is ``torch.FloatTensor(array)`` of an array that varies: recorded as ``torch.tensor``."""
        if kwargs or len(args) != 1 or self.ledger.ops.op_depth or not is_array(args[0]):
            return False
        if cls not in CPU_TENSOR_TYPES and cls is not torch.Tensor:
            return False
        dtype = torch.get_default_dtype() if cls is torch.Tensor else cls.dtype
        return self.context.array_values.makes_tensor(torch.tensor, args[0], {"dtype": dtype, "device": _CPU}, site)

    def made_by_constructor(self, site: MaybeSite, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``Variable(x)``: a detached alias. ``nn.Parameter(x)``, or a Variable that requires a gradient, is a leaf:
        a program creates leaves once, in a call that is not captured."""
        parameter = cls is torch.nn.Parameter
        given = dict(zip(("data", "requires_grad"), args, strict=False)) | kwargs
        leaf = given.get("requires_grad", parameter)
        if self.ledger.ops.op_depth or len(args) > 2 or set(given) - {"data", "requires_grad"}:
            return
        if type(given.get("data")) not in (torch.Tensor, torch.nn.Parameter) or type(leaf) is not bool:
            return
        if parameter or leaf:
            text = f"A {cls.__name__} is created inside the region: a graph can't create a leaf tensor."
            self.journal.refuse_call_if_repeated(Unsupported("MP118", text, hint="Create it once, outside the region."))
        else:
            self.context.one_node.apply(site, make_variable, (given["data"],), {})

    def from_array(self, site: MaybeSite, array: Any, dtype: torch.dtype | None = None) -> None:
        """``torch.from_numpy`` of a plain array of the region: its numbers are constants of the graph."""
        if self.ledger.ops.op_depth or array.size > LARGEST_ARRAY:
            return
        self.ledger.ops.op_depth += 1  # don't record MagPy's own operations
        parts = self.journal.contained(array_parts, array)
        self.ledger.ops.op_depth -= 1
        if type(parts) is tuple:
            self.context.one_node.apply(site, from_array, (*parts[:2], dtype or parts[2]), {})
