"""Frames: which frames are monitored. Known frames of libraries have handlers in the trackers; other library code is not
monitored.

Key type: Frames.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any

from magpy_core._compat.cpython.imports import FIND_AND_LOAD, LOADERS
from magpy_core._compat.torch.mode_reads import reads_modes
from magpy_core.findings import HERE, Unsupported
from magpy_core.knowledge import policy
from magpy_core.knowledge.callables import WITH_VERDICT
from magpy_core.knowledge.library_files import OF_DEVICES
from magpy_core.knowledge.modules import Verdict
from magpy_core.monitor.positions import past_own_frames
from magpy_core.monitor.record import is_own_file
from magpy_core.recording import imports, modules, output, uncaptured
from magpy_core.recording.dynamic import code_runs
from magpy_core.recording.libraries import STDLIB_FOLDER, TORCH_FOLDER, is_compiler_wrapper, is_library_file
from magpy_core.recording.nodes import checkpoints, modes, one_node, parallel, random_state, scripts
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import lookup
from magpy_core.refgraph.kinds import is_a, is_numpy_value

_DISABLED_HINT = "Compile the code around the call, or functions that the disabled function calls, as separate regions."
_DEVICE_FOLDERS = tuple(TORCH_FOLDER + name.replace("/", os.sep) for name in OF_DEVICES)
_CONTEXTLIB = STDLIB_FOLDER + "contextlib.py"


def _codes(module: Any) -> dict[types.CodeType, Callable[..., bool]]:
    """The handlers of a tracker's module, by the code of the frames they handle."""
    found = {
        code: handler
        for fn, handler in getattr(module, "FRAMES", {}).items()
        if (code := getattr(fn, "__code__", None)) is not None
    }
    return found | getattr(module, "CODES", {})


_MODULES = (modules, imports, output, checkpoints, modes, one_node, parallel, random_state, scripts)
_KNOWN = {module: _codes(module) for module in _MODULES}


class Frames(Tracker):
    """Decides for each frame that starts."""

    _known: dict[types.CodeType, Callable[[Any], bool]] = field(default_factory=dict, init=False)

    def handled_by(self, handlers: Iterable[Any]) -> None:
        """Register the known frames of the modules of these parts."""
        owners = {type(handler).__module__: handler for handler in handlers}
        self._known = {
            code: types.MethodType(handler, owners[module.__name__])
            for module, codes in _KNOWN.items()
            for code, handler in codes.items()
        }

    def enter_frame(self, frame: Any) -> bool:
        code = frame.f_code
        if self.context.pauses.in_call:
            return False
        if self.context.pauses.code is not None:
            if self.context.pauses.paused():
                return False
            self.context.pauses.code = None
        known = self._known.get(code)
        if known is not None:
            return known(frame)
        if code in uncaptured.CODES:
            return self._disabled(code)
        filename = code.co_filename
        if self.context.one_node.applied_by_library(frame):
            return False
        if is_compiler_wrapper(code) or reads_modes(code):
            return True
        if is_library_file(filename) or is_own_file(filename):
            if code in WITH_VERDICT:
                self.context.outside.host_call(self.journal.site, WITH_VERDICT[code], policy.verdict(WITH_VERDICT[code]))
            elif filename == LOADERS:
                self.context.outside.loads(self.journal.site, f"importlib.{code.co_qualname}")
            elif code.co_argcount:
                self._method_of_library(frame)
            return False
        if filename.startswith(_DEVICE_FOLDERS) and self.context.pauses.in_own_code_of_checkpoint():
            self.context.pauses.code = code  # it selects a tensor's device for a moment, for the state of its random stream
            return False
        if self.context.imports.importing():
            self.context.pauses.code = FIND_AND_LOAD
            return False
        if filename == _CONTEXTLIB and self._called_by_library():
            return False
        if code not in self.context.functions.known_codes and not filename.startswith(TORCH_FOLDER):
            self.context.unseen.called(frame)
        code_runs(self.ledger, code)
        return True

    def _disabled(self, code: types.CodeType) -> bool:
        """The program has excluded this call from captures (`magpy_core.disable`)."""
        if not self.ledger.ops.op_depth:
            self.context.numbers.escape_hidden(self.journal.site)
            text = f"{HERE} calls code that `magpy_core.disable` excludes: no graph can contain the call."
            self.journal.refuse_call_if_repeated(Unsupported("MP120", text, hint=_DISABLED_HINT))
        self.context.pauses.code = code
        return False

    def _method_of_library(self, frame: Any) -> None:
        """``len(poly1d)``, ``masked.mask = m``, ``graph_module.code``: library code that runs without a call event."""
        code = frame.f_code
        first = frame.f_locals.get(code.co_varnames[0])
        cls = type(first)
        if self.refgraph.node(first) is None or is_numpy_value(cls):
            return
        raw = lookup.class_lookup(cls, code.co_name)[0]
        if (cls.__module__ or "").partition(".")[0] == "numpy":
            if is_a(raw, (types.FunctionType, property)):  # changes of these objects can't be observed
                called = cls if is_a(raw, property) else raw
                self.context.outside.host_call(self.journal.site, called, Verdict.UNKNOWN)
        elif code.co_name == "__enter__" or (is_a(raw, property) and getattr(raw.fget, "__code__", None) is code):
            self.context.arguments.read_state(first, self.journal.site)

    def _called_by_library(self) -> bool:
        """contextlib is monitored for the user's context managers, but not for those in unmonitored library files."""
        frame = past_own_frames(sys._getframe(1), _CONTEXTLIB)
        return frame is not None and is_library_file(frame.f_code.co_filename)
