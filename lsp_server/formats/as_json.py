"""The report as JSON, as described by ``magpy_core/findings/report.schema.json``. Key function: text."""

from __future__ import annotations

import json
import math
from typing import Any

from lsp_server.fingerprint import unique
from lsp_server.formats import engines, kernels_json
from lsp_server.formats.view import View
from magpy_core.findings import Report


def text(report: Report, view: View) -> str:
    """ASCII only, so that neither a locale nor a lone surrogate in a file name can break the reader.

    Each finding gets its fingerprint, by which ``magpy-lsp diff`` matches it in another report.
    """
    data = report.to_json()
    data.pop("details", None)  # only for the HTML page
    if report.kernels is not None:
        data["kernels"] = kernels_json.data(report.kernels, view, ptx=view.ptx)
    if engines.compared(report):
        data["comparison"] = engines.data(report)
    for finding, (_, print_) in zip(data["findings"], unique(report.findings, view.root, view.sources), strict=True):
        finding["fingerprint"] = print_
    if view.began_ns:
        _add_fixes(data["findings"], report, view.began_ns)
    return json.dumps(_finite(data), indent=2, allow_nan=False) + "\n"


def _add_fixes(findings: list[dict[str, Any]], report: Report, began_ns: int) -> None:
    """The quick fixes that an editor offers."""
    from lsp_server.features.fixes.exact import Fixes  # here: it imports the libraries of the language server

    fixes = Fixes(report, began_ns)
    for finding, of in zip(findings, report.findings, strict=True):
        if found := fixes.of(of):
            finding["fixes"] = found


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: such a measurement becomes null, not measured."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return value
