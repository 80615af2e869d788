"""What runs under torch.utils.checkpoint keeps no activations in a replay either."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import magpy_core
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import plainly


class Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def inner(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x)).exp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.inner, x, use_reentrant=False).sin()  # type: ignore[union-attr]


def test_activations_are_computed_again() -> None:
    module = Block()
    compiled = magpy_core.compile(module, backend="eager", fullgraph=True)
    counts = []
    for target in (functools.partial(plainly, module), compiled, compiled, compiled):
        y = target(torch.ones(2, 3)).sum()
        with Counting() as counting:
            y.backward()
        counts.append((counting.names.count("tanh"), counting.names.count("sin")))
    assert region_of(compiled).hits == 2
    assert counts == [(1, 0)] * 4


def test_a_function_that_was_replaced_is_called_once_in_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """fx prints `torch.tanh` by its name: in a replay that would be what stands there now, which calls the original."""
    original = torch.tanh

    def doubled(x: torch.Tensor) -> torch.Tensor:
        return original(x) * 2

    module = Block()
    compiled = magpy_core.compile(module, backend="eager")
    x = torch.ones(2, 3)
    for replaced in (doubled, original, doubled, original):
        monkeypatch.setattr(torch, "tanh", replaced)
        assert torch.equal(plainly(module, x), compiled(x))
    assert region_of(compiled).hits == 2


_KEEPING = """
class Kept(torch.autograd.Function):
    @staticmethod
    def forward(*tensors):
        return torch.empty((0,))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

def keeping(**options):
    kept = Kept.apply(torch.empty((0,), requires_grad=True))
    nodes.append(kept.grad_fn)
    return original(**options)
"""


def test_a_custom_function_of_the_checkpoint_itself_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one of them, torch 2.11 keeps a checkpoint's arguments."""
    file, name = torch.utils.checkpoint.__file__, "_get_autocast_kwargs"
    nodes: list[Any] = []
    namespace = {"torch": torch, "nodes": nodes, "original": getattr(torch.utils.checkpoint, name)}
    exec(compile(_KEEPING, file, "exec"), namespace)
    monkeypatch.setattr(torch.utils.checkpoint, name, namespace["keeping"])
    module = Block()
    compiled = magpy_core.compile(module, backend="eager", fullgraph=True)
    x = torch.ones(2, 3)
    for _ in range(3):
        assert torch.equal(plainly(module, x), compiled(x))
    assert region_of(compiled).hits == 2
    assert nodes and None not in nodes
    (capture,) = magpy_core.captures(compiled)
    assert "empty" not in capture.print_readable()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return gradient * 2


def seeded(x: torch.Tensor) -> Any:
    return checkpoint(torch.manual_seed, 3, use_reentrant=False)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (lambda x: checkpoint(torch.tanh, x, use_reentrant=False), None),
        (lambda x: checkpoint(Doubled.apply, x, use_reentrant=False), "MP107"),
        (seeded, "MP116"),
    ],
    ids=["an operation", "a custom function", "a random stream"],
)
def test_what_the_checkpoint_calls_is_the_programs(function: Callable[[torch.Tensor], Any], code: str | None) -> None:
    compiled = magpy_core.compile(function, backend="eager")
    for k in range(3):
        x = torch.full((3,), float(k), requires_grad=True)
        got, expected = compiled(x), plainly(function, x)
        assert torch.equal(got, expected) if isinstance(got, torch.Tensor) else got is expected
    found = [finding.code for finding in region_of(compiled).findings.values()]
    assert region_of(compiled).hits == (2 if code is None else 0)
    assert code is None or code in found


needs_decorator = pytest.mark.skipif(
    inspect.signature(checkpoint).parameters["function"].default is inspect.Parameter.empty,
    reason="this torch's checkpoint is no decorator",
)


@needs_decorator
@pytest.mark.parametrize("preserve", [True, False])
def test_what_checkpoint_decorates_runs_in_eager_mode(preserve: bool) -> None:
    """The backward pass runs it again, with what it changes."""

    class Counted(Block):
        calls = 0

        def inner(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return torch.tanh(self.linear(x)).exp() * self.calls

        decorated = checkpoint(use_reentrant=False, preserve_rng_state=preserve)(inner)  # type: ignore[call-overload]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.decorated(x).sin()

    torch.manual_seed(0)
    module = Counted()
    plain = copy.deepcopy(module)
    compiled = magpy_core.compile(module, backend="eager")
    for k in range(4):
        x = torch.full((2, 3), float(k))
        got, expected = compiled(x), plainly(plain, x)
        got.sum().backward()
        expected.sum().backward()
        assert torch.equal(got, expected) and module.calls == plain.calls == 2 * (k + 1)
        assert torch.equal(module.linear.weight.grad, plain.linear.weight.grad)
    assert "MP107" in {finding.code for finding in region_of(compiled).findings.values()}


def test_a_checkpoint_that_a_library_calls_is_refused() -> None:
    """In a file that is not monitored, no event shows the call."""
    namespace = {"checkpoint": checkpoint}
    file = torch.utils.checkpoint.__file__.replace("checkpoint.py", "_stats.py")
    exec(compile("def kept(function, x): return checkpoint(function, x, use_reentrant=False)", file, "exec"), namespace)
    module, kept = Block(), namespace["kept"]
    compiled = magpy_core.compile(lambda x: kept(module.inner, x).sin(), backend="eager")
    for k in range(3):
        x = torch.full((2, 3), float(k))
        assert torch.equal(compiled(x), plainly(module, x))
    assert region_of(compiled).hits == 0
