"""What is known of the cause of a difference, for a finding. Key type: Cause."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from magpy_core.findings import REPRODUCER, Value

Fault = Literal["", "Inductor", "a decomposition of torch", "MagPy"]
SHOWN = 4


@dataclass(frozen=True)
class Cause:
    """``text``: sentences. ``operations``: those that differ, as far as known; ``largest``: the largest difference of an
    element there; ``fault``: whose mistake it is; ``reproducer``: the path of a Python file that shows it."""

    text: str
    operations: tuple[str, ...] = ()
    largest: float | None = None
    fault: Fault = ""
    reproducer: str = ""

    @property
    def values(self) -> tuple[Value, ...]:
        names = ", ".join(self.operations[:SHOWN]) + (", ..." if len(self.operations) > SHOWN else "")
        shown = {
            "operations": names,
            "largest difference": "" if self.largest is None else f"{self.largest:.3g}",
            "at fault": self.fault,
            REPRODUCER: self.reproducer,
        }
        return tuple(Value(name, text) for name, text in shown.items() if text)

    def encoded(self, most: int) -> bytes:
        """As JSON, in at most so many bytes."""
        fields = {**asdict(self), "operations": list(dict.fromkeys(self.operations))[: SHOWN + 1]}
        while len(data := json.dumps(fields).encode()) > most:
            fields["text"] = fields["text"][: len(fields["text"]) // 2]
        return data

    @staticmethod
    def decoded(data: bytes) -> Cause:
        """Raises ValueError."""
        fields: dict[str, Any] = json.loads(data)
        return Cause(**{**fields, "operations": tuple(fields["operations"])})
