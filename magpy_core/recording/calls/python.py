"""PythonCalls: calls of Python functions, and reads of unmonitored library functions. Key type: PythonCalls."""

from __future__ import annotations

import collections
import copy
import functools
import inspect
import sys
import types
import typing
from typing import Any

import torch
import torch.utils.checkpoint

from magpy_core._compat.cpython.annotations import evaluated, names_in
from magpy_core._compat.torch.mode_reads import reads_modes
from magpy_core._compat.versions import PY314
from magpy_core.findings import HERE
from magpy_core.knowledge.callables import entry
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.callees import is_copying
from magpy_core.recording.libraries import TORCH_FOLDER, is_compiler_wrapper, is_library_file, is_one_operation
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.lookup import class_lookup

TENSOR_COPIES = frozenset({torch.Tensor.__deepcopy__, torch.nn.Parameter.__deepcopy__})

_REPLACE = collections.namedtuple("_REPLACE", "")._replace.__code__  # type: ignore[attr-defined]
"""The code of this method of all named tuples."""

# of annotationlib: they run code with other names than its globals
_EVALUATES = frozenset({"evaluate", "call_annotate_function", "call_evaluate_function"})


class PythonCalls(Tracker):
    """Calls of Python functions."""

    def call(self, site: MaybeSite, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if fn is torch.utils.checkpoint.checkpoint and not self.ledger.ops.op_depth:
            self.context.checkpoints.begin(site, fn, args, kwargs)
        self.context.functions.note_code(fn.__code__)
        if (original := fn.__dict__.get("magpy_original")) is not None:  # the runner's wrapper calls it without an event
            self.context.functions.guard(original)
        if self.refgraph.node(fn) is not None:
            self.context.functions.guard(fn)
            self.context.functions.missing_arguments(site, fn, args, kwargs)
        if self.context.globals._of_code.setdefault(fn.__code__, fn.__globals__) is not fn.__globals__:
            text = f"The function `{fn.__qualname__}` runs with two different sets of globals."
            self.journal.refuse("MP111", text, hint="Pass what differs as arguments, to one function.", site=site)
        if fn.__module__ == "torch.random":  # some are wrapped so that their frames are never intercepted
            self.context.random_state.call(site, fn)
            return
        if fn is torch.nn.Module.__getattr__ and len(args) == 2 and not kwargs:
            self.context.reads.module_member(args[0], args[1], site)
            return
        if fn is copy.deepcopy and len(args) == 1 and not kwargs and self.context.rules.copies(site, args[0]):
            return
        if self.context.varying_texts.dumps(site, fn, args, kwargs):
            self.context.arguments.read(site, args, kwargs)
            self.context.pauses.during_call()
            return
        if self.context.streams.dumps(site, fn, args, kwargs):
            self.context.pauses.during_call()
            return
        if fn in TENSOR_COPIES or self._uses_memo(site, fn, args, kwargs):
            if not self.ledger.ops.op_depth:
                text = f"{HERE} deep-copies a tensor, or an object with a `__deepcopy__`: a graph can't repeat that."
                hint = "Copy the values of a tensor: `x.detach().clone()`."
                self.journal.refuse_call("MP106", text, hint=hint, site=site)
                self.context.pauses.during_call()
            return
        if fn.__code__ is _REPLACE and self._replaces(site, fn, args, kwargs):
            return
        if (fn.__module__ or "").partition(".")[0] == "numpy":
            self.context.outside.call_numpy(site, fn, args, kwargs)
        elif self.is_library(fn.__code__):
            self._library(site, fn, args, kwargs)

    def _uses_memo(self, site: MaybeSite, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the program's code gets the memo of ``copy.deepcopy``, whose keys are ids, or passes one in."""
        if fn is copy.deepcopy:
            return len(args) + len(kwargs) > 1 and not is_copying(site)
        by_copy = site is not None and site.code is copy.deepcopy.__code__ and fn.__module__ not in ("copy", "copyreg")
        return by_copy and any(type(a) is dict for a in args)

    def _replaces(self, site: MaybeSite, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """``record._replace(name=value)`` of a named tuple, whose C code takes the fields that stay from the record itself:
        the program gets the record with what they are to it."""
        if len(args) != 1:
            return False
        record, cls = args[0], type(args[0])
        if not kinds.is_named_tuple(cls) or class_lookup(cls, "_replace")[0] is not fn:
            return False
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        names = cells["field_names"].cell_contents
        if not set(kwargs) <= set(names):
            return False
        self.context.classes.member(cls, "_make", site)
        node = self.refgraph.node(record)
        held = list(tuple.__iter__(record))
        if node is not None:
            read, item = self.context.values.read, self.sources.item
            held = [
                one if name in kwargs else read(item(node.source, i), one, site, to_program=True)
                for i, (name, one) in enumerate(zip(names, held, strict=True))
            ]
        parts = [kwargs.get(name, one) for name, one in zip(names, held, strict=True)]
        self.context.pauses.during_call()
        self.context.stack.expect(lambda result: tuple.__new__(type(result), parts))
        return True

    def is_library(self, code: types.CodeType) -> bool:
        return is_library_file(code.co_filename) and not is_compiler_wrapper(code) and not reads_modes(code)

    def _library(self, site: MaybeSite, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Guard what an unmonitored library function may read from values from outside."""
        self.context.arguments.read(site, args, kwargs)
        if entry(fn).ignores_values:
            return
        if not is_one_operation(fn):
            self.context.numbers.escape_all(site, args, kwargs)  # it may compute with numbers
        if fn.__module__ == "torch" and fn.__name__.startswith(("is_", "get_")) and not kwargs:
            self.context.outside.expect_setting(site, fn, args)
        elif not fn.__code__.co_filename.startswith(TORCH_FOLDER) and args and self.refgraph.node(args[0]) is not None:
            self.context.arguments.read_state(args[0], site)  # a method of an object from outside
        if fn.__module__ == "inspect" or fn is typing.get_type_hints or fn.__module__ == "annotationlib":
            self._introspected(fn, args, kwargs, site)

    def _introspected(self, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], site: MaybeSite) -> None:
        if not args:
            return
        if fn.__name__ in _EVALUATES or (any("format" in name for name in kwargs) and not self._is_new(args[0])):
            text = f"{HERE} evaluates annotations as text or with other names: guards can't check what they depend on."
            self.journal.refuse("MP111", text, hint="Evaluate them outside the region.", site=site)
        if fn is not typing.get_type_hints:
            self._inspected(args[0], site)
        evaluates_texts = fn is typing.get_type_hints or "eval_str" in kwargs
        if evaluates_texts or fn is inspect.get_annotations:
            for holder in args[0].__mro__ if is_a(args[0], type) else args[:1]:
                self._annotated(holder, site)
                if evaluates_texts:
                    self._read_names_in(holder, site)

    def _is_new(self, obj: Any) -> bool:
        self.context.age._new_objects = None
        return bool(self.context.age.is_made_inside(obj))

    def _annotated(self, holder: Any, site: MaybeSite) -> None:
        """Guard annotations, which are evaluated now; what the region made evaluates its own, with events (3.14)."""
        if PY314 and self._is_new(holder):
            return
        if self.context.classes.annotations_have_values(holder, site):
            self.context.reads.attr(holder, "__annotations__", site)
            self.context.arguments.read(site, (evaluated(holder),), {})

    def _read_names_in(self, holder: Any, site: MaybeSite) -> None:
        """Guard the globals that the texts among annotations name."""
        while (wrapped := getattr(holder, "__wrapped__", holder)) is not holder and is_a(holder, types.FunctionType):
            holder = wrapped
        module = holder if is_a(holder, types.ModuleType) else sys.modules.get(getattr(holder, "__module__", None) or "")
        table = holder.__globals__ if is_a(holder, types.FunctionType) else getattr(module, "__dict__", None)
        if table is None or not self.context.classes.annotations_have_values(holder, site):
            return
        waiting: list[Any] = list((evaluated(holder) or {}).values())
        while waiting:
            value = waiting.pop()
            text = value if type(value) is str else getattr(value, "__forward_arg__", None)
            if type(text) is str:
                for name in names_in(text):
                    self.context.globals.read(table, name, site)
            elif not is_a(value, type):
                waiting += getattr(value, "__args__", ())

    def _inspected(self, obj: Any, site: MaybeSite) -> None:
        """Guard what `inspect` reads: state, texts, annotations, wrapped functions."""
        self.context.natives.state_read(obj, site)
        self.context.texts.formatted(obj, site)
        for holder in obj.__mro__ if is_a(obj, type) else (obj,):
            self.context.reads.attr(holder, "__doc__", site)
        waiting, seen = [obj], set[int]()
        while waiting:
            one = waiting.pop()
            if id(one) in seen:  # `inspect` raises if a function wraps itself
                continue
            seen.add(id(one))
            waiting += _leads_to(one)
            if is_a(one, type):
                for name in ("__init__", "__new__"):
                    self.context.classes.member(one, name, site)
            if is_a(one, types.FunctionType):
                if not self._is_new(one):
                    self.context.functions.guard(one)
                self._annotated(one, site)
                for name in ("__defaults__", "__kwdefaults__", "__signature__", "__wrapped__"):
                    self.context.reads.attr(one, name, site)
                    self.context.arguments.read(site, (getattr(one, name, None),), {})


def _leads_to(obj: Any) -> list[Any]:
    """The functions whose signature is that of ``obj``."""
    if is_a(obj, types.FunctionType):
        return [obj.__dict__["__wrapped__"]] if "__wrapped__" in obj.__dict__ else []
    if is_a(obj, (types.MethodType, staticmethod, classmethod)):
        return [obj.__func__]
    if is_a(obj, functools.partial):
        return [obj.func]
    names = ("__init__", "__new__") if is_a(obj, type) else ()
    found = [class_lookup(obj, name)[0] for name in names] + [class_lookup(type(obj), "__call__")[0]]
    return [one for one in found if is_a(one, (types.FunctionType, staticmethod))]
