"""Exit, alone: what a region leaves becomes a plan, or is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from magpy_core.recording.exit import Exit
from magpy_core.replay.ir import Const
from tests.unit.recording.help import World, site


def leave(world: World, result: Any, error: BaseException | None = None, active: Any = None) -> Any:
    return world.build(Exit, one_node=SimpleNamespace(active=active)).plan(result, error)


def test_the_result_of_a_region_without_effects() -> None:
    plan = leave(World(), 3)
    assert (plan.result, plan.effects) == (Const(3), [])


def test_what_is_left_open_is_looked_at() -> None:
    world = World()
    leave(world, None)
    names = {name for name, _ in world.calls}
    assert {
        "imports.imports_failed", "output.loggers_changed", "outside.context_left", "outside.settings_left",
        "caches.guard_occupied", "modes.left_open",
    } <= names  # fmt: skip


def test_a_changed_list_is_an_effect() -> None:
    world, values = World(), [1]
    node = world.outside(values)
    world.ledger.refgraph.snapshot(node)
    values.append(2)
    assert len(leave(world, None).effects) == 1


def test_an_exception_runs_again_in_plain_python() -> None:
    world = World()
    plan = leave(world, None, ValueError("no"))
    assert plan.result == Const(None)
    assert (world.codes, world.status) == (["MP307"], "open")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_other_ways_out_are_refused(error: BaseException) -> None:
    world = World()
    assert leave(world, None, error) is None
    assert world.status == "refused"


def test_a_custom_function_that_raised_leaves_no_plan() -> None:
    world = World()
    assert leave(world, None, active=object()) is None
    assert world.status == "skipped"


def test_a_call_into_torch_that_was_never_seen_is_reported() -> None:
    world = World()
    world.stack.torch = (site(), torch.neg)
    leave(world, None)
    assert "torch_calls.missed" in {name for name, _ in world.calls}
