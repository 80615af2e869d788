"""Rewrites a linear layer and the cross entropy of its result into one operator, which never has all logits.

Where it can't be shown that nothing else sees the logits, and that eager mode computes the same, nothing is rewritten.
Key types: FusedLoss, Fusing. Key function: fuse_losses.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
import torch.fx
import torch.nn.functional as F

from magpy_core._compat.torch.fake import is_fake
from magpy_core._compat.torch.torch_state import preserve_torch_state, switches_modes
from magpy_core._compat.torch.triton_device import has_triton
from magpy_core.backends.sharing import copied, root, written
from magpy_core.fused import operators
from magpy_core.fused.chunks import CHUNK_BYTES
from magpy_core.knowledge.operators import Fact, named
from magpy_core.opgraph.functions import argument, operator_name
from magpy_core.opgraph.segments import CHECKPOINT

#: Smaller logits are left to the compiler: they would be one chunk, and a separate operator can't be fused.
LEAST_BYTES = CHUNK_BYTES + 1

_SAME_ROWS, _CASTS = named(Fact.KEEPS_ELEMENTS), named(Fact.CONVERTS)
_FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
_PLACES = ("magpy_site", "magpy_user", "stack_trace")


class Fusing(Enum):
    """Which losses are rewritten. ANY_DEVICE: large ones, also on a device that has no kernel for them (a target's graph is
    on the CPU). EVERYTHING: small ones, too."""

    NOTHING = "nothing"
    LARGE = "large"
    ANY_DEVICE = "any device"
    EVERYTHING = "everything"


@dataclass(frozen=True)
class FusedLoss:
    """A loss whose logits, ``rows`` of ``vocabulary`` numbers, are never in memory together: ``saved_bytes`` is the memory
    that the logits take and a chunk of them doesn't, in the recorded call. ``file``, ``line``: of the loss."""

    file: str
    line: int
    rows: int
    vocabulary: int
    dtype: torch.dtype
    saved_bytes: int


def fusing(wanted: bool | None) -> Fusing:
    """What the settings say. ``wanted``: None if ``MAGPY_FUSED_LOSS`` in the environment decides: 1 switches it on, 0 off,
    whatever is wanted; ``always`` is for tests, which use it without a GPU."""
    given = os.environ.get("MAGPY_FUSED_LOSS", "")
    if wanted is False or given == "0":
        return Fusing.NOTHING
    if given == "always":
        return Fusing.EVERYTHING
    return Fusing.LARGE if wanted or given == "1" else Fusing.NOTHING


@dataclass
class _Loss:
    """A part of a graph: ``linear``, what reshapes or casts its result, and the loss of that."""

    linear: torch.fx.Node
    between: list[torch.fx.Node]
    loss: torch.fx.Node
    ignore_index: int
    reduction: str
    smoothing: float


@dataclass(frozen=True)
class _Facts:
    """What a run on fakes shows: ``compute``, the dtype of the products; ``result``, that of the loss."""

    width: int
    vocabulary: int
    compute: torch.dtype
    result: torch.dtype
    flat: bool
    wanted: tuple[bool, bool, bool]
    device: torch.device
    rows: int


def fuse_losses(gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any, how: Fusing) -> list[FusedLoss]:
    """Changes ``gm`` in place; returns what was rewritten. Inputs: fakes of ``mode``."""
    tensors = [fake for fake in fakes if isinstance(fake, torch.Tensor)]
    if how is Fusing.NOTHING or (how is Fusing.LARGE and not any(tensor.is_cuda for tensor in tensors)):
        return []
    found = [] if _differentiates_twice(gm.graph) else _find(gm.graph)
    if not found:
        return []
    try:
        values = _values(gm, fakes, mode, found[-1].loss)
    except Exception:  # operators on fakes may raise anything; what they raise is reported by who compiles the graph
        return []
    fused = [_fused(one, facts, how) for one in found if (facts := _facts(one, values)) is not None]
    gm.graph.lint()
    gm.recompile()
    return [one for one in fused if one is not None]


# -- the pattern ---------------------------------------------------------------------------------------------------------


def _differentiates_twice(graph: torch.fx.Graph) -> bool:
    return any(n.target is torch.autograd.grad and argument(n, "create_graph", 4) for n in graph.nodes)


def _find(graph: torch.fx.Graph) -> list[_Loss]:
    """The parts that look like a loss of a linear layer, in order."""
    order = {node: position for position, node in enumerate(graph.nodes)}
    disturbing = [order[node] for node in graph.nodes if _disturbs(node)]
    candidates = [_loss(node) for node in graph.nodes if node.target is F.cross_entropy]
    return [
        one
        for one in candidates
        if one is not None
        and not any(order[one.linear] < at < order[one.loss] for at in disturbing)
        and not _is_written_before_its_gradient(one)
    ]


def _is_written_before_its_gradient(one: _Loss) -> bool:
    """Whether what the layer takes is written later, and not behind a backward pass: eager mode has saved it and raises when
    the loss is differentiated."""
    taken = {root(node) for node in one.linear.all_input_nodes}
    node = one.loss.next
    while node.op != "output" and node.target is not torch.autograd.grad:
        if not taken.isdisjoint(map(root, written(node))):
            return True
        node = node.next
    return False


def _disturbs(node: torch.fx.Node) -> bool:
    """Whether a linear layer computes something else after this operation than before: it writes, or changes modes."""
    schema = getattr(node.target, "_schema", None)
    return bool(written(node)) or switches_modes(node.target) or (schema is not None and schema.is_mutable)


def _loss(loss: torch.fx.Node) -> _Loss | None:
    given = [argument(loss, key, i) for i, key in ((2, "weight"), (3, "size_average"), (5, "reduce"))]
    ignore_index, reduction = argument(loss, "ignore_index", 4), argument(loss, "reduction", 6)
    smoothing = argument(loss, "label_smoothing", 7)
    ignore_index = -100 if ignore_index is None else ignore_index
    reduction, smoothing = reduction or "mean", smoothing or 0.0
    numbers = type(ignore_index) is int and type(smoothing) in (int, float) and 0 <= smoothing <= 1
    if any(value is not None for value in given) or reduction not in ("mean", "sum", "none") or not numbers:
        return None
    if CHECKPOINT in loss.meta:
        return None
    between: list[torch.fx.Node] = []
    node = argument(loss, "input", 0)
    while isinstance(node, torch.fx.Node) and _only_used_once(node):
        if node.target is F.linear:
            return _Loss(node, between, loss, ignore_index, str(reduction), float(smoothing))
        if operator_name(node) not in _SAME_ROWS | _CASTS:
            return None
        between.append(node)
        node = node.args[0] if node.args else None
    return None


def _only_used_once(node: torch.fx.Node) -> bool:
    """Whether a node has one user and is computed as written: not under a checkpoint."""
    return len(node.users) - len(_without_effect(node)) == 1 and CHECKPOINT not in node.meta


def _without_effect(node: torch.fx.Node) -> list[torch.fx.Node]:
    """Users whose result nobody uses: `x.float()` of a float32 tensor is the tensor itself."""
    return [user for user in node.users if not user.users and operator_name(user) in _SAME_ROWS | _CASTS]


# -- what the values are -------------------------------------------------------------------------------------------------


def _values(gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any, last: torch.fx.Node) -> Mapping[torch.fx.Node, Any]:
    """The results of the graph's operations up to ``last``, as fakes."""
    run = torch.fx.Interpreter(gm, garbage_collect_values=False)
    with preserve_torch_state():
        torch.set_autocast_cache_enabled(False)  # it would keep the fakes
        with mode:
            run.args_iter = iter([copied(fake) for fake in fakes])
            for node in gm.graph.nodes:
                run.env[node] = run.run_node(node)
                if node is last:
                    break
    return run.env


def _facts(one: _Loss, values: Mapping[torch.fx.Node, Any]) -> _Facts | None:
    """None unless the operator computes what these operations compute."""
    hidden, weight, bias = (argument(one.linear, key, i) for i, key in enumerate(("input", "weight", "bias")))
    target = argument(one.loss, "target", 1)
    tensors: list[Any] = [values.get(node) for node in (hidden, weight, target, *([] if bias is None else [bias]))]
    if not all(is_fake(tensor) and tensor.layout is torch.strided for tensor in tensors):
        return None
    x, w, wanted_classes, *others = tensors
    logits, result = values[one.linear], values[one.loss]
    width, vocabulary, device = w.shape[-1], w.shape[0], x.device
    if w.dim() != 2 or not (type(width) is type(vocabulary) is int) or not (width and vocabulary):
        return None
    if any(tensor.device != device for tensor in tensors) or any(t.dtype not in _FLOATS for t in (x, w, *others)):
        return None
    if wanted_classes.dtype is not torch.int64 or wanted_classes.dim() != 1 or logits.dtype not in _FLOATS:
        return None
    if not _are_rows(one, logits, vocabulary, values) or result.dtype not in (logits.dtype, torch.float32):
        return None
    wanted = (x.requires_grad, w.requires_grad, bool(others) and others[0].requires_grad)
    wanted = wanted if result.requires_grad else (False, False, False)
    rows = _recorded_rows(one, logits)
    return _Facts(width, vocabulary, logits.dtype, result.dtype, x.dim() == 2, wanted, device, rows)


def _recorded_rows(one: _Loss, logits: Any) -> int:
    """The number of rows in the recorded call, on which nothing but the size of the gain depends; 0 if it is not known."""
    _, recorded = one.linear.meta.get("magpy_tensor") or (None, tuple(logits.shape))
    return math.prod(recorded[:-1]) if all(type(size) is int for size in recorded) else 0


def _are_rows(one: _Loss, logits: Any, vocabulary: int, values: Mapping[torch.fx.Node, Any]) -> bool:
    """Whether the loss takes the rows of ``logits`` in their order. A cast may make them float32, not more precise."""
    before = logits
    for node in reversed(one.between):
        now = values[node]
        casts = operator_name(node) in _CASTS
        same = now.dtype == before.dtype or (casts and now.dtype is torch.float32 and before.dtype is not torch.float64)
        columns = now.shape[-1] if now.dim() else None
        if not same or now.device != logits.device or type(columns) is not int or columns != vocabulary:
            return False
        before = now
    return bool(before.dim() == 2)


# -- the rewriting -------------------------------------------------------------------------------------------------------


def _has_kernel(device: torch.device) -> bool:
    return device.type == "cuda" and torch.version.hip is None and has_triton()


def _fused(one: _Loss, facts: _Facts, how: Fusing) -> FusedLoss | None:
    if how is Fusing.LARGE and not _has_kernel(facts.device):
        return None
    itemsize = facts.compute.itemsize
    total = facts.rows * facts.vocabulary * itemsize
    if how is not Fusing.EVERYTHING and total < LEAST_BYTES:
        return None
    saved = total - operators.chunk_bytes(facts.rows, facts.vocabulary, itemsize)
    place = _place(one.loss)
    _replace(one, facts)
    return FusedLoss(*place, facts.rows, facts.vocabulary, facts.compute, max(saved, 0))


def _place(node: torch.fx.Node) -> tuple[str, int]:
    """The user's line that the loss was recorded at."""
    if user := node.meta.get("magpy_user"):
        return str(user[0]), int(user[1])
    site = node.meta.get("magpy_site")
    return ("", 0) if site is None or not site.lineno else (str(site.code.co_filename), int(site.lineno))


def _replace(one: _Loss, facts: _Facts) -> None:
    graph = one.loss.graph
    before = set(graph.nodes)
    with graph.inserting_before(one.loss):
        result = _Writer(graph, one, facts).result()
    places = {key: one.loss.meta[key] for key in _PLACES if key in one.loss.meta}
    for node in set(graph.nodes) - before:
        node.meta.update(places)
    one.loss.replace_all_uses_with(result)
    for node in (one.loss, *one.between, one.linear):
        for user in _without_effect(node):
            graph.erase_node(user)
        graph.erase_node(node)


class _Writer:
    """Writes the operations that replace a loss."""

    def __init__(self, graph: torch.fx.Graph, one: _Loss, facts: _Facts) -> None:
        self._graph, self._one, self._facts = graph, one, facts

    def result(self) -> torch.fx.Node:
        graph, one, facts = self._graph, self._one, self._facts
        hidden, weight, bias = (argument(one.linear, key, i) for i, key in enumerate(("input", "weight", "bias")))
        target = argument(one.loss, "target", 1)
        if not facts.flat:
            hidden = graph.call_method("reshape", (hidden, (-1, facts.width)))
        cast = [None if node is None else graph.call_method("to", (node, facts.compute)) for node in (hidden, weight, bias)]
        head = (*cast, target, one.ignore_index, one.smoothing)
        # Gradients of half precision would underflow before a scaler's factor reaches them.
        if any(facts.wanted) and one.reduction != "none" and facts.compute is not torch.float16:
            both = graph.call_function(operators.SUM, (*head, one.reduction == "mean", list(facts.wanted)))
            loss = graph.call_function(operator.getitem, (both, 0))
        else:
            loss = self._reduced(graph.call_function(operators.LOSSES, head), target)
        return graph.call_method("to", (loss, facts.result))

    def _reduced(self, losses: torch.fx.Node, target: torch.fx.Node) -> torch.fx.Node:
        graph, one = self._graph, self._one
        if one.reduction == "none":
            return losses
        total = graph.call_method("sum", (losses,))
        if one.reduction == "sum":
            return total
        counted = graph.call_method("sum", (graph.call_method("ne", (target, one.ignore_index)),))
        return graph.call_method("div", (total, counted))
