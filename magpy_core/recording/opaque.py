"""OpaqueEvents: calls that replay makes again as a whole, and state that torch keeps outside every object.

A custom ``autograd.Function`` is one node of the graph: its ``forward`` runs again at every replay, so that its ``backward``
is what the user wrote. A ``functools.lru_cache`` function is a source: the value its cache holds for the arguments.
Key type: OpaqueEvents.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from magpy_core._compat.torch.autograd import enter_inference_mode, exit_inference_mode
from magpy_core._compat.torch.function_apply import starts_custom_function
from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.monitor.record import is_own_file
from magpy_core.opgraph.arrays import Kept, again
from magpy_core.opgraph.expected import expecting
from magpy_core.opgraph.made import (
    LARGEST_ARRAY,
    array_parts,
    from_array,
    keep_random_state,
    make_parameter,
    make_variable,
    put_random_state,
    set_seed,
)
from magpy_core.recording.flow import FlowEvents
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.hashing import quiet
from magpy_core.refgraph.kinds import is_a

_METHODS = ("forward", "backward", "setup_context", "vjp", "jvp", "vmap")
_IN_CALL = ("forward", "setup_context")  # what runs when the function is applied


_PLAIN = (bool, int, float, str, type(None), torch.dtype)
_CPU = torch.device("cpu")
_CPU_CONSTRUCTORS = frozenset({
    torch.FloatTensor, torch.DoubleTensor, torch.HalfTensor, torch.BFloat16Tensor, torch.LongTensor, torch.IntTensor,
    torch.ShortTensor, torch.CharTensor, torch.ByteTensor, torch.BoolTensor,
})  # fmt: skip


def _plain_numbers(data: Any) -> bool:
    """Numbers, in lists or tuples of any depth: nothing whose value a graph would freeze."""
    return all(type(v) in (int, float, bool) or (type(v) in (list, tuple) and _plain_numbers(v)) for v in data)


def _numpy_numbers(data: Any) -> bool:
    """Numbers, some of them of NumPy's types."""
    plain = (int, float, bool)
    return all(type(v) in plain or (kinds.is_number_of_numpy(v) and type(v.item()) in plain) for v in data)


@dataclass
class _Applied:
    """A call that is one node: its site, what was prepared for it, the effects before it. ``void``: the node gives nothing,
    as what the program gets can be no part of a graph."""

    site: Any
    target: Callable[..., Any]
    before: Any
    args: tuple[Any, ...]
    effects: int
    void: bool = False
    checked: bool = False  # whether what it gives may follow from data
    held: list[tuple[int, list[int]]] = field(default_factory=list)
    """What the containers among its arguments hold, by id, if it is checked."""


def _held(tree: Any) -> list[tuple[int, list[int]]]:
    """Which objects the containers in ``tree`` hold."""
    found: list[tuple[int, list[int]]] = []
    waiting, seen = [tree], set()
    while waiting:
        container = waiting.pop()
        if kinds.kind_of(container) not in kinds.CONTAINERS or id(container) in seen:
            continue
        seen.add(id(container))
        parts = [*container, *container.values()] if is_a(container, dict) else list(container)
        found.append((id(container), [id(v) for v in parts]))
        waiting += parts
    return found


@functools.lru_cache(maxsize=1024)
def applier(cls: Any) -> Callable[..., Any]:
    """A plain function that calls ``cls.apply``: what a graph node can hold."""

    def apply(*args: Any) -> Any:
        return cls.apply(*args)

    apply.__name__ = f"apply_{cls.__name__}"
    return apply


def applier_with(cls: Any, modules: dict[int, Any]) -> Callable[..., Any]:
    """The same for a call with modules among its arguments, at these positions: they belong to the program, which keeps
    them alive."""
    held = {i: weakref.ref(module) for i, module in modules.items()}

    def apply(*args: Any) -> Any:
        rest = iter(args)
        return cls.apply(*(held[i]() if i in held else next(rest) for i in range(len(args) + len(held))))

    apply.__name__ = f"apply_{cls.__name__}"
    return apply


@functools.lru_cache(maxsize=64)
def legacy(cls: Any) -> Callable[..., Any]:
    """A plain function that calls a constructor such as ``torch.FloatTensor``."""

    def construct(data: Any) -> Any:
        return cls(data)

    construct.__name__ = "legacy_constructor"
    return construct


@functools.lru_cache(maxsize=1024)
def caching(fn: Any) -> Callable[..., Any]:
    """A plain function that calls a ``functools.lru_cache`` function."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    ask.__name__ = f"cached_{getattr(fn, '__name__', 'function')}"
    return ask


def _is_plain(value: Any) -> bool:
    """Scalars, and tuples of them of any depth."""
    if type(value) in (tuple, torch.Size):
        return all(map(_is_plain, value))
    return kinds.kind_of(value) == kinds.SCALAR


def globals_read(fn: Any) -> list[tuple[dict[str, Any], str]] | None:
    """The globals, other than modules, that a Python function and the functions among these globals may read: plain values
    and functions. None if it may read anything else besides its arguments and builtins."""
    found: list[tuple[dict[str, Any], str]] = []
    seen: set[int] = set()
    waiting = [fn]
    while waiting:
        fn = waiting.pop()
        if is_a(fn, (staticmethod, classmethod)):
            fn = fn.__func__
        if fn is None or id(fn) in seen:
            continue
        if not is_a(fn, types.FunctionType) or fn.__closure__:
            return None
        seen.add(id(fn))
        waiting_values = [*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()]
        codes = [fn.__code__]
        while codes:
            code = codes.pop()
            codes += [c for c in code.co_consts if is_a(c, types.CodeType)]
            names = [n for n in code.co_names if n in fn.__globals__ and not is_a(fn.__globals__[n], types.ModuleType)]
            found += [(fn.__globals__, name) for name in names]
            waiting_values += [fn.__globals__[name] for name in names]
        waiting += [v for v in waiting_values if is_a(v, types.FunctionType)]
        if not all(is_a(v, (types.FunctionType, *_PLAIN)) for v in waiting_values):
            return None
    return found


def self_contained(fn: Any) -> bool:
    """Whether a Python function reads nothing but its arguments, builtins and modules."""
    return globals_read(fn) == []


class OpaqueEvents(FlowEvents):
    """Custom functions, cached functions, inference mode and random streams."""

    _applied: _Applied | None = None
    _inference: list[Any]
    _cached: list[tuple[Any, ...]]
    _forked: list[tuple[Any, int]]

    # -- custom autograd functions -----------------------------------------------------------------------------

    def call_function_class(self, site: Any, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``cls.apply(*args)`` is about to run."""
        if self.ops.op_depth or self._applied is not None:
            return
        for name in _METHODS:
            self.class_fact(cls, name, site)
        methods = {n: m for n in _METHODS if not lookup.missing(m := lookup.class_lookup(cls, n)[0])}
        closed = all(map(self_contained, methods.values()))
        if kwargs or (not closed and not self._reads_entry_state([methods[n] for n in _IN_CALL if n in methods], site)):
            self.refuse("MP107", f"The autograd.Function `{cls.__name__}` may read what the region has changed.", site=site)
            return
        if not closed:
            text = f"The autograd.Function `{cls.__name__}` reads state from outside, which a compiled graph would freeze."
            self.ops.eager_only.append(("MP107", text, site))
        self.escape_all(site, args)
        modules = {i: a for i, a in enumerate(args) if is_a(a, torch.nn.Module)}
        if modules and not self._takes_modules(cls, list(modules.values()), site):
            return
        call = applier_with(cls, modules) if modules else applier(cls)
        self.apply_as(site, call, tuple(a for i, a in enumerate(args) if i not in modules), {}, checked=True)

    def _takes_modules(self, cls: Any, modules: list[Any], site: Any) -> bool:
        """Whether a function can be given these modules again: they are the program's, and as they were at entry."""
        nodes = [self.refgraph.node(module) for module in modules]
        written = [(n.snapshot, n.forced) for n in self.refgraph.written() if n.snapshot is not None]
        changed = any(not before.quiet(forced) or before.changes(forced) for before, forced in written)
        if changed or self.field_writes or any(node is None for node in nodes):
            self.refuse("MP107", f"The autograd.Function `{cls.__name__}` may read what the region has changed.", site=site)
            return False
        for node, module in zip(nodes, modules, strict=True):
            assert node is not None
            self.refgraph.read(node.source, guard.IDENTITY, module, site)
        text = f"The autograd.Function `{cls.__name__}` is given a module, which a compiled graph can't hold."
        self.ops.eager_only.append(("MP107", text, site))
        return True

    def _reads_entry_state(self, methods: list[Any], site: Any) -> bool:
        """Whether these functions, called by a replay before it has written anything, see what they see in the program. What
        they read of globals is guarded; what ``backward`` reads is read when it runs, in the program as after a replay."""
        written = {id(node.obj) for node in self.refgraph.written()}
        reads = [globals_read(method) for method in methods]
        if written and any(found is None or any(id(g) in written for g, _ in found) for found in reads):
            return False
        for g, name in (pair for found in reads for pair in found or ()):
            value, source = g[name], self.sources.item(self.globals_root(g).source, name)
            if is_a(value, types.FunctionType):
                self.refgraph.read(source, guard.IS, value, site)
                self.function_fact(value)
            else:  # a number that varies too: the function may make a shape of it
                self.refgraph.read(source, guard.EQUAL, value, site)
        return True

    def apply_as(
        self, site: Any, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], void: bool = False,
        checked: bool = False,
    ) -> None:  # fmt: skip
        """The call about to run is one node of the graph, ``target(*args, **kwargs)``; what runs inside is part of it."""
        self.ops.op_depth += 1
        before = self.guarded_call(self.ops.prepare, target, args, kwargs)
        self.pending_torch = None
        self.ops._numbers = []  # the node reads them again itself
        self._applied = _Applied(site, target, before, args, self._effects(), void, checked, _held(args) if checked else [])
        self.alone = False

    # -- constructors that torch's own dispatch does not show --------------------------------------------------

    def legacy_constructor(self, site: Any, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``torch.Tensor([1, 2])``, ``torch.LongTensor(2, 3)``: recorded as what they mean, where that is plain."""
        if kwargs or self.ops.op_depth or self._applied is not None:
            return
        dtype = torch.get_default_dtype() if cls is torch.Tensor else cls.dtype
        if cls is not torch.Tensor and cls not in _CPU_CONSTRUCTORS:
            return
        if all(type(a) is int for a in args) or (len(args) == 1 and type(args[0]) is torch.Size):
            size = tuple(args[0]) if args and type(args[0]) is torch.Size else args or (0,)  # of nothing: no elements
            self.apply_as(site, torch.empty, (size,), {"dtype": dtype, "device": _CPU})
        elif (
            len(args) == 1
            and type(args[0]) in (list, tuple, range)
            and (_plain_numbers(args[0]) or (_numpy_numbers(args[0]) and not any(map(self.is_data, args[0]))))
        ):
            self.escape_all(site, args)
            data = [v.item() if kinds.is_number_of_numpy(v) else v for v in args[0]]
            self.apply_as(site, torch.tensor, (data,), {"dtype": dtype, "device": _CPU})
        elif len(args) == 1 and self.is_plain_array(args[0]):
            self.apply_as(site, again(legacy(cls), (Kept(args[0].copy()),), {}), (), {})
        elif len(args) == 1 and self.is_data(args[0]):
            self.apply_as(site, legacy(cls), args, {})
        elif len(args) == 1 and is_a(args[0], torch.Tensor) and cls is torch.Tensor:
            self.apply_as(site, torch.ops.aten.alias.default, args, {})

    def made_by_constructor(self, site: Any, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``Variable(x)`` and ``nn.Parameter(x)``: detached, and a leaf of its own where it requires a gradient."""
        parameter = cls is torch.nn.Parameter
        given = dict(zip(("data", "requires_grad"), args, strict=False)) | kwargs
        leaf = given.get("requires_grad", parameter)
        if self.ops.op_depth or self._applied is not None or len(args) > 2 or set(given) - {"data", "requires_grad"}:
            return
        if type(given.get("data")) not in (torch.Tensor, torch.nn.Parameter) or type(leaf) is not bool:
            return
        if parameter or leaf:
            text = f"A {cls.__name__} made inside the region is a leaf of its own, which a compiled graph would not keep."
            self.ops.eager_only.append(("MP106", text, site))
        self.apply_as(site, make_parameter if parameter else make_variable, (given["data"], leaf), {})

    def from_array(self, site: Any, array: Any) -> None:
        """``torch.from_numpy`` of an array that the region made: its numbers are constants of the graph."""
        if self.ops.op_depth or self._applied is not None or array.size > LARGEST_ARRAY:
            return
        self.ops.op_depth += 1  # what this runs is not the program's
        parts = self.guarded_call(array_parts, array)
        self.ops.op_depth -= 1
        self.apply_as(site, from_array, parts if type(parts) is tuple else (), {})

    def _effects(self) -> int:
        written = sum(1 + len(n.forced) for n in self.refgraph.written())
        return written + len(self.outputs) + len(self.tensor_writes) + len(self.field_writes)

    def call_result(self, site: Any, result: Any) -> Any:
        for i in range(len(self.calls) - 1, -1, -1):  # calls that raised left theirs above it
            if self.calls[i][0] is site:
                del self.calls[i:]
                break
        if self.pending_torch is not None and self.pending_torch[0] is site:
            self.torch_call_missed()  # before an operator's recording would count for it
        if self.data_calls and self.data_calls[-1][0] is site:
            return self.data_returned(site, result)
        applied = self._applied
        if applied is not None and applied.site is site:
            self._applied = None
            if applied.checked and applied.held != _held(applied.args):
                self.refuse("MP107", f"{HERE} changes a container that it is given.", site=site)
            if self._effects() != applied.effects:
                self.refuse("MP107", "The forward of an autograd.Function changes state outside the region.", site=site)
            shown = None if applied.void else result
            target = applied.target
            if applied.checked:
                made = self.guarded_call(expecting, target, result, not self.sizes_vary())
                target = made if callable(made) else target
            after = self.guarded_result(self.ops._after, shown, applied.before, target, applied.args, {})
            if applied.checked and not self.broken:
                self.guarded_call(self.sizes_from_data, after)
            self.ops.op_depth -= 1
            return result if applied.void else after
        for i in range(len(self._cached) - 1, -1, -1):
            if self._cached[i][0] is site:
                _, fn, args, kwargs, info = self._cached[i]
                del self._cached[i:]  # calls inside that raised left theirs
                self.cached_result(site, fn, args, kwargs, info, result)
                return result
        return super().call_result(site, result)

    def sizes_vary(self) -> bool:
        raise NotImplementedError

    def sizes_from_data(self, result: Any) -> None:
        """Where sizes vary, those of a call's results are not compared: some may follow from what the call computes."""
        raise NotImplementedError

    def guarded_call(self, fn: Callable[..., Any], *args: Any) -> Any:
        raise NotImplementedError

    def guarded_result(self, fn: Callable[..., Any], result: Any, before: Any, *args: Any) -> Any:
        raise NotImplementedError

    def function_apply(self, frame: Any) -> bool:
        """``Function.apply`` itself: reached without an event (from a library), its node can't be recorded."""
        if self._applied is None and not self.ops.op_depth and not self.broken:
            self.refuse("MP107", "An autograd.Function is called from a library, where its call can't be recorded.")
        return False

    def applied_by_library(self, frame: Any) -> bool:
        """Whether a custom function's own frame starts whose ``apply``, having no frame, was seen by nobody."""
        if self._applied is not None or self.ops.op_depth or not starts_custom_function(frame.f_code, frame.f_locals):
            return False
        return not self.function_apply(frame)

    # -- cached functions --------------------------------------------------------------------------------------

    def call_cached(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A function wrapped by ``functools.lru_cache``."""
        if self.ops.op_depth or self._applied is not None:
            self.alone = True
            return  # part of the node that is being made
        loud = next((a for a in (*args, *kwargs.values()) if not quiet(a)), None)
        if loud is not None:
            text = f"{HERE} hands {a_type(loud)} to a cache, which hashes or compares it by code of its own once more."
            self.refuse("MP111", text, site=site)
            return
        self.const_root(fn)
        wrapped = getattr(fn, "__wrapped__", None)
        self.function_fact(wrapped)
        self.escape_all(site, args, kwargs)
        asked_anew = any(is_a(a, torch.Tensor) for a in (*args, *kwargs.values())) or _name(fn) in self.learned.evicting
        if asked_anew and self._reads_entry_state([wrapped], site):
            # its cache asks which tensor it is, which is another one at each call, or has made room for something else: a
            # node that asks the cache, and fills it
            text = f"`{getattr(fn, '__name__', '?')}` keeps tensors in its cache, which a compiled graph can't do."
            self.ops.eager_only.append(("MP106", text, site))
            self.apply_as(site, caching(fn), args, kwargs, checked=True)
            self.alone = True
            return
        self.read_deep(site, args, kwargs)
        self._cached.append((site, fn, args, kwargs, fn.cache_info()))

    def cached_result(self, site: Any, fn: Any, args: Any, kwargs: Any, before: Any, result: Any) -> None:
        after = fn.cache_info()
        if after.misses != before.misses:
            # the run filled the cache: the next one finds the value there
            self.refuse_once(f"`{getattr(fn, '__name__', 'A cached function')}` filled its cache in this call.")
            if before.currsize == before.maxsize:
                self.learned.evicting.add(_name(fn))
            return
        if kinds.kind_of(result) == kinds.TENSOR and self.ops.values.get(id(result)) is not None:
            return
        for a in (*args, *kwargs.values()):
            kind = kinds.kind_of(a)
            node = self.refgraph.node(a)
            if _is_plain(a):
                continue  # read_deep has guarded it
            if kind == kinds.OBJECT and node is not None:
                self.refgraph.read(node.source, guard.IDENTITY, a, site)
            elif kind not in (kinds.SCALAR, kinds.IDENTITY):
                self.refuse("MP111", f"A cached function is called with a {type(a).__name__}.", site=site)
                return
        root = self.const_root(fn).source
        counts = self.sources.make("cache_state", root, None)
        self.refgraph.read(counts, guard.EQUAL, f"{before.misses} misses, {before.currsize} entries", site)
        self.value(self.sources.make("cached", root, (tuple(args), tuple(kwargs.items()))), result, site)

    # -- torch's own state -------------------------------------------------------------------------------------

    def inference_enter(self, frame: Any) -> bool:
        node = self.ops.graph.call_function(enter_inference_mode, (bool(frame.f_locals["self"].mode),))
        node.meta["magpy_site"] = self.site
        self._inference.append(node)
        return False

    def inference_exit(self, frame: Any) -> bool:
        if not self._inference:
            self.refuse("MP106", "An inference mode entered outside the region is left inside it.")
            return False
        self.ops.graph.call_function(exit_inference_mode, (self._inference.pop(),))
        return False

    def call_random_state(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A function of torch.random: seeding and putting a state back are operations of the graph, on the CPU's stream."""
        if self.ops.op_depth or self._applied is not None:
            return
        name = fn.__name__
        values = (*args, *kwargs.values())
        if torch.cuda.is_initialized():
            known = False  # the streams of the devices are set as well
        elif name == "manual_seed" and len(values) == 1 and type(values[0]) is int:
            known = True
            self.apply_as(site, set_seed, values, {}, void=True)
            self.pause()
        elif name == "get_rng_state" and not values:
            known = True
            self.apply_as(site, keep_random_state, (), {})
        elif name == "set_rng_state" and len(values) == 1 and is_a(values[0], torch.Tensor):
            known = True
            self.apply_as(site, put_random_state, values, {})
        else:
            known = name == "fork_rng"  # its two steps are seen when it takes them
        if not known:
            self.refuse("MP106", f"`torch.{name}` reads or sets a random stream inside the region.", site=site)
        elif name != "fork_rng":
            self._random_state_set(site)

    def _random_state_set(self, site: Any) -> None:
        text = f"{HERE} sets torch's random stream, which a compiled graph can't do."
        self.ops.eager_only.append(("MP106", text, site))
        self.ops.sets_random = True

    def random_state(self, frame: Any) -> bool:
        """A frame of torch.random that no call event announced: ``fork_rng`` takes the state, and puts it back."""
        if self.ops.op_depth:
            return False
        name = frame.f_code.co_name
        if name == "fork_rng":
            return False
        caller: types.FrameType | None = sys._getframe(1)
        while caller is not None and is_own_file(caller.f_code.co_filename):
            caller = caller.f_back
        forking = caller is not None and caller.f_code is _FORK_RNG and not torch.cuda.is_initialized()
        if name == "get_rng_state" and forking:
            self._forked.append((self.ops.graph.call_function(keep_random_state), id(caller)))
        elif name == "set_rng_state" and forking and self._forked and self._forked[-1][1] == id(caller):
            self.ops.graph.call_function(put_random_state, (self._forked.pop()[0],))
        else:
            self.refuse("MP106", f"`torch.{name}` reads or sets a random stream inside the region.")
            return False
        self._random_state_set(self.site)
        return False


_FORK_RNG = inspect.unwrap(torch.random.fork_rng).__code__
# The functions of torch.random, whatever they are wrapped in.
RANDOM_STATE = tuple(f for f in map(inspect.unwrap, vars(torch.random).values()) if is_a(f, types.FunctionType))


def _name(fn: Any) -> str:
    return f"{getattr(fn, '__module__', '')}.{getattr(fn, '__qualname__', '')}"
