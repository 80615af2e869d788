"""Facts: the group of the trackers that guard values. Key type: Facts."""

from __future__ import annotations

from magpy_core.recording.facts.arrays import Arrays
from magpy_core.recording.facts.classes import Classes
from magpy_core.recording.facts.containers import Contents
from magpy_core.recording.facts.functions import Functions
from magpy_core.recording.facts.ports import FactGroup
from magpy_core.recording.facts.roots import Roots
from magpy_core.recording.facts.settings import Settings
from magpy_core.recording.facts.unseen import Unseen
from magpy_core.recording.facts.values import Values


class Facts(FactGroup):
    """Facts about values, classes, functions and containers from outside: one guard for each fact that is used."""

    roots: Roots
    values: Values
    classes: Classes
    functions: Functions
    contents: Contents
    unseen: Unseen
    settings: Settings
    arrays: Arrays
