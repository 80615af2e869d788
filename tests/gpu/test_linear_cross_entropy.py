"""The operator for a linear layer and its cross entropy on a CUDA device: Triton's kernel and the library's products.

On the CPU, ATen's operators take the kernel's place.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import magpy_core
from magpy_core.backends import fusing
from magpy_core.fused import operators
from tests.gpu.device import DEVICE, IS_CUDA, needs_cuda

IGNORED = -1


def head(rows: int, width: int, words: int, dtype: torch.dtype, bias: bool = True, first: int = 1) -> tuple[Any, ...]:
    """Every fifth token is ignored, from the ``first`` on."""
    torch.manual_seed(0)
    shapes = ((rows, width), (words, width), (words,))
    hidden, weight, offset = (torch.randn(shape, device=DEVICE).to(dtype).requires_grad_() for shape in shapes)
    target = torch.randint(0, words, (rows,), device=DEVICE)
    target[first::5] = IGNORED
    return hidden, weight, offset if bias else None, target


def results(loss: torch.Tensor, given: tuple[Any, ...]) -> list[torch.Tensor]:
    wanted = [tensor for tensor in given[:3] if tensor is not None]
    factor = torch.linspace(0.5, 1.5, loss.numel(), device=DEVICE).view(loss.shape).to(loss.dtype)
    return [loss, *torch.autograd.grad(loss, wanted, factor)]


def in_float64(given: tuple[Any, ...], reduction: str, smoothing: float) -> list[torch.Tensor]:
    exact = tuple(t if t is None or t is given[3] else t.detach().double().requires_grad_() for t in given)
    loss = F.cross_entropy(
        F.linear(*exact[:3]), exact[3], ignore_index=IGNORED, reduction=reduction, label_smoothing=smoothing
    )
    return results(loss, exact)


def ours(given: tuple[Any, ...], reduction: str, smoothing: float) -> list[torch.Tensor]:
    if reduction == "none":
        return results(operators.LOSSES(*given, IGNORED, smoothing), given)
    wanted = [tensor is not None for tensor in given[:3]]
    return results(operators.SUM(*given, IGNORED, smoothing, reduction == "mean", wanted)[0], given)


def error_of(got: torch.Tensor, want: torch.Tensor) -> float:
    """The norm of the difference, relative to what is wanted unless that is 0. NaN must be where it is wanted."""
    assert torch.equal(got.isnan(), want.isnan()), f"{got} instead of {want}"
    got, want = (each.detach().double().nan_to_num() for each in (got, want))
    size = float(want.norm())
    return float((got - want).norm()) / (size or 1.0)


def check(given: tuple[Any, ...], reduction: str, smoothing: float) -> None:
    allowed = {torch.float64: 1e-12, torch.float32: 5e-3}.get(given[0].dtype, 2e-2)  # float32: TF32, if it is allowed
    pairs = zip(ours(given, reduction, smoothing), in_float64(given, reduction, smoothing), strict=True)
    for i, (got, want) in enumerate(pairs):
        assert (error := error_of(got, want)) < allowed, f"result {i}, smoothing {smoothing}: {error}"


@pytest.mark.parametrize("shape", [(1, 8, 5), (300, 64, 1000), (700, 96, 5001), (5000, 128, 50_257)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_values_and_gradients_are_exact_but_for_rounding(
    reduction: str, dtype: torch.dtype, shape: tuple[int, int, int]
) -> None:
    if dtype is torch.float16 and reduction != "none":
        pytest.skip("a rewritten graph computes the losses of float16 one by one")
    if not IS_CUDA and shape[0] > 1000:
        pytest.skip("it is large for the CPU")
    for bias, smoothing in ((True, 0.0), (False, 0.1)):
        check(head(*shape, dtype, bias), reduction, smoothing)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_every_token_is_ignored(reduction: str) -> None:
    """The mean of nothing is NaN, its gradients are 0."""
    for smoothing in (0.0, 0.1):
        check(head(1, 8, 5, torch.float64, first=0), reduction, smoothing)


@needs_cuda
def test_results_are_the_same_in_every_run() -> None:
    given = head(4000, 128, 20_001, torch.bfloat16)
    first = [each.clone() for each in ours(given, "mean", 0.0)]
    for _ in range(5):
        assert all(torch.equal(a, b) for a, b in zip(first, ours(given, "mean", 0.0), strict=True))


@needs_cuda
def test_the_memory_is_that_of_a_chunk() -> None:
    rows, words = 16_384, 50_257
    given = head(rows, 256, words, torch.bfloat16, bias=False)
    ours(given, "mean", 0.0)  # compiles the kernel, allocates the library's workspace
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    ours(given, "mean", 0.0)
    torch.cuda.synchronize()
    used = torch.cuda.max_memory_allocated() - before
    assert used < rows * words * 2 / 2  # half of the logits alone


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5001, 64)
        self.body = nn.Linear(64, 64)
        self.head = nn.Linear(64, 5001, bias=False)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = self.head(self.body(self.table(x)).relu())
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1), ignore_index=IGNORED)


@needs_cuda
@pytest.mark.parametrize("autocast", [False, True], ids=["float32", "autocast"])
def test_a_whole_step_uses_it(autocast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusing, "LEAST_BYTES", 1)
    torch.manual_seed(0)
    model = Model().to(DEVICE)
    twin = copy.deepcopy(model)

    def training(model: nn.Module) -> Any:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=autocast):
                _, loss = model(x, y)
            loss.backward()
            optimizer.step()
            return loss

        return step

    compiled, plain = magpy_core.compile(training(model), wait=True, fused_loss=True), training(twin)
    for _ in range(3):
        x, y = (torch.randint(0, 5001, (8, 64), device=DEVICE) for _ in range(2))
        torch.testing.assert_close(compiled(x, y), plain(x, y), rtol=1e-2, atol=1e-2)
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)
    (loss,) = magpy_core.captures(compiled)[0].fused
    assert loss.vocabulary == 5001 and loss.dtype is (torch.bfloat16 if autocast else torch.float32)
