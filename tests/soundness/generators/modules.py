"""Module handles: what is done with a module, step after step, between calls of it; a plain module and a compiled twin.

After each step both are called twice, with gradients. Then results, gradients, ``state_dict``, attributes and what the steps
saw must agree. The family has all pairs of steps; ``drawn`` writes longer sequences, which a command repeats:
``python -m tests.soundness.generators.modules NET STEP...``. Key types: World, Family; key functions: handled, drawn.
"""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import random
import shlex
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune
from torch.utils.hooks import RemovableHandle

import magpy_core
from tests.soundness.harness.batch import shortest
from tests.soundness.harness.compare import differences
from tests.soundness.harness.families import Family, main

Steps = tuple[str, ...]  # the net first


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.scale: Any = 1.0

    def forward(self, x: torch.Tensor) -> Any:
        return self.norm(self.lin(x)) * self.scale


class Doubled(Net):
    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x) * 2


class Counting(Net):
    """Its calls write attributes and a buffer."""

    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.last = 0, None
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> Any:
        self.calls += 1
        self.seen += x.detach().sum(0)
        y = super().forward(x) + self.calls
        self.last = y.detach()
        return y


class Tied(Net):
    """One parameter under two names, and one module twice."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(3, 3)
        self.out.weight = self.lin.weight
        self.layers = nn.ModuleList([self.lin, self.out, self.lin])

    def forward(self, x: torch.Tensor) -> Any:
        for layer in self.layers:
            x = layer(x).tanh()
        return x * self.scale


class Outer(Net):
    """A module in a module, which writes to its parent."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Counting()
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> Any:
        return self.drop(self.inner(super().forward(x))), len(self._forward_hooks)


NETS: dict[str, Callable[[], nn.Module]] = {
    "net": Net, "counting": Counting, "tied": Tied, "outer": Outer, "linear": lambda: nn.Linear(3, 3),
    "sequential": lambda: nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.3), nn.ReLU(), nn.Linear(3, 3)),
}  # fmt: skip


class World:
    """A module, the hooks it was given, other modules made of it, and what was seen of all."""

    def __init__(self, net: str, compiled: bool) -> None:
        torch.manual_seed(0)
        self.compiled, self.calls, self.next_hook = compiled, 0, 0
        self.net: Any = self.compile(NETS[net]())
        self.handles: list[Any] = []
        self.others: list[nn.Module] = []
        self.seen: list[Any] = []

    def compile(self, module: nn.Module, **options: Any) -> nn.Module:
        return magpy_core.compile(module, backend="eager", same_random=True, **options) if self.compiled else module

    def input(self, net: Any) -> torch.Tensor:
        dtype = next((p.dtype for p in net.parameters() if p.is_floating_point()), torch.float32)
        return (torch.arange(6.0).reshape(2, 3) / 7 + self.calls % 3).to(dtype)

    def call(self, net: Any = None, backward: bool = True) -> Any:
        net = self.net if net is None else net
        torch.manual_seed(self.calls)
        self.calls += 1
        out = net(self.input(net))
        first = out[0] if isinstance(out, tuple) else out
        if backward and first.requires_grad:
            first.float().pow(2).sum().backward()
        return out

    def linear(self) -> Any:
        return next(m for m in self.net.modules() if isinstance(m, nn.Linear))

    def do(self, step: Callable[[World], Any]) -> list[Any]:
        """What a step and the calls after it give."""
        RemovableHandle.next_id = self.next_hook
        torch.manual_seed(self.calls)
        out = [_tried(lambda: step(self)), *(_tried(self.call) for _ in range(2))]
        self.next_hook = RemovableHandle.next_id
        return [*out, torch.get_rng_state()]

    def shown(self) -> dict[str, Any]:
        nets = [self.net, *self.others]
        state = [(n.state_dict(), [name for name, _ in n.named_modules()], repr(n), n.training) for n in nets]
        return {"nets": nets, "state": state, "seen": self.seen, "type": type(self.net).__qualname__}


def _tried(do: Callable[[], Any]) -> Any:
    try:
        return do()
    except Exception as error:  # the program's own: it must be the same
        return type(error).__name__, str(error)


# -- steps ---------------------------------------------------------------------------------------------------------------


def add_one(module: Any, args: Any, out: Any) -> Any:
    return (out[0] + 1, *out[1:]) if isinstance(out, tuple) else out + 1


def doubles_the_input(module: Any, args: Any) -> Any:
    return (args[0] * 2,)


def halves_the_gradient(module: Any, gi: Any, go: Any) -> Any:
    return tuple(g if g is None else g / 2 for g in gi)


def with_keywords(module: Any, args: Any, kwargs: Any) -> Any:
    return (args[0] - 1,), kwargs


class Symmetric(nn.Module):
    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.triu() + weight.triu(1).t()


def last_removed(w: World) -> None:
    if w.handles:
        w.handles.pop().remove()


def a_hook_that_removes_itself(w: World) -> None:
    def hook(module: Any, args: Any, out: Any) -> None:
        w.seen.append(type(module).__name__)
        handle.remove()

    handle = w.net.register_forward_hook(hook)


def parametrizations_removed(w: World) -> None:
    for module in w.net.modules():
        for name in list(getattr(module, "parametrizations", {})):
            parametrize.remove_parametrizations(module, name)


def cached_parametrizations(w: World) -> Any:
    with parametrize.cached():
        return w.call(), w.call()


def state_loaded(w: World, assign: bool = False) -> Any:
    state = {k: v * 0.5 if v.is_floating_point() else v for k, v in w.net.state_dict().items()}
    return str(w.net.load_state_dict(state, assign=assign))


def class_of_its_own(w: World) -> Any:
    one: Any = type("One", (type(w.net),), {})
    w.net.__class__ = one
    first = w.call()
    one.forward = lambda self, x: next(iter(self.parameters())).sum() * x
    second = w.call()
    del one.forward
    return first, second


def class_and_back(w: World) -> Any:
    before = type(w.net)
    w.net.__class__ = Doubled
    try:
        return w.call()
    finally:
        w.net.__class__ = before


def forward_patched(w: World) -> None:
    forward = w.net.forward
    w.net.forward = lambda x: forward(x + 1)


def forward_put_back(w: World) -> None:
    w.net.__dict__.pop("forward", None)


def dict_copied(w: World) -> Any:
    twin = type(w.net).__new__(type(w.net))
    twin.__dict__.update(w.net.__dict__)
    w.others = [twin]
    return w.call(twin), w.call(twin)


def dict_replaced(w: World) -> None:
    w.net.__dict__ = dict(w.net.__dict__)


def child_replaced(w: World) -> None:
    name = next(n for n, m in w.net.named_children() if isinstance(m, nn.Linear))
    setattr(w.net, name, nn.Linear(3, 3, bias=False))


def child_added(w: World) -> None:
    w.net.add_module("extra", nn.Linear(1, 1))


def child_compiled(w: World) -> None:
    w.compile(next(iter(w.net.children())))


def wrapped_by_another(w: World) -> None:
    w.net = w.compile(nn.Sequential(w.net, *([] if isinstance(w.net, Outer) else [nn.Tanh()])))


def called_by_another(w: World) -> Any:
    outer = w.compile(nn.Sequential(w.net))
    return w.call(outer), w.call(outer), w.call(outer)


def deep_copied(w: World) -> Any:
    w.others = [copy.deepcopy(w.net)]
    return w.call(w.others[0]), w.call(w.others[0])


def replaced_by_its_copy(w: World) -> None:
    w.others = [w.net]
    w.net = w.compile(copy.deepcopy(w.net))


def shallow_copied(w: World) -> Any:
    w.others = [copy.copy(w.net)]
    return w.call(w.others[0]), w.call(w.others[0])


def pickled(w: World) -> Any:
    w.others = [pickle.loads(pickle.dumps(w.net))]
    return w.call(w.others[0])


def saved(w: World) -> Any:
    file = io.BytesIO()
    torch.save(w.net, file)
    file.seek(0)
    w.others = [torch.load(file, weights_only=False)]
    return w.call(w.others[0])


def plain_again(w: World) -> Any:
    return magpy_core.uncompile(w.net) is w.net


def called_in(context: Callable[[], contextlib.AbstractContextManager[Any]]) -> Callable[[World], Any]:
    def step(w: World) -> Any:
        with context():
            out = [w.call(backward=False) for _ in range(2)]
        return [str(o) if torch.is_inference(o) else o for o in out if isinstance(o, torch.Tensor)]

    return step


def called_in_a_thread(w: World) -> Any:
    out: list[Any] = []
    thread = threading.Thread(target=lambda: out.extend(_tried(w.call) for _ in range(2)))
    thread.start()
    thread.join()
    return out


def called_through_functional_call(w: World) -> Any:
    zeros = {name: torch.zeros_like(p) for name, p in w.net.named_parameters()}
    return torch.func.functional_call(w.net, zeros, (w.input(w.net),))


def trained(w: World) -> Any:
    optimizer = torch.optim.SGD(w.net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        w.call()
        optimizer.step()
    return optimizer.state_dict()


def weight_changed_in_place(w: World) -> None:
    with torch.no_grad():
        w.linear().weight.mul_(1.5)


def weight_replaced(w: World) -> None:
    w.linear().weight = nn.Parameter(torch.full((3, 3), 0.5))


def data_replaced(w: World) -> None:
    w.linear().weight.data = torch.eye(3, dtype=w.linear().weight.dtype)


def another_scale(w: World) -> None:
    w.net.scale = 3.0 if isinstance(w.net.scale, torch.Tensor) else getattr(w.net, "scale", 1.0) + 0.5


def scale_a_parameter(w: World) -> None:
    w.net.__dict__.pop("scale", None)
    w.net.scale = nn.Parameter(torch.ones(3))


def gradients_gone(w: World) -> None:
    w.net.zero_grad(set_to_none=True)


def gradients_zero(w: World) -> None:
    w.net.zero_grad(set_to_none=False)


STEPS: dict[str, Callable[[World], Any]] = {
    "train": lambda w: w.net.train() is w.net,
    "eval": lambda w: w.net.eval() is w.net,
    "child in eval mode": lambda w: [m.eval() for m in w.net.children()][:0],
    "forward hook": lambda w: w.handles.append(w.net.register_forward_hook(add_one)),
    "first forward hook": lambda w: w.handles.append(w.net.register_forward_hook(add_one, prepend=True)),
    "hook in any case": lambda w: w.handles.append(w.net.register_forward_hook(add_one, always_call=True)),
    "pre-hook": lambda w: w.handles.append(w.net.register_forward_pre_hook(doubles_the_input)),
    "pre-hook with keywords": lambda w: w.handles.append(w.net.register_forward_pre_hook(with_keywords, with_kwargs=True)),
    "backward hook": lambda w: w.handles.append(w.net.register_full_backward_hook(halves_the_gradient)),
    "hook of a child": lambda w: w.handles.append(w.linear().register_forward_hook(add_one)),
    "hook of a parameter": lambda w: w.handles.append(w.linear().weight.register_hook(torch.neg)),
    "hook after accumulation": lambda w: w.handles.append(
        w.linear().weight.register_post_accumulate_grad_hook(lambda p: w.seen.append(p.grad.sum().item()))
    ),
    "weight norm": lambda w: parametrizations.weight_norm(w.linear()) and None,
    "spectral norm": lambda w: parametrizations.spectral_norm(w.linear()) and None,
    "parametrized": lambda w: parametrize.register_parametrization(w.linear(), "weight", Symmetric()) and None,
    "pruned": lambda w: prune.l1_unstructured(w.linear(), "weight", amount=2) and None,
    "prune removed": lambda w: prune.remove(w.linear(), "weight") and None,
    "state loaded": state_loaded,
    "state assigned": lambda w: state_loaded(w, assign=True),
    "double": lambda w: w.net.double() is w.net,
    "float": lambda w: w.net.float() is w.net,
    "bfloat16": lambda w: w.net.bfloat16() is w.net,
    "no parameter requires grad": lambda w: w.net.requires_grad_(False) is w.net,
    "all parameters require grad": lambda w: w.net.requires_grad_() is w.net,
    "one parameter requires no grad": lambda w: w.linear().weight.requires_grad_(False) and None,
    "compiled again": lambda w: w.compile(w.net) is w.net,
    "compiled again with a name": lambda w: w.compile(w.net, name="another") is w.net,
    "forgotten": lambda w: magpy_core.reset(),
    "under no_grad": called_in(torch.no_grad),
    "under inference mode": called_in(torch.inference_mode),
    "under autocast": called_in(lambda: torch.autocast("cpu")),
    "disabled": called_in(magpy_core.disabled),
    **{
        step.__name__.replace("_", " "): step
        for step in (
            last_removed, a_hook_that_removes_itself, parametrizations_removed, cached_parametrizations, class_of_its_own,
            class_and_back, forward_patched, forward_put_back, dict_copied, dict_replaced, child_replaced, child_added,
            child_compiled, wrapped_by_another, called_by_another, deep_copied, replaced_by_its_copy, shallow_copied,
            pickled, saved, plain_again, called_in_a_thread, called_through_functional_call, trained,
            weight_changed_in_place, weight_replaced, data_replaced, another_scale, scale_a_parameter, gradients_gone,
            gradients_zero,
        )
    },
}  # fmt: skip


# -- sequences -----------------------------------------------------------------------------------------------------------


def handled(case: Steps) -> str | None:
    """The first step after which the compiled module differs from the plain one; None where none does."""
    net, *steps = case
    plain, compiled = World(net, False), World(net, True)
    for number, step in enumerate(["calls before all steps", *steps]):
        do = STEPS.get(step, lambda w: None)
        gave = [world.do(do) for world in (plain, compiled)]
        found = differences({"gave": gave[0], **plain.shown()}, {"gave": gave[1], **compiled.shown()})
        if found:
            return f"{', '.join(case)}; after step {number}, {step}: {'; '.join(found[:4])}"
    return None


def drawn(rng: random.Random) -> Steps:
    """A net and three to eight steps."""
    return rng.choice(list(NETS)), *rng.choices(list(STEPS), k=rng.randint(3, 8))


def command(case: Steps) -> str:
    return f"python -m tests.soundness.generators.modules {shlex.join(case)}"


def shortened(case: Steps, line: str) -> str:
    """As few of the steps as still differ, as text."""
    net, *steps = case
    short = (net, *shortest(steps, lambda some: handled((net, *some)) is not None))
    return f"{command(short)}\n\n{handled(short) or line}"


def _pair(net: str, first: str, second: str) -> str | None:
    return handled((net, first, second))


FAMILY = Family.product(_pair, net=NETS, first=STEPS, second=STEPS)


def _command(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        return main(FAMILY)
    if unknown := set(arguments[1:]) - set(STEPS):
        raise SystemExit(f"no steps: {unknown}; there are {list(STEPS)}")
    line = handled(tuple(arguments))
    print(line or "no difference")
    return 1 if line else 0


if __name__ == "__main__":
    raise SystemExit(_command(sys.argv[1:]))
