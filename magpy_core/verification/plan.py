"""Which calls of compiled code are compared with eager mode, and what they have shown. Key types: Plan, Sample."""

from __future__ import annotations

import os
from dataclasses import dataclass

from magpy_core.limits import LIMITS
from magpy_core.verification.first_call import Verdict

_BISECT = "bisect:"


@dataclass(frozen=True)
class Plan:
    """``first``: the call that newly compiled code would serve first. ``every``: one call in so many, for the whole run; 0:
    no other. ``strict``: the results must be the same bit by bit; what rounding explains is a difference, too. ``folder``:
    where a file is to be written that reproduces a difference; empty: none is."""

    first: bool = True
    every: int = 0
    strict: bool = False
    folder: str = ""

    @staticmethod
    def parse(text: str) -> Plan:
        """``first``, unless the environment says otherwise (``MAGPY_VERIFY=0``); ``off``; ``on``; ``strict``; ``bisect:``
        and a folder; or a number: one call in so many. Raises ValueError for anything else."""
        if text == "first":
            return Plan(first=os.environ.get("MAGPY_VERIFY") != "0")
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
