"""A global variable that holds an object with a finalizer, such as a progress bar: others are written, it is replaced."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of

X = torch.arange(6.0).reshape(2, 3)


class Bar:
    """Notes when it dies."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __del__(self) -> None:
        self.log.append("dead")


def world(body: str, log: list[str]) -> dict[str, Any]:
    """A module with ``body`` in its function, between two notes in ``log``, and a bar, which is created for each call."""
    namespace: dict[str, Any] = {"torch": torch, "note": log.append, "last": None, "count": 0}
    lines = ["global last, bar, other, count", "last = x + 1", *body.splitlines(), "count += 1", "return last * count"]
    exec("\n    ".join(["def step(x):", *lines]), namespace)
    namespace["space"] = namespace
    return namespace


def run(namespace: dict[str, Any], step: Any, log: list[str]) -> list[Any]:
    results: list[Any] = []
    for i in range(4):
        namespace["bar"] = namespace["other"] = None
        namespace["bar"] = Bar(log)
        log.append(f"call {i}")
        results += [step(X + i), namespace["count"], sorted(key for key in namespace if key != "__builtins__")]
        log.append(f"returned, bar: {type(namespace.get('bar')).__name__}")
    return results


@pytest.mark.parametrize(
    ("body", "is_captured"),
    [
        ("pass", True),
        ("other = bar", True),
        ("other = [bar]", True),
        ("bar = None", False),
        ("del bar", False),
        ("bar = bar", False),
        ("globals()['bar'] = None", False),
        ("globals().pop('bar')", False),
        ("globals().update(bar=None)", False),
        ("globals().__delitem__('bar')", False),
        ("space['bar'] = None", False),
        ("space.pop('bar')", False),
        ("space.update(bar=None)", False),
        ("other = bar\nbar = None", False),
    ],
)
def test_it_dies_when_it_would_in_plain_python(body: str, is_captured: bool) -> None:
    """In a recording, too: a snapshot of the variables must not keep it alive."""
    gc.collect()
    plain_log: list[str] = []
    plain = world(body, plain_log)
    expected = run(plain, plain["step"], plain_log)
    log: list[str] = []
    ours = world(body, log)
    compiled = magpy_core.compile(ours["step"], backend="eager")
    found = run(ours, compiled, log)
    assert log == plain_log
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
    region = region_of(compiled)
    assert region is not None
    if is_captured:
        assert region.hits >= 1 and not region.disabled, region.findings
    else:
        assert region.disabled and not region.captures
        assert "globals()" in body or any("__del__" in finding.message for finding in region.findings.values())
