"""Why a region is not fully compiled, as one value. Key types: WhyNot, Reason, Unused.

``explanation.py`` derives it from a report; nothing else does.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from magpy_core.findings.json_form import build

Unused = Literal[
    "",
    "called once",  # MagPy records the second call at the earliest
    "budget",  # the program can't afford a recording yet
    "surroundings",  # other code around it would see MagPy's operations
    "not recorded",  # each time, another thread was recording, or the module was lazy
    "refused",  # the findings say why
    "cut",  # its stretches are regions
    "slower",
    "slower before",  # in the last run of the command, so it was not compiled
    "again",  # being compiled; the next run gives the compiler more time
    "compiling",
    "no core",  # being compiled, with hardly any time on a core
    "queued",  # other code is being compiled
    "costly",  # compiling it would take more time than its code saves
    "not loaded",  # the program can't afford to load its code yet
    "not served",  # no call fitted
    "late",  # it was ready for the last calls only
    "small",  # a stretch of so few operations that checking its guards takes longer
    "replaced",  # a stretch that was cut once more: smaller ones take its place
    "inside",  # what it calls, a model or another optimizer, is a region in its place
    "missed",  # it served most calls, but many others fitted no capture
]
"""Why compiled code of a region served few calls or none, or not all of them."""

Reason = Literal[
    Unused,
    "not called",
    "breaks",  # its graph is cut
    "limit",  # it was captured too often
    "closed",  # it was captured, and a later call can't be
    "wrong",  # compiled code gave another result
    "uncompiled",  # its graphs run operator by operator
    "failed",  # an error of MagPy's own
    "parted",  # of the training step: only its parts are graphs
]
State = Literal["compiled", "partly", "eager"]
REASONS: tuple[str, ...] = tuple(dict.fromkeys(get_args(Reason)))


@dataclass(frozen=True)
class WhyNot:
    """Of one region, by its id; or of the training step as a whole, if ``region`` is empty.

    ``state``: what its calls are once nothing changes any more. ``reason``: empty if it is compiled. ``why``: a sentence
    for readers who know only their program. ``cause``: the message of the finding ``code``, about ``value``, at ``file``
    and the 1-based ``line``; empty and 0 if no finding is about it. ``share``: percent of an eager step that runs in eager
    mode because of it; None: not measured. ``is_limit``: the share is what it takes at most. ``rewrite``: what to do.
    """

    region: str
    name: str
    state: State
    reason: Reason = ""
    why: str = ""
    code: str = ""
    cause: str = ""
    value: str = ""
    file: str = ""
    line: int = 0
    share: float | None = None
    is_limit: bool = False
    rewrite: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> WhyNot:
        return build(WhyNot, data)
