"""When the time that guards take is something to act on: MP402."""

from __future__ import annotations

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of
from magpy_core.regions.reports.performance import performance_findings


@pytest.mark.parametrize(("plain_ms", "is_actionable"), [(0.5, False), (0.15, True)])
def test_costly_guards_of_a_call_that_is_faster_are_a_fact(plain_ms: float, is_actionable: bool) -> None:
    compiled = magpy_core.compile(lambda x: x * 2, backend="eager", name="double", wait=True)
    compiled(torch.ones(2))
    region = region_of(compiled)
    region.times.calls.eager, region.times.calls.compiled, region.times.guard = [plain_ms / 1e3] * 6, [2e-4] * 6, [1e-4] * 6
    (found,) = [finding for finding in performance_findings(region, 3) if finding.code == "MP402"]
    assert found.is_actionable == is_actionable
    assert is_actionable or "faster than eager mode all the same (0.5 ms)" in found.hint
