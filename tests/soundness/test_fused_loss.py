"""Programs whose loss becomes MagPy's operator compute what they compute without it.

The rewriting is forced on the CPU (`MAGPY_FUSED_LOSS=always`), where the operator runs by ATen: what is tested is that the
rewriting is sound through capture, guards, autograd and replay; the kernel itself is tested in `tests/unit/fused`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import magpy_core
from magpy_core.fused import chunks
from magpy_core.regions.api import region_of

WORDS, WIDTH = 40, 16


@pytest.fixture(autouse=True)
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGPY_FUSED_LOSS", "always")
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1)  # chunks of 128 rows


class Model(nn.Module):
    """As in nanoGPT: returns logits and loss, with tied weights."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.body = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = self.head(self.body(self.table(x)))
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1), ignore_index=-1)


class LossOnly(Model):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        _, loss = super().forward(x, y)
        return loss


Step = Callable[[torch.Tensor, torch.Tensor], Any]


def training(model: Any, of_loss: Callable[[torch.Tensor], torch.Tensor] = lambda loss: loss) -> Step:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        _, loss = model(x, y)
        of_loss(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


def accumulating(model: Any) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        total = torch.zeros(())
        for rows, labels in zip(x.chunk(2), y.chunk(2), strict=True):
            loss = model(rows, labels)[1] / 2
            loss.backward()
            total = total + loss.detach()
        optimizer.step()
        return total

    return step


def weighted(model: Any) -> Step:
    """A loss for each token, under a checkpointed body."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        hidden = checkpoint(model.body, model.table(x), use_reentrant=False)
        losses = F.cross_entropy(model.head(hidden).flatten(0, 1), y.flatten(), ignore_index=-1, reduction="none")
        loss = (losses * torch.linspace(0, 1, losses.numel())).sum()
        loss.backward()
        optimizer.step()
        return losses.detach()

    return step


def under_autocast(model: Any) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            _, loss = model(x, y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def of_a_frozen_model(model: Any) -> Step:
    for parameter in model.body.parameters():
        parameter.requires_grad_(False)
    return training(model)


def evaluating(model: Any) -> Step:
    def evaluate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            loss: torch.Tensor = model(x, y)[1]
        return loss

    return evaluate


def hooked(model: Any) -> Step:
    """The gradient of the logits is changed: they have to exist."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        logits = model.head(model.body(model.table(x)))
        logits.register_hook(lambda gradient: gradient * 2)
        loss = F.cross_entropy(logits.view(-1, WORDS), y.view(-1), ignore_index=-1)
        loss.backward()
        optimizer.step()
        return loss

    return step


def checkpointed_head(model: Any) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = checkpoint(lambda x, y: model(x, y)[1], x, y, use_reentrant=False)
        loss.backward()
        optimizer.step()
        return loss

    return step


def batches(n: int = 4) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    made = torch.Generator().manual_seed(3)
    for _ in range(n):
        x, y = (torch.randint(0, WORDS, (4, 200), generator=made) for _ in range(2))
        y[1, 5:9] = -1
        yield x, y


def scaled(model: Any) -> Step:
    return training(model, lambda loss: loss * 1024.0)


FUSED = [training, scaled, accumulating, weighted, under_autocast, of_a_frozen_model, evaluating]
NOT_FUSED = [hooked, checkpointed_head]


def compare(make: Callable[[Any], Step], backend: str, **options: Any) -> Any:
    """Runs the program compiled and plain; returns what was compiled."""
    torch.manual_seed(0)
    model = Model()
    twin = copy.deepcopy(model)
    compiled, plain = magpy_core.compile(make(model), backend=backend, wait=True, **options), make(twin)
    close = {"rtol": 0.02, "atol": 0.02} if make is under_autocast else {"rtol": 1e-4, "atol": 1e-5}
    for x, y in batches():
        got, want = compiled(x, y), plain(x, y)
        torch.testing.assert_close(got, want, **close)
        assert got.requires_grad == want.requires_grad and got.dtype is want.dtype
        for (name, a), b in zip(model.named_parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(a, b, **close, msg=lambda text, name=name: f"{name}: {text}")
            assert (a.grad is None) is (b.grad is None)
            if a.grad is not None and b.grad is not None:
                torch.testing.assert_close(a.grad, b.grad, **close)
    return compiled


def losses_of(compiled: Any) -> int:
    captures = magpy_core.captures(compiled)
    assert captures and captures[0].hits  # an older one has created the state of the optimizer
    return sum(len(capture.fused) for capture in captures)


@pytest.mark.parametrize("make", FUSED, ids=lambda make: make.__name__)
def test_steps_compute_the_same(make: Callable[[Any], Step]) -> None:
    compiled = compare(make, "aot_eager")
    assert losses_of(compiled) == (2 if make is accumulating else 1)
    assert "MP410" in {finding.code for finding in region_of(compiled).findings.values()}


@pytest.mark.parametrize("make", NOT_FUSED, ids=lambda make: make.__name__)
def test_steps_that_need_their_logits_keep_them(make: Callable[[Any], Step]) -> None:
    compiled = compare(make, "aot_eager")
    assert losses_of(compiled) == 0
    assert "MP410" not in {finding.code for finding in region_of(compiled).findings.values()}


@pytest.mark.slow
@pytest.mark.parametrize("make", [training, weighted, under_autocast], ids=lambda make: make.__name__)
def test_steps_compute_the_same_with_inductor(make: Callable[[Any], Step]) -> None:
    compiled = compare(make, "inductor")
    assert losses_of(compiled) == 1
    (code,) = magpy_core.captures(compiled)[0].generated_code
    assert "torch.ops.magpy.linear_cross_entropy" in code


@pytest.mark.slow
def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert losses_of(compare(training, "aot_eager", fused_loss=False)) == 0
    monkeypatch.setenv("MAGPY_FUSED_LOSS", "0")
    assert losses_of(compare(training, "aot_eager")) == 0
    monkeypatch.delenv("MAGPY_FUSED_LOSS")
    assert losses_of(compare(training, "aot_eager")) == 0  # on the CPU


def test_a_model_that_returns_its_loss_alone() -> None:
    """The backward pass runs outside; one capture serves all numbers of rows."""
    torch.manual_seed(0)
    model = LossOnly()
    twin = copy.deepcopy(model)
    magpy_core.compile(model, backend="aot_eager", wait=True, dynamic=True)
    for rows in (3, 5, 2):
        x, y = torch.randint(0, WORDS, (rows, 60)), torch.randint(0, WORDS, (rows, 60))
        for one in (model, twin):
            one.zero_grad()
            (one(x, y) * 3).backward()
        for a, b in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(a.grad, b.grad)
    assert losses_of(model) == 1


def test_a_model_that_returns_its_logits_keeps_them() -> None:
    model = Model()
    magpy_core.compile(model, backend="aot_eager", wait=True)
    for x, y in batches():
        model(x, y)
    assert losses_of(model) == 0


@pytest.mark.parametrize("wrong", [WORDS, -5])
def test_a_target_that_is_no_class_raises_eagers_exception(wrong: int) -> None:
    torch.manual_seed(0)
    model = Model()
    compiled, plain = magpy_core.compile(evaluating(model), backend="aot_eager", wait=True), evaluating(model)
    for x, y in batches():
        compiled(x, y)
    y[0, 0] = wrong
    errors = []
    for call in (compiled, plain):
        with pytest.raises(IndexError) as caught:
            call(x, y)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert losses_of(compiled) == 1


def test_deterministic_algorithms() -> None:
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        assert losses_of(compare(training, "aot_eager")) == 1
    finally:
        torch.use_deterministic_algorithms(before)
