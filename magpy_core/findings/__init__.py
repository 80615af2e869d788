"""Diagnostics: what MagPy found, where, why, and what to do about it. Imports nothing from the engine."""

from magpy_core.findings.finding import HERE, NO_ACTION, Finding, Location, Position, Range, Unsupported, Value
from magpy_core.findings.kernels import (
    Kernel,
    KernelCode,
    KernelLine,
    KernelWork,
    LineCost,
    TargetGraph,
    TargetProblem,
    TargetReport,
    Unfused,
)
from magpy_core.findings.registry import REGISTRY, Code, Severity, lookup
from magpy_core.findings.report import CaptureSummary, Compared, Recompile, RegionSummary, Report, Unused
from magpy_core.findings.step import STEP_KINDS, StepPart, StepReport, StepSample

__all__ = [
    "HERE",
    "NO_ACTION",
    "REGISTRY",
    "STEP_KINDS",
    "CaptureSummary",
    "Code",
    "Compared",
    "Finding",
    "Kernel",
    "KernelCode",
    "KernelLine",
    "KernelWork",
    "LineCost",
    "Location",
    "Position",
    "Range",
    "Recompile",
    "RegionSummary",
    "Report",
    "Severity",
    "StepPart",
    "StepReport",
    "StepSample",
    "TargetGraph",
    "TargetProblem",
    "TargetReport",
    "Unfused",
    "Unsupported",
    "Unused",
    "Value",
    "lookup",
]
