"""CallEvents: what a call reads and does, by the call policy, before it runs."""

from __future__ import annotations

import collections
import contextvars
import copy
import functools
import itertools
import re
import types
import weakref
from typing import Any

import torch

from magpy_core._compat.torch.function_apply import applied_class
from magpy_core._compat.torch.scripts import SCRIPTED
from magpy_core._compat.torch.settings import changes_setting
from magpy_core.findings import HERE, Value
from magpy_core.monitor import policy
from magpy_core.opgraph.functions import OUTSIDE_ARRAY, OUTSIDE_ARRAY_HINT, STATE_READ_PREFIXES, reads_setting
from magpy_core.opgraph.scalars import CARRYING
from magpy_core.recording.builtin_calls import COPYING, SPECIAL
from magpy_core.recording.callees import BUILTIN_FUNCTION, DESCRIPTOR, GETTERS, read_from, taker
from magpy_core.recording.native_reads import HIGHER
from magpy_core.recording.outside_calls import CALLBACKS, OutsideCallEvents
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.draws import stream_of
from magpy_core.refgraph.kinds import is_a

_TENSOR_TYPE = type(torch.FloatTensor)  # the class of torch.FloatTensor and the like
_LRU = type(functools.lru_cache(lambda: None))
_CONTAINER_TYPES = frozenset(
    {list, tuple, dict, set, frozenset, collections.deque, collections.OrderedDict, collections.defaultdict}
)
# Types that pass the elements of their arguments on by identity.
_HANDING_TYPES = frozenset({list, tuple, dict, enumerate, zip, reversed, collections.deque})
# Iterators that use what a function returns to them to decide which elements they give.
_JUDGES = frozenset({filter, itertools.filterfalse, itertools.takewhile, itertools.dropwhile, itertools.groupby})
_ITERATING = frozenset({
    list, tuple, set, frozenset, dict, enumerate, zip, map, filter, reversed, sorted, sum, min, max, any, all, iter, bytes,
    bytearray, functools.reduce,
})  # fmt: skip
# Class methods that read only their arguments.
_CLASS_METHODS = frozenset({
    "__new__", "fromkeys", "fromhex", "from_bytes", "maketrans", "__subclasscheck__", "__instancecheck__", "mro",
    "__prepare__", "__init_subclass__", "__subclasshook__", "from_iterable", "__class_getitem__",
})  # fmt: skip
_MEMBERS = (types.MemberDescriptorType, types.GetSetDescriptorType)
# Pure but for the containers they are given: heappush, insort, Counter's counting, operator.setitem.
_MUTATING_MODULES = frozenset({"_heapq", "_bisect", "_collections", "_operator"})
_TO_TEXT = (str, repr, ascii, format)


class CallEvents(OutsideCallEvents):
    """Observer method ``call`` and the policies behind it."""

    def call(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> None:
        self.site = site
        self.printing = False
        self.pending_call = None
        self.calls.append((site, taker(fn)))
        self._number_of = read_from(fn, args)
        if self.pending_torch is not None:
            self.torch_call_missed()
        self.dispatch_call(site, fn, args, kwargs or {})
        if self.ops.op_depth and self.pending_torch is not None:
            self.torch_called_inside(fn)
        if self.pending_torch is not None and self.pending_call is None and reads_setting(fn) and not kwargs:
            self.pending_call = (site, "setting", (fn, args))

    _number_of: Any = None

    def handed(self, tensor: torch.Tensor) -> bool:
        """Whether the number that is being read from ``tensor`` goes to the program itself, by the call in progress: native
        code (``math.sqrt(t)``, ``"%d" % t``) would take it where no event follows it."""
        of, self._number_of = self._number_of, None
        return of is tensor

    def dispatch_call(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tp = type(fn)
        if stream_of(fn) is not None and self.draw(site, fn, args, kwargs):
            return
        if tp is types.FunctionType:
            self.call_python(site, fn, args, kwargs)
        elif tp is types.MethodType:
            node = self.refgraph.node(fn)
            if node is not None:
                self.value(self.sources.make("field", node.source, "__func__"), fn.__func__, site)
                self.value(self.sources.make("field", node.source, "__self__"), fn.__self__, site)
            if (applied := applied_class(fn)) is not None:
                self.call_function_class(site, applied, args, kwargs)
            else:
                self.dispatch_call(site, fn.__func__, (fn.__self__, *args), kwargs)
        elif tp is types.MethodWrapperType and fn.__name__ == "__getattribute__" and type(fn.__self__) is types.ModuleType:
            self.read_attr(fn.__self__, args[0], site)  # how torch.backends' modules find what is no setting
        elif tp in BUILTIN_FUNCTION or is_a(fn, types.BuiltinFunctionType):
            if (applied := applied_class(fn)) is not None:
                self.call_function_class(site, applied, args, kwargs)
            else:
                self.call_builtin(site, fn, args, kwargs)
        elif tp in DESCRIPTOR:
            self.call_descriptor(site, fn, args, kwargs)
        elif is_a(fn, type):
            self.call_class(site, fn, args, kwargs)
        elif tp is functools.partial:
            self.call_partial(site, fn, args, kwargs)
        elif tp is _LRU:
            self.call_cached(site, fn, args, kwargs)
        elif is_a(fn, weakref.ref):
            self.call_weakref(site, fn)
        elif is_a(fn, GETTERS):
            self.call_getter(site, fn, args)
        elif is_a(fn, SCRIPTED):
            self.call_scripted(site, fn)
        elif is_a(fn, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
            self.pending_torch = (site, fn)
        else:
            self.call_instance(site, fn, args, kwargs)

    def call_python(self, site: Any, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.code_known(fn.__code__)
        if self.refgraph.node(fn) is not None:
            self.function_fact(fn)
            self.missing_arguments(site, fn, args, kwargs)
        if self.code_globals.setdefault(fn.__code__, fn.__globals__) is not fn.__globals__:
            self.refuse("MP111", f"The function `{fn.__qualname__}` runs with two different sets of globals.", site=site)
        if fn.__module__ == "torch.random":  # some are wrapped so that their frames are never seen
            self.call_random_state(site, fn)
            return
        if fn is torch.nn.Module.__getattr__ and len(args) == 2 and not kwargs:
            self.module_member(args[0], args[1], site)
            return
        if fn is copy.deepcopy and len(args) == 1 and not kwargs and self.copies(site, args[0]):
            return
        if fn in TENSOR_COPIES:
            if not self.ops.op_depth:
                hint = "Copy its values: `x.detach().clone()`."
                self.refuse_call("MP106", f"{HERE} copies a tensor deeply, which no graph can do.", hint=hint, site=site)
                self.pause()
            return
        if (
            fn is copy.deepcopy and site.code not in COPYING and len(args) + len(kwargs) > 1
        ) or fn.__name__ == "__deepcopy__":
            self.loose_addresses = True  # the program has the memo in hand
        if fn.__module__ == "inspect":
            for a in args[:1]:
                self.state_read(a, site)
        if (fn.__module__ or "").partition(".")[0] == "numpy":
            self.call_numpy(site, fn, args, kwargs)
        elif self.frame_is_library(fn.__code__):
            self.call_library(site, fn, args, kwargs)

    def call_function_class(self, site: Any, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        raise NotImplementedError

    def legacy_constructor(self, site: Any, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        raise NotImplementedError

    def made_by_constructor(self, site: Any, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        raise NotImplementedError

    def call_scripted(self, site: Any, fn: Any) -> None:
        raise NotImplementedError

    def from_array(self, site: Any, array: Any) -> None:
        raise NotImplementedError

    def call_random_state(self, site: Any, fn: Any) -> None:
        raise NotImplementedError

    def call_cached(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        raise NotImplementedError

    def frame_is_library(self, code: types.CodeType) -> bool:
        raise NotImplementedError

    def call_library(self, site: Any, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        raise NotImplementedError

    def call_partial(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        node = self.refgraph.node(fn)
        if node is not None:
            for name in ("func", "args", "keywords"):
                self.value(self.sources.make("field", node.source, name), getattr(fn, name), site)
            for part in (fn.args, fn.keywords):
                part_node = self.refgraph.node(part)
                if part_node is not None:
                    self.contents(part_node, site)
        self.dispatch_call(site, fn.func, (*fn.args, *args), {**fn.keywords, **kwargs})

    def at_its_end(self, cls: type, args: tuple[Any, ...], site: Any) -> None:
        """What is to happen when an object dies can't be replayed: a replay makes and drops other objects than the run."""
        if kinds.has_finalizer(cls) and not policy.is_host_module(cls.__module__):  # what that does is refused as it does it
            self.let_go(f"A {cls.__name__} is made here; when its `__del__` runs, replay can't repeat.", site)
        elif issubclass(cls, weakref.ref) and len(args) > 1 and args[1] is not None:
            self.watched_die("A weak reference is made here; when its callback runs, replay can't repeat.", site)

    def call_weakref(self, site: Any, fn: Any) -> None:
        if (node := self.refgraph.node(fn)) is None:
            self.let_live(fn, site)
            return
        target = weakref.ref.__call__(fn)
        if self.only_kept_by_us(target):
            del target
            self.let_go("A weak reference is asked for what the region has let go of.", site)
        self.value(self.sources.make("deref", node.source, None), target, site)

    def call_instance(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """An object with ``__call__``: a Python method is entered, a native one is unknown."""
        self.node_for(fn)
        raw, owner = lookup.class_lookup(type(fn), "__call__")
        if policy.module_of(type(fn)).partition(".")[0] == "numpy":
            if kinds.is_numpy_value(type(fn)):
                self.call_numpy(site, fn, args, kwargs)
            else:  # numpy.vectorize and the like: Python is called from native code
                self.host_call(site, fn, policy.UNKNOWN)
        elif is_a(raw, types.FunctionType) and owner is not None:
            self.class_fact(type(fn), "__call__", site)
            if self.frame_is_library(raw.__code__):
                self.read_deep(site, args, kwargs)
        elif policy.module_of(type(fn)).startswith("torch"):
            self.pending_torch = (site, fn)
        elif policy.verdict(fn) == policy.PURE or type(fn).__module__ in ("operator", "re", "functools", "typing", "types"):
            self.escape_all(site, args, kwargs)
            self.read_deep(site, args, kwargs)
        else:
            what = policy.verdict(fn)
            self.host_call(site, fn, what if what in (policy.HOST, policy.IO) else policy.UNKNOWN)

    # -- native functions --------------------------------------------------------------------------------------

    def call_builtin(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        owner = fn.__self__
        if fn is torch.overrides.has_torch_function and site.code in FAST_PATHS:
            self.pending_call = (site, "fast_path", args)
        if fn.__name__ == "from_numpy" and len(args) == 1 and self.is_plain_array(args[0]):
            self.from_array(site, args[0])
            self.share_array(args[0])
        elif fn.__name__ == "from_numpy" and not self.ops.op_depth:
            if not self.lost:
                self.refuse_call("MP105", OUTSIDE_ARRAY, hint=OUTSIDE_ARRAY_HINT, site=site)
        elif owner is None or is_a(owner, types.ModuleType):
            self.call_native(site, fn, args, kwargs)
        elif is_a(owner, torch.Tensor):
            self.pending_torch = (site, fn)
        elif is_a(owner, type):
            self.call_class_method(site, fn, owner, args, kwargs)
        else:
            self.call_method(site, owner, fn.__name__, args, kwargs, fn)

    def call_descriptor(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``list.append(x, 1)``, ``object.__setattr__(o, "a", 1)``: a method taken from its class."""
        if args and is_a(args[0], torch.Tensor) and issubclass(type(args[0]), fn.__objclass__):
            self.pending_torch = (site, fn)
        elif args and is_a(args[0], fn.__objclass__):
            self.call_method(site, args[0], fn.__name__, args[1:], kwargs, fn)
        else:
            self.read_deep(site, args, kwargs)

    def call_class_method(self, site: Any, fn: Any, owner: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        name = fn.__name__
        if name in _CLASS_METHODS:
            self.read_deep(site, args, kwargs)
            self.escape_all(site, args, kwargs)
        elif name == "__call__" and is_a(fn, types.MethodWrapperType):
            self.call_class(site, owner, args, kwargs)  # ``super().__call__`` of a metaclass
        elif issubclass(owner, torch.autograd.Function) or policy.module_of(owner).startswith("torch"):
            self.pending_torch = (site, fn)
        else:
            self.host_call(site, fn, policy.verdict(fn) if policy.verdict(fn) != policy.PURE else policy.UNKNOWN)

    def call_native(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        special = SPECIAL.get(fn)
        if fn in HIGHER:
            self.hands_on(site, fn, args, kwargs)
        if special is not None:
            getattr(self, special)(site, fn, args, kwargs)
            return
        what = policy.verdict(fn) if not self.pickles(fn, args) else policy.UNKNOWN
        if what == policy.TORCH and changes_setting(fn) and not self.ops.op_depth:
            self.setting_written(site)
        elif what == policy.TORCH:
            self.torch_called(site, fn, args)
        elif what == policy.PURE:
            if fn in CARRYING and self.carries(args, kwargs):
                self.escape_raising(fn, args, site)
                self.pending_call = (site, fn, args)
                return
            self.escape_all(site, args, kwargs)
            if self.scalars and any(is_a(a, CALLBACKS) for a in (*args, *kwargs.values())):
                self.escape_hidden(site)
            self.read_deep(site, args, kwargs)
            if getattr(fn, "__module__", None) in _MUTATING_MODULES:
                for a in args:
                    if kinds.kind_of(a) in kinds.CONTAINERS:
                        self.writing(a, site)
        elif what == policy.UNKNOWN and (getattr(fn, "__module__", None) or "").startswith("numpy"):
            self.call_numpy(site, fn, args, kwargs)
        else:
            self.host_call(site, fn, what)

    def torch_call_seen(self) -> None:
        self.pending_torch = None

    def torch_call_missed(self) -> None:
        """A call into torch that the operator recorder did not see: only known state readers may pass."""
        assert self.pending_torch is not None
        site, fn = self.pending_torch
        self.pending_torch = None
        name = getattr(fn, "__name__", type(fn).__name__)
        if name.startswith(STATE_READ_PREFIXES) or name in _QUIET_TORCH or is_a(fn, type):
            return
        self.refuse(
            "MP106",
            f"{HERE} calls `{policy.shown_name(fn)}`, which changes or reads torch's state in a way a graph can't hold.",
            values=(Value("call", policy.shown_name(fn)),),
            site=site,
        )

    # -- classes -----------------------------------------------------------------------------------------------

    def call_class(self, site: Any, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.at_its_end(cls, args, site)
        self.judging = self.judging or cls in _JUDGES
        if cls in HIGHER:
            self.hands_on(site, cls, args, kwargs)
        if cls in CARRYING and self.carries(args, kwargs):
            self.escape_raising(cls, args, site)
            self.pending_call = (site, cls, args)
            return
        if cls is torch.nn.Parameter or cls is torch.autograd.Variable:
            self.made_by_constructor(site, cls, args, kwargs)
        if issubclass(cls, torch.Tensor) or type(cls) is _TENSOR_TYPE:
            self.pending_torch = None
            self.read_deep(site, args, kwargs)
            if cls is torch.Tensor or type(cls) is _TENSOR_TYPE:
                self.legacy_constructor(site, cls, args, kwargs)
            return
        if cls is type and len(args) == 1:
            self.read_type(args[0], site)
            return
        if cls.__flags__ & (1 << 9):
            base = policy.native_base(cls)
            if base is not None and policy.verdict(base) != policy.PURE:
                self.host_call(site, base, policy.verdict(base))
                return
            self.class_shape(cls, site)
            for name in ("__new__", "__init__"):
                self.class_fact(cls, name, site)
            if type(cls) is not type:
                self.class_fact(type(cls), "__call__", site)
            base = next(k for k in cls.__mro__ if not k.__flags__ & (1 << 9))
            makers = (lookup.class_lookup(cls, name)[0] for name in ("__new__", "__init__"))
            native = cls is not functools.partial and not any(is_a(m, (types.FunctionType, staticmethod)) for m in makers)
            if native or (base is not object and base.__module__ == "builtins"):
                self.read_deep(site, args, kwargs)
                self.escape_all(site, args, kwargs)
            return
        if cls in (super, types.MethodType, types.SimpleNamespace, slice, weakref.ref):
            return
        if (
            cls.__module__ in ("builtins", "types")
            or policy.verdict(cls) == policy.PURE
            or cls.__module__ in ("collections",)
        ):
            if cls not in _HANDING_TYPES:
                self.escape_all(site, args, kwargs)
            elif cls is dict:
                self.escape_all(site, *(a for a in args if not is_a(a, dict)))
            elif cls is not zip:
                self.escape_all(site, args[1:], kwargs)
            if cls is str or (cls is map and args and any(args[0] is one for one in _TO_TEXT)):
                self.text_of(args if cls is str else args[1:], site)
            shallow = 1 if cls in _ITERATING or cls in _CONTAINER_TYPES else None
            if cls in _HANDING_TYPES and cls is not dict:
                shallow = 0
            self.read_deep(site, args, kwargs, shallow=shallow, carry=cls in _HANDING_TYPES)
        elif kinds.is_numpy_value(cls):
            self.call_numpy(site, cls, args, kwargs)
        elif policy.module_of(cls).startswith("torch"):
            self.read_deep(site, args, kwargs)
            if cls.__name__ == "Generator":
                self.refuse("MP106", f"{HERE} makes a torch.Generator, whose state can't be part of a graph.", site=site)
        else:
            self.host_call(site, cls, policy.verdict(cls))

    # -- methods of built-in objects ---------------------------------------------------------------------------

    def call_method(self, site: Any, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any) -> None:
        kind = kinds.kind_of(obj)
        if name in ("__setattr__", "__delattr__") and args and is_a(args[0], str):
            if is_a(obj, type):
                self.write_attr(obj, args[0], site)
            else:
                self.write_past_setattr(obj, args[0], site)
            return
        if name == "__getattribute__" and args and is_a(args[0], str):
            self.raw_attr(obj, args[0], site)
            return
        if name in ("__init__", "__init_subclass__", "__new__", "__class__") and kind == kinds.OBJECT:
            return
        if kind in (kinds.SCALAR, kinds.IDENTITY):
            if is_a(obj, types.FunctionType) and name == "__get__":
                return
            self.lock_used(site, obj, name, bool(args or kwargs), fn)
            if is_a(obj, _MEMBERS) and args:
                self.member_used(site, obj, name, args[0])
            self.escape_all(site, obj, args, kwargs)
            self.read_deep(site, args, kwargs)
            if is_a(obj, str) and name.startswith("format"):
                self.text_of((*args, *kwargs.values()), site)
                self.format_fields(site, obj, args, kwargs if name == "format" else args[0])
            return
        if name in ("__reduce_ex__", "__reduce__", "__getstate__"):
            self.state_read(obj, site)
        elif name == "sort" and kind == kinds.LIST and kwargs:
            self.hands_on(site, sorted, (obj,), kwargs)
        if kind in kinds.CONTAINERS:
            self.container_method(site, obj, name, args, kwargs)
        elif self.pickles(type(obj), args) or (name in policy.ERROR_WRITES and self.refgraph.node(obj) is not None):
            self.host_call(site, fn, policy.UNKNOWN)
        elif is_a(obj, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)):
            self.read_iterator(obj, site)
        elif kind == kinds.OPAQUE or type(obj).__module__ in ("_io", "io", "_thread", "re", "numpy"):
            self.opaque_method(site, obj, name, args, kwargs, fn)
        elif not self.memory_read(site, obj):
            owner = lookup.class_lookup(type(obj), name)[1]
            if owner is not None and policy.is_host_module(owner.__module__):  # random.random, of a hidden generator
                self.host_call(site, fn, policy.HOST)
                return
            if owner is not None and policy.native_base(owner) is owner:
                what = policy.verdict(owner)
                if what != policy.PURE or self.refgraph.node(obj) is not None:  # one made inside begins in a known state
                    self.host_call(site, fn, what)
                    return
            self.node_for(obj)
            self.read_deep(site, args, kwargs)

    def raw_attr(self, obj: Any, name: str, site: Any) -> None:
        """``object.__getattribute__(obj, name)``: the default lookup, whatever Python overrides say."""
        if is_a(obj, (torch.Tensor, type)):
            self.read_attr(obj, name, site)
            return
        node = self.node_for(obj)
        found = lookup.resolve(obj, name, plain=True)
        self.class_fact(type(obj), name, site)
        if node is None:
            self.read_internal_attr(obj, name, found, site)
        elif found.where != "absent":
            self.external_attr(node, obj, name, found, site)
        else:  # a module's tables are looked through by its ``__getattr__``
            self.absent_attr(node, obj, name, site)

    def opaque_method(self, site: Any, obj: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any) -> None:
        module = type(obj).__module__
        if module == "_thread" or type(obj).__name__ in ("RLock", "lock"):
            return  # a lock changes no result
        if is_a(obj, contextvars.ContextVar):
            self.context_variable(obj, name, args, site)
            return
        if type(obj) in (*kinds.DICT_VIEWS, memoryview, re.Match, re.Pattern) or (
            is_a(obj, contextvars.Context) and name != "run"
        ):
            self.memory_read(site, obj)
            self.read_deep(site, args, kwargs)
            return
        if module in ("_io", "io"):
            self.host_call(site, fn, policy.IO)
        elif hasattr(type(obj), "__next__"):
            if name == "__next__":
                self.advance(obj, site)
            else:
                self.read_iterator(obj, site)
        elif module.startswith("torch"):
            self.pending_torch = (site, fn)
        elif policy.verdict(fn) in (policy.HOST, policy.IO):
            self.host_call(site, fn, policy.verdict(fn))
        elif module == "numpy" and (kinds.is_numpy_value(type(obj)) or self.is_plain_array(obj)):
            self.call_numpy(site, fn, args, kwargs)
        elif (self.refgraph.node(obj) is not None or module == "numpy") and not (module == "numpy" and self.lost):
            self.host_call(site, fn, policy.UNKNOWN)


TENSOR_COPIES = frozenset({torch.Tensor.__deepcopy__, torch.nn.Parameter.__deepcopy__})
FAST_PATHS = frozenset(
    cls.forward.__code__
    for cls in (torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer, torch.nn.TransformerEncoder)
)
"""These ask whether anybody watches their operations, and compute another way if so: our own watching must not count."""

_QUIET_TORCH = frozenset({
    "_has_torch_function", "_has_torch_function_unary", "_has_torch_function_variadic", "handle_torch_function", "Size",
    "device", "dtype", "finfo", "iinfo", "is_storage", "_add_docstr", "unset_lazy", "_log_api_usage_once", "annotate",
    "is_scripting", "record_function", "_record_function_enter_new", "_record_function_exit", "promote_types", "result_type",
    "can_cast", "broadcast_shapes", "_disabled_torch_function_impl", "compiled_with_cxx11_abi", "_unset_dispatch_mode",
    "parse_schema", "_infer_size", "_set_grad_enabled", "_can_use_flash_attention", "_is_flash_attention_available",
})  # fmt: skip
