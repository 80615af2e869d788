"""Torch's strict numerics, of which torch 2.13 knows nothing: they are passed where the version has them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch._inductor as inductor

from magpy_core._compat.torch.inductor_options import strict_numerics
from magpy_core.backends.tuning import Tuning
from magpy_core.regions.session import Session

HAS_THEM = hasattr(inductor.config, "numerics")


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inductor, "config", SimpleNamespace(numerics="default"))


def test_a_version_that_has_them_gets_them(newer: None) -> None:
    assert strict_numerics() == {"numerics": "strict"}
    tuning = Tuning("max", (("max_autotune", False),)).strictly()
    assert tuning.options == (("numerics", "strict"), ("max_autotune", False)) and tuning.is_strict
    assert tuning.strictly() == tuning
    chosen = Tuning(options=(("numerics", "default"),))
    assert chosen.strictly() == chosen and not chosen.is_strict, "the user's own comes first"


@pytest.mark.skipif(HAS_THEM, reason="for a version of torch without them")
def test_another_version_is_left_as_it_is() -> None:
    assert strict_numerics() == {} and Tuning().strictly() == Tuning()


def test_only_a_run_that_must_give_the_same_bits_uses_them(newer: None) -> None:
    strict, usual = (Session(mode="compiled", verify=verify) for verify in ("strict", "on"))
    assert (strict.numerics, usual.numerics) == ("strict", "")
    assert dict(strict.options.tuning.options) == {"numerics": "strict"} and not usual.options.tuning.options
    assert Session(mode="compiled", backend="eager", verify="strict").numerics == ""


@pytest.mark.skipif(HAS_THEM, reason="for a version of torch without them")
def test_a_run_says_that_there_are_none() -> None:
    assert Session(mode="compiled", verify="strict").numerics == "default"
