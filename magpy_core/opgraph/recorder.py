"""OpRecorder: records the torch operations a region really executes into an FX graph.

A ``TorchFunctionMode`` sees each public operation while it runs on real tensors; nodes are found by tensor identity.
Parameters, buffers and every other tensor from outside are placeholders. Key types: OpRecorder, Host (what the recorder
asks of the recording it belongs to).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch.overrides import TorchFunctionMode

from magpy_core._compat.torch.autograd import is_view
from magpy_core._compat.torch.eval_frame import never_intercept
from magpy_core._compat.torch.surroundings import asked_for
from magpy_core._compat.torch.tensor_guards import no_torch_function, storage_key, version_of
from magpy_core._compat.torch.torch_state import put_back, set_aside
from magpy_core.findings import HERE, Unsupported
from magpy_core.opgraph import functions as fns
from magpy_core.opgraph import release, subclasses
from magpy_core.opgraph.assigned import Assigned
from magpy_core.opgraph.conditions import condition
from magpy_core.opgraph.data_shapes import masked, numbers_among, shaped_by_data, sizes_among, sparse
from magpy_core.opgraph.host import Host
from magpy_core.opgraph.python_reads import PythonReads
from magpy_core.opgraph.raising import MAY_RAISE
from magpy_core.opgraph.scalars import ScalarTable, Sym
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.source import Source

_CONST_TYPES = (bool, int, float, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format,
                type(Ellipsis), bytes, torch.fx.Node)  # fmt: skip
_TENSOR_TYPE = type(torch.FloatTensor)


class OpRecorder(PythonReads, Assigned, TorchFunctionMode):
    """Function-level recorder of one recording."""

    host: Host

    def __init__(self, scalars: ScalarTable) -> None:
        super().__init__()
        self.scalars = scalars
        self.graph = torch.fx.Graph()
        self.values: dict[int, tuple[torch.Tensor, torch.fx.Node]] = {}
        self.inputs: list[tuple[torch.fx.Node, Source, torch.Tensor]] = []
        self.scalar_inputs: list[tuple[torch.fx.Node, Sym]] = []
        self.guarded: dict[int, tuple[torch.Tensor, Source]] = {}  # tensors whose metadata the program depends on
        self.mutated: dict[int, tuple[torch.Tensor, Source]] = {}
        self.data_shaped: set[int] = set()
        self.read_inside: list[Any] = []  # tensors that native code has read as numbers in the operation at hand
        self._numbers: list[torch.Tensor] = []
        self._took_varying: list[tuple[Sym, Any]] = []  # numbers that vary, and their values, which it takes
        self.op_depth = 0
        self.op_count = 0
        self._made_bytes = 0  # since the values were last looked through
        self.shadow: Any = None  # the dispatch mode below, if one is at work
        self.drew_random = False
        self.first_change: torch.fx.Node | None = None  # the first operation that changes a graph input
        self._written: set[int] = set()  # memory that operations have written to
        self.entry_memory: dict[int, torch.Tensor] = {}  # where `requires_grad` changed: as it was, by id
        self.entry_history: dict[int, tuple[bool, Any]] = {}
        self._took_number = False  # whether the call being recorded takes a number that varies
        self._scalar_nodes: dict[int, torch.fx.Node] = {}
        self._last_placeholder: torch.fx.Node | None = None
        self._keep: list[Any] = []

    # -- graph inputs ------------------------------------------------------------------------------------------

    def _placeholder(self, name: str) -> torch.fx.Node:
        anchor = self._last_placeholder
        if anchor is not None:
            with self.graph.inserting_after(anchor):
                node = self.graph.placeholder(name)
        else:
            first = next(iter(self.graph.nodes), None)
            if first is None or first.op == "root":
                node = self.graph.placeholder(name)
            else:
                with self.graph.inserting_before(first):
                    node = self.graph.placeholder(name)
        self._last_placeholder = node
        return node

    def guard_tensor(self, tensor: torch.Tensor) -> Source:
        """Make the capture depend on an outside tensor's metadata; returns its source."""
        found = self.guarded.get(id(tensor))
        if found is not None:
            return found[1]
        source = self.host.outside_tensor(tensor)
        self.guarded[id(tensor)] = (tensor, source)
        self.keep_history(tensor)
        return source

    def node_of(self, tensor: torch.Tensor) -> torch.fx.Node:
        found = self.values.get(id(tensor))
        if found is not None:
            return found[1]
        subclasses.refuse_own_kernels(type(tensor))
        source = self.guard_tensor(tensor)
        name = "".join(c if c.isalnum() else "_" for c in source.describe()).strip("_") or "x"
        node = self._placeholder(name[-60:] if not name[-60:][0].isdigit() else "t_" + name[-58:])
        fns.note(node, tensor, magpy_source=source, magpy_version=version_of(tensor))
        self.inputs.append((node, source, tensor))
        self.values[id(tensor)] = (tensor, node)
        return node

    def scalar_node(self, sym: Sym) -> torch.fx.Node:
        """The graph value of a symbolic scalar: an input when the host can compute it, arithmetic on reads otherwise."""
        found = self._scalar_nodes.get(id(sym))
        if found is not None:
            return found
        if sym.kind == "node":
            return sym.payload  # type: ignore[no-any-return]
        if sym.on_host and not sym.follows_sizes():
            node = self._placeholder(f"scalar_{len(self.scalar_inputs)}")
            node.meta["magpy_scalar"] = type(sym.hint)
            node.meta["magpy_hint"] = sym.hint
            self.scalar_inputs.append((node, sym))
        elif sym.kind == "source":  # a dimension of a graph input: read it in the graph so that shapes stay symbolic
            source = sym.payload
            tensor = next(t for t, s in self.guarded.values() if s is source.base)
            node = self.graph.call_method("size", (self.node_of(tensor), source.key))
        else:
            args = tuple(self.scalar_node(a) if is_a(a, Sym) else a for a in sym.args)
            node = self.graph.call_function(sym.payload, args)
        self._keep.append(sym)
        self._scalar_nodes[id(sym)] = node
        return node

    # -- arguments ---------------------------------------------------------------------------------------------

    def to_fx(self, value: Any) -> Any:
        """An op argument as an FX argument; raises Unsupported(MP106) for what a graph can't hold."""
        if is_a(value, torch.Tensor):
            return self.node_of(value)
        if type(value) in (int, float):
            sym = self.scalars.operand(value)
            self._took_varying += [] if sym is None else [(sym, value)]
            if sym is not None and not all(leaf.kind == "source" and leaf.payload.kind == "size" for leaf in sym.leaves()):
                self._took_number = True  # what follows from the sizes of inputs is known to the shape tracker
            return self.scalar_node(sym) if sym is not None else value
        if is_a(value, _CONST_TYPES) or fns.is_python_dtype(value):
            return fns.constant(value)
        if is_a(value, (list, tuple, dict)):
            self.host.read_container(value)
        if is_a(value, torch.Size):
            return tuple(self.to_fx(v) for v in value)
        if is_a(value, tuple):
            items = tuple(self.to_fx(v) for v in value)
            return type(value)(*items) if hasattr(value, "_fields") else items
        if is_a(value, list):
            return [self.to_fx(v) for v in value]
        if is_a(value, dict):
            return {k: self.to_fx(v) for k, v in value.items()}
        if is_a(value, slice):
            return slice(self.to_fx(value.start), self.to_fx(value.stop), self.to_fx(value.step))
        if is_a(value, range):
            return list(value)
        if is_a(value, torch.Generator):
            raise Unsupported(
                "MP106",
                f"{HERE} draws from a torch.Generator, whose state can't be part of a graph.",
                hint="Draw from torch's own generator (`torch.manual_seed` seeds it), or draw outside the region.",
            )
        if kinds.is_number_of_numpy(value):
            return value.item()
        if type(value) is _TENSOR_TYPE:  # ``x.type(torch.LongTensor)``
            return f"{value.__module__}.{value.__name__}"
        if kinds.holds_memory(type(value)):
            if self.host.graph_incomplete:  # it may be what a refused call gave
                raise Unsupported("", "")
            raise Unsupported("MP105", fns.OUTSIDE_ARRAY, hint=fns.OUTSIDE_ARRAY_HINT)
        raise Unsupported("MP106", f"{HERE} takes a value of type `{type(value).__name__}`, which a graph can't hold.")

    def condition(self, sym: Sym) -> tuple[torch.fx.Node, ...] | None:
        """The operations that a decision takes if it follows from the graph's inputs, as they are when the region begins."""
        tensors = {node: tensor for tensor, node in self.values.values()}

        def unchanged(node: torch.fx.Node) -> bool:
            tensor = tensors.get(node)
            return tensor is None or storage_key(tensor) not in self._written

        with no_torch_function():
            return condition((leaf.payload for leaf in sym.leaves() if leaf.kind == "node"), self.graph, unchanged)

    # -- the mode ----------------------------------------------------------------------------------------------

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        func = asked_for(func)
        if self.op_depth or self.host.paused():
            return func(*args, **kwargs)
        self.op_depth += 1
        try:
            return self._handle(func, types, args, kwargs)
        finally:
            self.op_depth -= 1

    def _handle(self, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run ``func`` for real, exactly once, and record what it was. Never raises anything ``func`` itself doesn't."""
        host: Any = self.host
        before = host.guarded_call(self._before, func, types, args, kwargs)
        # what runs inside a recorded call is not looked at, so it runs as it would without the second recorder; unless
        # it may take a tensor for a number, which that one sees
        aside = (self._unwatched or not self._numbers) and set_aside(self.shadow)
        try:
            result = func(*args, **kwargs)
        except Exception:
            host.operation_raised(fns.function_name(func))
            raise
        finally:
            if aside:
                put_back(self.shadow)
        return host.guarded_result(self._after, result, before, func, args, kwargs)

    def _before(self, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Convert the arguments while they still have their entry state."""
        self.host.torch_call_seen()
        subclasses.refuse_own_functions(types)
        if self._made_bytes > release.EVERY or self.reshaped_leaf:
            release.release_unreachable(self.values, self.guarded, histories=self.reshaped_leaf)
            self._made_bytes, self.reshaped_leaf = 0, False
        self._numbers, self.read_inside = [], []
        name = fns.function_name(func)
        self._took_number = any(map(self._is_data, sizes_among(name, args, kwargs)))
        if name.startswith(("get:", "set:", "del:")):
            return self._before_attribute(name, args)
        if str(getattr(func, "_qualified_op_name", func)).startswith(("profiler::", "profiler.")):
            return ("quiet", None)  # a profiler's range changes nothing
        if name in fns.METADATA_CALLS:
            return ("meta", None)
        if name == "requires_grad_":
            return self._before_assignment(args[0], "requires_grad", kwargs.get("requires_grad", (*args, True)[1]))
        if name in fns.SHAPE_CALLS:
            if any(is_a(a, torch.Tensor) for a in (*args[1:], *kwargs.values())):
                raise Unsupported("MP102", f"{HERE} takes a tensor for the number of a dimension.", hint="Use `.item()`.")
            return ("shape", None)
        if name in fns.REFUSED:
            hint = fns.REFUSED_HINTS.get(name, "")
            raise Unsupported("MP106", f"{HERE} uses `{name}`, which can't be recorded safely yet.", hint=hint)
        if name in fns.FROM_DATA and args and self.host.is_plain_array(args[0]) and set(kwargs) <= {"dtype", "device"}:
            return ("array", self._array_node(args, kwargs, share=name != "tensor"))
        if name in fns.FROM_DATA and args and kwargs.get("dtype") is None and self._number_of_numpy(args[0]):
            raise Unsupported("MP106", f"{HERE} takes its dtype from a NumPy number.", hint="Say the dtype.")
        if name == "tolist" and self._listable(args[0]):
            return ("list", self.to_fx(args[0]))
        if name == "__format__" and self._is_number(args[0]):
            return ("text", self.to_fx(args[0]))
        if name in fns.OPAQUE_READS:
            self.host.graph_incomplete = self.host.graph_incomplete or name in fns.GIVES_ARRAY
            raise Unsupported("MP102", fns.opaque_read(name), hint=fns.opaque_hint(name))
        if name == "__hash__" or (name == "type" and len(args) == 1 and not kwargs):  # ``x.type()`` names dtype and device
            return ("meta", None)
        return self.prepare(func, args, kwargs)

    def _number_of_numpy(self, value: Any) -> bool:
        """Whether ``value`` is a NumPy number, or a list or tuple that holds one at any depth."""
        if is_a(value, (list, tuple)):
            return any(map(self._number_of_numpy, value))
        return kinds.is_number_of_numpy(value)

    def prepare(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Arguments as graph values, and what in-place changes are found by."""
        name = fns.function_name(func)
        tensors = self._tensors(args, kwargs)
        self._unwatched = out = {id(t) for t in self._tensors(kwargs.get("out"))}
        taken = [t for t in numbers_among(name, tensors) if id(t) not in out and self._is_data(t)]
        self._numbers, self._took_varying = taken, []
        versions = [(t, -1 if id(t) in out else t._version) for t in tensors if not t.is_inference()]
        fx_args = tuple(self.to_fx(a) for a in args)
        fx_kwargs = {k: self.to_fx(v) for k, v in kwargs.items()}
        in_place = fns.writes_in_place(name) or "out" in kwargs
        if in_place and any(t.is_inference() and (self._is_input(t) or is_view(t)) for t in tensors):
            raise Unsupported("MP106", f"{HERE} changes an inference tensor from outside, of which no guard can tell.")
        if in_place:  # inference tensors count no changes
            self._written.update(storage_key(t) for t in tensors if t.is_inference())
        if (in_place or kwargs.get("inplace") is True) and torch.is_grad_enabled():
            self._guard_history([*args[:1], kwargs.get("out")])
        return ("op", (name, fx_args, fx_kwargs, tensors, versions))

    _writes_view = False

    def _guard_history(self, written: list[Any]) -> None:
        """Autograd lets leaves and some views not be written: whether these tensors from outside are any is guarded."""
        flat = [t for v in written for t in (v if is_a(v, (list, tuple)) else (v,)) if is_a(t, torch.Tensor)]
        memory = {storage_key(t) for t in flat if t.requires_grad}
        for t, source in list(self.guarded.values()) if memory else ():
            if t.requires_grad and storage_key(t) in memory and id(t) not in self.mutated:
                self.host.read_field(source, t, "is_leaf", t.is_leaf)
                if t._base is None:
                    self.host.read_field(source, t, "_base", None)
                else:  # views made by some operations, or of leaves, may not be written: it may raise
                    self._writes_view = True

    def _is_input(self, tensor: torch.Tensor) -> bool:
        return id(tensor) in self.guarded

    def _before_attribute(self, name: str, args: tuple[Any, ...]) -> Any:
        action, attr = name.split(":")
        if action == "get":
            if attr in fns.METADATA_GETTERS:
                return ("meta", None)
            if attr in fns.SHAPE_GETTERS:
                return ("shape", None)
            if attr in fns.FIELD_GETTERS:
                return ("field", attr)
            if attr in fns.OPAQUE_READS:
                raise Unsupported("MP102", f"{HERE} shows Python something of a tensor (`.{attr}`) that no guard can watch.")
            return ("op", (name, (self.to_fx(args[0]), attr), {}, [args[0]], []))
        return self._before_assignment(args[0], attr, args[1] if action == "set" else None)

    def _after(
        self, result: Any, before: Any, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        what, info = before
        if what == "op":
            return self._record(func, result, info)
        if what == "array":
            self._bind(result, info, False)
            return result
        tensor: Any = args[0] if args else next(iter(kwargs.values()), None)
        if not is_a(tensor, torch.Tensor):
            return result
        if what in ("list", "text"):
            return getattr(self, f"_record_{what}")(tensor, info, result)
        if what == "set_field":
            self.host.field_written(tensor, info, args[1] if len(args) > 1 else None)
            return result
        known = id(tensor) in self.values and id(tensor) not in self.guarded
        if what == "field":
            if known:
                if info == "is_leaf" or (info in ("grad", "grad_fn", "_backward_hooks", "retains_grad") and result is None):
                    return result
                raise Unsupported("MP106", f"{HERE} reads `.{info}` of a tensor of the region's own.")
            source = self.guard_tensor(tensor)
            self.host.read_field(source, tensor, info, result)
            return result
        if not known:
            self.guard_tensor(tensor)
        read = fns.function_name(func).removeprefix("get:")
        if read in fns.SIZE_READS or read == "is_contiguous":
            if any(id(t) in self.data_shaped for t in self._tensors(args)):
                raise Unsupported("MP109", f"{HERE} reads `{read}` of a tensor whose shape depends on tensor data.")
            self.host.layout_read(read, args, kwargs, result)
        if what == "shape" and fns.function_name(func) == "storage_offset":
            if not known:
                self.host.read_offset(self.guard_tensor(tensor), result)
            elif is_view(tensor) or any(storage_key(t) == storage_key(tensor) for t, _ in self.guarded.values()):
                raise Unsupported("MP106", f"{HERE} reads where a view begins in its storage, which a graph can't give.")
            return result
        if what == "shape":
            if id(tensor) in self.data_shaped:
                raise Unsupported("MP109", f"{HERE} gives Python a size that depends on tensor data.")
            return self.host.tensor_shape_read(tensor, fns.function_name(func), result, args[1:])
        return result

    def _record(self, func: Callable[..., Any], result: Any, info: Any) -> Any:
        name, fx_args, fx_kwargs, tensors, versions = info
        if result is NotImplemented:  # ``x == "text"``: Python goes on to the other side, or to identity
            return result
        if name.startswith("get:"):
            node = self.graph.call_function(getattr, fx_args)
        elif name == "__getitem__":
            node = self.graph.call_function(operator.getitem, fx_args)
        elif name == "__setitem__":
            node = self.graph.call_function(operator.setitem, fx_args)
        elif fns.is_tensor_method(func):
            node = self.graph.call_method(name, fx_args, fx_kwargs)
        else:
            node = self.graph.call_function(func, fx_args, fx_kwargs)
        self.host.mark_operation(node, result)
        if self._writes_view:
            node.meta[MAY_RAISE], self._writes_view = True, False
        self.op_count += 1
        self._made_bytes += release.made_bytes(result)
        self._decide_numbers()
        self._decide_sameness(node, name, result, tensors)
        if name in fns.LENGTH_FROM_SIZE:
            if self._took_number or any(id(t) in self.data_shaped for t in tensors[:1]):
                self._refuse_parts(result)
            self.host.exact_sizes(tensors[:1])
        shaped = (
            any(id(t) in self.data_shaped for t in tensors)
            or shaped_by_data(func, name, fx_args, fx_kwargs)
            or sparse(tensors, self._tensors(result))
            or masked(name, tensors)
            or (self._took_number and fns.may_size(name))
        )
        silent = fns.silently_written(func, fx_args, fx_kwargs)
        for t, version in versions:
            if t._version != version or (silent and self.values[id(t)][1] in silent):
                self._changed(t, node)
                self._check_layout(name if version >= 0 else "out", t, tensors)
        if name in fns.SCALAR_READS and type(result) in (int, float):
            return self._scalar_read(name, node, result, tensors[0])
        if name in fns.SCALAR_READS or name in fns.TRUTH_READS or (type(result) is bool and tensors):
            self.host.branch(self.scalars.node(node, result), result, name)
            return result
        if self._gave_back(func, name, result, versions):
            return result
        self._bind(result, node, shaped)
        return result

    def _changed(self, tensor: torch.Tensor, node: torch.fx.Node) -> None:
        """``tensor`` was changed in place by ``node``: so was every graph input that shares its memory."""
        memory = storage_key(tensor)
        self._written.add(memory)
        for t, source in list(self.guarded.values()):
            if id(t) in self.mutated:
                if t is tensor:
                    self.host.tensor_written(t, source)  # again: for the finding at this line
            elif t is tensor or (memory and storage_key(t) == memory):
                self.mutated[id(t)] = (t, source)
                self.first_change = self.first_change or node
                self.host.tensor_written(t, source)

    def _scalar_read(self, name: str, node: torch.fx.Node, result: Any, tensor: torch.Tensor) -> Any:
        if name == "__index__" or not self.host.handed(tensor):
            self.host.branch(self.scalars.node(node, result), result, "item")
            return result
        return self.scalars.bind(result, self.scalars.node(node, result))

    def _bind(self, result: Any, node: torch.fx.Node, shaped: bool) -> None:
        if is_a(result, torch.Tensor):
            if kinds.kind_of(result) == kinds.TENSOR and type(result) not in (torch.Tensor, torch.nn.Parameter):
                raise Unsupported("MP106", f"An operation gives a {type(result).__name__}, a tensor subclass.")
            if id(result) not in self.guarded:  # an op that returns its own input leaves the input's node in force
                self.values[id(result)] = (result, node)
            if shaped:
                self.data_shaped.add(id(result))
            return
        if is_a(result, (tuple, list)):
            if all(not is_a(r, (torch.Tensor, tuple, list, dict)) for r in result) and result:
                raise Unsupported("MP102", "An operation gives Python values that depend on tensor data.")
            for i, r in enumerate(result):
                if is_a(r, (torch.Tensor, tuple, list, dict)):
                    self._bind(r, self.graph.call_function(operator.getitem, (node, i)), shaped)
            self._keep.append(result)
            return
        if type(result) is dict and all(is_a(r, (torch.Tensor, tuple, list, dict)) for r in result.values()):
            for k, r in result.items():
                self._bind(r, self.graph.call_function(operator.getitem, (node, k)), shaped)
            return
        if result is None or is_a(result, (torch.dtype, torch.device, torch.layout)):
            return
        if is_a(result, (bool, int, float, complex)) and not node.all_input_nodes:
            return
        raise Unsupported(
            "MP106", f"An operation gives a {type(result).__name__}, which can't be part of an operator graph."
        )


# An operation is one event: neither our handling of it nor the Python inside it is monitored.
never_intercept(OpRecorder.__torch_function__)
