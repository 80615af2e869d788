"""Basics: the group of trackers that know no values. Key type: Basics."""

from __future__ import annotations

from magpy_core.recording.age import Age
from magpy_core.recording.call_stack import CallStack
from magpy_core.recording.decisions import Decisions
from magpy_core.recording.interference import Interference
from magpy_core.recording.numbers import Numbers
from magpy_core.recording.pauses import Pauses


class Basics:
    """The trackers that all other groups use."""

    stack: CallStack
    pauses: Pauses
    interference: Interference
    age: Age
    decisions: Decisions
    numbers: Numbers
