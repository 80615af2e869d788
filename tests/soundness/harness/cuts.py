"""Cuts a world's functions into stretches at random places, so that everything is tested with seams everywhere.

Key function: cut_at_random.
"""

from __future__ import annotations

import random
import types
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from unittest import mock

from magpy_core.monitor.positions import code_location, is_user_file
from magpy_core.regions.fragments import fragments
from magpy_core.regions.region import Region
from magpy_core.regions.timing.alternating_calls import AlternatingCalls
from magpy_core.stretches.functions import Line
from tests.soundness.harness.world import World, reachable

_OF_CLASS = type.__dict__["__dict__"].__get__
_SHARE = 0.3  # of the lines
_SHARE_OF_EXPRESSIONS = 0.05
_SHARE_WORTHLESS = 0.08  # of the calls of stretches


def cut_at_random(region: Region, world: World, rng: random.Random) -> list[Region]:
    """From now on, calls of ``region`` go to stretches, of the program's own functions: others are not cut, since recordings
    don't watch all of them. Returns a list that the stretches' regions are added to."""
    added: list[Region] = []
    lines = [
        line
        for code in _codes(world)
        if is_user_file(code.co_filename)
        for line in _expressions(code)
        if rng.random() < (_SHARE if line.span is None else _SHARE_OF_EXPRESSIONS)
    ]
    fragments._functions.add_seams(lines)
    region.policy.close("cut by the test")
    region.policy.cut_into(fragments.Stretches(region, added.append), "")
    return added


def _expressions(code: types.CodeType) -> list[Line]:
    """The lines of a function, and its expressions."""
    found = {Line(code.co_filename, code.co_qualname, line) for _, _, line in code.co_lines() if line is not None}
    for first, last, column, end in code.co_positions():
        if first is not None and last is not None and column is not None and end is not None:
            place = code_location(code, (first, last, column, end))
            span = fragments.span_at(place, is_test=column % 2 == 0)
            found.add(Line(code.co_filename, code.co_qualname, first, span))
    return sorted((one for one in found if one.number > code.co_firstlineno), key=lambda one: (one.number, one.span or ()))


def _codes(world: World) -> list[types.CodeType]:
    found = [value for _, value in reachable(world)]  # by `type`: `isinstance` may run a program's own `__getattribute__`
    functions = [value for value in found if type(value) is types.FunctionType]
    for value in found:
        if issubclass(type(value), type):
            functions += [member for member in _OF_CLASS(value).values() if type(member) is types.FunctionType]
    return list(dict.fromkeys(function.__code__ for function in functions))


@contextmanager
def every_stretch_serves(but_for: random.Random | None = None) -> Iterator[None]:
    """A context in which no stretch is given up because it is small or slow; ``but_for`` a few, at random."""

    def is_worthless(entry: fragments._Entry) -> bool:
        return but_for is not None and but_for.random() < _SHARE_WORTHLESS

    with mock.patch.object(fragments._Entry, "is_worthless", is_worthless), without_trials():
        yield


def without_trials() -> AbstractContextManager[object]:
    """A context in which every call of a region that is cut has stretches: no clock decides."""
    return mock.patch.object(AlternatingCalls, "begin", lambda trial, now, state: True)
