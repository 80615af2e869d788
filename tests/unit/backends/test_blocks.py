"""Models with repeated blocks: each block is compiled once, and results, gradients, buffers and draws are eager's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core._compat.torch import inductor as compat
from magpy_core.backends.blocks import compiling
from magpy_core.limits import LIMITS
from magpy_core.regions.api import region_of

BACKENDS = ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]


@pytest.fixture(autouse=True)
def _small_blocks_repay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "least_work", lambda device: 1)
    monkeypatch.setattr(compiling, "LIMITS", replace(LIMITS, block_saves=1))
    monkeypatch.setattr("magpy_core.backends.stored.key_of", lambda *given, **named: None)  # each test compiles


@pytest.fixture(name="units")
def _units(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of operations of each graph that reaches a compiler."""
    sizes: list[int] = []
    for name in ("aot_eager_compile", "inductor_compile"):
        original = getattr(compat, name)

        def compile_it(graph: Any, *args: Any, original: Any = original, **options: Any) -> Any:
            sizes.append(sum(node.op in ("call_function", "call_method") for node in graph.graph.nodes))
            return original(graph, *args, **options)

        monkeypatch.setattr(compat, name, compile_it)
    return sizes


class Block(nn.Module):
    """A feed-forward block of a dozen operations; what subclasses add comes between its two halves."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def between(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.between(torch.tanh(self.up(self.norm(x))))
        y = self.down(y * torch.sigmoid(y) + 0.5)
        return x + (y.cos() * 0.3 - y.sin()).clamp(-2.0, 2.0)


class Dropped(Block):
    def between(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x, 0.3, self.training)


class Normed(Block):
    """Writes running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.batch = nn.BatchNorm1d(16)

    def between(self, x: torch.Tensor) -> torch.Tensor:
        return self.batch(x)


class InPlace(Block):
    """Writes its own values, the last of them after the sum that the next block takes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(self.norm(x))
        y.mul_(0.5).add_(0.1)
        y = self.down(torch.relu_(y).cos()) + x.sin()
        y += 0.25
        return torch.relu_(y)


class Undifferentiated(Block):
    def between(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            scale = x.abs().mean(-1, keepdim=True)
        return x / (scale + 1.0)


class Cast(Block):
    def between(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return (x @ x.mT @ x).float()


class Viewing(Block):
    """Hands on a view of its last value."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).unsqueeze(0).squeeze(0).view_as(x)


class Stack(nn.Module):
    def __init__(self, block: Callable[[], nn.Module], depth: int = 5) -> None:
        super().__init__()
        self.first, self.blocks, self.head = nn.Linear(8, 8), nn.ModuleList(block() for _ in range(depth)), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> Any:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Hidden(Stack):
    """Returns every block's result as well, twice."""

    def forward(self, x: torch.Tensor) -> Any:
        seen = [x := self.first(x)]
        for block in self.blocks:
            seen.append(x := block(x))
        return self.head(x), *seen, seen[2]


class Tied(Stack):
    """One matrix in all blocks, in the first layer and in the last one."""

    def __init__(self) -> None:
        super().__init__(Block)
        for block in self.blocks:
            block.down.weight = self.blocks[0].down.weight
        self.head = nn.Linear(8, 8)
        self.head.weight = self.first.weight


class Counting(Stack):
    """Writes one buffer in every block: what one has written, the next one reads."""

    def __init__(self) -> None:
        super().__init__(Block)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> Any:
        for block in self.blocks:
            self.count += 1
            x = block(x) + 0.01 * self.count
        return self.head(x)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: Stack(Block), "dropout": lambda: Stack(Dropped), "batch norm": lambda: Stack(Normed),
    "in place": lambda: Stack(InPlace), "no_grad": lambda: Stack(Undifferentiated), "hidden": lambda: Hidden(Block),
    "tied": Tied, "views": lambda: Stack(Viewing),
}  # fmt: skip
WHOLE: dict[str, Callable[[], nn.Module]] = {
    "autocast": lambda: Stack(Cast), "one buffer": Counting,
    "too few": lambda: Stack(Block, 2),
    "different": lambda: nn.Sequential(Block(8), nn.Linear(8, 9), Block(9), nn.Linear(9, 10), Block(10)),
}  # fmt: skip


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    found = {n: t.detach().clone() for n, t in model.state_dict().items()}
    return found | {f"{n}.grad": p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def loss_of(out: Any) -> torch.Tensor:
    return sum(t.square().mean() * i for i, t in enumerate(out if isinstance(out, tuple) else (out,), 1))


def check(make: Callable[[], nn.Module], backend: str, *, calls: int = 1, train: bool = True, **options: Any) -> None:
    torch.manual_seed(0)
    plain = make().train(train)
    model = copy.deepcopy(plain)
    compiled = magpy_core.compile(model, backend=backend, **options)
    for step in range(4):
        batches = [torch.randn(6, 8) for _ in range(calls)]
        for one, module in ((plain, plain), (compiled, model)):
            torch.manual_seed(step)
            results = [one(x) for x in batches]
            sum(loss_of(out) for out in results).backward()
            if module is plain:
                expected = results
        torch.testing.assert_close(results, expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(state(model), state(plain), rtol=1e-4, atol=1e-5)
    assert region_of(compiled).hits


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", MODELS)
def test_blocks_are_compiled_once(name: str, backend: str, units: list[int]) -> None:
    check(MODELS[name], backend, same_random=True)
    assert len(units) <= 4, "what comes before, the block, what comes after; the first or last block may be another"
    assert max(units) < 30


@pytest.mark.parametrize(
    "backend", ["aot_eager", pytest.param("inductor", marks=[pytest.mark.slow, pytest.mark.exhaustive])]
)
@pytest.mark.parametrize("name", WHOLE)
def test_in_doubt_the_graph_is_compiled_whole(name: str, backend: str, units: list[int]) -> None:
    check(WHOLE[name], backend)
    assert len(units) == 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["plain", "batch norm", "in place", "tied"])
def test_several_calls_before_the_backward_pass(name: str, backend: str, units: list[int]) -> None:
    check(MODELS[name], backend, calls=3)
    assert 1 < len(units) <= 4


def test_evaluation(units: list[int]) -> None:
    torch.manual_seed(0)
    model = Stack(Normed).eval()
    compiled, x = magpy_core.compile(model, backend="aot_eager"), torch.randn(6, 8)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            for _ in range(3):
                torch.testing.assert_close(compiled(x), model(x))
        assert region_of(compiled).hits
    assert max(units) < 30


def test_sizes_that_vary(units: list[int]) -> None:
    torch.manual_seed(0)
    model = Stack(Block)
    compiled = magpy_core.compile(model, backend="aot_eager")
    for size in (3, 4, 5, 6, 7):
        x = torch.randn(size, 8)
        torch.testing.assert_close(compiled(x), model(x))
    assert region_of(compiled).hits


def test_what_is_written_between_the_calls_counts() -> None:
    """A hidden value that the program writes before the backward pass is refused by autograd, as in eager mode."""
    torch.manual_seed(0)
    compiled = magpy_core.compile(Hidden(Block), backend="aot_eager")
    for _ in range(4):
        out = compiled(torch.randn(6, 8))
        with torch.no_grad():
            out[3].mul_(2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss_of(out[:1]).backward()
    assert region_of(compiled).hits


def test_each_block_draws_its_own_numbers() -> None:
    class Ones(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.dropout(x, 0.5).cos().sin().cos().sin().cos().sin().cos().sin().cos()

    compiled = magpy_core.compile(nn.Sequential(*(Ones() for _ in range(4))), backend="aot_eager")
    results = [compiled(torch.ones(64)) for _ in range(4)]
    assert region_of(compiled).hits
    assert len({tuple(r.tolist()) for r in results}) == 4
    assert all(len(set(r.tolist())) > 2 for r in results), "one mask for all blocks would give two values"


def test_a_failing_unit_leaves_the_whole_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    original, sizes = compat.aot_eager_compile, list[int]()

    def compile_it(graph: Any, *args: Any) -> Any:
        sizes.append(len(graph.graph.nodes))
        if len(sizes) == 2:
            raise RuntimeError("of the test")
        return original(graph, *args)

    monkeypatch.setattr(compat, "aot_eager_compile", compile_it)
    check(MODELS["plain"], "aot_eager")
    assert len(sizes) == 3 and sizes[2] > sum(sizes[:2])
