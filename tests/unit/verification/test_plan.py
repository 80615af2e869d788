"""Which calls are compared, how far two runs are apart, and what is kept of that."""

from __future__ import annotations

import math

import pytest
import torch

from magpy_core.limits import LIMITS
from magpy_core.verification import Plan
from magpy_core.verification.difference import Values, apart, difference


def test_what_a_user_may_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAGPY_VERIFY", raising=False)
    assert Plan.parse("first") == Plan() and not Plan.parse("off").first
    assert Plan.parse("on") == Plan(every=LIMITS.verify_every) and Plan.parse("7") == Plan(every=7)
    assert Plan.parse("strict") == Plan(every=LIMITS.verify_every, strict=True)
    for wrong in ("0", "-1", "often", ""):
        with pytest.raises(ValueError):
            Plan.parse(wrong)
    monkeypatch.setenv("MAGPY_VERIFY", "0")
    assert not Plan.parse("first").first and Plan.parse("on").first, "what is asked for comes first"


def test_how_far_two_runs_are_apart() -> None:
    eager = Values({"a": torch.tensor([1.0, -4.0]), "b": 2.0, "c": torch.tensor([3, 4]), "d": None, "e": torch.zeros(2)})
    other = Values({"a": torch.tensor([1.0, -4.1]), "b": 2.0, "c": torch.tensor([3, 4]), "d": None, "e": torch.zeros(2)})
    assert apart(eager, eager) == 0.0
    assert apart(eager, other) == pytest.approx(0.1 / 4)
    assert apart(eager, Values({**eager.named, "c": torch.tensor([3, 5])})) == pytest.approx(1 / 4)
    assert apart(eager, Values({**eager.named, "e": torch.ones(2) * 0.5})) == 0.5, "nothing to compare it with"
    assert apart(eager, Values({**eager.named, "a": torch.tensor([1.0, math.nan])})) == math.inf
    assert apart(eager, Values({**eager.named, "a": torch.zeros(3)})) == 0.0, "is a difference of another kind"


def test_strictly_rounding_explains_nothing() -> None:
    eager = Values({"result 0": torch.tensor([1.0, 2.0])})
    near = Values({"result 0": torch.tensor([1.0, 2.0]) + torch.tensor([0.0, 2.4e-7])})
    assert difference(eager, near, lambda seed: near) is None
    found = difference(eager, near, None)
    assert found is not None and found.what == "result 0" and found.largest
    assert difference(eager, eager, None) is None
    assert difference(Values({"result 0": 1.0}), Values({"result 0": 1.0 + 1e-6}), None) is not None
