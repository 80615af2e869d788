"""PythonCalls: calls of Python functions, and reads of unmonitored library functions. Key type: PythonCalls."""

from __future__ import annotations

import copy
import types
import typing
from typing import Any

import torch
import torch.utils.checkpoint

from magpy_core._compat.torch.mode_reads import reads_modes
from magpy_core.findings import HERE
from magpy_core.knowledge.callables import entry
from magpy_core.recording.callees import is_copying
from magpy_core.recording.calls.rules import Rules
from magpy_core.recording.libraries import TORCH_FOLDER, is_compiler_wrapper, is_library_file, is_one_operation
from magpy_core.recording.nodes.group import Nodes
from magpy_core.recording.outside import Outside
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.kinds import is_a

TENSOR_COPIES = frozenset({torch.Tensor.__deepcopy__, torch.nn.Parameter.__deepcopy__})


class PythonCalls(Tracker):
    """Calls of Python functions."""

    nodes: Nodes
    rules: Rules
    outside: Outside

    def call(self, site: Any, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if fn is torch.utils.checkpoint.checkpoint and not self.ledger.ops.op_depth:
            self.nodes.checkpoints.begin(site, fn, args, kwargs)
        self.facts.functions.note_code(fn.__code__)
        if (original := fn.__dict__.get("magpy_original")) is not None:  # the runner's wrapper calls it without an event
            self.facts.functions.guard(original)
        if self.refgraph.node(fn) is not None:
            self.facts.functions.guard(fn)
            self.facts.functions.missing_arguments(site, fn, args, kwargs)
        if self.access.globals._of_code.setdefault(fn.__code__, fn.__globals__) is not fn.__globals__:
            text = f"The function `{fn.__qualname__}` runs with two different sets of globals."
            self.journal.refuse("MP111", text, hint="Pass what differs as arguments, to one function.", site=site)
        if fn.__module__ == "torch.random":  # some are wrapped so that their frames are never intercepted
            self.nodes.random_state.call(site, fn)
            return
        if fn is torch.nn.Module.__getattr__ and len(args) == 2 and not kwargs:
            self.access.reads.module_member(args[0], args[1], site)
            return
        if fn is copy.deepcopy and len(args) == 1 and not kwargs and self.rules.copies(site, args[0]):
            return
        if fn in TENSOR_COPIES or self._uses_memo(site, fn, args, kwargs):
            if not self.ledger.ops.op_depth:
                text = f"{HERE} deep-copies a tensor, or an object with a `__deepcopy__`: a graph can't repeat that."
                hint = "Copy the values of a tensor: `x.detach().clone()`."
                self.journal.refuse_call("MP106", text, hint=hint, site=site)
                self.basics.pauses.during_call()
            return
        if (fn.__module__ or "").partition(".")[0] == "numpy":
            self.outside.call_numpy(site, fn, args, kwargs)
        elif self.is_library(fn.__code__):
            self._library(site, fn, args, kwargs)

    def _uses_memo(self, site: Any, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the program's code gets the memo of ``copy.deepcopy``, whose keys are ids, or passes one in."""
        if fn is copy.deepcopy:
            return len(args) + len(kwargs) > 1 and not is_copying(site)
        by_copy = site is not None and site.code is copy.deepcopy.__code__ and fn.__module__ not in ("copy", "copyreg")
        return by_copy and any(type(a) is dict for a in args)

    def is_library(self, code: types.CodeType) -> bool:
        return is_library_file(code.co_filename) and not is_compiler_wrapper(code) and not reads_modes(code)

    def _library(self, site: Any, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Guard what an unmonitored library function may read from values from outside."""
        self.access.arguments.read(site, args, kwargs)
        if entry(fn).ignores_values:
            return
        if not is_one_operation(fn):
            self.basics.numbers.escape_all(site, args, kwargs)  # it may compute with numbers
        if fn.__module__ == "torch" and fn.__name__.startswith(("is_", "get_")) and not kwargs:
            self.outside.expect_setting(site, fn, args)
        elif not fn.__code__.co_filename.startswith(TORCH_FOLDER) and args and self.refgraph.node(args[0]) is not None:
            self.access.arguments.read_state(args[0], site)  # a method of an object from outside
        if fn.__module__ == "inspect" and args:
            self._inspected(args[0], site)
        if fn is typing.get_type_hints:
            for holder in args[0].__mro__ if is_a(args[0], type) else args[:1]:
                self.access.reads.attr(holder, "__annotations__", site)
                self.access.arguments.read(site, (getattr(holder, "__annotations__", None),), {})

    def _inspected(self, obj: Any, site: Any) -> None:
        """Guard what `inspect` reads: state, texts, annotations, wrapped functions."""
        self.access.natives.state_read(obj, site)
        self.access.texts.formatted(obj, site)
        for holder in obj.__mro__ if is_a(obj, type) else (obj,):
            self.access.reads.attr(holder, "__doc__", site)
        seen: set[int] = set()
        while is_a(obj, types.FunctionType) and id(obj) not in seen:  # `inspect` raises if a function wraps itself
            seen.add(id(obj))
            for name in ("__annotations__", "__defaults__", "__kwdefaults__", "__signature__", "__wrapped__"):
                self.access.reads.attr(obj, name, site)
                self.access.arguments.read(site, (getattr(obj, name, None),), {})
            obj = obj.__dict__.get("__wrapped__")
