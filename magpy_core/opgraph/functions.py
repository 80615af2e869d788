"""Names of torch functions, and what follows from them: reads, writes, settings, messages."""

from __future__ import annotations

import types
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from magpy_core._compat.torch.operator_schemas import written_with_lists
from magpy_core._compat.torch.tensor_guards import is_tensor_base
from magpy_core.findings import HERE, Unsupported
from magpy_core.knowledge.operators import Fact, named
from magpy_core.knowledge.torch_functions import UPDATES_STATISTICS

METADATA_ATTRIBUTES, METADATA_CALLS = named(Fact.METADATA_ATTRIBUTE), named(Fact.METADATA_CALL)
SIZE_ATTRIBUTES, SIZE_CALLS = named(Fact.SIZE_ATTRIBUTE), named(Fact.SIZE_CALL)
FIELDS = named(Fact.FIELD)
NUMBER_READS, HOST_READS, OPAQUE_READS = named(Fact.NUMBER_READ), named(Fact.HOST_READ), named(Fact.OPAQUE_READ)
GIVES_ARRAY = named(Fact.GIVES_ARRAY)
FROM_DATA = named(Fact.FROM_DATA)
PARTS = named(Fact.PARTS)
REDUCES = named(Fact.REDUCES)
IN_PLACE = named(Fact.IN_PLACE)
_GIVES_TEXT = named(Fact.GIVES_TEXT)
_VALUES = named(Fact.VALUES)


#: In a node's ``meta``: it stands for a ``backward()``; the program did not call ``torch.autograd.grad`` itself.
IS_BACKWARD = "magpy_backward"
#: In a node's ``meta``: it registers hooks on a tensor, for a backward pass.
REGISTERS_HOOK = "magpy_registers_hook"
#: In a node's ``meta``: it may raise for reasons that no guard checks.
MAY_RAISE = "magpy_may_raise"


def writes_in_place(name: str) -> bool:
    """Whether an operation of this name changes the tensor it is called on."""
    return (name.endswith("_") and not name.endswith("__")) or name in IN_PLACE


def returns_parts(name: str, result: Any) -> bool:
    """Whether the number of results may depend on an input size (`unbind_copy`, a custom operator that returns a list)."""
    return type(result) is list or (type(result) is tuple and any(part in name for part in ("split", "chunk", "unbind")))


def may_size(name: str) -> bool:
    """Whether a number among the arguments may decide the shape of the result; never for in-place operations."""
    return not writes_in_place(name) and name not in _VALUES and not name.startswith(("_foreach_", "_fused_"))


def silently_written(func: Any, fx_args: tuple[Any, ...], fx_kwargs: dict[str, Any]) -> list[Any]:
    """The graph values that an operation may change without counting versions: running statistics, and what an operation on
    lists of tensors writes (on a device, ``_foreach_lerp_`` counts none)."""
    if places := written_with_lists(function_name(func)):
        return tree_leaves([fx_args[i] for i in places if i < len(fx_args)])
    return running_statistics(func, fx_args, fx_kwargs)


def running_statistics(func: Any, fx_args: tuple[Any, ...], fx_kwargs: dict[str, Any]) -> list[Any]:
    """The graph values of the running statistics that a normalization in training mode changes."""
    try:
        names, flag = UPDATES_STATISTICS[func]
    except (KeyError, TypeError):
        return []
    bound = {**dict(zip(names, fx_args, strict=False)), **fx_kwargs}
    written = [bound.get("running_mean"), bound.get("running_var")]
    return [v for v in written if v is not None] if bound.get(flag, flag == "use_input_stats") else []


def function_name(func: Any) -> str:
    """``relu``, ``__getitem__``, or for a tensor attribute's getter/setter the attribute's name with ``get:``/``set:``."""
    if isinstance(func, types.MethodWrapperType):
        descriptor = func.__self__
        prefix = {"__get__": "get:", "__set__": "set:", "__delete__": "del:"}[func.__name__]
        name = getattr(descriptor, "__name__", None) or getattr(getattr(descriptor, "fget", None), "__name__", "?")
        return prefix + str(name)
    return str(getattr(func, "__name__", func))


def node_name(node: torch.fx.Node) -> str:
    """The name of the operator that a graph node calls."""
    target = node.target
    return target if isinstance(target, str) else str(getattr(target, "__name__", target))


def operator_name(node: torch.fx.Node) -> str:
    """The same without dunders: ``add``, ``add_``, ``iadd``, ``rsub``, ``_foreach_add_``; empty if the node is not a
    call."""
    name = node_name(node) if node.op in ("call_function", "call_method") else ""
    return name[2:-2] if name.startswith("__") and name.endswith("__") else name


def argument(node: torch.fx.Node, key: str, position: int) -> Any:
    """The argument that a graph node passes for a parameter, by name or by position; None if it is omitted."""
    return node.kwargs.get(key, node.args[position] if len(node.args) > position else None)


def reads_value(node: torch.fx.Node) -> bool:
    """Whether Python waits for a value that this node computes."""
    return node.op in ("call_function", "call_method") and node_name(node) in HOST_READS


def is_tensor_method(func: Any) -> bool:
    if isinstance(func, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return is_tensor_base(func.__objclass__)
    if isinstance(func, types.FunctionType):
        return getattr(torch.Tensor, func.__name__, None) is func
    return False


def opaque_read(name: str) -> str:
    """The message for one of OPAQUE_READS."""
    if name in _GIVES_TEXT:
        return f"{HERE} puts a tensor's values into text, where the graph can't follow."
    if name in GIVES_ARRAY:
        return f"{HERE} passes a tensor's data to NumPy, where the graph can't follow."
    if name == "tolist":
        return f"{HERE} passes a tensor's data to Python, where the graph can't follow."
    return f"{HERE} exposes a tensor's memory to Python (`.{name.strip('_')}`): MagPy can't see what changes it."


def opaque_hint(name: str) -> str:
    """What to do instead of one of OPAQUE_READS."""
    if name in GIVES_ARRAY:
        return "Compute with torch, or move what NumPy does out of the region."
    return "Read it outside the region, and pass in what is computed from it."


GENERATOR_HINT = "Use torch's own generator (`torch.manual_seed` seeds it), or pass the numbers in."
OUTSIDE_ARRAY = f"{HERE} uses an outside array, whose memory can change without a guard noticing."
OUTSIDE_ARRAY_HINT = "Create the tensor once, outside the region, as a buffer (`register_buffer`) or an argument."


def own_code(cls: type, method: str) -> Unsupported:
    """For a tensor subclass whose operations are Python code: what that code reads and does is not recorded."""
    hint = "Get its plain tensor outside the region: `x.as_subclass(torch.Tensor)`, or the tensor that the class wraps."
    return Unsupported("MP106", f"{HERE} takes a `{cls.__name__}`, whose `{method}` is Python code.", hint=hint)


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def note(node: torch.fx.Node, result: Any, **meta: Any) -> None:
    """Add ``meta`` to a node, and the dtype and shape of its result for display if that is a plain tensor (a subclass's
    properties may run the program's code)."""
    node.meta.update(meta)
    if type(result) in _PLAIN:
        node.meta["magpy_tensor"] = (result.dtype, tuple(result.shape))
