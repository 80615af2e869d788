"""FrameEvents: which frames are instrumented, and the library frames the recording knows by name.

Known frames are matched by code object: torch's own plumbing is summarised (module calls, attribute lookup, autocast)
instead of being watched instruction by instruction. Key type: FrameEvents.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.amp import autocast_mode

from magpy_core._compat.torch.dynamo import bypass, compiles_for_operators
from magpy_core._compat.torch.parallel import PARALLEL_FORWARD
from magpy_core._compat.torch.scripts import tracers
from magpy_core._compat.torch.state_changers import state_changers
from magpy_core.findings import HERE, Value
from magpy_core.guards import kinds as guard
from magpy_core.monitor import policy
from magpy_core.monitor.record import OWN_DIRECTORY, is_own_file
from magpy_core.recording.opaque import RANDOM_STATE
from magpy_core.recording.output import OUTPUT_FRAMES
from magpy_core.recording.unseen_calls import UnseenCalls
from magpy_core.refgraph import lookup
from magpy_core.refgraph.fields import instance_dict
from magpy_core.refgraph.kinds import is_a, is_numpy_value

_TORCH = os.path.dirname(torch.__file__) + os.sep
_STDLIB = os.path.dirname(os.__file__) + os.sep

# Library files whose Python is a thin layer over recorded operations: left alone, trusted to depend on their arguments only.
_LIBRARY_FILES = frozenset(
    [_TORCH + f for f in (
        "nn/functional.py", "functional.py", "overrides.py", "_tensor.py", "_ops.py", "_VF.py", "_jit_internal.py",
        "_compile.py", "nn/parameter.py", "autograd/grad_mode.py", "nn/init.py", "utils/checkpoint.py", "utils/_pytree.py",
        "utils/_python_dispatch.py", "autograd/function.py", "autograd/profiler.py", "_utils.py", "types.py",
        "nn/_reduction.py", "nn/modules/_functions.py", "amp/autocast_mode.py", "jit/_trace.py", "jit/_script.py",
        "__init__.py", "random.py", "utils/_device.py", "utils/_stats.py", "_library/custom_ops.py", "compiler/__init__.py",
        "_linalg_utils.py", "nn/attention/__init__.py", "fx/experimental/sym_node.py",
    )]
    + [_STDLIB + f for f in (
        "warnings.py", "typing.py", "abc.py", "inspect.py", "linecache.py", "traceback.py", "tokenize.py", "re/__init__.py",
        "re/_compiler.py", "re/_parser.py", "reprlib.py",
    )]
)  # fmt: skip
_LIBRARY_FOLDERS: tuple[str, ...] = (
    _TORCH + "_dynamo" + os.sep, _TORCH + "_inductor" + os.sep, _TORCH + "_functorch" + os.sep, _TORCH + "fx" + os.sep,
    _TORCH + "_higher_order_ops" + os.sep, _TORCH + "_library" + os.sep, _TORCH + "_logging" + os.sep,
    _STDLIB + "importlib" + os.sep,
)  # fmt: skip

_numpy = importlib.util.find_spec("numpy")
_NUMPY = os.path.dirname(_numpy.origin) + os.sep if _numpy is not None and _numpy.origin is not None else None
if _NUMPY is not None:
    _LIBRARY_FOLDERS += (_NUMPY,)

_CONTEXTLIB = _STDLIB + "contextlib.py"
_COMPILER_WRAPPERS = _TORCH + "_dynamo" + os.sep + "eval_frame.py"
_HOOK_DICTS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_module = nn.modules.module
_FIND_AND_LOAD: types.CodeType = importlib._bootstrap._find_and_load.__code__  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=8192)
def _is_library(filename: str) -> bool:
    return (
        filename in _LIBRARY_FILES
        or filename.startswith(_LIBRARY_FOLDERS)
        or filename.endswith(os.sep + "typing_extensions.py")  # typing's own helper, wherever it is installed
    )


def _is_compiler_wrapper(code: types.CodeType) -> bool:
    """torch.compile's and torch.compiler.disable's wrappers: what they wrap is monitored like any function."""
    return code.co_filename == _COMPILER_WRAPPERS and bypass(code) is not None


@functools.lru_cache(maxsize=4096)
def _code_hands_over(code: types.CodeType) -> bool:
    return "handle_torch_function" in code.co_names or code.co_name in ("boolean_dispatch", "wrapped")


def _hands_itself_over(fn: types.FunctionType) -> bool:
    """Whether a function of torch is one operation of the graph with all its arguments, numbers that vary among them."""
    return _code_hands_over(fn.__code__) or fn.__qualname__.startswith("boolean_dispatch.")


class FrameEvents(UnseenCalls):
    """Observer method ``enter_frame`` and the summaries of known frames."""

    def frame_is_library(self, code: types.CodeType) -> bool:
        return _is_library(code.co_filename) and not _is_compiler_wrapper(code)

    def enter_frame(self, frame: Any) -> bool:
        code = frame.f_code
        if self.printing:
            return False
        if self.paused_code is not None:
            if self.paused():
                return False
            self.paused_code = None
        known = _KNOWN.get(code)
        if known is not None:
            return bool(getattr(self, known)(frame))
        filename = code.co_filename
        if self.applied_by_library(frame):
            return False
        if _is_compiler_wrapper(code):
            return True
        if _is_library(filename) or is_own_file(filename):
            if code.co_argcount:
                self._method_of_library(frame)
            return False
        if self._importing():
            self.paused_code = _FIND_AND_LOAD
            return False
        if filename == _CONTEXTLIB and self._called_by_library():
            return False
        if code not in self.known_codes and not filename.startswith(_TORCH):
            self.called_unseen(frame)
        return True

    def call_library(self, site: Any, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A function whose frame is not monitored: what it may read of values from outside is guarded here."""
        self.read_deep(site, args, kwargs)
        if not _hands_itself_over(fn):
            self.escape_all(site, args, kwargs)  # it may compute with numbers
        if fn.__module__ == "torch" and fn.__name__.startswith(("is_", "get_")) and not kwargs:
            self.pending_call = (site, "setting", (fn, args))
        elif not fn.__code__.co_filename.startswith(_TORCH) and args and self.refgraph.node(args[0]) is not None:
            self._whole_state(args[0], site)  # a method of an object from outside
        if fn.__module__ == "inspect" and args:
            self._inspected(args[0], site)
        if fn is typing.get_type_hints:
            for holder in args[0].__mro__ if is_a(args[0], type) else args[:1]:
                self.read_attr(holder, "__annotations__", site)
                self.read_deep(site, (getattr(holder, "__annotations__", None),), {})

    def _inspected(self, obj: Any, site: Any) -> None:
        """What `inspect` looks at: texts, annotations, what a function stands for."""
        self.text_of(obj, site)
        for holder in obj.__mro__ if is_a(obj, type) else (obj,):
            self.read_attr(holder, "__doc__", site)
        seen: set[int] = set()
        while is_a(obj, types.FunctionType) and id(obj) not in seen:  # one that wraps itself makes `inspect` raise
            seen.add(id(obj))
            for name in ("__annotations__", "__defaults__", "__kwdefaults__", "__signature__", "__wrapped__"):
                self.read_attr(obj, name, site)
                self.read_deep(site, (getattr(obj, name, None),), {})
            obj = obj.__dict__.get("__wrapped__")

    def _whole_state(self, obj: Any, site: Any) -> None:
        """Python that is not monitored may read all that an object holds."""
        self.state_read(obj, site)
        held = tuple((instance_dict(obj) or {}).values())
        self.escape_all(site, held)
        self.read_deep(site, held, {})

    def _method_of_library(self, frame: Any) -> None:
        """``len(poly1d)``, ``masked.mask = m``, ``graph_module.code``: Python that runs without a call of the program's."""
        first = frame.f_locals.get(frame.f_code.co_varnames[0])
        cls = type(first)
        if self.refgraph.node(first) is None or is_numpy_value(cls):
            return
        raw = lookup.class_lookup(cls, frame.f_code.co_name)[0]
        if (cls.__module__ or "").partition(".")[0] == "numpy":
            if is_a(raw, (types.FunctionType, property)):  # these objects change without a trace
                self.host_call(self.site, raw if is_a(raw, types.FunctionType) else cls, policy.UNKNOWN)
        elif is_a(raw, property) and raw.fget is not None and getattr(raw.fget, "__code__", None) is frame.f_code:
            self._whole_state(first, self.site)
        elif frame.f_code.co_name == "__enter__":
            self._whole_state(first, self.site)

    def _importing(self) -> bool:
        """Whether the frame that starts was called by the import system or a module's body (an import no event showed)."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and (name := frame.f_code.co_filename).startswith(OWN_DIRECTORY):
            frame = frame.f_back
        if frame is None or not (name.startswith("<frozen importlib") or frame.f_code.co_name == "<module>"):
            return False
        while frame is not None and frame.f_code is not _FIND_AND_LOAD:
            if frame.f_code.co_filename.startswith(OWN_DIRECTORY):
                return False  # the region's own call, at the end of the program's main module
            frame = frame.f_back
        return frame is not None

    def _called_by_library(self) -> bool:
        """contextlib is monitored for the user's context managers, not for those of the torch files that are left alone."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and (is_own_file(name := frame.f_code.co_filename) or name == _CONTEXTLIB):
            frame = frame.f_back
        return frame is not None and _is_library(frame.f_code.co_filename)

    # -- pausing -----------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Leave every frame alone until the call that is about to run has returned: replay makes the whole call again."""
        self.printing = True

    def paused(self) -> bool:
        """Whether a known opaque frame (logging, warnings, printing) is still on the stack of this thread."""
        target = self.paused_code
        if target is None:
            return self.gone
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code is target:
                return True
            frame = frame.f_back
        self.paused_code = None
        return False

    # -- imports ---------------------------------------------------------------------------------------------

    def import_name(self, site: Any, name: str) -> None:
        """The first import of a module runs its body once; that is no part of what the region computes."""
        self.site = site
        parts = name.split(".")
        for n in range(1, len(parts) + 1):
            self.module_imported(".".join(parts[:n]), site)
        if self.paused_code is None and name not in sys.modules:
            self.paused_code = _FIND_AND_LOAD
            self.not_imported[name] = site

    not_imported: dict[str, Any]

    def module_imported(self, name: str, site: Any) -> None:
        """An import gives what ``sys.modules`` has by that name."""
        module = sys.modules.get(name)
        if is_a(module, types.ModuleType):
            self.refgraph.read(self._module_entry(name), guard.IS, module, site)

    def imports_failed(self) -> None:
        """At exit: what the region could not import must still not be there."""
        for name, site in self.not_imported.items():
            if name not in sys.modules:
                self.refgraph.read(self._module_entry(name), guard.ABSENT, None, site)

    def _module_entry(self, name: str) -> Any:
        node = self.refgraph.node(sys.modules)
        if node is None:
            node = self.refgraph.add(sys.modules, self.sources.const(sys.modules, "sys.modules"))
        return self.sources.item(node.source, name)

    def import_call(self, frame: Any) -> bool:
        """``importlib.import_module``, as lazily loading packages call it."""
        if self.paused_code is None:
            name, package = frame.f_locals.get("name"), frame.f_locals.get("package")
            if is_a(name, str) and (package or not name.startswith(".")):
                self.import_name(self.site, importlib.util.resolve_name(name, package))
            self.paused_code = frame.f_code
        return False

    # -- module calls ------------------------------------------------------------------------------------------

    def module_call(self, frame: Any) -> bool:
        """``nn.Module._call_impl``: fixed edges instead of events (module summary), unless hooks have to run."""
        module = frame.f_locals.get("self")
        if module is None:
            return True
        if is_a(module, torch.jit.ScriptModule):
            d = module.__dict__
            if self.ops.op_depth:
                return False
            if any(d.get(name) for name in ("_backward_hooks", "_backward_pre_hooks")):
                self.foreign_compiler(f"`{module.original_name}`, a torch.jit module with backward hooks,")
            return True  # it asks for its hooks and calls its method as any Python code does
        return self.module_summary(module, self.site)

    def parallel_call(self, frame: Any) -> bool:
        """A wrapper for several processes inside the region: what it does around its module has to be done at each call."""
        if not self.ops.op_depth:
            self.refuse(
                "MP106",
                f"{HERE} calls a DistributedDataParallel module, whose work for other processes is no part of a graph.",
                hint="Compile the wrapper itself, or the module inside of it, and leave the rest of the region around it.",
            )
        return False

    def module_summary(self, module: nn.Module, site: Any) -> bool:
        """Guard what ``_call_impl`` looks at; True when hooks must run, so its frame has to be monitored."""
        d = instance_dict(module)
        if d is None:
            return True
        if not self._global_hooks_read:
            self._global_hooks_read = True
            root = self.const_root(_module, "torch.nn.modules.module").source
            for name in (
                "_global_forward_hooks",
                "_global_forward_pre_hooks",
                "_global_backward_hooks",
                "_global_backward_pre_hooks",
            ):
                self.refgraph.read(self.sources.attr(root, name), guard.TRUTH, bool(getattr(_module, name)), site)
        if any(getattr(_module, n) for n in ("_global_forward_hooks", "_global_forward_pre_hooks")):
            return True
        if any(d.get(name) for name in ("_backward_hooks", "_backward_pre_hooks")) or _module._global_backward_hooks:
            self.refuse("MP106", f"{HERE} calls a module with backward hooks, which can't be recorded yet.", site=site,
                        hint="Hook the gradient of the region's result instead, outside of it.")  # fmt: skip
            return True
        node = self.refgraph.node(module)
        hooked = any(d.get(name) for name in _HOOK_DICTS) or "forward" in d
        if node is not None and not hooked:
            self.refgraph.read(node.source, guard.PLAIN_MODULE, type(module), site)
        elif node is not None:
            for name in _HOOK_DICTS:
                self.refgraph.read(self.sources.attr(node.source, name), guard.TRUTH, bool(d[name]), site)
        self.class_fact(type(module), "forward", site)
        self.class_fact(type(module), "__call__", site)
        return hooked

    _global_hooks_read = False

    def module_getattr(self, frame: Any) -> bool:
        module, name = frame.f_locals.get("self"), frame.f_locals.get("name")
        getter = lookup.class_lookup(type(module), "__getattribute__")[0]
        if is_a(getter, types.FunctionType):
            self.module_member(module, name, self.site)
        return False  # otherwise resolved in attr_read

    def module_setattr(self, frame: Any) -> bool:
        """``nn.Module.__setattr__``: the snapshots of the module's tables tell what it did."""
        module = frame.f_locals.get("self")
        name = frame.f_locals.get("name")
        if is_a(module, nn.Module) and is_a(name, str):
            self.write_attr(module, name, self.site, native=True)
        return False

    # -- modes ----------------------------------------------------------------------------------------------

    def state_changed(self, frame: Any) -> bool:
        """What torch does is not the same from here on, and no replay would change it so."""
        mode = type(frame.f_locals.get("mode")).__module__  # that a dispatch mode is put in force with
        if not self.ops.op_depth and not mode.startswith(("magpy_core", "torch._subclasses", "torch.utils.checkpoint")):
            name = _STATE_CHANGERS[frame.f_code]
            self.refuse("MP106", f"{HERE} changes how torch works (`{name}`), which a graph can't do.",
                        values=(Value("call", name),), hint="Do it around the region.")  # fmt: skip
        return False

    def autocast_enter(self, frame: Any) -> bool:
        ctx = frame.f_locals.get("self")
        if self.refgraph.node(ctx) is not None:
            self._whole_state(ctx, self.site)
        elif not self._autocast:  # what it was not told it has asked of torch
            for ask, about in ((torch.get_autocast_dtype, (ctx.device,)), (torch.is_autocast_cache_enabled, ())):
                self.setting_read(self.site, ask, about, ask(*about))
        args = (ctx.device, ctx.fast_dtype, ctx._enabled, ctx._cache_enabled)
        node = self.ops.graph.call_function(autocast_mode._enter_autocast, args)
        node.meta["magpy_site"] = self.site
        self._autocast.append(node)
        return False

    def autocast_exit(self, frame: Any) -> bool:
        if not self._autocast:
            self.refuse("MP106", "An autocast context entered outside the region is left inside it.")
            return False
        self.ops.graph.call_function(autocast_mode._exit_autocast, (self._autocast.pop(),))
        return False

    _autocast: list[Any]

    # -- compilers ---------------------------------------------------------------------------------------------

    def foreign_compiler(self, what: str) -> None:
        self.lost = True
        self._foreign.add(self.places.now(None, self.site).location)
        self.refuse(
            "MP112",
            f"{what} runs inside the region; what it compiled can't be seen, so the two can't be captured as one.",
            hint="Call the Python function or module that it was made from: MagPy compiles the whole region.",
        )


def _code(fn: Any) -> types.CodeType | None:
    while hasattr(fn, "__wrapped__"):
        fn = fn.__wrapped__
    return getattr(fn, "__code__", None)


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


_STATE_CHANGERS = state_changers()
_KNOWN = _known()
