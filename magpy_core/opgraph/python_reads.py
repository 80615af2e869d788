"""What Python gets of a tensor all at once: the numbers of ``tolist()``, sizes that depend on data, arrays made tensors.

Key type: PythonReads, a part of the OpRecorder.
"""

from __future__ import annotations

import operator
from collections.abc import Set as AbstractSet
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core.findings import HERE, Unsupported
from magpy_core.opgraph.data_shapes import is_constant
from magpy_core.opgraph.functions import SAME_BY_LAYOUT, SAME_BY_NUMBER, gives_parts, writes_in_place
from magpy_core.opgraph.layouts import keeps_layout
from magpy_core.opgraph.made import LARGEST_ARRAY, array_parts, from_array
from magpy_core.opgraph.scalars import ScalarTable, Sym
from magpy_core.refgraph.kinds import is_a

_LONGEST_LIST = 256  # numbers that ``tolist()`` may give


class PythonReads:
    """Reads that become numbers of the graph."""

    host: Any
    graph: torch.fx.Graph
    scalars: ScalarTable
    data_shaped: set[int]
    read_inside: list[Any]
    values: dict[int, tuple[torch.Tensor, torch.fx.Node]]
    _written: set[int]
    _numbers: list[torch.Tensor]
    _took_varying: list[tuple[Sym, Any]]
    _unwatched: AbstractSet[int] = frozenset()
    """Tensors (ids) that the call at hand is given as `out=`. Under a dispatch mode some operations (`matrix_rank`,
    `unbind_copy`) do not write these, or do not count it: such a call is not looked into."""

    def node_of(self, tensor: torch.Tensor) -> torch.fx.Node:
        raise NotImplementedError

    def to_fx(self, value: Any) -> Any:
        raise NotImplementedError

    def _array_node(self, args: tuple[Any, ...], kwargs: dict[str, Any], share: bool) -> torch.fx.Node:
        """``torch.tensor(array, dtype=..., device=...)`` of an array that the region made."""
        array = args[0]
        if len(args) > 1 or array.size > LARGEST_ARRAY:
            raise Unsupported("MP106", f"{HERE} makes a tensor of a NumPy array in a way that a graph can't hold.")
        if share:
            self.host.share_array(array)
        node = self.graph.call_function(from_array, array_parts(array))
        node.meta["magpy_site"] = self.host.site_mark()
        given = {k: self.to_fx(v) for k, v in kwargs.items() if v is not None}
        return self.graph.call_method("to", (node,), given) if given else node

    def _tensors(self, *trees: Any) -> list[torch.Tensor]:
        out: list[torch.Tensor] = []
        stack: list[Any] = list(trees)
        while stack:
            v = stack.pop()
            if is_a(v, torch.Tensor):
                out.append(v)
            elif is_a(v, (list, tuple)):
                stack.extend(v)
            elif is_a(v, dict):
                stack.extend(v.values())
        return out

    def _is_data(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor may be another one at each call: not one that the region made of plain numbers."""
        found = self.values.get(id(tensor))
        return found is None or storage_key(tensor) in self._written or not is_constant(found[1])

    def _decide_numbers(self) -> None:
        """Native code has taken tensors for numbers: the path holds for these very numbers."""
        whole = self._unwatched or torch.is_inference_mode_enabled()  # what an operation does inside of it is hidden then
        for tensor in self._numbers:
            if whole or any(read is tensor for read in self.read_inside):
                read = self.graph.call_method("item", (self.node_of(tensor),))
                read.meta["magpy_site"] = self.host.site_mark()
                number = tensor.item()
                self.host.branch(self.scalars.node(read, number), number, "item")
        self._numbers = []

    def _decide_sameness(self, node: torch.fx.Node, name: str, result: Any, tensors: list[torch.Tensor]) -> None:
        """Whether an operation gives its own input back may hang on a number it takes (`dropout` with 0.0 does) or on a
        layout, and with that what the result is, and what a write to it changes. The path holds where that is so, and
        where the operation gives as many parts."""
        if writes_in_place(name):
            return
        if name in SAME_BY_LAYOUT or "memory_format" in node.kwargs or gives_parts(name, result):
            self.host.shape_path(node)
        nothing = "dropout" in name
        decides = nothing or name in SAME_BY_NUMBER or any(result is t for t in tensors)
        for sym, value in self._took_varying if decides else ():
            for rate in (0.0, 1.0) if nothing else ():  # of the rate, only whether it is zero or one
                self.host.branch(self.scalars.call(operator.eq, (sym, rate), value == rate), value == rate, "truth")
            if not nothing:
                self.host.branch(sym, value, "value")

    def _check_layout(self, name: str, written: torch.Tensor, tensors: list[torch.Tensor]) -> None:
        if written.layout is not torch.strided or written.is_contiguous():
            return
        masked = any(t.dtype is torch.bool for t in tensors if t is not written)
        if not keeps_layout(name, masked=masked):
            text = f"{HERE} writes a tensor that isn't contiguous: compiled, what follows would be laid out otherwise."
            self.host.refuse("MP902", text, site=self.host.site_mark())

    @staticmethod
    def _gave_back(func: Any, name: str, result: Any, versions: list[tuple[torch.Tensor, int]]) -> bool:
        """Whether an operation of torch's did nothing but give a tensor it took (dropout out of training): that stays what
        it was in the graph. Compilers take some of these operations for a copy, and a write would be missing."""
        if writes_in_place(name) or is_a(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
            return False
        return any(result is t and t._version == version for t, version in versions)

    def _refuse_parts(self, result: Any) -> None:
        """As many parts as a size says that only the graph knows: Python sees how many."""
        if type(result) in (tuple, list):
            self.host.refuse(
                "MP109",
                f"{HERE} gives as many parts as a shape that depends on tensor data says.",
                site=self.host.site_mark(),
            )

    def _listable(self, tensor: Any) -> bool:
        """Whether ``tensor.tolist()`` can be so many numbers read one by one. Of bool there is no copy to carry a symbol."""
        if id(tensor) in self.data_shaped or tensor.layout is not torch.strided or tensor.is_quantized:
            return False
        plain = tensor.dtype != torch.bool and not tensor.is_complex()
        return plain and tensor.numel() <= _LONGEST_LIST and bool(self.host.handed(tensor))

    def _is_number(self, tensor: Any) -> bool:
        """Whether the text of a tensor is that of its number."""
        plain = type(tensor) is torch.Tensor and tensor.dim() == 0 and tensor.layout is torch.strided
        return plain and tensor.dtype.is_complex is False and not tensor.is_quantized and not tensor.is_meta

    def _record_text(self, tensor: torch.Tensor, node: Any, result: str) -> str:
        """The text of a tensor's number holds for this very number."""
        read = self.graph.call_method("item", (self.graph.call_method("detach", (node,)),))
        read.meta["magpy_site"] = self.host.site_mark()
        number = tensor.detach().item()
        self.host.branch(self.scalars.node(read, number), number, "item")
        return result

    def _record_list(self, tensor: torch.Tensor, node: Any, result: Any) -> Any:
        """``tensor.tolist()``: each number is a value of the graph. Returns the list with the numbers that carry them."""
        self.host.exact_sizes([tensor])

        def carried(value: Any, at: torch.fx.Node) -> Any:
            if type(value) is list:
                return [carried(v, self.graph.call_function(operator.getitem, (at, i))) for i, v in enumerate(value)]
            read = self.graph.call_method("item", (at,))
            read.meta["magpy_site"] = self.host.site_mark()
            return self.scalars.bind(value, self.scalars.node(read, value))

        return carried(result, node)
