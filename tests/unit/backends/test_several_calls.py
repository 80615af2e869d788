"""Several calls of a region, or of several regions, before one backward pass: buffers, gradients and errors as in eager."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import plainly

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]


def discriminator(**options: Any) -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, **options), nn.LeakyReLU(0.2), nn.Linear(8, 1))


def images() -> nn.Sequential:
    return nn.Sequential(nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 2, 1, bias=False), nn.BatchNorm2d(2), nn.Tanh())


def instances() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 6), nn.Unflatten(1, (2, 3)), nn.InstanceNorm1d(2, track_running_stats=True))


def spectral() -> nn.Sequential:
    norm = nn.utils.parametrizations.spectral_norm
    return nn.Sequential(norm(nn.Linear(4, 4)), nn.BatchNorm1d(4), norm(nn.Linear(4, 2)))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "batch": discriminator, "cumulative": lambda: discriminator(momentum=None), "images": images, "instances": instances,
    "spectral": spectral, "hook": lambda: nn.utils.spectral_norm(nn.Linear(4, 4)),
}  # fmt: skip


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    found = {n: t.detach().clone() for n, t in model.state_dict().items()}
    return found | {f"{n}.grad": p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def same(one: nn.Module, other: nn.Module) -> None:
    torch.testing.assert_close(state(one), state(other), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("calls", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_calls_before_the_backward_pass(name: str, calls: int, backend: str) -> None:
    torch.manual_seed(0)
    plain = MODELS[name]()
    model = copy.deepcopy(plain)
    compiled = magpy_core.compile(model, backend=backend)
    for step in range(4):
        for net, fn in ((plain, plain), (model, compiled)):
            torch.manual_seed(step)
            net.train(step != 2)
            results = [fn(torch.randn(5, 4)) for _ in range(calls)]
            torch.stack(results).prod(0).sum().backward()
        same(plain, model)
    assert region_of(compiled).hits or name == "cumulative"


@pytest.mark.parametrize("backend", BACKENDS)
def test_interleaved_regions_that_share_a_norm(backend: str) -> None:
    torch.manual_seed(0)
    plain = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4), "norm": nn.BatchNorm1d(4)})
    model = copy.deepcopy(plain)

    def pair(net: nn.ModuleDict) -> tuple[nn.Module, nn.Module]:
        return nn.Sequential(net["a"], net["norm"]), nn.Sequential(net["norm"], net["b"])

    first, second = (magpy_core.compile(part, backend=backend) for part in pair(model))
    for step in range(3):
        for one, two in (pair(plain), (first, second)):
            torch.manual_seed(step)
            x, y = torch.randn(5, 4), torch.randn(5, 4)
            (one(x) * two(y) * one(y) * two(x)).sum().backward()
        same(plain, model)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_plain_call_and_a_compiled_one(backend: str) -> None:
    """What the plain call saves is not modified by the compiled one."""
    torch.manual_seed(0)
    model = discriminator()
    compiled = magpy_core.compile(model, backend=backend)
    for _ in range(3):
        results = plainly(model, torch.randn(5, 4)), compiled(torch.randn(5, 4)), plainly(model, torch.randn(5, 4))
        torch.stack(results).prod(0).sum().backward()
    assert model[1].running_mean._version == nn.BatchNorm1d(8).running_mean._version
    assert region_of(compiled).hits


class Averaged(nn.Module):
    """Autograd saves a buffer that each call writes."""

    def __init__(self, counted: bool) -> None:
        super().__init__()
        self.counted = counted
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("average", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        average = self.average if self.counted else self.average.data
        average.mul_(0.5).add_(x.mean(0), alpha=0.5)
        return x * self.scale * self.average


class AveragedInList(Averaged):
    """The same, by an operation on lists, which writes others in place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.average.mul_(0.5).add_(x.mean(0), alpha=0.5)
        scaled = x * self.scale
        torch._foreach_mul_([scaled], [self.average.expand(5, 4)])
        return scaled


@pytest.mark.parametrize("kind", [Averaged, AveragedInList])
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_of_eager_stays(backend: str, kind: type[Averaged]) -> None:
    compiled = magpy_core.compile(kind(True), backend=backend)
    for _ in range(3):
        one, two = compiled(torch.randn(5, 4)), compiled(torch.randn(5, 4))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            (one * two).sum().backward()
        compiled(torch.randn(5, 4)).sum().backward()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_write_behind_autograd(backend: str) -> None:
    """The backward pass of the first call takes the values the second one has left."""
    plain, model = Averaged(False), Averaged(False)
    compiled = magpy_core.compile(model, backend=backend)
    for step in range(3):
        for fn in (plain, compiled):
            torch.manual_seed(step)
            (fn(torch.randn(5, 4)) * fn(torch.randn(5, 4))).sum().backward()
        same(plain, model)


class Nearest(nn.Module):
    """An assertion (of ``one_hot``) on what is computed from a buffer that is written later on."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("codes", torch.arange(12.0).reshape(3, 4) / 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.lin(x)
        with torch.no_grad():
            hot = nn.functional.one_hot(torch.cdist(h, self.codes).argmin(1), 3).to(h.dtype)
            self.codes.mul_(0.9).add_(hot.t() @ h, alpha=0.1)
        return h * hot.sum(1, keepdim=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_assertions_belong_to_the_forward_pass(backend: str) -> None:
    torch.manual_seed(0)
    plain = Nearest()
    model = copy.deepcopy(plain)
    compiled = magpy_core.compile(model, backend=backend)
    for step in range(4):
        for fn in (plain, compiled):
            torch.manual_seed(step)
            (fn(torch.randn(5, 4)) * fn(torch.randn(5, 4))).sum().backward()
        same(plain, model)
    assert region_of(compiled).hits
