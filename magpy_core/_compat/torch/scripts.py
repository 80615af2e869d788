"""torch.jit's compiled code: what a scripted or traced function or method reads, changes and does, by its own graph.

Key types: ScriptUse, SCRIPTED; key functions: ``script_use``, ``cpp_module``, ``script_attribute``, ``tracers``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

ScriptMethod: Any = torch._C.ScriptMethod
SCRIPTED = (torch.jit.ScriptFunction, ScriptMethod)
CACHED_FORWARD: type = type(torch.jit.ScriptModule.__dict__["forward"])
"""The class attribute that stands for a script's ``forward`` until it is asked for."""

# What a second run of the same graph would not do alike, or at another moment than the program's.
_UNREPEATABLE = {
    "prim::SetAttr": "changes an attribute",
    "prim::Print": "prints",
    "prim::PythonOp": "calls Python",
    "prim::CallMethod": "calls a method that is not known before it runs",
    "prim::CallFunction": "calls a function that is not known before it runs",
    "prim::fork": "starts another task",
    "aten::wait": "waits for another task",
    "aten::manual_seed": "sets a random stream",
    "aten::save": "writes a file",
}
# Operations that give Python a number that follows from a tensor's kind and sizes, which guards watch, not from its data.
_METADATA = frozenset({
    "dim", "size", "len", "numel", "stride", "storage_offset", "is_floating_point", "is_complex", "is_contiguous",
    "is_cuda", "is_sparse", "is_quantized", "requires_grad", "dtype", "device", "layout", "element_size", "get_device",
    "is_leaf", "is_mkldnn", "type", "ndim", "__is__", "__isnot__", "isinstance", "unchecked_cast", "__contains__",
})  # fmt: skip
_DATA_SHAPES = frozenset({"nonzero", "nonzero_numpy", "masked_select", "_unique2", "unique_dim", "unique_consecutive",
                          "bincount", "repeat_interleave", "argwhere", "tolist"})  # fmt: skip
_NORMS = {"aten::batch_norm": 5, "aten::instance_norm": 5}  # where the flag is that makes them write running statistics
_PLAIN = (bool, int, float, str, type(None), torch.dtype, torch.device)


@dataclass(frozen=True)
class ScriptUse:
    """What a call of compiled code does besides computing.

    ``reads``: paths from its module to the attributes it reads. ``statistics``: those of them that a normalisation writes
    without counting it as a change, with what decides it (a path, or a flag). ``trouble``: why it can't be made again."""

    reads: tuple[tuple[str, ...], ...] = ()
    statistics: tuple[tuple[tuple[str, ...], tuple[str, ...] | bool], ...] = ()
    trouble: str = ""


def tracers() -> list[Any]:
    """The functions of torch.jit that note down the operations of what they are given."""
    traced: Any = torch.jit._trace
    return [traced.trace, traced.trace_module, traced._get_trace_graph, traced.ONNXTracedModule.forward]


def cpp_module(module: Any) -> Any:
    """The compiled module behind a ``torch.jit.ScriptModule``."""
    own = object.__getattribute__(module, "__dict__")
    inner = own.get("_actual_script_module")
    return own["_c"] if inner is None else object.__getattribute__(inner, "__dict__")["_c"]


def script_attribute(cpp: Any, name: str) -> Any:
    """An attribute of a compiled module; a list of plain values as a tuple. Raises AttributeError where there is none."""
    try:
        value = cpp.getattr(name)
    except RuntimeError as error:
        raise AttributeError(name) from error
    return tuple(value) if type(value) is list else value


def has_script_attribute(cpp: Any, name: str) -> bool:
    return bool(cpp.hasattr(name))


def has_script_method(cpp: Any, name: str) -> bool:
    return bool(cpp._has_method(name))


def owns_method(module: Any, name: str) -> bool:
    """Whether the compiled method ``name`` has been asked for before, which keeps it on the module, and nothing was put in
    its way there."""
    own = object.__getattribute__(module, "__dict__")
    inner = own.get("_actual_script_module")
    if inner is not None:
        if name in own:
            return False
        own = object.__getattribute__(inner, "__dict__")
    method: Any = own.get(name)
    return type(method) is ScriptMethod and bool(method.name == name and method.owner == own["_c"])


def is_plain_state(value: Any) -> bool:
    """Whether a module's attribute can be compared: a plain value, or a tuple of them."""
    return type(value) in _PLAIN or (type(value) is tuple and all(type(v) in _PLAIN for v in value))


def _nodes(block: Any, nested: bool = False) -> Iterator[tuple[Any, bool]]:
    for node in block.nodes():
        yield node, nested
        for inner in node.blocks():
            yield from _nodes(inner, True)


def _writes(node: Any) -> bool:
    schema = node.schema()
    return schema != "(no schema)" and bool(torch._C.parse_schema(schema).is_mutable)


def _kinds(values: Any) -> set[str]:
    return {value.type().kind() for value in values}


def _decides_on_data(node: Any) -> bool:
    """Whether an operation makes a number of a tensor's data, or a tensor whose shape follows from data."""
    name = node.kind().partition("::")[2]
    if name in _DATA_SHAPES:
        return True
    if "TensorType" not in _kinds(node.inputs()) or name in _METADATA or list(node.blocks()):
        return False
    return bool(_kinds(node.outputs()) & {"IntType", "FloatType", "BoolType", "NumberType", "ComplexType"})


def script_use(fn: Any) -> ScriptUse:
    """What a call of a ``torch.jit`` function or method uses; whatever is not understood is trouble."""
    graph = fn.inlined_graph
    paths: dict[str, tuple[str, ...]] = {}  # of the module and everything read from it, by the value's name
    objects: set[str] = set()
    leaves: dict[tuple[str, ...], str] = {}
    statistics: list[tuple[tuple[str, ...], tuple[str, ...] | bool]] = []
    writes_nested = data = changes_lists = False
    if isinstance(fn, ScriptMethod):
        receiver = next(iter(graph.inputs()))
        paths[receiver.debugName()] = ()
        objects.add(receiver.debugName())
    for node, nested in _nodes(graph):
        kind = node.kind()
        trouble = _UNREPEATABLE.get(kind, "")
        if kind == "prim::GetAttr":
            base, made = node.input().debugName(), node.output()
            if base not in paths:
                return ScriptUse(trouble="reads an attribute of an object that it is given or makes")
            paths[made.debugName()] = path = (*paths[base], node.s("name"))
            if made.type().kind() == "ClassType":
                objects.add(made.debugName())
            else:
                leaves[path] = made.type().kind()
            continue
        inputs = list(node.inputs())
        if not trouble and any(value.debugName() in objects for value in inputs):
            trouble = "hands on an object"
        if trouble:
            return ScriptUse(trouble=trouble)
        data = data or _decides_on_data(node)
        if _writes(node):
            lists = inputs and inputs[0].type().kind() in ("ListType", "DictType")
            changes_lists = changes_lists or bool(lists)
            writes_nested = writes_nested or (nested and not lists)
        if kind in _NORMS:
            flag = inputs[_NORMS[kind]]
            decided = paths.get(flag.debugName(), bool(flag.toIValue()) if flag.node().kind() == "prim::Constant" else True)
            statistics += [(paths[v.debugName()], decided) for v in inputs[3:5] if v.debugName() in paths]
            writes_nested = writes_nested or nested
    if writes_nested and data:
        return ScriptUse(trouble="may change a tensor or not, by its data")
    if changes_lists and set(leaves.values()) & {"ListType", "DictType"}:
        return ScriptUse(trouble="may change a list that it keeps")
    return ScriptUse(tuple(leaves), tuple(statistics))
