"""Output, alone: which log records and warnings replay repeats."""

from __future__ import annotations

import logging
import types
import warnings
from typing import Any

import pytest

from magpy_core.recording.output import OutputCalls
from magpy_core.recording.printing import frozen, printable
from tests.unit.recording.help import World, site

LOGGER = logging.getLogger("tests.unit.recording.output")


def frame(function: Any, **names: Any) -> Any:
    return types.SimpleNamespace(f_code=function.__code__, f_locals=names)


def test_a_disabled_level_is_a_guard() -> None:
    world = World()
    LOGGER.setLevel(logging.WARNING)
    world.build(OutputCalls).log_call(frame(logging.Logger.info, self=LOGGER, msg="text", args=(), kwargs={}))
    assert world.ledger.outputs == []
    assert [read.expected for read in world.ledger.refgraph.reads] == [False]


def test_an_enabled_one_is_repeated_with_its_place() -> None:
    world = World()
    LOGGER.setLevel(logging.INFO)
    world.build(OutputCalls).log_call(frame(logging.Logger.info, self=LOGGER, msg="%s", args=(3,), kwargs={}))
    [output] = world.ledger.outputs
    logger, level, message, args, origin = output.payload
    assert (logger, level, message, args) == (LOGGER, logging.INFO, "%s", (3,))
    assert origin[0] == __file__


@pytest.mark.parametrize("options", [{"exc_info": True}, {"extra": {"a": 1}}, {"stack_info": True}])
def test_records_with_more_than_text_are_refused(options: dict[str, Any]) -> None:
    world = World()
    LOGGER.setLevel(logging.INFO)
    world.build(OutputCalls).log_call(frame(logging.Logger.info, self=LOGGER, msg="text", args=(), kwargs=options))
    assert world.codes == ["MP114"]


def test_whether_a_level_is_enabled_is_guarded() -> None:
    world = World()
    LOGGER.setLevel(logging.INFO)
    world.build(OutputCalls).is_enabled_for(frame(logging.Logger.isEnabledFor, self=LOGGER, level=logging.INFO))
    assert [read.expected for read in world.ledger.refgraph.reads] == [True]


def test_a_logger_that_the_region_changes_is_refused() -> None:
    world = World()
    output = world.build(OutputCalls)
    LOGGER.setLevel(logging.INFO)
    output.log_call(frame(logging.Logger.info, self=LOGGER, msg="text", args=(), kwargs={}))
    world.ledger.refgraph.snapshot(world.outside(LOGGER))
    output.loggers_changed()
    assert world.status == "refused"


def test_a_traceback_in_a_record_is_refused() -> None:
    world = World()
    names = {"self": LOGGER, "msg": "text", "args": (), "exc_info": True, "kwargs": {}}
    world.build(OutputCalls).log_call(frame(logging.Logger.exception, **names))
    assert world.codes == ["MP114"]


@pytest.mark.parametrize(
    ("args", "codes"),
    [(("text",), []), ((UserWarning("text"),), []), (("text", UserWarning, 500), ["MP114"]), ((3,), ["MP114"])],
)
def test_a_warning(args: Any, codes: list[str]) -> None:
    world = World()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        world.build(OutputCalls).warn(site(), args, {})
    assert world.codes == codes
    assert len(world.ledger.outputs) == (not codes)


def test_a_warning_that_becomes_an_exception_is_refused() -> None:
    world = World()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        world.build(OutputCalls).warn(site(), ("text",), {})
    assert world.codes == ["MP114"]


def test_warnings_caught_by_the_region_are_refused() -> None:
    world = World()
    output = world.build(OutputCalls)
    output.filters_entered(None)
    output.filter_added(None)
    assert world.status == "open"
    output.warn(site(), ("text",), {})
    output.filters_left(None)
    assert world.codes == ["MP114"]


def test_changed_filters_are_refused() -> None:
    world = World()
    world.build(OutputCalls).filter_added(None)
    assert world.codes == ["MP114"]


@pytest.mark.parametrize(("value", "plain"), [(1, True), ([1, ("a",)], True), ({"a": [None]}, True), (object(), False)])
def test_what_can_be_printed_again(value: Any, plain: bool) -> None:
    assert printable(value) is plain
    if plain:
        assert frozen(value) == value
