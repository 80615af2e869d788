"""Finding: one diagnostic with its range, values and call path. Key types: Finding, Location, Range, Unsupported."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Any

from magpy_core.findings.json_form import build
from magpy_core.findings.registry import Severity, lookup
from magpy_core.findings.secrets import redact


@dataclass(frozen=True, order=True)
class Position:
    """A place in a file, 0-based; ``character`` counts Unicode code points in the line."""

    line: int
    character: int


@dataclass(frozen=True, order=True)
class Range:
    """Half-open source range."""

    start: Position
    end: Position


@dataclass(frozen=True, order=True)
class Location:
    """An absolute file path, a range in it, and the function it is in."""

    file: str
    range: Range
    function: str = ""


@dataclass(frozen=True)
class Value:
    """A value involved in a finding: an access path or role, and a bounded repr (never tensor data)."""

    name: str
    repr: str


@dataclass
class Finding:
    """One diagnostic.

    ``path`` is the call path from the region down to ``location`` (outermost first).
    ``count``: how often one run found it; ``steps``: in how many of the program's steps it occurred (0: not counted).
    ``cost_ms``, if measured: per occurrence for a recompile, per step of the program for any other finding.
    ``at_most_ms``, where that is not measured but the time of its region is: what the region takes per step in eager mode,
    more than which no change can save. ``step_ms``: of the measured step that either is a part of.
    ``ranks``: the ranks of a distributed run that report it; empty: all.
    """

    code: str
    message: str
    location: Location
    hint: str = ""
    region: str | None = None
    path: tuple[Location, ...] = ()
    values: tuple[Value, ...] = ()
    count: int = 1
    cost_ms: float | None = None
    at_most_ms: float | None = None
    step_ms: float | None = None
    ranks: tuple[int, ...] = ()
    steps: int = 0
    severity_override: Severity | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.message, self.hint = redact(self.message), redact(self.hint)
        self.values = tuple(Value(value.name, redact(value.repr)) for value in self.values)

    @property
    def severity(self) -> Severity:
        return self.severity_override or lookup(self.code).severity

    @property
    def name(self) -> str:
        return lookup(self.code).name

    @property
    def advice(self) -> str:
        """What to do: the finding's own hint, or the first one on the page of its code."""
        return self.hint or " ".join(lookup(self.code).hints[:1])

    @property
    def is_actionable(self) -> bool:
        """Whether a person would act on it. The others are facts: they are no errors or warnings, and their advice says that
        no action is needed."""
        return self.severity.rank <= Severity.WARNING.rank or not self.advice.startswith(NO_ACTION)

    @property
    def reproducer(self) -> str:
        """The path of a file that shows it without the program; empty if there is none."""
        return next((value.repr for value in self.values if value.name == REPRODUCER), "")

    @property
    def key(self) -> tuple[str, str | None, Location, str]:
        """Two findings with the same key are the same finding."""
        return (self.code, self.region, self.location, self.message)

    def make_fact(self, why: str) -> None:
        """``why`` no action is needed: a clause."""
        advice = self.advice.removeprefix(f"{NO_ACTION}: ")
        self.hint = f"{NO_ACTION}: {why}. {advice[:1].upper()}{advice[1:]}"
        self.severity_override = max(self.severity, Severity.INFORMATION, key=lambda severity: severity.rank)

    def repeated(self) -> Finding:
        return replace(self, count=self.count + 1)

    def to_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "name": self.name,
            "severity": self.severity.value,
            "message": self.message,
            "actionable": self.is_actionable,
            "hint": self.advice,
            **asdict(self.location),
            "region": self.region,
            "count": self.count,
            "cost_ms": self.cost_ms,
            "values": [asdict(v) for v in self.values],
            "path": [asdict(p) for p in self.path],
            **({"at_most_ms": self.at_most_ms} if self.at_most_ms is not None else {}),
            **({"step_ms": self.step_ms} if self.step_ms is not None else {}),
            **({"ranks": list(self.ranks)} if self.ranks else {}),
            **({"steps": self.steps} if self.steps else {}),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Finding:
        severity = Severity(data["severity"])
        override = None if severity is lookup(data["code"]).severity else severity
        # The keys of the location are the finding's own.
        return build(Finding, {**data, "location": data, "severity_override": override})


REPRODUCER = "reproducer"
"""The name of a value that is the path of a file."""

NO_ACTION = "No action needed"
"""How the advice of a fact begins."""

HERE = "{here}"
"""A placeholder in the message of Unsupported for the user's current expression, which the raising stage does not know."""


@dataclass(eq=False, repr=False)
class Unsupported(Exception):
    """Raised by any engine stage that can't continue safely; the runtime reports a Finding and runs in eager mode.

    ``location`` is None when the stage does not know the source line; the recorder then fills in the current one.
    """

    code: str
    message: str
    _: KW_ONLY
    location: Location | None = None
    hint: str = ""
    values: tuple[Value, ...] = ()
    path: tuple[Location, ...] = ()

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"
