"""The report as JSON, in the form of ``docs/report.schema.json``. Key function: text."""

from __future__ import annotations

import json
import math
from typing import Any

from magpy_core.findings import Report


def text(report: Report) -> str:
    """ASCII only, so that no locale and no lone surrogate in a file name can break the reader."""
    return json.dumps(_finite(report.to_json()), indent=2, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: a measurement that came out as one counts as not measured."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return value
