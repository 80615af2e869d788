"""Reads of a tensor that are not operations: metadata, sizes, fields, its numbers as a list or as text.

With all arguments but ``result`` bound, each function is an `opgraph.host.Finish`.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.tensor_guards import is_view, no_torch_function, storage_key, tensors_in_storage
from magpy_core.findings import HERE, Unsupported
from magpy_core.knowledge.operators import Fact, named
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.values import tensors_in

_LAYOUT_READS = named(Fact.LAYOUT_READ) | {"is_contiguous"}
_EMPTY_INSIDE = named(Fact.EMPTY_INSIDE)
_LONGEST_LIST = 256  # numbers that ``tolist()`` may give


def _guarded(ops: OperatorGraph, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors that are read; the metadata of those from outside is guarded."""
    tensors = tensors_in(args, kwargs)
    for tensor in tensors:
        if not ops.inputs.is_inside(tensor):
            ops.inputs.guard(tensor)
    return tensors


def metadata(ops: OperatorGraph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """Metadata that the tensor's guard covers. ``name``: without ``get:``."""
    tensors = _guarded(ops, args, kwargs)
    if name in _LAYOUT_READS:
        for tensor in tensors:
            ops.fix_sizes(tensor)
        ops.shapes.layout_read()
    return result


def size(ops: OperatorGraph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """Sizes, which may vary from call to call, and the offset in the storage."""
    tensor = _guarded(ops, args, kwargs)[0]
    if name == "storage_offset":
        if not ops.inputs.is_inside(tensor):
            ops.host.guard_offset(ops.inputs.guard(tensor), result)
        elif is_view(tensor) or any(storage_key(t) == storage_key(tensor) for t, _ in ops.inputs.guarded.values()):
            text = f"{HERE} reads the storage offset of a view: a graph can't compute it."
            raise Unsupported("MP106", text, hint="Keep the index that the view was made with: `x[i:]` begins at `i`.")
        return result
    ops.fix_sizes(tensor)
    number = ops.shapes.read(tensor, name, result, args[1:])
    return ops.host.tensor_length(number) if name == "__len__" else number


def field(ops: OperatorGraph, tensor: torch.Tensor, name: str, result: Any) -> Any:
    """``x.grad`` and other fields of the tensor object."""
    if not ops.inputs.is_inside(tensor):
        ops.host.guard_field(ops.inputs.guard(tensor), tensor, name, result)
    elif name == "grad" and ops.leaves.is_made(tensor) and (result is None or result in ops.values):
        pass
    elif name != "is_leaf" and not (name in _EMPTY_INSIDE and result is None):
        text = f"{HERE} reads `.{name}` of a tensor created in the region: the graph doesn't have it."
        raise Unsupported("MP118", text, hint="Return the tensor, and read it after the call of the region.")
    return result


def field_set(ops: OperatorGraph, tensor: torch.Tensor, name: str, value: Any, result: Any) -> Any:
    """``x.grad = value``, or ``del x.grad`` if the value is None."""
    if ops.leaves.is_made(tensor):
        ops.leaves.with_gradient.append(tensor)
    else:
        ops.host.field_written(tensor, name, value)
    return result


def is_its_memory(ops: OperatorGraph, tensor: torch.Tensor, value: Any) -> bool:
    """Whether ``tensor.data = value`` changes nothing: ``value`` is ``tensor.data``."""
    if type(value) is not torch.Tensor or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return False
    if not ops.inputs.is_inside(value):
        return False
    with no_torch_function():
        if (
            tensor.layout is not torch.strided
            or value.layout is not torch.strided
            or storage_key(tensor) in ops.writes.taken
        ):
            return False
        same = (tensor.dtype, tensor.device, tensor.shape, tensor.stride(), tensor.storage_offset()) == (
            value.dtype, value.device, value.shape, value.stride(), value.storage_offset()
        )  # fmt: skip
        flags = tensor.is_conj() == value.is_conj() and tensor.is_neg() == value.is_neg()
        return same and flags and storage_key(tensor) == storage_key(value) and not value.requires_grad


def can_take_memory(ops: OperatorGraph, tensor: torch.Tensor, value: Any) -> bool:
    """Whether ``tensor.data = value`` can be an effect: ``tensor`` is from outside, without a gradient or a base, and gets
    the memory of a result that nothing else is in. What autograd has saved of ``tensor`` would change with it."""
    if type(value) is not torch.Tensor or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return False
    if ops.inputs.is_inside(tensor) or not ops.inputs.is_inside(value) or ops.values.is_shaped_by_data([tensor, value]):
        return False
    node = ops.inputs.node(tensor)
    with no_torch_function():
        for one in (tensor, value):
            if one.requires_grad or one.is_inference() or is_view(one) or one.layout is not torch.strided:
                return False
        keeps = tensor.dtype is value.dtype and tensor.device == value.device and tensor.shape == value.shape
        alone = value.storage_offset() == 0 and tensors_in_storage(value) == 1
        keeps = keeps and tensor.stride() == value.stride() and not ops.writes.has_touched(tensor)
        return keeps and alone and not _is_tracked(ops, node)


def _is_tracked(ops: OperatorGraph, node: torch.fx.Node) -> bool:
    """Whether autograd may have saved the tensor of ``node`` for a backward pass."""
    for user in node.users:
        result = ops.values.tensor(user)
        if result is None:
            parts = [one for one in user.users if one.target is operator.getitem]
            if not parts or any(map(_requires_grad, map(ops.values.tensor, parts))):
                return True
        elif _requires_grad(result):
            return True
    return False


def _requires_grad(tensor: torch.Tensor | None) -> bool:
    return tensor is None or tensor.requires_grad


def memory_taken(ops: OperatorGraph, tensor: torch.Tensor, value: torch.Tensor, result: Any) -> Any:
    """``tensor.data = value``: what follows takes the values of ``value``."""
    node = ops.graph.call_method("detach", (ops.inputs.node(value),))
    ops.host.annotate(node, tensor)
    ops.values.add(tensor, node)
    ops.writes.taken.add(storage_key(tensor))
    ops.host.field_written(tensor, "data", value)
    return result


def can_be_listed(ops: OperatorGraph, tensor: Any) -> bool:
    """Whether ``tolist()`` can be recorded as separate numbers. A bool can't carry a symbol: it can't be copied."""
    if ops.values.is_shaped_by_data([tensor]) or tensor.layout is not torch.strided or tensor.is_quantized:
        return False
    plain = tensor.dtype != torch.bool and not tensor.is_complex()
    return plain and tensor.numel() <= _LONGEST_LIST and ops.host.gives_number_to_program(tensor)


def numbers(ops: OperatorGraph, tensor: torch.Tensor, node: torch.fx.Node, result: Any) -> Any:
    """``tensor.tolist()``: each number is a value of the graph and carries a symbol."""

    def symbolic(value: Any, node: torch.fx.Node) -> Any:
        if type(value) is list:
            return [symbolic(v, ops.graph.call_function(operator.getitem, (node, i))) for i, v in enumerate(value)]
        return ops.scalars.bind(value, ops.read_number(node, value))

    ops.shapes.hold([tensor])
    return symbolic(result, node)


def holds_one_number(tensor: Any) -> bool:
    plain = type(tensor) is torch.Tensor and tensor.dim() == 0 and tensor.layout is torch.strided
    return plain and not tensor.dtype.is_complex and not tensor.is_quantized and not tensor.is_meta


def text(ops: OperatorGraph, tensor: torch.Tensor, node: torch.fx.Node, result: Any) -> Any:
    """``f"{tensor}"`` of a tensor that holds one number: guard on the number, if the text can't vary with it."""
    number = tensor.detach().item()
    sym = ops.read_number(ops.graph.call_method("detach", (node,)), number)
    if ops.host.shows_number(tensor):
        ops.host.show_number(tensor, ops.scalars.bind(number, sym))
    else:
        ops.host.branch(sym, number, "item")
    return result


def array(ops: OperatorGraph, tensor: torch.Tensor, node: torch.fx.Node, result: Any) -> Any:
    """``x.numpy()``: replay makes the array again if something is computed from it."""
    ops.host.array_made(node, tensor, result)
    return result
