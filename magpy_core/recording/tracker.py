"""Tracker: a part of a recording that knows values, and what is read of them. Key type: Tracker."""

from __future__ import annotations

from magpy_core.recording.access.group import Access
from magpy_core.recording.basic_tracker import BasicTracker
from magpy_core.recording.basics import Basics
from magpy_core.recording.facts.group import Facts


class Tracker(BasicTracker):
    """It reaches the trackers below it by their groups, which are filled once all are made, or by fields of its own."""

    basics: Basics
    facts: Facts
    access: Access
