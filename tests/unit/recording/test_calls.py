"""Trackers of calls, each alone: which calls into torch are expected, and what a context variable leaves."""

from __future__ import annotations

import collections
import contextvars
import gc
import threading
import time
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.knowledge.modules import Verdict
from magpy_core.recording.ledger import Learned
from magpy_core.recording.outside import Outside
from magpy_core.recording.torch_calls import TorchCalls
from magpy_core.regions.api import region_of
from tests.unit.recording.help import World, site


def torch_calls(world: World) -> TorchCalls:
    return world.build(TorchCalls)


def outside(world: World) -> Outside:
    return world.build(Outside)


@pytest.mark.parametrize(
    ("fn", "codes"),
    [(torch.is_grad_enabled, []), (torch.finfo, []), (torch.set_num_threads, ["MP117"]), (torch.manual_seed, ["MP117"])],
)
def test_a_call_that_the_operator_recorder_missed(fn: Any, codes: list[str]) -> None:
    world = World()
    calls = torch_calls(world)
    calls.expected(None, fn, ())
    assert world.stack.torch == (None, fn)
    calls.missed()
    assert (world.codes, world.stack.torch) == (codes, None)


@pytest.mark.parametrize(
    ("fn", "verdict", "codes"),
    [
        (time.time, Verdict.HOST, ["MP103"]), (open, Verdict.IO, ["MP113"]), (divmod, Verdict.UNKNOWN, ["MP104"]),
        (object.__subclasses__, Verdict.HOST, []),
    ],
)  # fmt: skip
def test_a_host_call(fn: Any, verdict: str, codes: list[str]) -> None:
    world = World()
    outside(world).host_call(None, fn, verdict)
    assert world.codes == codes
    assert world.status == ("refused" if codes else "skipped")


@pytest.mark.parametrize(("reset", "writes"), [(True, 0), (False, 1)])
def test_a_context_variable_that_is_not_left_as_it_was_is_an_effect(reset: bool, writes: int) -> None:
    world, var = World(), contextvars.ContextVar("var", default=1)
    tracker = outside(world)

    def body() -> None:
        tracker.context_variable(var, "set", (2,), None)
        token = var.set(2)
        if reset:
            tracker.context_variable(var, "reset", (token,), None)
            var.reset(token)
        tracker.context_left()

    contextvars.copy_context().run(body)
    assert world.codes == [] and len(world.ledger.context_writes) == writes


def test_a_context_variable_from_outside_is_guarded_until_the_region_sets_it() -> None:
    world, var = World(), contextvars.ContextVar[int]("var")
    world.outside(var)
    tracker = outside(world)

    def body() -> None:
        tracker.context_variable(var, "get", (), None)
        tracker.context_variable(var, "set", (2,), None)
        var.set(2)
        tracker.context_variable(var, "get", (), None)

    contextvars.copy_context().run(body)
    assert [g.partition(" ")[0] for g in world.guards] == ["is"]


LOCK, REENTRANT = threading.Lock(), threading.RLock()


@pytest.mark.parametrize("lock", [LOCK, REENTRANT])
@pytest.mark.parametrize("name", ["acquire", "release", "__enter__", "__exit__"])
def test_a_lock_from_outside_is_taken_once_to_set_something_up(lock: Any, name: str) -> None:
    gc.collect(0)  # it is older than the recording
    learned = Learned()
    for refused in (False, True):
        world = World(learned)
        outside(world).lock_used(site(), lock, name, getattr(lock, name))
        assert world.codes == ["MP115"] and bool(world.journal.skip_reason) is not refused


def test_a_lock_made_inside_is_nobody_elses() -> None:
    world = World()
    gc.collect(0)
    lock = threading.Lock()
    outside(world).lock_used(site(), lock, "acquire", lock.acquire)
    assert world.codes == [] and not world.journal.skip_reason


def test_a_native_default_factory_is_called_outside_of_any_call() -> None:
    """An item read calls it, with no call in progress."""
    held = [1, 2]
    table = collections.defaultdict(held.copy)
    compiled = magpy_core.compile(lambda x, key: x * len(table[key]), backend="eager")
    for key in ("a", "b", "a"):
        assert compiled(torch.ones(1), key).item() == 2.0
    held.append(3)
    assert compiled(torch.ones(1), "c").item() == 3.0 and table["c"] == [1, 2, 3]
    assert "MP901" not in {finding.code for finding in region_of(compiled).findings.values()}
