"""Why compiled code is not replayed as a CUDA graph: MP411."""

from __future__ import annotations

import pytest
import torch

import magpy_core
from magpy_core.backends.cuda_graphs import Replayed
from magpy_core.capture.build import Capture
from magpy_core.regions.api import region_of
from magpy_core.regions.reports.performance import performance_findings


def _found(monkeypatch: pytest.MonkeyPatch, *replayed: Replayed) -> list[str]:
    step = magpy_core.compile(lambda x: x * 2, backend="eager", name="double")
    for _ in range(3):
        step(torch.ones(2))
    monkeypatch.setattr(Capture, "replayed", property(lambda capture: list(replayed)))
    return [found.message for found in performance_findings(region_of(step), 3) if found.code == "MP411"]


def _of(reason: str) -> Replayed:
    return Replayed(lambda inputs: inputs, frozenset(), 0, reason)


def test_the_reason_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _found(monkeypatch, _of("its sizes vary"), _of("its sizes vary"))
    assert found == ["double is not replayed as a CUDA graph: its sizes vary."]


def test_nothing_is_told_where_it_is_replayed_or_no_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    slower = _of("")
    slower.is_slower = True
    assert _found(monkeypatch, _of(""), slower) == []
