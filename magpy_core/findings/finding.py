"""Finding: one diagnostic with its range, values and call path. Key types: Finding, Location, Range, Unsupported."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

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
        return {
            "start": {"line": self.start.line, "character": self.start.character},
            "end": {"line": self.end.line, "character": self.end.character},
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Range:
        s, e = data["start"], data["end"]
        return Range(Position(s["line"], s["character"]), Position(e["line"], e["character"]))


@dataclass(frozen=True, order=True)
class Location:
    """An absolute file path, a range in it, and the function it is in."""

    file: str
    range: Range
    function: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"file": self.file, "range": self.range.to_json(), "function": self.function}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Location:
        return Location(data["file"], Range.from_json(data["range"]), data.get("function", ""))


@dataclass(frozen=True)
class Value:
    """A value involved in a finding: an access path or role, and a bounded repr (never tensor data)."""

    name: str
    repr: str

    def to_json(self) -> dict[str, str]:
        return {"name": self.name, "repr": self.repr}


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
            "file": self.location.file,
            "range": self.location.range.to_json(),
            "function": self.location.function,
            "region": self.region,
            "count": self.count,
            "cost_ms": self.cost_ms,
            "values": [v.to_json() for v in self.values],
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
            location=Location(data["file"], Range.from_json(data["range"]), data.get("function", "")),
            region=data.get("region"),
            path=tuple(Location.from_json(p) for p in data.get("path", ())),
            values=tuple(Value(v["name"], v["repr"]) for v in data.get("values", ())),
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
