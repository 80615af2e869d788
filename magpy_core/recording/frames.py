"""Frames: TODO."""

from __future__ import annotations

import importlib.util
import inspect
import logging
import sys
import types
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.fx
import torch.utils.checkpoint
from torch import nn

from magpy_core._compat.torch.dynamo import compiles_for_operators
from magpy_core._compat.torch.parallel import PARALLEL_FORWARD
from magpy_core._compat.torch.scripts import (
    tracers,
)
from magpy_core.monitor import policy
from magpy_core.monitor.record import is_own_file
from magpy_core.recording.calls.python import _STDLIB, _TORCH, _is_compiler_wrapper, _is_library
from magpy_core.recording.imports import _FIND_AND_LOAD, Imports
from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Ledger
from magpy_core.recording.nodes.modes import _STATE_CHANGERS
from magpy_core.recording.pauses import Pauses
from magpy_core.refgraph import lookup
from magpy_core.refgraph.kinds import is_a, is_numpy_value

if TYPE_CHECKING:
    from magpy_core.recording.groups import Calls, Facts, Nodes

_CONTEXTLIB = _STDLIB + "contextlib.py"


def _known() -> dict[types.CodeType, str]:
    table: dict[Callable[..., Any], str] = {
        nn.Module._wrapped_call_impl: "module_getattr",
        nn.Module._call_impl: "module_call",
        PARALLEL_FORWARD: "parallel_call",
        importlib.import_module: "import_call",
        nn.Module.__getattr__: "module_getattr",
        nn.Module.__setattr__: "module_setattr",
        nn.Module.__delattr__: "module_setattr",
        torch.autocast.__enter__: "autocast_enter",
        torch.autocast.__exit__: "autocast_exit",
        torch.autograd.Function.apply: "function_apply",
        torch.inference_mode.__enter__: "inference_enter",
        torch.inference_mode.__exit__: "inference_exit",
    }
    table.update(OUTPUT_FRAMES)
    table.update(dict.fromkeys(compiles_for_operators(), "compiles_itself"))
    table.update(dict.fromkeys(tracers(), "traces_itself"))
    table.update(dict.fromkeys(RANDOM_STATE, "random_state"))
    found = {code: handler for fn, handler in table.items() if (code := getattr(fn, "__code__", None)) is not None}
    helpers = [c for c in nn.Module.__setattr__.__code__.co_consts if is_a(c, types.CodeType)]
    found |= dict.fromkeys(_STATE_CHANGERS, "state_changed")
    return found | dict.fromkeys(helpers, "module_getattr")  # the tables that they look into are known, too


_KNOWN = _known()


# The functions of torch.random, whatever they are wrapped in.
RANDOM_STATE = tuple(f for f in map(inspect.unwrap, vars(torch.random).values()) if is_a(f, types.FunctionType))


_LEVELS = {
    "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR,
    "exception": logging.ERROR, "critical": logging.CRITICAL,
}  # fmt: skip


OUTPUT_FRAMES: dict[Callable[..., Any], str] = {
    **{getattr(owner, name): "log_call" for owner in (logging.Logger, logging) for name in _LEVELS if name != "exception"},
    logging.Logger.log: "log_call", logging.log: "log_call", logging.Logger._log: "log_call",
    logging.Logger.isEnabledFor: "log_asked",
    logging.Logger.exception: "log_exception", logging.exception: "log_exception", logging.getLogger: "get_logger",
    warnings._showwarnmsg: "warning_shown", warnings._add_filter: "filter_added",  # type: ignore[attr-defined]
    warnings.resetwarnings: "filter_added", warnings.catch_warnings.__enter__: "filters_entered",
    warnings.catch_warnings.__exit__: "filters_left",
}  # fmt: skip


class Frames:
    """TODO."""

    def __init__(
        self, ledger: Ledger, journal: Journal, pauses: Pauses, facts: Facts, calls: Calls, nodes: Nodes, imports: Imports
    ) -> None:
        self.journal = journal
        self.pauses = pauses
        self.facts = facts
        self.calls = calls
        self.nodes = nodes
        self.imports = imports
        self.refgraph = ledger.refgraph

    def enter_frame(self, frame: Any) -> bool:
        code = frame.f_code
        if self.pauses.in_call:
            return False
        if self.pauses.code is not None:
            if self.pauses.paused():
                return False
            self.pauses.code = None
        known = _KNOWN.get(code)
        if known is not None:
            return bool(getattr(self, known)(frame))
        filename = code.co_filename
        if self.nodes.one_node.applied_by_library(frame):
            return False
        if _is_compiler_wrapper(code):
            return True
        if _is_library(filename) or is_own_file(filename):
            if code.co_argcount:
                self._method_of_library(frame)
            return False
        if self.imports.importing():
            self.pauses.code = _FIND_AND_LOAD
            return False
        if filename == _CONTEXTLIB and self._called_by_library():
            return False
        if code not in self.facts.functions.known_codes and not filename.startswith(_TORCH):
            self.facts.unseen.called(frame)
        return True

    def _method_of_library(self, frame: Any) -> None:
        """``len(poly1d)``, ``masked.mask = m``, ``graph_module.code``: Python that runs without a call of the program's."""
        first = frame.f_locals.get(frame.f_code.co_varnames[0])
        cls = type(first)
        if self.refgraph.node(first) is None or is_numpy_value(cls):
            return
        raw = lookup.class_lookup(cls, frame.f_code.co_name)[0]
        if (cls.__module__ or "").partition(".")[0] == "numpy":
            if is_a(raw, (types.FunctionType, property)):  # these objects change without a trace
                self.calls.outside.host_call(
                    self.journal.site, raw if is_a(raw, types.FunctionType) else cls, policy.UNKNOWN
                )
        elif is_a(raw, property) and raw.fget is not None and getattr(raw.fget, "__code__", None) is frame.f_code:
            self.calls.python.whole_state(first, self.journal.site)
        elif frame.f_code.co_name == "__enter__":
            self.calls.python.whole_state(first, self.journal.site)

    def _called_by_library(self) -> bool:
        """contextlib is monitored for the user's context managers, not for those of the torch files that are left alone."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and (is_own_file(name := frame.f_code.co_filename) or name == _CONTEXTLIB):
            frame = frame.f_back
        return frame is not None and _is_library(frame.f_code.co_filename)
