"""What `compile` is told of compilers: `mode=` and `options=`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

import magpy_core
from magpy_core._compat.torch import inductor, inductor_options
from magpy_core.backends import fair_share
from magpy_core.backends.tuning import DEFAULT, MODES, Tuning, tuned
from magpy_core.regions.api import region_of
from magpy_core.regions.session import Session
from tests.limits import WITHOUT_SHARES


@pytest.fixture
def given(empty_compiler_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """The options that Inductor was run with, compilation by compilation."""
    counters.clear()
    seen: list[dict[str, Any]] = []
    original = inductor._run

    def run(compile_it: Any, fake_mode: Any, options: dict[str, Any], **patches: Any) -> Any:
        seen.append(options)
        return original(compile_it, fake_mode, options, **patches)

    monkeypatch.setattr(inductor, "_run", run)
    yield seen


def twice(**options: Any) -> Any:
    def region(x: torch.Tensor) -> torch.Tensor:
        return x.sin() * 2

    compiled = magpy_core.compile(region, wait=True, **options)
    x = torch.ones(3)
    assert torch.equal(compiled(x), compiled(x))
    return compiled


def test_modes_and_options_reach_inductor(given: list[dict[str, Any]]) -> None:
    twice()
    twice(mode="max")
    twice(mode="max", options={"max_autotune": False, "epilogue-fusion": False, "cpp.simdlen": 1})
    none, most, own = given
    assert "max_autotune" not in none
    assert most["max_autotune"] is True and most["coordinate_descent_tuning"] is True
    assert (own["max_autotune"], own["epilogue_fusion"], own["cpp.simdlen"]) == (False, False, 1)


def test_they_are_part_of_the_key_of_the_caches(given: list[dict[str, Any]]) -> None:
    for options in ({}, {"mode": "max"}, {"options": {"epilogue_fusion": False}}, {"options": {"cpp.simdlen": 1}}):
        twice(**options)
    assert not counters["aot_autograd"]["autograd_cache_hit"]
    twice(options={"epilogue_fusion": False})
    assert counters["aot_autograd"]["autograd_cache_hit"] == 1
    assert len(given) == 5


def test_quick_compiles_nothing(given: list[dict[str, Any]]) -> None:
    compiled = twice(mode="quick")
    assert not given and region_of(compiled).options.backend == "eager"
    assert region_of(compiled).hits == 1
    assert tuned("aot_eager", "quick") == ("aot_eager", DEFAULT)


def test_a_decorator_takes_them(given: list[dict[str, Any]]) -> None:
    @magpy_core.compile(options={"epilogue_fusion": False}, wait=True)
    def region(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    region(torch.ones(3)), region(torch.ones(3))
    assert given[0]["epilogue_fusion"] is False


@pytest.mark.parametrize("mode", ["fast", "", None, "Max"])
def test_an_unknown_mode(mode: Any) -> None:
    with pytest.raises(ValueError, match="known modes: default, max, quick"):
        magpy_core.compile(lambda x: x, mode=mode)


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"epilog_fusion": True}, ValueError, "Did you mean 'epilogue_fusion'"),
        ({"zzzzzz": True}, ValueError, "list_options"),
        ({"max_autotune": "yes"}, TypeError, "'max_autotune' is str, and must be bool"),
        *(({name: True}, ValueError, "can't be set") for name in inductor_options._REFUSED),
    ],
)
def test_options_that_there_are_not(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        magpy_core.compile(lambda x: x, options=options)


def test_options_are_inductors() -> None:
    for more in ({"backend": "eager"}, {"backend": "aot_eager"}, {"mode": "quick"}):
        with pytest.raises(ValueError, match="options apply to Inductor"):
            magpy_core.compile(lambda x: x, options={"max_autotune": True}, **more)


def test_every_mode_has_values_that_inductor_knows() -> None:
    for mode in MODES:
        values = Tuning(mode).for_inductor() if mode != "quick" else {}
        assert inductor_options.checked(values) == values


def test_what_is_refused_is_known() -> None:
    from torch._inductor import config

    known = config.get_config_copy()
    assert [name for name in inductor_options._REFUSED if name not in known] == []


def test_a_session_keeps_what_the_program_asked_for() -> None:
    session = Session(mode="compiled", compile_mode="max")
    own = region_of(magpy_core.compile(lambda x: x, options={"epilogue_fusion": False}, dynamic=True))
    usual = region_of(magpy_core.compile(lambda x: x))
    session.attach(own)
    session.attach(usual)
    assert own.options.tuning.options == (("epilogue_fusion", False),) and own.options.dynamic is True
    assert usual.options.tuning == Tuning("max") == session.options.tuning
    assert Session(mode="compiled", compile_mode="quick").options.backend == "eager"


@pytest.mark.slow
def test_compiled_beside_the_program_with_them(given: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the forked process has compiled is found by the program, under the same options."""
    monkeypatch.setattr(fair_share, "LIMITS", WITHOUT_SHARES)

    def region(x: torch.Tensor) -> torch.Tensor:
        return x.cos() * 3

    options = {"epilogue_fusion": False}
    compiled = magpy_core.compile(region, options=options, mode="max", wait=False)
    of = region_of(compiled)
    of.options = replace(of.options, on_trial=False)  # so little work does not pay
    end, x = time.monotonic() + 250, torch.ones(3)
    while not (found := magpy_core.captures(compiled)) or not found[0].is_final:
        assert torch.allclose(compiled(x), region(x)) and time.monotonic() < end, region_of(compiled).findings
        time.sleep(0.05)
    assert len(given) == 2, region_of(compiled).findings  # the forks have lists of their own
    assert [options["epilogue_fusion"] for options in given] == [False, False]
    assert "max_autotune" not in given[0] and given[1]["max_autotune"] is True
    assert counters["aot_autograd"]["autograd_cache_hit"] == 2
