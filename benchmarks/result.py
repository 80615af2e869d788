"""The result of a benchmark. Key types: Row (one line of the table), Result (rows and raw samples)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """A measured value, its upper limit (None: for information only), and details for the reader."""

    what: str
    value: float
    unit: str  # "x", "%", "ms", "MB" or "s"
    target: float | None = None
    detail: str = ""

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.value <= self.target

    @property
    def verdict(self) -> str:
        return {None: "", True: "met", False: "MISSED"}[self.met]

    def shown(self, number: float | None) -> str:
        if number is None:
            return ""
        formats = {"x": f"{number:.2f}x", "%": f"{number:.2f}%", "ms": f"{number:.0f} ms", "MB": f"{number:.0f} MB"}
        return formats.get(self.unit, f"{number:.2f} s")

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


@dataclass
class Result:
    rows: list[Row] = field(default_factory=list)
    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"rows": [row.to_json() for row in self.rows], "samples": self.samples}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Result:
        rows = [Row(**{k: v for k, v in row.items() if k != "met"}) for row in data["rows"]]
        return Result(rows, data["samples"])
