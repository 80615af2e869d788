"""What the compiled code of a graph depends on, as the name of a file. Key function: key_of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.compiler_state import state_of_compilers
from magpy_core._compat.torch.tensor_guards import is_view, storage_key
from magpy_core.backends.tuning import Tuning
from magpy_core.opgraph.naming import Unnamed, is_plain, target_name, value_text

#: What a node knows that no compiler reads: its place in the program, where an input came from, its value in one call.
_UNREAD = frozenset(
    {"magpy_site", "magpy_user", "magpy_outer", "magpy_source", "magpy_hint", "magpy_version", "stack_trace"}
)
_TENSORS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def key_of(
    gm: torch.fx.GraphModule,
    inputs: Sequence[Any],
    dims: Mapping[int, set[int]],
    *,
    same_random: bool,
    tuning: Tuning,
    checked: bool,
) -> str | None:
    """The key of ``gm`` compiled by Inductor for real ``inputs``, in whose ``dims`` (by index of the input) sizes vary; None
    if its code might not be the same in another process with the same key. Values of numbers that vary are not in it: what
    code assumes of them is in its guards."""
    state = state_of_compilers()
    if state is None or tuning.options:
        return None
    try:
        parts = [state, f"{same_random} {tuning!r} {checked}", *_inputs(inputs, dims), *_operations(gm)]
    except Unnamed:
        return None
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


def _operations(gm: torch.fx.GraphModule) -> Iterator[str]:
    names: dict[torch.fx.Node, str] = {}  # which no code depends on: graphs of equal parts of a program are equal
    for node in gm.graph.nodes:
        names[node] = str(len(names))
        if node.op == "get_attr":
            raise Unnamed(node)
        target = "" if node.op in ("placeholder", "output") else target_name(node.target)
        arguments = f"{value_text(node.args, names)} {value_text(node.kwargs, names)}"
        yield f"{node.op} {target} {arguments} {[*_known_of(node)]}"


def _known_of(node: torch.fx.Node) -> Iterator[str]:
    for key in sorted(node.meta.keys() - _UNREAD):
        value = node.meta[key]
        if key == "magpy_tensor":
            value = value[0]  # its sizes may vary
        if not is_plain(value):
            raise Unnamed(value)
        yield f"{key}: {value!r}"


def _inputs(inputs: Sequence[Any], dims: Mapping[int, set[int]]) -> Iterator[str]:
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    if len({storage_key(tensor) for tensor in tensors}) < len(tensors):
        raise Unnamed("inputs that share memory")
    for i, value in enumerate(inputs):
        if isinstance(value, torch.Tensor):
            yield _tensor(value, dims.get(i, set()))
        elif type(value) in (int, float):
            yield type(value).__name__
        else:
            yield value_text(value)


def _tensor(tensor: torch.Tensor, dims: set[int]) -> str:
    if type(tensor) not in _TENSORS or tensor.layout is not torch.strided or tensor.device.type != "cpu":
        raise Unnamed(tensor)
    moved = type(tensor) is torch.Tensor and not tensor.requires_grad  # to offset 0, as its fake (`fakes.make_fake_inputs`)
    if (is_view(tensor) and not moved) or (dims and not tensor.is_contiguous()):
        raise Unnamed(tensor)
    sizes = tuple("varies" if dim in dims else size for dim, size in enumerate(tensor.shape))
    strides = () if dims else tensor.stride()  # a contiguous tensor's follow from its sizes
    facts = (tensor.dtype, tensor.requires_grad, tensor.is_leaf, tensor.is_inference(), tensor.is_conj(), tensor.is_neg())
    return repr((type(tensor).__name__, sizes, strides, 0 if moved else tensor.storage_offset(), *facts))
