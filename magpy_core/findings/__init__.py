"""Diagnostics: what MagPy found, where, why, and what to do about it. Imports nothing from the engine."""

from magpy_core.findings.finding import HERE, NO_ACTION, REPRODUCER, Finding, Location, Position, Range, Unsupported, Value
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
from magpy_core.findings.report import CaptureSummary, Compared, Numerics, Recompile, RegionSummary, Report
from magpy_core.findings.step import STEP_KINDS, StepPart, StepReport, StepSample
from magpy_core.findings.why_not import Unused, WhyNot

__all__ = [
    "HERE",
    "NO_ACTION",
    "REGISTRY",
    "REPRODUCER",
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
    "Numerics",
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
    "WhyNot",
    "lookup",
]
