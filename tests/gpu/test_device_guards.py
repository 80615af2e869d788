"""What a region reads of its device is guarded: where tensors are, the current device, what the device can do."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import magpy_core
from tests.gpu.device import DEVICE, IS_CUDA, compiled, needs_cuda, served

_OTHER = torch.device("cpu") if IS_CUDA else torch.device("meta")


def test_where_the_tensors_are() -> None:
    """One region for tensors of the host and of the device: a capture for each, and results on their devices."""

    def scaled(x: torch.Tensor) -> torch.Tensor:
        return (x * 3 if x.is_cuda else x * 2) + torch.ones(4, device=x.device)

    run = compiled(scaled)
    factor = 3 if IS_CUDA else 2
    for _ in range(3):
        x = torch.arange(4.0, device=DEVICE)
        torch.testing.assert_close(run(x), x * factor + 1)
        other = run(torch.arange(4.0, device=_OTHER))
        assert other.device.type == _OTHER.type
        if IS_CUDA:
            torch.testing.assert_close(other, torch.arange(4.0) * 2 + 1)
    assert served(run) >= 2


@needs_cuda
def test_a_module_that_moves_to_the_host_and_back() -> None:
    linear = nn.Linear(8, 8)
    model = nn.Sequential(linear, nn.Tanh()).to(DEVICE)
    compiled(model)
    x = torch.randn(3, 8)
    with torch.no_grad():
        for place in (DEVICE, torch.device("cpu"), DEVICE, torch.device("cpu")):
            model.to(place)
            for _ in range(3):
                found = model(x.to(place))
                assert found.device.type == place.type
                wanted = torch.tanh(nn.functional.linear(x.to(place), linear.weight, linear.bias))
                torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    assert served(model) >= 5


@needs_cuda
def test_what_the_device_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch on the capability: another answer of torch takes the other branch."""

    def chosen(x: torch.Tensor) -> torch.Tensor:
        return x * 10 if torch.cuda.get_device_capability(x.device) >= (8, 0) else x * 20

    run = compiled(chosen)
    x = torch.ones(4, device=DEVICE)
    expected = 10 if torch.cuda.get_device_capability(DEVICE) >= (8, 0) else 20
    for _ in range(3):
        assert run(x).tolist() == [expected] * 4
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (7, 0))
    for _ in range(3):
        assert run(x).tolist() == [20] * 4


@needs_cuda
def test_properties_of_the_device() -> None:
    """Names and sizes that a program computes with."""

    def scaled(x: torch.Tensor) -> torch.Tensor:
        properties = torch.cuda.get_device_properties(x.device)
        return x * properties.multi_processor_count + len(torch.cuda.get_device_name(x.device))

    run = compiled(scaled)
    x = torch.ones(4, device=DEVICE)
    for _ in range(4):
        torch.testing.assert_close(run(x), scaled(x))


def test_free_memory_is_never_a_constant() -> None:
    """What changes from call to call is read anew in each: the region is cut there, or runs plainly."""

    def measured(x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return x + 1, torch.cuda.memory_allocated() if IS_CUDA else len(kept)

    run = compiled(measured)
    kept: list[torch.Tensor] = []
    x = torch.ones(4, device=DEVICE)
    seen = []
    for _ in range(4):
        kept.append(torch.ones(1 << 20, device=DEVICE))
        seen.append(run(x)[1])
    assert len(set(seen)) == 4, seen


@needs_cuda
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there is only one CUDA device")
def test_two_devices() -> None:
    """The current device and the index of tensors: captures of one are not used on the other."""

    def made(x: torch.Tensor) -> torch.Tensor:
        return x * 2 + torch.arange(4.0, device="cuda").to(x.device) + x.device.index

    run = compiled(made)
    for _ in range(3):
        for index in (0, 1):
            x = torch.ones(4, device=f"cuda:{index}")
            with torch.cuda.device(index):
                found = run(x)
            assert found.device == x.device
            torch.testing.assert_close(found, torch.arange(4.0, device=x.device) + 2 + index)
    assert len(magpy_core.captures(run)) >= 2


@needs_cuda
def test_the_default_device() -> None:
    """``torch.set_default_device`` and ``with torch.device``: tensors are made where eager makes them."""

    def made() -> torch.Tensor:
        return torch.ones(3) * 2

    run = compiled(made)
    for _ in range(3):
        with DEVICE:
            assert run().device.type == DEVICE.type
        assert run().device.type == "cpu"


@needs_cuda
def test_settings_of_products() -> None:
    """TF32 changes results: calls with it and without it get their own."""
    settings = torch.backends.cuda.matmul
    before = settings.allow_tf32
    a, b = torch.randn(256, 256, device=DEVICE), torch.randn(256, 256, device=DEVICE)
    run = compiled(lambda a, b: a @ b)
    try:
        for value in (False, True, False, True):
            settings.allow_tf32 = value
            for _ in range(3):
                torch.testing.assert_close(run(a, b), a @ b, rtol=1e-6, atol=1e-5)
    finally:
        settings.allow_tf32 = before
