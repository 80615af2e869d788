"""Tracker: a part of a recording that handles values and their reads. Key type: Tracker."""

from __future__ import annotations

from magpy_core.recording.access.group import Access
from magpy_core.recording.basic_tracker import BasicTracker
from magpy_core.recording.basics import Basics
from magpy_core.recording.facts.group import Facts


class Tracker(BasicTracker):
    """Accesses lower trackers through their groups, which are filled after all are created, or through its own fields."""

    basics: Basics
    facts: Facts
    access: Access
