"""ArrayEvents: NumPy arrays and numbers that hold tensors' data, or the data of arrays from outside.

They are values of the graph: what NumPy computes with them becomes nodes that make the same calls again (on the eager
backend; no compiler takes them). Where Python needs one of their numbers, that is a decision on data. Key type: ArrayEvents.
"""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from magpy_core.findings import HERE, Unsupported
from magpy_core.guards import kinds as guard
from magpy_core.monitor import policy
from magpy_core.opgraph.arrays import ELEMENTWISE, SHAPED, VIEWS, Hole, Kept, again, array_facts, iterates, may_write
from magpy_core.opgraph.scalars import BINARY, COMPARE, UNARY
from magpy_core.recording.base import memory_owner
from magpy_core.recording.outside_calls import CALLBACKS, OutsideCallEvents
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a

_MOST_COMPARED = 4096  # numbers of an array that are compared when Python needs them all
_METADATA = frozenset({"shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides", "__class__", "__array_priority__"})
_ELEMENTS = frozenset({list, tuple})
_IN_PLACE = {f"{sign}=": getattr(operator, f"i{fn.__name__.rstrip('_')}") for sign, fn in BINARY.items()}
_CONVERTED = (int, float, bool)


def _numpy(name: str) -> Any:
    module = sys.modules.get("numpy")
    return getattr(module, name) if module is not None else None


class ArrayEvents(OutsideCallEvents):
    """Arrays as values of the graph. ``data`` maps an object's id to the object and its node; the node of an array that
    only shares a tensor's memory is made when it is first needed (its shape alone needs none)."""

    data: dict[int, tuple[Any, Any]]

    # -- which values ------------------------------------------------------------------------------------------

    def is_data(self, value: Any) -> bool:
        """Whether ``value`` is tracked; an array from outside is, from its first use on."""
        if id(value) in self.data:
            return True
        array = _numpy("ndarray")
        if array is None or type(value) is not array or value.dtype.hasobject:
            return False
        node = self.refgraph.node(value)
        if node is None:
            return False
        sym = self.scalars.source(node.source, None)
        facts = array_facts(value)
        seen = self.scalars.call(array_facts, (sym,), facts)
        fact = self.sources.const(seen, f"shape and dtype of {node.source.describe()}")
        self.refgraph.read(fact, guard.ARRAY_FACTS, (seen, facts), self.site)
        self.data[id(value)] = (value, self.ops.scalar_node(sym))
        self.arrays_from_outside.append(value)
        owner = memory_owner(value)
        self.shared_memory[id(owner)] = owner  # a view that no event shows is refused
        self.only_eager(outside=True)
        return True

    def holds_data(self, tree: Any, tensors: bool = False) -> bool:
        """Whether data of a tensor (or, on demand, a tensor itself) is somewhere in a call's arguments."""
        stack, budget = [tree], 10_000
        while stack and budget:
            v = stack.pop()
            budget -= 1
            if self.is_data(v) or (tensors and is_a(v, torch.Tensor)):
                return True
            if type(v) in kinds.NUMBER_TYPES:
                sym = self.scalars.get(v)
                if sym is not None and not sym.on_host:
                    return True
            elif type(v) in (tuple, list):
                stack.extend(v)
            elif type(v) is dict:
                stack.extend(v.values())
            elif type(v) is slice:
                stack.extend((v.start, v.stop, v.step))
        return False

    def data_node(self, value: Any) -> Any:
        """The graph value of a tracked object."""
        kept, node = self.data[id(value)]
        if is_a(node, torch.Tensor):
            node = self.ops.graph.call_method("numpy", (self.ops.node_of(node),))
            node.meta["magpy_site"] = self.site
            self.data[id(value)] = (kept, node)
            self.only_eager()
        return node

    def drawn_array(self, site: Any, source: Any, result: Any) -> bool:
        """An array that was drawn from a random stream of NumPy's is an input of the graph, like one from outside."""
        if not (kinds.is_number_of_numpy(result) or type(result) is _numpy("ndarray")) or type(result) is _numpy("bool_"):
            return False
        self.draws.append(source)
        self.data[id(result)] = (result, self.ops.scalar_node(self.scalars.source(source, None)))
        owner = memory_owner(result)
        self.shared_memory[id(owner)] = owner
        self.only_eager()
        return True

    def only_eager(self, outside: bool = False) -> None:
        """Say, where it begins, why no compiler can take the graph."""
        if self._said_eager:
            return
        self._said_eager = True
        if outside:
            text = f"{HERE} takes an array from outside, whose memory can change without a trace: no compiler can take it."
            hint = "Make the tensor once, outside the region: a buffer (`register_buffer`) or an argument."
            self.ops.eager_only.append(("MP105", text, self.site, hint))
        else:
            text = f"{HERE} works on a tensor's data in NumPy: no compiler can take that into the graph."
            hint = "Compute with torch, or move what NumPy does out of the region."
            self.ops.eager_only.append(("MP102", text, self.site, hint))

    _said_eager = False

    def shares_tensor(self, array: Any, tensor: torch.Tensor) -> None:
        """``array`` is ``tensor.numpy()``."""
        if type(array) is _numpy("ndarray"):
            self.data[id(array)] = (array, tensor)
        self.share_array(array)

    # -- nodes -------------------------------------------------------------------------------------------------

    def template(self, tree: Any, inputs: list[Any]) -> Any:
        """``tree`` with a hole for each graph value. Raises Unsupported for what no node can take."""
        if self.is_data(tree):
            inputs.append(self.data_node(tree))
            return Hole(len(inputs) - 1)
        kind = type(tree)
        if kind in kinds.NUMBER_TYPES:
            sym = self.scalars.get(tree)
            if sym is None:
                return tree
            inputs.append(self.ops.scalar_node(sym))
            return Hole(len(inputs) - 1)
        if kind in (torch.Tensor, torch.nn.Parameter):
            inputs.append(self.ops.node_of(tree))
            return Hole(len(inputs) - 1)
        if kind is tuple or kind is list:
            node = self.refgraph.node(tree)
            if node is not None:
                self.contents(node, self.site, carry=True)
            return kind(self.template(v, inputs) for v in tree)
        if kind is dict:
            return {k: self.template(v, inputs) for k, v in tree.items()}
        if kind is slice:
            return slice(*(self.template(v, inputs) for v in (tree.start, tree.stop, tree.step)))
        if self.is_plain_array(tree):
            return Kept(tree.copy())
        plain = kinds.kind_of(tree) in (kinds.SCALAR, kinds.IDENTITY) and not is_a(tree, CALLBACKS)
        if plain or kinds.is_numpy_value(kind) or kind is torch.Size:
            return tree
        raise Unsupported("MP102", f"NumPy is given a {kind.__name__} together with tensors' data, which no graph can hold.")

    def prepared(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any], bool]:
        """What the node of a call is made from: target, inputs, and whether its result's shape follows from theirs."""
        inputs: list[Any] = []
        made = again(fn, self.template(args, inputs), self.template(kwargs, inputs))
        name = getattr(fn, "__name__", "")
        if name == "getitem":
            key = args[1] if type(args[1]) is tuple else (args[1],)
            fixed = all(type(k) in (int, slice, type(None), type(Ellipsis)) for k in key) and len(inputs) == 1
        else:
            whole = all(self._is_whole(v) for v in (*args, *kwargs.values()))
            fixed = name in ELEMENTWISE or (name in SHAPED and whole)
        return made, inputs, fixed

    def _is_whole(self, value: Any) -> bool:
        """No number that varies, which a size could follow from."""
        if type(value) in (tuple, list):
            return all(self._is_whole(v) for v in value)
        return not kinds.is_number_of_numpy(value) and (
            type(value) not in kinds.NUMBER_TYPES or self.scalars.get(value) is None
        )

    def data_result(self, site: Any, prepared: Any, result: Any) -> Any:
        """The node of a call that has returned ``result``. Gives back what the program gets."""
        made, inputs, fixed = prepared
        node = self.ops.graph.call_function(made, tuple(inputs))
        node.meta["magpy_site"] = site
        self.only_eager()
        return self.bound(site, result, node, fixed)

    def bound(self, site: Any, value: Any, node: Any, fixed: bool) -> Any:
        """``value`` is the graph's ``node`` from now on."""
        kind = type(value)
        if is_a(value, torch.Tensor):
            self.ops._bind(value, node, not fixed)
            return value
        if id(value) in self.data and self.data[id(value)][0] is value:
            return value  # the array itself, changed in place
        if kind in kinds.NUMBER_TYPES:
            return self.scalars.bind(value, self.scalars.node(node, value))
        if kind in (bool, str, bytes):
            self.decided(site, node, value)
        elif kind is _numpy("ndarray") and not value.dtype.hasobject:
            self.data[id(value)] = (value, node)
            self.share_array(value)  # a view that no event shows is refused
            if not fixed:
                self.decided(site, self.ops.graph.call_function(array_facts, (node,)), array_facts(value))
        elif kind is _numpy("bool_"):  # of which there are two objects
            self.decided(site, self.ops.graph.call_function(bool, (node,)), bool(value))
        elif kinds.is_number_of_numpy(value):
            self.data[id(value)] = (value, node)
        elif kind in (tuple, list):
            for i, part in enumerate(value):
                got = self.bound(site, part, self.ops.graph.call_function(operator.getitem, (node, i)), fixed)
                if got is not part and kind is list:
                    value[i] = got
                elif got is not part:  # the tuple keeps the plain number
                    self.decided(site, self.ops.graph.call_function(operator.getitem, (node, i)), part)
            if not fixed:
                self.decided(site, self.ops.graph.call_function(len, (node,)), len(value))
        elif value is not None:
            raise Unsupported("MP102", f"NumPy gives a {kind.__name__} made of tensors' data, which no graph can hold.")
        return value

    def decided(self, site: Any, node: Any, outcome: Any) -> None:
        """The program's path depends on ``node`` giving this outcome."""
        self.site = site
        self.branch_on(self.scalars.node(node, outcome), outcome, "value", site)

    def escape_data(self, value: Any, site: Any) -> None:
        """Python or native code needs the numbers of an array."""
        if type(value) is not _numpy("ndarray"):
            plain = value.item()
            kind = type(plain)
            if kind not in _CONVERTED:
                self.no_numbers(site)
                return
            self.decided(site, self.ops.graph.call_function(kind, (self.data_node(value),)), plain)
        elif self.whole and value.size <= _MOST_COMPARED:
            node = self.ops.graph.call_method("tobytes", (self.data_node(value),))
            self.decided(site, node, value.tobytes())
        else:
            self.no_numbers(site)

    def no_numbers(self, site: Any) -> None:
        self.refuse(
            "MP102",
            "The numbers of a NumPy array that holds a tensor's data are given to Python, where the graph can't follow.",
            hint="Compute with torch, or move what NumPy does out of the region.",
            site=site,
        )

    def written_data(self, array: Any, node: Any, site: Any) -> None:
        """A node changes ``array`` in place: so it does tensors that share its memory."""
        owner = memory_owner(array)
        if any(owner is memory_owner(outside) for outside in self.arrays_from_outside):
            self.refuse("MP110", f"{HERE} changes an array from outside; replay can't undo that yet.", site=site)
        elif is_a(owner, torch.Tensor):
            self.ops.op_depth += 1  # what is asked of the tensor now is not the program's
            self.ops._changed(owner, node)
            self.ops.op_depth -= 1

    def settle_arrays(self) -> None:
        """A tensor gets other memory: what shares its memory now must be a value of the graph before it does."""
        for value, node in list(self.data.values()):
            if is_a(node, torch.Tensor):
                self.data_node(value)

    def check_written(self, tensor: torch.Tensor) -> None:
        """A tensor was changed in place: its memory may be that of an array from outside."""
        for array in self.arrays_from_outside:
            owner = memory_owner(array)
            start = owner.__array_interface__["data"][0] if type(owner) is _numpy("ndarray") else None
            if start is None or start <= tensor.untyped_storage().data_ptr() < start + max(owner.nbytes, 1):
                self.refuse("MP110", f"{HERE} changes an array from outside; replay can't undo that yet.", site=self.site)
                return

    def materialize(self, array: Any) -> None:
        """An array of plain numbers gets data of a tensor: it is a value of the graph from now on."""
        made = again(_numpy("copy"), (Kept(array.copy()),), {})
        node = self.ops.graph.call_function(made, ())
        owner = memory_owner(array)
        self.shared_memory[id(owner)] = owner
        self.arrays = {k: v for k, v in self.arrays.items() if memory_owner(v) is not owner}
        self.data[id(array)] = (array, node)

    # -- calls -------------------------------------------------------------------------------------------------

    def data_call(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """A call with tracked values among its arguments; False when the usual policy fits it."""
        self.finished_data()
        owner = getattr(fn, "__self__", None) if is_a(fn, (types.BuiltinFunctionType, types.MethodWrapperType)) else None
        if owner is not None and not is_a(owner, types.ModuleType) and self.is_data(owner):
            method = getattr(type(owner), fn.__name__, None)
            self.guarded(site, self._call, site, method, (owner, *args), kwargs)
            return True
        if type(fn) is types.MethodDescriptorType and args and self.is_data(args[0]):
            self.guarded(site, self._call, site, fn, args, kwargs)
            return True
        alone = len(args) == 1 and not kwargs
        if fn is len or fn is torch.from_numpy or any(fn is known for known in (*_CONVERTED, *_ELEMENTS)):
            if not alone or not self.is_data(args[0]):
                return False
            if fn is torch.from_numpy:
                self.apply_as(site, fn, args, {})
            elif fn is not len:
                self.guarded(site, self._call, site, fn, args, kwargs)
            return True
        module = policy.module_of(fn) or policy.module_of(type(fn))
        if not module.startswith("numpy"):
            if self.data and not module.startswith("torch") and iterates(fn):
                for value in (*args, *kwargs.values()):
                    if id(value) in self.data and type(value) is _numpy("ndarray"):
                        self.escape_data(value, site)
            return False
        if not self.holds_data((args, kwargs), tensors=True):
            return False
        self.guarded(site, self._call, site, fn, args, kwargs)
        return True

    def finished_data(self) -> None:
        """What was prepared for a call or an operator should have been used: if not, it raised."""
        if self.data_pending is not None or self.data_calls:
            self.data_pending = None
            for *_, tensors in self.data_calls:
                self.ops.op_depth -= tensors
            self.data_calls.clear()
            self.refuse_once("a NumPy operation raised")

    def _call(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        name = getattr(fn, "__name__", "")
        if fn is None or not (fn in _CONVERTED or fn in _ELEMENTS or policy.is_pure_numpy(fn) or name == "item"):
            raise Unsupported(
                "MP102", f"`{name or type(fn).__name__}` is given tensors' data, where the graph can't follow."
            )
        written = [v for v in may_write(fn, args, kwargs) if type(v) is _numpy("ndarray")]
        for array in written:
            if self.is_plain_array(array):
                self.materialize(array)
        prepared = self.prepared(fn, args, kwargs)
        written = [v for v in written if self.is_data(v)]
        tensors = any(is_a(v, torch.Tensor) for v in (*args, *kwargs.values()))
        self.ops.op_depth += tensors  # ``__array__`` of a tensor is part of the call
        self.data_calls.append((site, prepared, written, tensors))

    data_calls: list[tuple[Any, Any, list[Any], bool]]

    def data_returned(self, site: Any, result: Any) -> Any:
        """A call that was prepared has returned."""
        _, prepared, written, tensors = self.data_calls.pop()
        self.ops.op_depth -= tensors
        got = self.guarded(site, self.data_result, site, prepared, result)
        if written:
            node = next(iter(reversed(self.ops.graph.nodes)))
            for array in written:
                self.written_data(array, node, site)
        return result if got is None or type(got) is not type(result) else got

    def apply_as(self, site: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], void: bool = False) -> None:
        raise NotImplementedError

    def guarded(self, site: Any, fn: Callable[..., Any], *args: Any) -> Any:
        """Run a step; what it can't do refuses the capture."""
        self.site = site
        try:
            return fn(*args)
        except Unsupported as error:
            self.unsupported(error)
        return None

    # -- operators ---------------------------------------------------------------------------------------------

    def data_operator(self, site: Any, lhs: Any, rhs: Any) -> bool:
        """Before ``lhs <op> rhs``: whether it is one on tracked arrays."""
        self.finished_data()
        if not (self.is_data(lhs) or self.is_data(rhs)):
            return False
        name = site.name or ""
        if is_a(lhs, torch.Tensor) or is_a(rhs, torch.Tensor):
            return not name.endswith("=") and self.with_tensor(site, BINARY.get(name), lhs, rhs)
        if name in _IN_PLACE and self.is_plain_array(lhs):
            self.materialize(lhs)
        if type(lhs) in (list, tuple, str, dict) or type(rhs) in (list, tuple, str, dict):
            self.escape_all(site, lhs, rhs)  # ``[0] * n``, ``"%d" % n``
            return True
        fn = _IN_PLACE.get(name) or BINARY.get(name) or (operator.matmul if name == "@" else None)
        if fn is None:
            self.no_numbers(site)
            return True
        self.data_pending = (site, self.guarded(site, self.prepared, fn, (lhs, rhs), {}))
        return True

    def with_tensor(self, site: Any, fn: Any, lhs: Any, rhs: Any) -> bool:
        """Before an operator on a tensor and an array, which NumPy and torch hand on until one of them can do it."""
        if fn is None or _numpy("ndarray") not in (type(lhs), type(rhs)):
            return False
        prepared = self.guarded(site, self.prepared, fn, (lhs, rhs), {})
        if prepared is not None:
            self.ops.op_depth += 1
            self.data_calls.append((site, prepared, [], True))
        return True

    data_pending: tuple[Any, Any] | None = None

    def data_operated(self, site: Any, lhs: Any, result: Any) -> Any:
        """After an operator that ``data_operator`` or ``data_unary`` prepared."""
        if self.data_calls and self.data_calls[-1][0] is site:
            return self.data_returned(site, result)
        pending = self.data_pending
        self.data_pending = None
        if pending is None or pending[0] is not site or pending[1] is None:
            return result
        got = self.guarded(site, self.data_result, site, pending[1], result)
        if result is lhs and type(result) is _numpy("ndarray"):
            self.written_data(lhs, next(iter(reversed(self.ops.graph.nodes))), site)
        return result if got is None or type(got) is not type(result) else got

    def data_unary(self, site: Any, value: Any) -> bool:
        self.finished_data()
        if not self.is_data(value):
            return False
        fn = UNARY.get(site.name or "")
        self.data_pending = (site, self.guarded(site, self.prepared, fn, (value,), {}) if fn is not None else None)
        return True

    def data_compared(self, site: Any, lhs: Any, rhs: Any) -> bool:
        self.finished_data()
        if not (self.is_data(lhs) or self.is_data(rhs)):
            return False
        if is_a(lhs, torch.Tensor) or is_a(rhs, torch.Tensor):
            return self.with_tensor(site, COMPARE[site.name or "=="], lhs, rhs)
        self.data_pending = (site, self.guarded(site, self.prepared, COMPARE[site.name or "=="], (lhs, rhs), {}))
        return True

    def data_truth(self, site: Any, value: Any) -> bool:
        if not self.is_data(value):
            return False
        if type(value) is _numpy("ndarray") and value.size != 1:
            return True  # raises
        node = self.ops.graph.call_function(bool, (self.data_node(value),))
        self.decided(site, node, bool(value))
        return True

    def data_contains(self, site: Any, item: Any, container: Any) -> bool:
        if not self.is_data(container):
            return False
        self.guarded(site, self._contains, site, item, container)
        return True

    def _contains(self, site: Any, item: Any, container: Any) -> None:
        made, inputs, _ = self.prepared(operator.contains, (container, item), {})
        self.decided(site, self.ops.graph.call_function(made, tuple(inputs)), item in container)

    # -- items, attributes, elements ---------------------------------------------------------------------------

    def data_item(self, site: Any, obj: Any, key: Any) -> bool:
        self.finished_data()
        if not self.is_data(obj):
            if self.is_plain_array(obj) and self.holds_data(key):
                self.data_pending = (site, self.guarded(site, self.prepared, operator.getitem, (obj, key), {}))
                return True
            return False
        self.data_pending = (site, self.guarded(site, self.prepared, operator.getitem, (obj, key), {}))
        return True

    def data_item_written(self, site: Any, obj: Any, key: Any, value: Any) -> bool:
        if self.is_plain_array(obj) and self.holds_data((key, value)):
            self.materialize(obj)
        if not self.is_data(obj):
            return False
        prepared = self.guarded(site, self.prepared, operator.setitem, (obj, key, value), {})
        if prepared is not None:
            node = self.ops.graph.call_function(prepared[0], tuple(prepared[1]))
            node.meta["magpy_site"] = site
            self.only_eager()
            self.written_data(obj, node, site)
        return True

    def data_attribute(self, site: Any, obj: Any, name: str) -> bool:
        if not self.is_data(obj):
            return False
        if name in VIEWS and site is not None and site.opname == "LOAD_ATTR":
            self.data_pending = (site, self.guarded(site, self.prepared, VIEWS[name], (obj,), {}))
        elif name not in _METADATA and not callable(getattr(type(obj), name, None)):
            self.refuse("MP102", f"`.{name}` gives an array's memory to Python, where the graph can't follow.", site=site)
        return True

    def elements(self, site: Any, array: Any) -> Iterator[Any]:
        """What iterating over a tracked array gives, each element tracked."""
        for i in range(len(array)):
            value = array[i]
            prepared = self.guarded(site, self.prepared, operator.getitem, (array, i), {})
            if prepared is not None:
                self.guarded(site, self.data_result, site, prepared, value)
            yield value
