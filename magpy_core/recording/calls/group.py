"""Calls: the group of the trackers of calls. Key type: Calls."""

from __future__ import annotations

from magpy_core.recording.access.ports import CallGroup
from magpy_core.recording.calls.classes import ClassCalls
from magpy_core.recording.calls.containers import ContainerCalls
from magpy_core.recording.calls.devices import Devices
from magpy_core.recording.calls.methods import MethodCalls
from magpy_core.recording.calls.native import NativeCalls
from magpy_core.recording.calls.python import PythonCalls
from magpy_core.recording.calls.rules import Rules


class Calls(CallGroup):
    """Handlers of calls by the kind of callee. ``dispatch`` selects the handler."""

    python: PythonCalls
    native: NativeCalls
    class_calls: ClassCalls
    methods: MethodCalls
    container_calls: ContainerCalls
    rules: Rules
    devices: Devices
