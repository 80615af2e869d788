"""Calls into torch that are not recorded as the operation of that name: reads of metadata and sizes, assignments, hooks,
tensors created from data, and what no graph can hold. Key table: BY_NAME.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch

from magpy_core.findings import HERE, Unsupported
from magpy_core.knowledge.operators import REFUSED, REFUSED_OF_AUTOGRAD
from magpy_core.opgraph import functions as fns
from magpy_core.opgraph import reads
from magpy_core.opgraph.calls import LARGEST_ARRAY, array_parts, from_array
from magpy_core.opgraph.host import Finish
from magpy_core.opgraph.operation import Operation
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a

#: How a call is recorded, from its name, arguments and keywords; None if this call is recorded in another way. Raises
#: Unsupported.
_Special = Callable[[OperatorGraph, str, tuple[Any, ...], dict[str, Any]], Finish | None]


def _metadata(ops: OperatorGraph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Finish:
    return partial(reads.metadata, ops, name, args, kwargs)


def _type_name(ops: OperatorGraph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Finish | None:
    """``x.type()`` names dtype and device; with an argument, it converts."""
    return _metadata(ops, name, args, kwargs) if len(args) == 1 and not kwargs else None


def _requires_grad(ops: OperatorGraph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Finish:
    return _assignment(ops, args[0], "requires_grad", kwargs.get("requires_grad", (*args, True)[1]))


def _size(ops: OperatorGraph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Finish:
    if any(is_a(a, torch.Tensor) for a in (*args[1:], *kwargs.values())):
        raise Unsupported("MP102", f"{HERE} takes a tensor as the index of a dimension.", hint="Use `.item()`.")
    return partial(reads.size, ops, name, args, kwargs)


def _register_hook(ops: OperatorGraph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Finish | None:
    return ops.leaves.hooks.register(*args) if len(args) == 2 and not kwargs else None


def _refused(ops: OperatorGraph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Finish:
    code = "MP118" if name in REFUSED_OF_AUTOGRAD else "MP106"
    raise Unsupported(code, f"{HERE} uses `{name}`: MagPy can't record that safely yet.", hint=REFUSED[name])


def _from_data(ops: OperatorGraph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Finish | None:
    if not args:
        return None
    if ops.host.is_plain_array(args[0]) and set(kwargs) <= {"dtype", "device"}:
        return _of_array(ops, args, kwargs, share=name != "tensor")
    on_cpu = kwargs.get("device") in (None, "cpu", torch.device("cpu"))
    if len(args) == 1 and set(kwargs) <= {"dtype", "device"} and on_cpu and ops.host.gives_tensor(args[0]):
        return partial(ops.host.tensor_of_array, getattr(torch, name), args[0], kwargs)
    if kwargs.get("dtype") is None and _has_numpy_number(args[0]):
        raise Unsupported("MP106", f"{HERE} takes its dtype from a NumPy number.", hint="Pass `dtype=`.")
    return None


def _numbers(ops: OperatorGraph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Finish | None:
    can_be_listed = reads.can_be_listed(ops, args[0])
    return partial(reads.numbers, ops, args[0], ops.inputs.node(args[0])) if can_be_listed else None


def _text(ops: OperatorGraph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Finish | None:
    holds_one_number = reads.holds_one_number(args[0])
    return partial(reads.text, ops, args[0], ops.inputs.node(args[0])) if holds_one_number else None


def _opaque_read(ops: OperatorGraph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Finish:
    ops.host.graph_incomplete = ops.host.graph_incomplete or name in fns.GIVES_ARRAY
    raise Unsupported("MP102", fns.opaque_read(name), hint=fns.opaque_hint(name))


def _array(ops: OperatorGraph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Finish | None:
    """``x.numpy()`` of a tensor on the CPU."""
    tensor = args[0]
    plain = type(tensor) is torch.Tensor and tensor.device.type == "cpu" and tensor.layout is torch.strided
    if len(args) != 1 or kwargs or not plain or tensor.requires_grad or tensor.is_inference():
        return None
    return partial(reads.array, ops, tensor, ops.inputs.node(tensor))


# A name may be in several rows: the first that records the call is used, and if there is none, the call is an operation.
_ROWS: tuple[tuple[Iterable[str], _Special], ...] = (
    (("type",), _type_name),
    (fns.METADATA_CALLS, _metadata),
    (("requires_grad_",), _requires_grad),
    (fns.SIZE_CALLS, _size),
    (("register_hook",), _register_hook),
    (REFUSED, _refused),
    (fns.FROM_DATA, _from_data),
    (("tolist",), _numbers),
    (("__format__",), _text),
    (("numpy",), _array),
    (fns.OPAQUE_READS, _opaque_read),
)


def _by_name() -> dict[str, tuple[_Special, ...]]:
    found: defaultdict[str, list[_Special]] = defaultdict(list)
    for names, special in _ROWS:
        for name in names:
            found[name].append(special)
    return {name: tuple(specials) for name, specials in found.items()}


BY_NAME = _by_name()


def _of_array(ops: OperatorGraph, args: tuple[Any, ...], kwargs: dict[str, Any], share: bool) -> Operation:
    """``torch.tensor(array, dtype=..., device=...)`` of an array created in the region: its numbers are constants."""
    if len(args) > 1 or args[0].size > LARGEST_ARRAY:
        text = f"{HERE} creates a tensor from a NumPy array in a way that a graph can't hold."
        raise Unsupported("MP106", text, hint="Create the tensor outside the region, and pass it in.")
    if share:
        ops.host.share_array(args[0])
    *numbers, dtype = array_parts(args[0])
    node = ops.graph.call_function(from_array, (*numbers, dtype))
    node.meta["magpy_site"] = ops.host.site
    given = {"dtype": dtype} | {k: v for k, v in kwargs.items() if v is not None}
    return Operation.prepare(ops, torch.Tensor.to, (node,), given)


def _has_numpy_number(value: Any) -> bool:
    """Whether ``value`` is a NumPy number, or a list or tuple that holds one at any depth."""
    if is_a(value, (list, tuple)):
        return any(map(_has_numpy_number, value))
    return kinds.is_numpy_number(value)


def attribute(ops: OperatorGraph, func: Callable[..., Any], name: str, args: tuple[Any, ...]) -> Finish:
    """Record that an attribute of a tensor is read, set or deleted."""
    action, attr = name.split(":")
    if action != "get":
        return _assignment(ops, args[0], attr, args[1] if action == "set" else None)
    if attr in fns.METADATA_ATTRIBUTES:
        return partial(reads.metadata, ops, attr, args, {})
    if attr in fns.SIZE_ATTRIBUTES:
        return partial(reads.size, ops, attr, args, {})
    if attr in fns.FIELDS:
        return partial(reads.field, ops, args[0], attr)
    if attr in fns.OPAQUE_READS:
        text = f"{HERE} reads an attribute of a tensor (`.{attr}`) that no guard can check."
        raise Unsupported("MP102", text, hint=fns.opaque_hint(attr))
    return Operation(ops, func, name, (ops.inputs.node(args[0]), attr), {}, [args[0]])


def _assignment(ops: OperatorGraph, tensor: torch.Tensor, attr: str, value: Any) -> Finish:
    """Record that an attribute of a tensor is set, or deleted if ``value`` is None."""
    if attr == "grad":
        return partial(reads.field_set, ops, tensor, attr, value)
    if attr == "requires_grad" and type(value) is bool:
        ops.inputs.node(tensor)
        if tensor.requires_grad == value:
            return partial(reads.metadata, ops, attr, (tensor,), {})  # a no-op while the guard on `requires_grad` holds
        ops.leaves.prepare(tensor, value)
        return lambda result: result
    if attr == "data" and reads.is_its_memory(ops, tensor, value):  # `x.data -= y`
        return lambda result: result
    if attr == "data" and reads.can_take_memory(ops, tensor, value):
        ops.entry.keep(tensor)
        return partial(reads.memory_taken, ops, tensor, value)
    if attr == "data" and tensor.requires_grad and is_a(value, torch.Tensor) and tensor.shape != value.shape:
        ops.values.reshaped_leaf = True
    hint = "Copy values into the tensor (`with torch.no_grad(): x.copy_(values)`), or assign it outside the region."
    swaps = "that swaps the tensor's storage, and a graph can't do it" if attr == "data" else "a graph can't do that"
    raise Unsupported("MP106", f"{HERE} is assigned: {swaps}.", hint=hint)
