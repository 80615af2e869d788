"""Report: everything one run of an entrypoint found. Key names: Report, RegionSummary, CaptureSummary, report_schema."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from magpy_core.findings.details import Details
from magpy_core.findings.finding import Finding
from magpy_core.findings.json_form import build
from magpy_core.findings.kernels import TargetReport
from magpy_core.findings.step import StepReport, Verdict, verdict
from magpy_core.findings.why_not import Unused, WhyNot

SCHEMA_VERSION = "1.0"
Numerics = Literal["", "strict", "default"]


@dataclass
class Recompile:
    """One more capture of a region: which value changed (access path), its old and its new value."""

    call: int
    name: str
    old: str
    new: str
    file: str = ""
    line: int = 0


@dataclass
class CaptureSummary:
    """One capture of a region: its number of guards, how long checking them takes, and how often it was replayed."""

    guards: int
    guard_ms: float | None  # median milliseconds of a successful check; None when not measured
    hits: int
    complete: bool
    compile_s: float | None = None


@dataclass
class Compared:
    """A call of compiled code that was compared with eager mode, in ``step`` (from 0). ``apart``: the largest difference of
    an element, as a part of the largest element of its tensor. ``unchecked``: why it could not be compared. ``loss``: in
    eager mode, and ``compiled_loss``, if the call computes one: what its backward pass begins with, or its only number."""

    step: int
    apart: float
    is_difference: bool = False  # more than rounding explains
    unchecked: str = ""
    loss: float | None = None
    compiled_loss: float | None = None


@dataclass
class RegionSummary:
    """One line per region. Times are milliseconds per call (medians); None when not measured."""

    id: str
    kind: str  # "module" | "optimizer" | "function" | "step" (in a training loop or function) | "stretch" (statements)
    name: str
    file: str
    line: int  # 1-based
    calls: int = 0
    captures: int = 0
    complete: bool = False
    graph_breaks: int = 0
    guards: int = 0
    side_effects: int = 0
    host_reads: int = 0  # tensor values that Python waits for in one call (maximum over the captures)
    hits: int = 0
    eager_ms: float | None = None
    compiled_ms: float | None = None
    guard_ms: float | None = None
    compile_s: float | None = None
    captures_after_step_3: int = 0
    speedup_low: float | None = None  # 95% confidence interval of the speedup; None: too few timings
    speedup_high: float | None = None
    entrypoint: str = ""  # the program's name in a report of several programs
    engine: str = "magpy"  # "dynamo": the figures are torch.compile's
    graphs: int = 0  # operator graphs that one call runs (maximum over the captures)
    unused: Unused = ""  # of a compiled run: why compiled code served few calls or none, or not all; empty: it does
    kept: int = 0  # captures whose code an earlier run had compiled
    verified: int = 0  # graphs whose compiled code was compared with eager mode in its first call
    unverified: list[str] = field(default_factory=list)  # why others were not
    wrong: int = 0  # graphs whose compiled code gave another result, so that it is not used
    samples: list[Compared] = field(default_factory=list)  # later calls that were compared, where a run is to be verified
    parts: int = 0  # of its graphs, compiled separately
    parts_compiled: int = 0
    last_line: int = 0  # 1-based, of a region that is a part of a function; 0: it is a whole function or module
    awaited: int = 0  # calls in eager mode while their code was being compiled
    step_share: float | None = None  # percent of an eager step that its calls take, forward and backward
    recompiles: list[Recompile] = field(default_factory=list)
    per_capture: list[CaptureSummary] = field(default_factory=list)

    @property
    def speedup(self) -> float | None:
        return self.eager_ms / self.compiled_ms if self.eager_ms and self.compiled_ms else None

    @property
    def verdict(self) -> Verdict:
        """Of a compiled call, compared with a plain one."""
        return verdict(self.speedup, self.speedup_low, self.speedup_high)

    @property
    def shown_speedup(self) -> float | None:
        """The speedup that all outputs print; None: the difference is not certain."""
        return self.speedup if self.verdict in ("faster", "slower") else None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "speedup": self.speedup, "verdict": self.verdict}

    @staticmethod
    def from_json(data: dict[str, Any]) -> RegionSummary:
        return build(RegionSummary, data)


@dataclass
class Report:
    """The result of one run; ``timings`` are seconds by phase, ``steps`` is the number of steps done.

    ``stopped_after``: the number of steps after which the program was stopped, as requested; None: it was not.
    ``numerics``: of a run that must give eager mode's bits: torch's strict ones, or its default, as it has no others.
    """

    entrypoint: str
    regions: list[RegionSummary] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    step: StepReport | None = None  # of compiled runs
    details: Details | None = None  # on request only
    kernels: TargetReport | None = None  # of runs with a target
    stopped_after: int | None = None
    numerics: Numerics = ""
    why_not: list[WhyNot] = field(default_factory=list)  # once the run has ended: of each region, and of the step
    version: str = SCHEMA_VERSION

    def to_json(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "entrypoint": self.entrypoint,
            "regions": [r.to_json() for r in self.regions],
            "findings": [f.to_json() for f in self.findings],
            "timings": self.timings,
            "steps": self.steps,
            **({"stopped_after": self.stopped_after} if self.stopped_after is not None else {}),
            **({"numerics": self.numerics} if self.numerics else {}),
            **({"step": self.step.to_json()} if self.step is not None else {}),
            **({"why_not": [one.to_json() for one in self.why_not]} if self.why_not else {}),
            **({"details": asdict(self.details)} if self.details is not None else {}),
            **({"kernels": self.kernels.to_json()} if self.kernels is not None else {}),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Report:
        return build(Report, data)


def report_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of ``Report.to_json``, version ``SCHEMA_VERSION``."""
    schema: dict[str, Any] = json.loads(Path(__file__).with_name("report.schema.json").read_text(encoding="utf-8"))
    return schema
