"""Which calls of compiled code are compared with eager mode, and what they have shown. Key types: Plan, Sample."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from magpy_core.limits import LIMITS
from magpy_core.verification.first_call import Verdict
from magpy_core.verification.origin import FirstDifference

_BISECT, _ORIGIN = "bisect:", "origin:"


@dataclass(frozen=True)
class Plan:
    """``first``: the call that newly compiled code would serve first. ``every``: one call in so many, for the whole run; 0:
    no other. ``strict``: the results must be the same bit by bit; what rounding explains is a difference, too. ``folder``:
    where a file is to be written that reproduces a difference; empty: none is. ``first_difference``: each call is compared
    only to find the first that differs by as little as a bit; its code goes on serving calls."""

    first: bool = True
    every: int = 0
    strict: bool = False
    folder: str = ""
    first_difference: FirstDifference | None = None

    @property
    def compares_recordings(self) -> bool:
        """Whether what was recorded is compared with a call of the program's, which then runs in eager mode."""
        return self.every > 0 and self.first_difference is None

    @staticmethod
    def parse(text: str) -> Plan:
        """``first``, unless the environment says otherwise (``MAGPY_VERIFY=0``); ``off``; ``on``; ``strict``; ``bisect:``
        and a folder; ``origin:``, a step, seconds and a folder, with colons between them, for ``first_difference``; or a
        number: one call in so many. Raises ValueError for anything else."""
        if text == "first":
            return Plan(first=os.environ.get("MAGPY_VERIFY") != "0")
        if text.startswith(_ORIGIN):
            after, seconds, folder = text.removeprefix(_ORIGIN).split(":", 2)
            looked = FirstDifference(folder, int(after), float(seconds))
            return replace(Plan.parse("first"), every=1, first_difference=looked)
        if text == "off":
            return NOTHING
        if text.startswith(_BISECT):
            return Plan(every=1, folder=text.removeprefix(_BISECT))
        if text in ("on", "strict"):
            return Plan(every=LIMITS.verify_every, strict=text == "strict")
        if (every := int(text)) < 1:
            raise ValueError(text)
        return Plan(every=every)


NOTHING = Plan(first=False)


@dataclass(frozen=True)
class Sample:
    """One of the calls that were compared: of segment ``segment``, in a step of the program (from 0)."""

    step: int
    segment: int
    verdict: Verdict
