"""ArrayValues: NumPy arrays whose numbers vary: arrays from outside, what `Tensor.numpy` returns, and what NumPy computes
from them. Replay computes it again. Key type: ArrayValues.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import no_torch_function, storage_address, storage_key
from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite
from magpy_core.opgraph.functions import opaque_hint, opaque_read
from magpy_core.opgraph.host_calls import STORED, TO_ARRAY, HostCall
from magpy_core.opgraph.recorder import unrecorded
from magpy_core.opgraph.scalars import Sym
from magpy_core.recording.call_stack import Call
from magpy_core.recording.dynamic import assume_sizes_of
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds
from magpy_core.refgraph.arrays import are_separate, array_text, is_array, owner_of
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.source import Source
from magpy_core.refgraph.source_kinds import Computation

METHODS = frozenset({
    "all", "any", "argmax", "argmin", "argsort", "astype", "clip", "copy", "cumprod", "cumsum", "dot", "flatten", "item",
    "max", "mean", "min", "nonzero", "prod", "ravel", "repeat", "reshape", "round", "squeeze", "std", "sum", "swapaxes",
    "take", "tolist", "transpose", "var",
})  # fmt: skip
"""Methods of arrays that only read them."""
FACTS = frozenset({"dtype", "ndim", "shape", "size"})
_MOST_LISTED = 512  # numbers of one list
_INDICES = {"i": torch.int64, "b": torch.bool}
"""What torch makes of an array that indexes a tensor, by the kind of its type."""


@dataclass
class _Array:
    """``shaped_by``: the arrays from whose shapes its own follows; None if it follows from numbers that vary. ``index``: an
    input of the graph with the same numbers, with which tensors have been indexed."""

    value: Any
    sym: Sym
    shaped_by: tuple[_Array, ...] | None
    site: MaybeSite
    node: Node | None = None
    is_shape_read: bool = False
    """Whether a guard fixes the shape of an array from outside."""
    is_stale: bool = False
    """Whether its memory has been written since: what it is computed from is not what it shows."""
    is_shared: bool = False
    """Whether a tensor may show its memory: then nothing is stored into it."""
    index: torch.Tensor | None = None


class ArrayValues(Tracker):
    """No code of the program may use such an array in another way: that is refused."""

    _held: dict[int, _Array] = field(default_factory=dict, init=False)  # by id
    _of_tensors: list[tuple[torch.Tensor, int, MaybeSite]] = field(default_factory=list, init=False)  # with their versions
    _tensors: list[tuple[torch.Tensor, MaybeSite]] = field(default_factory=list, init=False)  # made of arrays
    _owners: dict[int, Any] = field(default_factory=dict, init=False)  # of the memory of arrays that leave, which are values
    _making: Call | None = field(default=None, init=False)

    def sym(self, value: Any, site: MaybeSite) -> Sym | None:
        """The symbol of an array; None if its numbers can't vary."""
        found = self._find(value, site)
        return None if found is None or found.is_stale else found.sym

    def can_fix(self, value: Any) -> bool:
        """Whether guards can fix the shape of an array."""
        found = self._held.get(id(value))
        return found is not None and _has_shape(found)

    def fix(self, value: Any, site: MaybeSite) -> bool:
        """Guard the shape of an array, if guards can: then its size is the same in every call."""
        found = self._find(value, site)
        if found is None or not _has_shape(found):
            return False
        for array in _origins(found):
            if array.node is not None and not array.is_shape_read:
                array.is_shape_read = True
                source = self._shape(array.node)
                self.refgraph.read(source, guard.SHAPE, array.value.shape, site)
                if self.ledger.learned.dims.pop(source.path, None) is not None:
                    self.ledger.learned.exact.add(source.path)
        return True

    def _shape(self, node: Node) -> Source:
        return self.sources.make("shape", node.source, None)

    def has_fixed_shape(self, value: Any) -> bool:
        """Whether guards fix the shape of an array already."""
        found = self._held.get(id(value))
        if found is None or not _has_shape(found):
            return False
        return all(array.node is None or array.is_shape_read for array in _origins(found))

    def varies(self, value: Any) -> bool:
        return is_array(value) and (id(value) in self._held or self.refgraph.node(value) is not None)

    def shows(self, value: Any, name: str, site: MaybeSite) -> bool:
        """Whether an attribute of an array that varies is a method that only reads it, or follows from what guards check:
        it is about to be read."""
        if not self.varies(value) or name not in METHODS | FACTS:
            return False
        return name in METHODS or (self.fix(value, site) and (name != "dtype" or self._follows_arrays(value)))

    def _follows_arrays(self, value: Any) -> bool:
        """Whether the type of the numbers in an array follows from those of arrays from outside, and from no number."""
        return all(map(self.is_outside, self._held[id(value)].sym.leaves()))

    def is_outside(self, leaf: Sym) -> bool:
        """Whether this is the symbol of an array from outside."""
        return leaf.kind == "source" and any(
            held.node is not None and held.node.source is leaf.payload for held in self._held.values()
        )

    def _find(self, value: Any, site: MaybeSite) -> _Array | None:
        if (held := self._held.get(id(value))) is not None or not is_array(value):
            return held
        node = self.refgraph.node(value)
        if node is None:
            return None
        try:
            text = array_text(value)
        except LookupError:
            return None
        self.refgraph.read(self.sources.make("array", node.source, None), guard.EQUAL, text, site)
        held = _Array(value, self.ledger.scalars.source(node.source, None), (), site, node)
        self._held[id(value)] = held
        if not self.ledger.learned.dims.get(self._shape(node).path):
            self.fix(value, site)
        return held

    def keep(self, value: Any, sym: Sym, shaped_by: Iterable[Any] | None, site: MaybeSite) -> None:
        """The region has computed an array. ``shaped_by``: from whose shapes its own follows, None if from numbers."""
        origins = None if shaped_by is None else tuple(self._held[id(array)] for array in shaped_by)
        self._held[id(value)] = _Array(value, sym, origins, site)

    def of_tensor(self, node: Any, tensor: torch.Tensor, array: Any) -> None:
        """``tensor.numpy()`` has returned ``array``, which shows the memory of the tensor."""
        self.ledger.ops.fix_sizes(tensor)
        self._of_tensors.append((tensor, tensor._version, self.journal.site))
        sym = self.ledger.scalars.call(TO_ARRAY, (Sym("tensor", node, (), None),), None)
        self.keep(array, sym, (), self.journal.site)

    def refuse(self, value: Any) -> bool:
        """Whether an array that varies is used in another way; refuses it."""
        held = self._held.get(id(value))
        if held is None or (held.node is not None and not held.is_stale):
            return False  # those from outside are refused elsewhere
        if held.sym.on_host:
            self.context.arrays.refuse_outside(held.site)
        else:
            self.journal.refuse_call("MP102", opaque_read("numpy"), hint=opaque_hint("numpy"), site=held.site)
        return True

    def listed(self, values: list[Any], sym: Sym) -> bool:
        """Give the numbers of ``array.tolist()`` symbols. False if they can't have any."""
        if len(values) > _MOST_LISTED or not all(type(v) in kinds.PYTHON_NUMBERS for v in values):
            return False
        scalars = self.ledger.scalars
        values[:] = [scalars.bind(v, scalars.call(_ELEMENT, (sym, k), v)) for k, v in enumerate(values)]
        return True

    def tensor_made(self, fn: Any, array: Any, options: dict[str, Any], tensor: Any) -> Any:
        """``torch.from_numpy(array)`` and the like have returned ``tensor``: it is an input of the graph, and is made again
        before it."""
        held = self._held[id(array)]
        self._input_made(fn, held, options, tensor)
        held.is_shared = held.is_shared or fn is not torch.tensor
        return tensor

    def _input_made(self, fn: Any, held: _Array, options: dict[str, Any], tensor: torch.Tensor) -> None:
        root = self.sources.const(fn, f"torch.{fn.__name__}")
        source = self.sources.make("computed", root, Computation(held.sym, tuple(options.items())))
        self.refgraph.read(source, guard.TENSOR, type(tensor), self.journal.site)
        if held.node is not None:
            assume_sizes_of(self.ledger, source, tensor, self._shape(held.node))
        self.refgraph.add(tensor, source)
        self._tensors.append((tensor, held.site))

    def index_made(self, array: Any, site: MaybeSite) -> torch.Tensor | None:
        """``x[array]``, which torch converts to a tensor of indices, or to a mask: it is an input of the graph. None for
        arrays that can't be an input."""
        dtype = _INDICES.get(array.dtype.kind)
        if dtype is None or not self.gives_tensor(array, site):
            return None
        held = self._held[id(array)]
        if held.index is None:
            with unrecorded(self.ledger.ops):
                held.index = torch.tensor(array, dtype=dtype)
            self._input_made(torch.tensor, held, {"dtype": dtype}, held.index)
        return held.index

    def makes_tensor(self, fn: Any, array: Any, options: dict[str, Any], site: MaybeSite) -> bool:
        """Whether the result of the call that begins, which is that of ``fn(array, **options)``, will be an input of the
        graph."""
        if not self.gives_tensor(array, site):
            return False
        made = partial(self.tensor_made, fn, array, options)
        self.context.stack.expect(made, lambda: self.context.arrays.refuse_outside(site))
        self._making = self.context.stack.frames[-1] if self.context.stack.frames else None
        return True

    @property
    def is_making_tensor(self) -> bool:
        """Whether that call is in progress: what it does to the new tensor is no operation of the graph."""
        frames = self.context.stack.frames
        return self._making is not None and bool(frames) and frames[-1] is self._making

    def gives_tensor(self, value: Any, site: MaybeSite) -> bool:
        """Whether a tensor made of an array can be an input of the graph: its numbers are known before the graph runs."""
        held = self._find(value, site)
        return held is not None and not held.is_stale and held.sym.on_host

    def stores(self, site: MaybeSite, array: Any, key: Any, value: Any) -> bool:
        """Whether ``array[key] = value`` is a number that replay stores, too."""
        places = key if type(key) is tuple else (key,)
        if not is_array(array) or self.refgraph.node(array) is None or (held := self._find(array, site)) is None:
            return False
        scalars, shape = self.ledger.scalars, array.shape
        if not array.flags.writeable or len(places) != len(shape) or not all(type(k) is int for k in places):
            return False
        if not _fits(value, array.dtype) or not all(-n <= k < n for k, n in zip(places, shape, strict=True)):
            return False
        if any(other.is_shared and owner_of(other.value) is owner_of(array) for other in self._held.values()):
            return False
        syms = tuple(scalars.get(k) or k for k in places)
        if any(isinstance(sym, Sym) and not sym.on_host for sym in syms):
            return False
        for sym, n in zip(syms, shape, strict=True):
            if isinstance(sym, Sym):  # a guard checks that it is an index
                self.context.decisions.decide(scalars.call(_is_index, (sym, n), True), True, "compare", site)
        held.sym = scalars.call(STORED, (held.sym, scalars.get(value) or value, *syms), None)
        held.index = None  # it has the numbers from before
        for other in self._held.values():
            if other is not held and owner_of(other.value) is owner_of(array):
                other.is_stale = True
        self.ledger.fresh.array_writes.append((array, places, value, site))
        return True

    def leaves(self, array: Any) -> Sym | None:
        """What computes an array that leaves the region, if replay can: from what is known before the graph runs, and with
        memory that nothing else has which leaves, unless it is memory from outside."""
        held = self._held.get(id(array))
        if held is None or held.node is not None or held.is_stale or not held.sym.on_host or self.ledger.fresh.array_writes:
            return None
        owner = owner_of(array)
        if owner is None or any(other.is_shared and owner_of(other.value) is owner for other in self._held.values()):
            return None
        if self.refgraph.node(owner) is None and self._owners.setdefault(id(owner), array) is not array:
            return None
        return held.sym

    def left(self) -> None:
        """At exit: what arrays show must still be what they have shown, and they must share no memory."""
        ops = self.ledger.ops
        written = {storage_key(tensor) for tensor, _ in ops.writes.mutated.values()}
        for tensor, version, site in self._of_tensors:
            with no_torch_function():
                changed = tensor._version != version or storage_key(tensor) in written
            if changed:
                self.journal.refuse("MP102", opaque_read("numpy"), hint=opaque_hint("numpy"), site=site)
        for tensor, site in self._tensors:
            if storage_key(tensor) in written:
                self.context.arrays.refuse_outside(site)
        outside = [held for held in self._held.values() if held.node is not None]
        if not outside:
            return
        tensors = [ops.entry.of(t) for t, _ in ops.inputs.guarded.values() if t.device.type == "cpu"]
        others = [t for t in tensors if self.ledger.fresh.array_writes or storage_key(t) in written]
        if not are_separate([held.value for held in outside], map(storage_address, others)):
            self.context.arrays.refuse_outside(outside[0].site)
        self.ledger.fresh.arrays += [held.node.source for held in outside if held.node is not None]


def _has_shape(array: _Array) -> bool:
    return array.shaped_by is not None and all(map(_has_shape, array.shaped_by))


def _origins(array: _Array) -> list[_Array]:
    """The array, and all from whose shapes its own follows."""
    return [array, *(origin for one in array.shaped_by or () for origin in _origins(one))]


def _is_index(place: int, size: int) -> bool:
    return -size <= place < size


def _fits(value: Any, dtype: Any) -> bool:
    """Whether storing such a number neither raises nor warns."""
    if dtype.kind == "b":
        return type(value) in kinds.BOOLS
    if dtype.str[1:] == "f8":
        return type(value) is float or type(value) in kinds.NUMPY_FLOATS
    return type(value) in kinds.NUMPY_NUMBERS and value.dtype == dtype


_ELEMENT = HostCall(lambda values, k: values[k], "element of list")
