"""Which frames are monitored: those of the program, not those of libraries that are one operation. Frames alone."""

from __future__ import annotations

import gc
import re
import types
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.recording import verify
from magpy_core.recording.frames import Frames
from magpy_core.regions.api import region_of
from tests.unit.recording.help import World


def program() -> None:
    """A function of the program's."""


def frames(world: World, importing: bool = False) -> Frames:
    one_node: Any = SimpleNamespace(applied_by_library=lambda frame: False)
    imports: Any = SimpleNamespace(importing=lambda: importing)
    return world.build(Frames, one_node=one_node, imports=imports)


def frame(fn: Any, **values: Any) -> Any:
    code: types.CodeType = fn.__code__
    return SimpleNamespace(f_code=code, f_locals=values)


@pytest.mark.parametrize(
    ("fn", "monitored"),
    [(program, True), (torch.nn.functional.relu, False), (re.compile, False), (verify.verify_trace, False)],
)
def test_whose_frames_are_monitored(fn: Any, monitored: bool) -> None:
    world = World()
    assert frames(world).enter_frame(frame(fn)) is monitored
    assert world.status == "open"


def test_nothing_is_monitored_inside_a_call_that_is_one_node() -> None:
    world = World()
    world.pauses.in_call = True
    assert frames(world).enter_frame(frame(program)) is False


def test_what_an_import_runs_is_not_monitored() -> None:
    world = World()
    assert frames(world, importing=True).enter_frame(frame(program)) is False
    assert world.pauses.code is not None


def test_a_function_that_no_event_named_is_found_and_guarded() -> None:
    gc.collect(0)  # it is older than the recording
    world = World()
    assert frames(world).enter_frame(frame(program))
    assert "is program.__code__" in world.guards
    assert program.__code__ in world.context.functions.known_codes


def test_a_function_that_the_collector_does_not_list_can_not_be_guarded() -> None:
    world = World()
    gc.freeze()
    try:
        assert frames(world).enter_frame(frame(program))
    finally:
        gc.unfreeze()
    assert world.journal.skip_reason is not None and "program" in world.journal.skip_reason


def test_a_method_that_the_collector_does_not_list_is_found_in_its_class() -> None:
    compiled = magpy_core.compile(
        lambda x: x * len([v for v in (x, 1) if isinstance(v, torch.nn.Parameter)]), backend="eager"
    )
    gc.freeze()
    try:
        for _ in range(3):
            compiled(torch.ones(2))
    finally:
        gc.unfreeze()
    assert region_of(compiled).hits == 2
