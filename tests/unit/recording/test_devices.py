"""What optimizers, autocast and programs ask of a CUDA device: on a build for CUDA, steps are captured as on the CPU's.

The build is a stand-in (`tests/unit/cuda_build.py`): tensors stay on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any
from unittest import mock

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import magpy_core
from magpy_core.recording.calls.devices import Devices
from magpy_core.regions.api import region_of
from tests.unit.cuda_build import CudaBuild, cuda_build
from tests.unit.recording.help import World, site

streams_answer = pytest.mark.skipif(not hasattr(torch.Stream, "is_capturing"), reason="this torch's streams don't tell")


@pytest.fixture
def build() -> Iterator[CudaBuild]:
    with cuda_build() as made:
        yield made


def codes(compiled: Any) -> set[str]:
    return {f.code for f in region_of(compiled).findings.values() if f.code.startswith(("MP1", "MP9"))}


def _step(kind: str, **options: Any) -> tuple[Callable[[], torch.Tensor], torch.nn.Parameter]:
    weight = torch.nn.Parameter(torch.arange(3.0))
    optimizer = getattr(torch.optim, kind)([weight], lr=0.1, **options)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, weight


@pytest.mark.parametrize("foreach", [False, True], ids=["single", "foreach"])
@pytest.mark.parametrize("kind", ["Adam", "AdamW", "RMSprop", "NAdam", "Adamax", "Adadelta", "Adagrad", "SGD"])
def test_an_optimizer_step_is_captured(build: CudaBuild, kind: str, foreach: bool) -> None:
    """Most optimizers ask first whether a CUDA graph is being recorded."""
    plain, expected = _step(kind, foreach=foreach)
    step, weight = _step(kind, foreach=foreach)
    compiled = magpy_core.compile(step, backend="eager", wait=True)
    for _ in range(5):
        assert torch.equal(compiled(), plain())
    assert torch.equal(weight, expected)
    assert region_of(compiled).hits >= 2 and not codes(compiled)


def test_the_question_is_asked_again(build: CudaBuild) -> None:
    """What was captured outside of a CUDA graph does not serve inside, where an optimizer may raise."""

    def asks(x: torch.Tensor) -> torch.Tensor:
        return x * 3 if torch.cuda.is_current_stream_capturing() else x * 2

    compiled = magpy_core.compile(asks, backend="eager", wait=True)
    for _ in range(3):
        assert compiled(torch.ones(1)).item() == 2
    assert region_of(compiled).hits == 2
    build.now(capturing=True)
    assert compiled(torch.ones(1)).item() == 3
    build.now(capturing=False)
    assert compiled(torch.ones(1)).item() == 2


@streams_answer
def test_the_current_stream_is_asked(build: CudaBuild) -> None:
    def asks(x: torch.Tensor) -> torch.Tensor:
        return x * 3 if torch.accelerator.current_stream().is_capturing() else x * 2

    compiled = magpy_core.compile(asks, backend="eager", wait=True)
    for _ in range(3):
        assert compiled(torch.ones(1)).item() == 2
    assert region_of(compiled).hits == 2
    build.now(capturing=True)  # the guard asks for the current stream, whichever it is
    before = region_of(compiled).hits
    compiled(torch.ones(1))
    assert region_of(compiled).hits == before


def test_another_stream_is_another_capture(build: CudaBuild) -> None:
    def number(x: torch.Tensor) -> torch.Tensor:
        return x + torch.accelerator.current_stream().stream_id

    compiled = magpy_core.compile(number, backend="eager", wait=True)
    for _ in range(3):
        assert compiled(torch.ones(1)).item() == 1
    assert region_of(compiled).hits == 2
    build.now(stream=torch.Stream(stream_id=7, device_index=0, device_type=0))
    assert compiled(torch.ones(1)).item() == 8


def test_a_stream_that_leaves_is_refused(build: CudaBuild) -> None:
    def leaves(x: torch.Tensor) -> Any:
        return x * 2, torch.accelerator.current_stream()

    compiled = magpy_core.compile(leaves, backend="eager", wait=True)
    for _ in range(3):
        assert compiled(torch.ones(1))[0].item() == 2
    assert region_of(compiled).hits == 0 and codes(compiled)


def test_the_current_device_is_guarded(build: CudaBuild) -> None:
    def index(x: torch.Tensor) -> torch.Tensor:
        return x + torch.cuda.current_device()

    compiled = magpy_core.compile(index, backend="eager", wait=True)
    for _ in range(3):
        assert compiled(torch.ones(1)).item() == 1
    assert region_of(compiled).hits == 2
    build.now(index=3)
    assert compiled(torch.ones(1)).item() == 4


@pytest.mark.parametrize(
    "ask",
    [
        lambda: torch.cuda.get_device_capability()[0],
        lambda: len(torch.cuda.get_device_name()),
        lambda: torch.cuda.get_device_properties(0).multi_processor_count,
        lambda: int(torch.cuda.is_bf16_supported()),
        lambda: torch.cuda.device_count() * torch.cuda.is_available(),
    ],
    ids=["capability", "name", "multiprocessors", "bfloat16", "count"],
)
def test_what_a_device_is(build: CudaBuild, ask: Callable[[], int]) -> None:
    def asks(x: torch.Tensor) -> torch.Tensor:
        return x + ask()

    compiled = magpy_core.compile(asks, backend="eager", wait=True)
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(1)), torch.ones(1) + ask())
    assert region_of(compiled).hits == 2 and not codes(compiled)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_for_the_device(build: CudaBuild, dtype: torch.dtype) -> None:
    """It asks whether the device has bfloat16."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", dtype=dtype):
            return x * 2

    compiled = magpy_core.compile(forward, backend="eager", wait=True)
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
    assert region_of(compiled).hits == 2 and not codes(compiled)


@pytest.mark.parametrize("select", [torch.cuda.device, torch.cuda._DeviceGuard, torch.accelerator.device_index])
def test_selecting_the_current_device_changes_nothing(build: CudaBuild, select: Callable[[int], Any]) -> None:
    def selects(x: torch.Tensor) -> torch.Tensor:
        with select(0):
            return x * 2

    compiled = magpy_core.compile(selects, backend="eager", wait=True)
    for _ in range(3):
        assert compiled(torch.ones(1)).item() == 2
    assert region_of(compiled).hits == 2 and not codes(compiled)
    build.now(index=3)  # now it selects another one
    hits = region_of(compiled).hits
    assert compiled(torch.ones(1)).item() == 2
    assert region_of(compiled).hits == hits and "MP117" in codes(compiled)


@pytest.mark.parametrize("select", [torch.cuda.device, torch.accelerator.device_index])
def test_selecting_another_device_is_refused(build: CudaBuild, select: Callable[[int], Any]) -> None:
    def selects(x: torch.Tensor) -> torch.Tensor:
        with select(1):
            return x * build.index

    compiled = magpy_core.compile(selects, backend="eager", wait=True)
    for _ in range(3):
        assert compiled(torch.ones(1)).item() == 1
    assert region_of(compiled).hits == 0 and codes(compiled) == {"MP117"}
    assert build.index == 0


def test_selecting_no_device_depends_on_none(build: CudaBuild) -> None:
    def selects(x: torch.Tensor) -> torch.Tensor:
        with torch.cuda.device_of(x):  # on the CPU
            return x * 2

    compiled = magpy_core.compile(selects, backend="eager", wait=True)
    for index in (0, 1, 0):
        build.now(index=index)
        assert compiled(torch.ones(1)).item() == 2
    assert region_of(compiled).hits == 2 and not codes(compiled)


def _checkpointed(**options: Any) -> tuple[Callable[[torch.Tensor], torch.Tensor], torch.nn.Parameter]:
    torch.manual_seed(1)
    blocks = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5)) for _ in range(2))
    optimizer = torch.optim.SGD(blocks.parameters(), lr=0.1)

    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        for block in blocks:
            x = x + checkpoint(block, x, use_reentrant=False, **options)
        loss = x.square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, next(blocks.parameters())


@pytest.mark.parametrize("current", [0, 1], ids=["current device", "another device"])
def test_a_checkpoint_keeps_the_state_of_the_device(build: CudaBuild, current: int) -> None:
    """It selects the device of its tensors for a moment, and asks for the state of its random stream."""
    build.now(index=current)
    plain, expected = _checkpointed()
    step, weight = _checkpointed()
    compiled = magpy_core.compile(step, backend="eager", wait=True)
    asked = mock.Mock(wraps=torch.cuda.get_rng_state)
    for seed in range(5):
        results = []
        for called in (plain, compiled):
            torch.manual_seed(seed)
            with mock.patch.object(torch.cuda, "get_rng_state", asked) if called is plain else nullcontext():
                results.append(called(torch.full((4, 3), float(seed))))
        assert torch.equal(*results) and build.index == current
    assert asked.call_count >= 10, "the stand-in was not asked for the state"
    assert torch.equal(weight, expected)
    assert region_of(compiled).hits >= 3 and not codes(compiled)


def test_the_random_state_of_a_device_is_refused_elsewhere(build: CudaBuild) -> None:
    """Also in a checkpointed function, which is the program's code."""

    def state(x: torch.Tensor) -> torch.Tensor:
        return x + torch.cuda.get_rng_state()[0]

    def inside(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(state, x, use_reentrant=False)

    for function in (state, inside):
        compiled = magpy_core.compile(function, backend="eager", wait=True)
        for seed in range(3):
            build.generator.manual_seed(seed)
            assert torch.equal(compiled(torch.ones(1)), function(torch.ones(1)))
        assert region_of(compiled).hits == 0 and codes(compiled)


# -- the tracker alone ---------------------------------------------------------------------------------------------------


def _answered(world: World, devices: Devices, fn: Any, args: tuple[Any, ...], result: Any) -> bool:
    """A call that returns ``result``; whether it is a question about a device."""
    at = site()
    world.stack.enter(at, None, None)
    asks = devices.asks(at, fn, args)
    call = world.stack.leave(at)
    if asks:
        assert call is not None and call.receive is not None and call.receive(result) is result
    return asks


@streams_answer
def test_questions_are_guarded_by_asking_again(build: CudaBuild) -> None:
    world, stream = World(), torch.Stream(device="cpu")
    devices = world.build(Devices)
    assert _answered(world, devices, torch._C._accelerator_getStream, (0,), stream)
    assert _answered(world, devices, stream.is_capturing, (), False)
    assert world.guards == ["eq torch's current_stream_number(0)", "eq torch's in_cuda_graph()"]


@streams_answer
def test_other_calls_are_no_questions(build: CudaBuild) -> None:
    world, stream = World(), torch.Stream(device="cpu")
    devices = world.build(Devices)
    assert not _answered(world, devices, stream.is_capturing, (), False), "it is not the current stream"
    assert not _answered(world, devices, stream.query, (), True)
    assert not _answered(world, devices, torch._C._cuda_getDeviceCount, (), 1)
    assert _answered(world, devices, torch._C._get_device_properties, (0,), object()), "it never changes"
    assert not _answered(world, devices, torch._C._cuda_exchangeDevice, (1,), 0), "it changes the current device"
    assert world.guards == []


def test_the_selected_device_is_guarded(build: CudaBuild) -> None:
    world = World()
    devices = world.build(Devices)
    assert _answered(world, devices, torch._C._cuda_exchangeDevice, (0,), 0)
    assert _answered(world, devices, torch._C._accelerator_exchangeDevice, (0,), 0)
    assert _answered(world, devices, torch._C._cuda_maybeExchangeDevice, (-1,), -1)
    assert world.guards == ["eq torch's cuda_getDevice()", "eq torch's accelerator_getDeviceIndex()"]
