"""Finding: one diagnostic with its range, values and call path. Key types: Finding, Location, Range, Unsupported."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from magpy_core.findings.json_form import build
from magpy_core.findings.registry import Severity, lookup


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

    def to_json(self) -> dict[str, Any]:
        return {"start": {**vars(self.start)}, "end": {**vars(self.end)}}


@dataclass(frozen=True, order=True)
class Location:
    """An absolute file path, a range in it, and the function it is in."""

    file: str
    range: Range
    function: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "range": self.range.to_json()}


@dataclass(frozen=True)
class Value:
    """A value involved in a finding: an access path or role, and a bounded repr (never tensor data)."""

    name: str
    repr: str


@dataclass
class Finding:
    """One diagnostic.

    ``path`` is the call path from the region down to ``location`` (outermost first).
    ``count`` is how often one run found it, ``steps`` in how many of the program's steps it held (0: not counted).
    ``cost_ms``, if measured: of a recompile, per occurrence; of anything else, per step of the program.
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
    ranks: tuple[int, ...] = ()
    steps: int = 0
    severity_override: Severity | None = field(default=None, repr=False)

    @property
    def severity(self) -> Severity:
        return self.severity_override or lookup(self.code).severity

    @property
    def name(self) -> str:
        return lookup(self.code).name

    @property
    def key(self) -> tuple[str, str | None, Location, str]:
        """Two findings with the same key are the same finding."""
        return (self.code, self.region, self.location, self.message)

    def repeated(self) -> Finding:
        return replace(self, count=self.count + 1)

    def to_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "name": self.name,
            "severity": self.severity.value,
            "message": self.message,
            "hint": self.hint or " ".join(lookup(self.code).hints[:1]),
            **self.location.to_json(),
            "region": self.region,
            "count": self.count,
            "cost_ms": self.cost_ms,
            "values": [{**vars(v)} for v in self.values],
            "path": [p.to_json() for p in self.path],
            **({"ranks": list(self.ranks)} if self.ranks else {}),
            **({"steps": self.steps} if self.steps else {}),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Finding:
        code = lookup(data["code"])
        severity = Severity(data["severity"])
        return Finding(
            code=data["code"],
            message=data["message"],
            hint=data.get("hint", ""),
            location=build(Location, {name: data[name] for name in ("file", "range", "function") if name in data}),
            region=data.get("region"),
            path=tuple(build(Location, p) for p in data.get("path", ())),
            values=tuple(build(Value, v) for v in data.get("values", ())),
            count=data.get("count", 1),
            cost_ms=data.get("cost_ms"),
            ranks=tuple(data.get("ranks", ())),
            steps=data.get("steps", 0),
            severity_override=None if severity is code.severity else severity,
        )


HERE = "{here}"
"""Stands in the message of Unsupported for the user's current expression, which the raising stage does not know."""


class Unsupported(Exception):
    """Raised by any engine stage that can't continue safely; the runtime reports a Finding and runs plain Python.

    ``location`` is None when the stage does not know the source line; the recorder then fills in the current one.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        location: Location | None = None,
        hint: str = "",
        values: tuple[Value, ...] = (),
        path: tuple[Location, ...] = (),
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.location = location
        self.hint = hint
        self.values = values
        self.path = path
