"""Arrays: memory of NumPy arrays and buffers, whose changes have no events. Only arrays that the region creates from plain
numbers are captured.

Key type: Arrays.
"""

from __future__ import annotations

import contextvars
import sys
from dataclasses import field
from typing import Any

from magpy_core.findings import HERE
from magpy_core.knowledge import policy
from magpy_core.monitor.events import MaybeSite
from magpy_core.opgraph.functions import OUTSIDE_ARRAY, OUTSIDE_ARRAY_HINT
from magpy_core.recording.tracker import Tracker
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a


def memory_owner(array: Any) -> Any:
    """The object that owns the memory of an array or a view of one."""
    while True:
        under = array.obj if type(array) is memoryview else getattr(array, "base", None)
        if under is None:
            return array
        array = under


def numpy_errors() -> str:
    """NumPy's settings for division by zero, overflow, ..."""
    return repr(sys.modules["numpy"].geterr())


class Arrays(Tracker):
    """Which memory may be used."""

    _plain: dict[int, Any] = field(default_factory=dict, init=False)  # arrays that the region made from plain numbers, by id
    _shared: dict[int, Any] = field(default_factory=dict, init=False)  # owners of memory shared with tensors, by id

    def memory_read(self, site: MaybeSite, *values: Any) -> bool:
        """Refuse the use of values whose memory can change without events: memory from outside, and memory shared with a
        tensor. Returns whether it refused."""
        for value in values:
            tp, outside = type(value), self.refgraph.node(value) is not None
            if kinds.is_numpy_value(tp):
                self.context.settings.read(site, numpy_errors, (), numpy_errors())
            if not kinds.holds_memory(tp):
                if tp is contextvars.Context or (outside and (tp in kinds.DICT_VIEWS or policy.keeps_state(tp))):
                    self.journal.refuse(
                        "MP104",
                        f"{HERE} reads {a_type(value)} that existed before: its state is in C, and MagPy can't check it.",
                        hint="Read the needed data outside the region, and pass it in.",
                        site=site,
                    )
                    return True
                continue
            if self.context.array_values.refuse(value):
                return True
            if outside and tp.__module__ == "numpy":
                self.refuse_outside(site)
                return True
            if outside or (self._shared and id(memory_owner(value)) in self._shared):
                where = "that existed before" if outside else "that shares its memory with a tensor"
                self.journal.refuse(
                    "MP104",
                    f"{HERE} uses the data of {a_type(value)} {where}: guards can't check it.",
                    hint="Keep the data in a tensor or a list, or compute with it outside the region.",
                    site=site,
                )
                return True
        return False

    def refuse_outside(self, site: MaybeSite) -> None:
        """Refuse the use of an array from outside, unless it, or the call that returned it, has already been refused."""
        if not self.journal.graph_incomplete:
            self.journal.refuse_call("MP105", OUTSIDE_ARRAY, hint=OUTSIDE_ARRAY_HINT, site=site)

    def is_plain_array(self, value: Any) -> bool:
        """Whether this is a NumPy array that the region made from plain numbers, or a view of one."""
        if id(value) in self._plain:
            return True
        if not self._plain or not kinds.holds_memory(type(value)) or id(value) in self.refgraph.nodes:
            return False
        if id(memory_owner(value)) not in self._plain:
            return False
        self._plain[id(value)] = value
        return True

    def mark_shared(self, array: Any) -> None:
        """A tensor and an array of the region share memory: arrays with that memory must not be used any more."""
        owner = memory_owner(array)
        self._shared[id(owner)] = owner
        self._plain = {k: v for k, v in self._plain.items() if memory_owner(v) is not owner}

    def keep(self, result: Any) -> None:
        """The result of a NumPy function of plain values is plain too."""
        for value in result if is_a(result, (tuple, list)) else (result,):
            if kinds.holds_memory(type(value)) and type(value).__name__ == "ndarray":
                self._plain[id(value)] = value

    def operator_result(self, operands: tuple[Any, ...], result: Any) -> None:
        """The result of an operator on plain arrays and numbers is a plain array too."""
        plain = [self.is_plain_array(v) for v in operands]
        if any(plain) and all(known or kinds.kind_of(v) == kinds.SCALAR for known, v in zip(plain, operands, strict=True)):
            self.keep(result)
