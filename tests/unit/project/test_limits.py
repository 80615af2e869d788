"""The table of limits."""

from __future__ import annotations

from pathlib import Path

import magpy_core
from magpy_core.limits import LIMITS


def test_each_limit_has_a_unit_and_a_reason_and_is_used() -> None:
    sources = [path.read_text() for path in Path(magpy_core.__file__).parent.rglob("*.py") if path.name != "limits.py"]
    for name, value, unit, why in LIMITS.rows():
        assert value > 0 and unit and why
        assert any(f"LIMITS.{name}" in source for source in sources), f"{name} decides nothing"
