"""Inductor on a CUDA device: Triton kernels in the generated code, results equal eager's on the same device."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.gpu.device import DEVICE, needs_cuda
from tests.unit.backends.recorder import compile_recorded, guards_hold, record
from tests.unit.backends.test_models import Block, Residual, Scale, record_custom

pytestmark = needs_cuda

CUDA = DEVICE.type


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", ["transformer", "conv-batchnorm", "custom-function"])
def test_layers_equal_eager_on_the_device(name: str, backend: str) -> None:
    torch.manual_seed(0)
    module: nn.Module
    if name == "transformer":
        module, x = Block(), torch.randn(2, 5, 16)
    elif name == "conv-batchnorm":
        module, x = Residual(), torch.randn(2, 3, 6, 6)
    else:
        module, x = nn.Linear(4, 4), torch.randn(3, 4)
    module, x = module.to(CUDA), x.to(CUDA).requires_grad_()
    other, y = copy.deepcopy(module), x.detach().clone().requires_grad_()
    pristine = copy.deepcopy(module.state_dict())
    gm, inputs = record_custom(module, x) if name == "custom-function" else record(module, x)
    module.load_state_dict(pristine)
    compiled = compile_recorded(gm, inputs, backend)
    for _ in range(2):
        for t in (*module.parameters(), *other.parameters(), x, y):
            t.grad = None
        got = compiled.fn(*inputs)[0]
        want = Scale.apply(other(y), 3.0).relu() if name == "custom-function" else other(y)  # type: ignore[no-untyped-call]
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
        assert got.device.type == CUDA and got.stride() == want.stride()
        weights = torch.randn_like(got)
        (got * weights).sum().backward()
        (want * weights).sum().backward()
        for a, b in zip((x, *module.parameters()), (y, *other.parameters()), strict=True):
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-3)
        for key, value in other.state_dict().items():
            torch.testing.assert_close(module.state_dict()[key], value, rtol=1e-4, atol=1e-4)
    if backend == "inductor":
        assert compiled.generated_code is not None
        assert "@triton.jit" in compiled.generated_code
        assert compiled.generated_code.count("def call(") == 2, "forward and backward"


def test_the_kernels_are_found_again_when_inductor_has_them_in_its_cache() -> None:
    for _ in range(2):
        gm, inputs = record(lambda x: torch.tanh(x) * 3, torch.randn(64, device=CUDA))
        compiled = compile_recorded(gm, inputs, "inductor")
        assert compiled.generated_code is not None and "@triton.jit" in compiled.generated_code
        torch.testing.assert_close(compiled.fn(*inputs)[0], torch.tanh(inputs[0]) * 3)


def test_the_same_random_stream_when_asked() -> None:
    x = torch.ones(256, 64, device=CUDA)

    def draw(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.3) + torch.rand_like(x)

    gm, inputs = record(draw, x)
    before = torch.cuda.get_rng_state()
    compiled = compile_recorded(gm, inputs, "inductor", same_random=True)
    assert torch.equal(before, torch.cuda.get_rng_state())
    torch.manual_seed(3)
    got = compiled.fn(*inputs)[0]
    torch.manual_seed(3)
    torch.testing.assert_close(got, draw(x))


@pytest.mark.parametrize("foreach", [False, True], ids=["single", "foreach"])
def test_an_adamw_step_with_a_varying_rate_compiles_once(foreach: bool) -> None:
    """Step counts live on the CPU, parameters on the device: the numbers between them must not cost a synchronisation."""
    torch.manual_seed(0)
    ours = [nn.Parameter(torch.randn(s, device=CUDA)) for s in ((64, 3), (5,), ())]
    for p in ours:
        p.grad = torch.randn_like(p)
    optimizer = torch.optim.AdamW(ours, lr=0.01, foreach=foreach)
    optimizer.step()
    theirs = copy.deepcopy(ours)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.grad is not None
        other.grad = mine.grad.clone()
    reference = torch.optim.AdamW(theirs, lr=0.01, foreach=foreach)
    reference.load_state_dict(copy.deepcopy(optimizer.state_dict()))

    def step(rate: float) -> None:
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()

    gm, inputs = record(step, 0.02)  # the recording is the first step
    compiled = compile_recorded(gm, inputs, "inductor")
    position = next(i for i, v in enumerate(inputs) if type(v) is float)
    for i in range(20):
        reference.param_groups[0]["lr"] = 0.02 / (i + 1)
        reference.step()
        if i:
            inputs[position] = 0.02 / (i + 1)
            with torch.cuda.device(0):
                torch.cuda.set_sync_debug_mode("error")
                try:
                    compiled.fn(*inputs)
                finally:
                    torch.cuda.set_sync_debug_mode("default")
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)
    assert compiled.guards == [] and compiled.generated_code is not None and "@triton.jit" in compiled.generated_code


def test_a_dynamic_dimension_on_the_device() -> None:
    weight = nn.Parameter(torch.randn(4, 3, device=CUDA))
    gm, inputs = record(lambda x: F.gelu(F.linear(x, weight)), torch.randn(5, 3, device=CUDA))
    compiled = compile_recorded(gm, inputs, "inductor", dynamic_dims={0: {0}})
    for size in (2, 33, 1000):
        x = torch.randn(size, 3, device=CUDA)
        assert guards_hold(compiled, x, weight)
        torch.testing.assert_close(compiled.fn(x, weight)[0], F.gelu(F.linear(x, weight)), rtol=1e-4, atol=1e-4)
