"""Trackers of nodes, each alone: modes that are operations of the graph, and random streams."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from magpy_core.recording.nodes.modes import Modes
from magpy_core.recording.nodes.random_state import RandomState
from tests.unit.recording.help import World


def names(world: World) -> list[str]:
    return [node.target.__name__ for node in world.ledger.ops.graph.nodes]  # type: ignore[union-attr]


def frame(**values: Any) -> Any:
    return SimpleNamespace(f_locals=values, f_code=torch.inference_mode.__enter__.__code__)


def test_inference_mode_is_refused() -> None:
    world = World()
    world.build(Modes).inference_enter(frame(self=torch.inference_mode(True)))
    assert (names(world), world.codes) == ([], ["MP117"])


@pytest.mark.parametrize("left", [True, False])
def test_autocast_reads_what_it_was_not_told(left: bool) -> None:
    world = World()
    modes = world.build(Modes)
    context = torch.autocast("cpu", dtype=torch.bfloat16)
    modes.autocast_enter(frame(self=context))
    if left:
        modes.autocast_exit(frame(self=context))
    modes.left_open()
    assert [guard for guard in world.guards if guard.startswith("eq torch's ")] == world.guards
    assert len(world.guards) == 2
    assert names(world) == ["_enter_autocast", "_exit_autocast"][: 1 + left]
    assert world.codes == ([] if left else ["MP117"])


@pytest.mark.parametrize(("depth", "codes"), [(0, ["MP116"]), (1, [])])
def test_random_streams(depth: int, codes: list[str]) -> None:
    world = World()
    world.ledger.ops.op_depth = depth
    world.build(RandomState).call(None, torch.manual_seed)
    assert world.codes == codes
    assert world.journal.graph_incomplete is bool(codes)
