"""Updates of Adam and AdamW that torch's own kernel computes, for all parameters at once.

As operations they are most of the graph of a training step of a small model, and of what it takes to compile: about 27 for
each parameter. They are recognized by what they compute, operation by operation (``torch.optim.adam._single_tensor_adam``),
not by who called it; any other form (``amsgrad``, ``maximize``, other types than float32) stays in the graph. The rest is
compiled first, and called first: nothing after the first update may read or write what updates write.
Key functions: `split_off`, `join_updates`.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.fx

from magpy_core._compat.torch.fake import is_fake
from magpy_core._compat.torch.fused_adam import has_fused_adam
from magpy_core._compat.torch.operators import arguments_by_schema
from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core.backends.blocks.finding import LEAST_REPEATS
from magpy_core.backends.blocks.joining import FUSED_ADAM, Boxed, joined
from magpy_core.backends.blocks.units import only_views

_aten = torch.ops.aten


class Options(NamedTuple):
    """What the updates of one call have in common, numbers or the inputs that have them. ``rate``: the learning rate;
    ``kept``: what AdamW keeps of a parameter, ``1 - rate * decay``; None: Adam, with ``decay`` in the gradient."""

    rate: float | torch.fx.Node
    kept: float | torch.fx.Node | None
    beta1: float
    beta2: float
    decay: float
    eps: float


@dataclass(frozen=True)
class Update:
    """One parameter's: its inputs, the operations that it consists of, and those that several updates may ``share``."""

    param: torch.fx.Node
    gradient: torch.fx.Node
    average: torch.fx.Node
    square: torch.fx.Node
    step: torch.fx.Node
    options: Options
    nodes: frozenset[torch.fx.Node]
    shared: frozenset[torch.fx.Node]

    @property
    def written(self) -> tuple[torch.fx.Node, ...]:
        return self.param, self.average, self.square, self.step


@dataclass(frozen=True)
class Rest:
    """A graph without its ``updates``. Its results are those of the graph, and then ``gradients`` that the updates take."""

    module: torch.fx.GraphModule
    inputs: list[torch.fx.Node]
    results: int
    gradients: list[torch.fx.Node]
    updates: list[Update]


class _OtherFormError(Exception):
    """The operations are no update that the kernel computes."""


class _Reader:
    """Reads the operations that lead to a write of a parameter, and notes them."""

    def __init__(self) -> None:
        self.nodes: set[torch.fx.Node] = set()

    def args(self, node: Any, target: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The arguments of ``node``, which must be a call of ``target`` with just these keyword arguments."""
        if not isinstance(node, torch.fx.Node) or node.target is not target or dict(node.kwargs) != kwargs:
            raise _OtherFormError
        self.nodes.add(node)
        return node.args

    def is_call(self, node: Any, target: Any) -> bool:
        return isinstance(node, torch.fx.Node) and node.target is target

    def number(self, node: Any) -> float | torch.fx.Node:
        """A number: a constant, or an input of the graph that has it."""
        if self.is_call(node, _aten.full.default):
            sizes, value = node.args
            if list(sizes) != [] or node.kwargs.get("dtype") is not torch.float64:
                raise _OtherFormError
            self.nodes.add(node)
            return float(value)
        if isinstance(node, torch.fx.Node):
            if node.op != "placeholder":
                raise _OtherFormError
            return node
        if not isinstance(node, (int, float)):
            raise _OtherFormError
        return float(node)

    def constant(self, node: Any) -> float:
        number = self.number(node)
        if isinstance(number, torch.fx.Node):
            raise _OtherFormError
        return number

    def single(self, node: Any) -> Any:
        """What a number that is stored as float32 is computed of, in float64."""
        if isinstance(node, torch.fx.Node) and str(node.target) == "magpy.hoist.default":
            self.nodes.add(node)
            (node,) = node.args
        (value,) = self.args(node, _aten._to_copy.default, dtype=torch.float32)
        return value

    def correction(self, node: Any, step: Any) -> float:
        """``beta`` of ``1 - beta ** step``."""
        one, power = self.args(node, _aten.sub.Tensor)
        base, exponent = self.args(power, _aten.pow.Tensor_Tensor)
        if one != 1 or exponent is not step:
            raise _OtherFormError
        return self.constant(base)


def _update(write: torch.fx.Node) -> Update:
    """The update that ends with this write of a parameter. Raises _OtherFormError if it is none."""
    read = _Reader()
    target, value = read.args(write, _aten.copy_.default)
    before, change = read.args(value, _aten.add.Tensor)
    product, divisor = read.args(change, _aten.div.Tensor)
    average, rate = read.args(product, _aten.mul.Tensor)
    root, eps = read.args(divisor, _aten.add_.Tensor)
    square_root, correction2 = read.args(root, _aten.div.Tensor)
    (square,) = read.args(square_root, _aten.sqrt.default)

    inner, half = read.args(read.single(correction2), _aten.pow.Tensor_Tensor)
    if read.constant(half) != 0.5:
        raise _OtherFormError
    _, power = read.args(inner, _aten.sub.Tensor)
    _, step64 = read.args(power, _aten.pow.Tensor_Tensor)
    beta2 = read.correction(inner, step64)
    (quotient,) = read.args(read.single(rate), _aten.neg.default)
    rate_value, inner = read.args(quotient, _aten.div.Tensor)
    beta1 = read.correction(inner, step64)
    lr = read.number(rate_value)

    (step_alias,) = read.args(step64, _aten._to_copy.default, dtype=torch.float64)
    (counted,) = read.args(step_alias, _aten.detach.default)
    step, one = read.args(counted, _aten.add_.Tensor)

    old_average, gradient, weight = read.args(average, _aten.lerp_.Scalar)
    scaled, left, right = read.args(square, _aten.addcmul_.default, value=1 - beta2)
    old_square, factor = read.args(scaled, _aten.mul_.Tensor)
    exact = one == 1 and weight == 1 - beta1 and factor == beta2 and left is gradient and right is gradient
    param, kept, decay = before, None, 0.0
    shared = _Reader()
    if read.is_call(before, _aten.mul_.Tensor):  # AdamW: the parameter shrinks first
        param, number = read.args(before, _aten.mul_.Tensor)
        kept = read.number(number)
    elif read.is_call(before, _aten.copy_.default):
        param, product = read.args(before, _aten.copy_.default)
        shrinks, number = read.args(product, _aten.mul.Tensor)
        kept = read.number(shared.single(number))
        if shrinks is not param:
            raise _OtherFormError
    elif read.is_call(gradient, _aten.add.Tensor):  # weight decay as in the paper on Adam
        raw, shrinks = gradient.args[:2]
        if shrinks is param and isinstance(alpha := gradient.kwargs.get("alpha"), float):
            read.nodes.add(gradient)
            gradient, decay = raw, alpha
    if not exact or target is not before or not isinstance(gradient, torch.fx.Node):
        raise _OtherFormError
    options = Options(lr, kept, beta1, beta2, decay, read.constant(eps))
    return Update(param, gradient, old_average, old_square, step, options, frozenset(read.nodes), frozenset(shared.nodes))


def _found(nodes: Sequence[torch.fx.Node]) -> list[Update]:
    found = []
    for node in nodes:
        if node.target is _aten.copy_.default and not node.users:
            try:
                found.append(_update(node))
            except (_OtherFormError, ValueError):  # another number of arguments
                continue
    return found


def split_off(gm: torch.fx.GraphModule, fakes: Sequence[Any]) -> Rest | None:
    """``gm`` without the updates that the kernel computes; None if there are few, or other operations stand in the way.

    ``fakes``: of its inputs. ``gm`` records no history, and is not changed.
    """
    if torch.is_grad_enabled() or not has_fused_adam():
        return None
    nodes = list(gm.graph.nodes)
    inputs = [node for node in nodes if node.op == "placeholder"]
    values = dict(zip(inputs, fakes, strict=True))
    updates = [one for one in _found(nodes) if _fits(one, values)]
    if len(updates) < LEAST_REPEATS or not _are_apart(updates, values) or not _come_last(nodes, updates, values):
        return None
    return _without(gm.graph, inputs, updates)


def _fits(update: Update, values: Mapping[torch.fx.Node, Any]) -> bool:
    """Whether the kernel takes these tensors, and only the update uses what it computes."""
    if not all(is_fake(values.get(node)) for node in update.written):
        return False
    large = [values[node] for node in update.written[:3]]
    step = values[update.step]
    plain = all(one.is_contiguous() and one.shape == large[0].shape and one.dtype is torch.float32 for one in large)
    inside = all(user in update.nodes for node in update.nodes for user in node.users)
    numbers = [one for one in update.options if isinstance(one, torch.fx.Node)]
    single = all(is_fake(values.get(one)) and values[one].dim() == 0 for one in numbers)
    on_cpu = all(one.device.type == "cpu" for one in (*large, step))
    return plain and inside and single and on_cpu and step.dim() == 0 and step.dtype is torch.float32


def _are_apart(updates: Sequence[Update], values: Mapping[torch.fx.Node, Any]) -> bool:
    """Whether no input that updates write shares memory with another one."""
    memory = Counter(storage_key(value) for value in values.values() if is_fake(value))
    nodes = Counter(node for update in updates for node in update.nodes)
    own = all(memory[storage_key(values[node])] == 1 for update in updates for node in update.written)
    return own and max(nodes.values()) == 1


def _inside(updates: Sequence[Update]) -> set[torch.fx.Node]:
    """What only the updates need."""
    nodes = {node for update in updates for node in update.nodes}
    shared = {node for update in updates for node in update.shared}
    while others := {node for node in shared if any(user not in nodes and user not in shared for user in node.users)}:
        shared -= others
    return nodes | shared


def _come_last(nodes: Sequence[torch.fx.Node], updates: Sequence[Update], values: Mapping[torch.fx.Node, Any]) -> bool:
    """Whether the other operations can all run before the updates: those after the first one only make views of something
    else, and no result or gradient is what updates write, or a view of it."""
    inside = _inside(updates)
    tainted = {node for update in updates for node in update.written}
    taken = {update.gradient for update in updates}
    reached = False
    for node in nodes:
        if node in inside:
            reached = True
        elif node.op == "output":
            return not any(used in tainted for used in node.all_input_nodes)
        elif node.op != "placeholder":
            if reached and not (only_views(node) or node.target is operator.getitem):
                return False
            may_alias = reached or only_views(node) or arguments_by_schema(node, written=True)
            if may_alias and any(used in tainted for used in node.all_input_nodes):
                tainted.add(node)
            if node in tainted and (reached or node in taken):
                return False
    return True


def _without(graph: torch.fx.Graph, inputs: list[torch.fx.Node], updates: list[Update]) -> Rest:
    inside = _inside(updates)
    copied = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    returned: list[Any] = []
    for node in graph.nodes:
        if node.op == "output":
            returned = list(node.args[0])
        elif node not in inside:
            copies[node] = copied.node_copy(node, copies.__getitem__)
    gradients = list(dict.fromkeys(update.gradient for update in updates if update.gradient.op != "placeholder"))
    results = [copies[one] if isinstance(one, torch.fx.Node) else one for one in returned]
    copied.output((*results, *(copies[node] for node in gradients)))
    copied.lint()
    return Rest(torch.fx.GraphModule(torch.nn.Module(), copied), inputs, len(results), gradients, updates)


def join_updates(rest: Rest, call: Boxed) -> Boxed:
    """The function of the whole graph's inputs that calls the compiled rest, and then the kernel for each kind of update."""
    names: dict[torch.fx.Node, str] = {node: f"a{i}" for i, node in enumerate(rest.inputs)}
    names |= {node: f"g[{i}]" for i, node in enumerate(rest.gradients)}
    kinds: dict[Options, list[Update]] = {}
    for update in rest.updates:
        kinds.setdefault(update.options, []).append(update)
    lines = ["def joined(inputs):", f"    {', '.join(names[node] for node in rest.inputs)}, = inputs"]
    # An input that only the rest uses may be freed in it.
    used = {node for update in rest.updates for node in (update.gradient, *update.written, *update.options)}
    dropped = [names[node] for node in rest.inputs if node not in used]
    if dropped:
        lines.append(f"    del {', '.join(dropped)}")
    lines += ["    results = f0(inputs)", f"    g = results[{rest.results}:]"]

    def listed(of: Callable[[Update], torch.fx.Node], updates: Sequence[Update]) -> str:
        return f"[{', '.join(names[of(update)] for update in updates)}]"

    for options, updates in kinds.items():
        tensors = [
            listed(of, updates)
            for of in (lambda u: u.param, lambda u: u.gradient, lambda u: u.average, lambda u: u.square, lambda u: u.step)
        ]
        numbers = [names[one] if isinstance(one, torch.fx.Node) else repr(one) for one in options]
        lines.append(f"    {FUSED_ADAM}({', '.join([*tensors, *numbers])})")
    lines.append(f"    return results[:{rest.results}]")
    return joined("\n".join(lines), [call])
