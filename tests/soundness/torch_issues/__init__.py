"""Programs for which public issues say that torch.compile silently gives wrong results: what MagPy makes of them.

``values.py``, ``dtypes.py``, ``writes.py``, ``gradients.py`` and ``language.py`` have the cases, written anew from what the
issues say. ``python -m tests.soundness.torch_issues`` runs them; ``docs/explanation/torch-issues.md`` lists them.
Key function: cases.
"""

from __future__ import annotations

from tests.soundness.torch_issues import dtypes, gradients, language, values, writes
from tests.soundness.torch_issues.case import CASES, Case

__all__ = ["cases"]


def cases() -> list[Case]:
    assert {dtypes, gradients, language, values, writes}
    return sorted(CASES, key=lambda case: -case.issue)
