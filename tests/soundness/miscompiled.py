"""Bugs of a compiler, planted in the graphs that Inductor makes code from: verification must find each in its first call.

A bug is a change of the graph of ATen operations, made as a pass of Inductor's own would make it; if the backward pass is a
graph of its own, a bug may be in either. Key types: Bug, Target; key names: BUGS, TARGETS, planted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

aten = torch.ops.aten


@dataclass(frozen=True)
class Bug:
    """``plant`` changes a graph, or returns False if there is nothing in it to change."""

    name: str
    plant: Callable[[fx.Graph], bool]


def _first(graph: fx.Graph, *targets: Any) -> fx.Node | None:
    """The last operation of these: the nearest to the results, whose change nothing hides."""
    found = [node for node in graph.nodes if node.op == "call_function" and node.target in targets]
    return found[-1] if found else None


def _replaced(*targets: Any, by: Any) -> Callable[[fx.Graph], bool]:
    def plant(graph: fx.Graph) -> bool:
        if (node := _first(graph, *targets)) is None:
            return False
        node.target = by
        return True

    return plant


def _argument(position: int, change: Callable[[Any], Any], *targets: Any) -> Callable[[fx.Graph], bool]:
    def plant(graph: fx.Graph) -> bool:
        for node in reversed(graph.nodes):
            if node.op == "call_function" and node.target in targets and len(node.args) > position:
                changed = change(node.args[position])
                if changed is not None:
                    node.args = (*node.args[:position], changed, *node.args[position + 1 :])
                    return True
        return False

    return plant


def _dropped(*targets: Any) -> Callable[[fx.Graph], bool]:
    """The operation gives its first argument."""

    def plant(graph: fx.Graph) -> bool:
        node = _first(graph, *targets)
        if node is None or not isinstance(node.args[0], fx.Node):
            return False
        node.replace_all_uses_with(node.args[0])
        graph.erase_node(node)
        return True

    return plant


def _after(make: Callable[[fx.Graph, fx.Node], fx.Node], *targets: Any) -> Callable[[fx.Graph], bool]:
    """Something is computed of the operation's result, and used in its place."""

    def plant(graph: fx.Graph) -> bool:
        if (node := _first(graph, *targets)) is None:
            return False
        with graph.inserting_after(node):
            made = make(graph, node)
        last = made
        node.replace_all_uses_with(last, delete_user_cb=lambda user: user not in _chain(last, node))
        return True

    return plant


def _chain(last: fx.Node, first: fx.Node) -> set[fx.Node]:
    found, todo = set(), [last]
    while todo:
        node = todo.pop()
        if node is not first and node not in found:
            found.add(node)
            todo += node.all_input_nodes
    return found


def _to_twelve_bits(graph: fx.Graph, node: fx.Node) -> fx.Node:
    """The leading bits of a float32 (T. J. Dekker, 1971); Inductor leaves out a conversion to bfloat16 and back."""
    more = graph.call_function(aten.mul.Tensor, (node, 4097.0))
    with graph.inserting_after(more):
        less = graph.call_function(aten.sub.Tensor, (more, node))
    with graph.inserting_after(less):
        return graph.call_function(aten.sub.Tensor, (more, less))


def _lost_write(graph: fx.Graph) -> bool:
    if (node := _first(graph, aten.copy_.default)) is None:
        return False
    node.replace_all_uses_with(node.args[0])  # type: ignore[arg-type]
    graph.erase_node(node)
    return True


def _old_value(graph: fx.Graph) -> bool:
    """A reader of the new value gets the old one."""
    for copy in graph.nodes:
        if copy.target is aten.copy_.default:
            target, new = copy.args[:2]
            others = [user for user in new.users if user is not copy]
            if others:
                others[-1].replace_input_with(new, target)
                return True
    return False


def _swapped(graph: fx.Graph) -> bool:
    node = _first(graph, aten.sub.Tensor, aten.div.Tensor, aten.mm.default)
    if node is None or len(node.args) < 2 or not isinstance(node.args[1], fx.Node):
        return False
    one, other = node.args[:2]
    if one.meta["val"].shape != other.meta["val"].shape:  # type: ignore[union-attr]
        return False
    node.args = (other, one, *node.args[2:])
    return True


def _other_dims(dims: Any) -> Any:
    return [0 if dim in (1, -1) else 1 for dim in dims] if isinstance(dims, list | tuple) and len(dims) == 1 else None


def _slightly_larger(value: Any) -> Any:
    return value * 1.001 + 1e-4 if type(value) is float else None


BUGS = [
    Bug("a write is lost", _lost_write),
    Bug("a reader sees a write too late", _old_value),
    Bug("a sum over another axis", _argument(1, _other_dims, aten.sum.dim_IntList, aten.mean.dim)),
    Bug("a result in lower precision", _after(_to_twelve_bits, aten.mul.Tensor, aten.add.Tensor)),
    Bug("a slice that begins one later", _argument(2, lambda at: at + 1 if type(at) is int else None, aten.slice.Tensor)),
    Bug(
        "another constant",
        _argument(1, lambda n: n * 1.001 + 1e-4 if type(n) is float else None, aten.mul.Tensor, aten.add.Tensor),
    ),
    Bug("a constant of another step", _argument(1, lambda n: n * 0.5 if type(n) is float else None, aten.mul.Tensor)),
    Bug("the difference, not the sum", _replaced(aten.add.Tensor, by=aten.sub.Tensor)),
    Bug("the sum, not the difference", _replaced(aten.sub.Tensor, by=aten.add.Tensor)),
    Bug("the product, not the quotient", _replaced(aten.div.Tensor, by=aten.mul.Tensor)),
    Bug("operands in another order", _swapped),
    Bug("an activation is dropped", _dropped(aten.relu.default, aten.tanh.default, aten.sigmoid.default, aten.exp.default)),
    Bug("a comparison that is strict", _replaced(aten.ge.Scalar, by=aten.gt.Scalar)),
    Bug("a mask that is inverted", _replaced(aten.le.Scalar, aten.lt.Scalar, by=aten.gt.Scalar)),
    Bug("a scale is dropped", _dropped(aten.mul.Tensor)),
    Bug("a clamp is dropped", _dropped(aten.clamp.default, aten.clamp_min.default)),
    Bug("a root is dropped", _dropped(aten.rsqrt.default, aten.sqrt.default)),
]


@dataclass(frozen=True)
class Target:
    """A region, and the arguments of its calls. ``without``: the bugs that nothing in its graph can have, or that change no
    result; ``backward``: those that its backward graph can have, if autograd runs it."""

    name: str
    make: Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]
    without: frozenset[str]
    backward: frozenset[str] = frozenset()


def _net() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, 16), nn.Sigmoid())
    return net, (torch.randn(16, 16),)


def _step() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, amsgrad=True)  # updated by operations, not by one kernel

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, (torch.randn(16, 16), torch.randn(16, 16))


def _buffers() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    torch.manual_seed(0)
    average, flat = torch.randn(16, 16), torch.randn(40)

    def update(x: torch.Tensor) -> torch.Tensor:
        old = average * 1.0
        average.mul_(0.9).add_(x, alpha=0.1)
        flat[1:] = flat[:-1].clone()
        flat[:16].sub_(x.sum(1) * 0.5)
        return old - average * 0.25 + flat[3:19]

    return update, (torch.randn(16, 16),)


def _masks() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    torch.manual_seed(0)

    def masked(x: torch.Tensor) -> torch.Tensor:
        kept = torch.where(x <= 0.3, x * 1.7, x.new_zeros(()))
        top = torch.where(x >= 0.0, x.amax(1, keepdim=True), x)
        weights = torch.softmax(kept[:, 2:] - top[:, :-2], 1) / (1.5 + x[:, 1:-1].clamp(-0.5, 0.5))
        return weights + torch.exp(x[:, :-2]).sum(1, keepdim=True)

    return masked, (torch.randint(-2, 3, (16, 16)) * 0.5 + torch.randn(16, 16) * (torch.rand(16, 16) > 0.2),)


TARGETS = [
    Target(
        "module",
        _net,
        frozenset(
            {
                "a write is lost",
                "a reader sees a write too late",
                "a slice that begins one later",
                "a constant of another step",
                "the difference, not the sum",
                "a comparison that is strict",
                "a mask that is inverted",
                "a scale is dropped",
                "a clamp is dropped",
            }
        ),
        frozenset(
            {"a result in lower precision", "the sum, not the difference", "an activation is dropped", "a scale is dropped"}
        ),
    ),
    Target(
        "step",
        _step,
        frozenset(
            {
                "a slice that begins one later",
                "a comparison that is strict",
                "a clamp is dropped",
            }
        ),
    ),
    Target(
        "buffers",
        _buffers,
        frozenset(
            {
                "a slice that begins one later",
                "the product, not the quotient",
                "an activation is dropped",
                "a comparison that is strict",
                "a mask that is inverted",
                "a clamp is dropped",
                "a root is dropped",
            }
        ),
    ),
    Target(
        "masks",
        _masks,
        frozenset(
            {
                "a write is lost",
                "a reader sees a write too late",
                "the sum, not the difference",
                "a root is dropped",
            }
        ),
    ),
]


@contextlib.contextmanager
def planted(bug: Bug, *, graph: int | None = 0) -> Iterator[list[bool]]:
    """Inductor's graphs have the bug inside: only number ``graph`` of those in which it can be, or all of them. The list has
    an entry for each of these graphs, up to the one with the bug."""
    from torch._inductor import config
    from torch._inductor.custom_graph_pass import CustomGraphPass

    applied: list[bool] = []

    class Plant(CustomGraphPass):
        def __call__(self, one: fx.Graph) -> None:
            if (graph is None or len(applied) == graph) and bug.plant(one):
                applied.append(True)
            elif graph is not None and len(applied) < graph:
                copy = fx.Graph()
                copy.output(copy.graph_copy(one, {}))
                applied.extend([True] if bug.plant(copy) else [])

        def uuid(self) -> Any:
            return None  # nothing of it goes to a cache

    with config.patch(post_grad_custom_post_pass=Plant()):
        yield applied
