"""Recording: one monitored run of a region, from entry to the parts of a capture. Key types: Recording, Recorded."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import global_check, no_torch_function
from magpy_core._compat.torch.torch_state import know_accelerator, random_streams, same_streams
from magpy_core.findings import HERE, Finding, Location, Unsupported, Value
from magpy_core.guards.explain import TensorFacts
from magpy_core.monitor.positions import is_user_file
from magpy_core.monitor.record import record
from magpy_core.opgraph.scalars import Sym
from magpy_core.opgraph.shadow import ShadowRecorder
from magpy_core.opgraph.shapes import ShapeTracker
from magpy_core.recording.base import Learned, memory_owner
from magpy_core.recording.frames import FrameEvents
from magpy_core.refgraph import kinds, verify
from magpy_core.refgraph.fields import ABSENT, instance_dict
from magpy_core.refgraph.graph import Node
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.source import Source
from magpy_core.replay.ir import Const, MadeInside, Plan
from magpy_core.replay.plan import Planner

_FAILED = object()


@dataclass
class Recorded:
    """What a monitored run left. ``plan`` is None when the run can't be captured; ``findings`` say why."""

    recording: Recording
    result: Any
    exception: BaseException | None
    plan: Plan | None
    findings: list[Finding]
    tensors: list[tuple[Source, TensorFacts, set[int], Any]]
    global_check: Callable[[], bool]

    def forget(self) -> None:
        """Of a run that became no capture: let go of all it held, so that the program's objects live no longer than they
        would have."""
        self.result = self.exception = None
        self.tensors.clear()
        recording, ops = self.recording, self.recording.ops
        recording.release()
        kept: list[Any] = [
            recording.calls, recording.tensor_writes, recording.field_writes, recording.outputs, recording.restores,
            ops.values, ops.guarded, ops.mutated, ops.entry_memory, ops.entry_history, ops.inputs, ops.scalar_inputs,
            ops._keep, recording.arrays, recording.shared_memory,
        ]  # fmt: skip
        for held in kept:
            held.clear()
        recording.refgraph.forget()
        recording.pending_call = recording.pending_torch = None


class Recording(FrameEvents):
    """Observer and op-recorder host of one monitored run."""

    def __init__(self, learned: Learned, region_id: str, location: Location, whole: bool = False) -> None:
        super().__init__(learned, region_id, whole)
        self._location = location
        self.refgraph.watch = self.keeps
        self._global_sites = set()
        self.locks_held = {}
        self._autocast = []
        self._inference = []
        self._special_read = set()
        self._tensor_classes = set()
        self._metaclasses = set()
        self._types = set()
        self.not_imported = {}
        self._cached = []
        self._settings = {}
        self._asked_loggers = []
        self._checkpoints = []
        self._functions = {}
        self._young: set[int] | None = None
        self._written_inside: set[str] = set()
        self.shapes = ShapeTracker(self.scalars, learned.dims) if learned.dims else None

    def fallback_location(self) -> Location:
        return self._location

    # -- Host of the operator recorder -------------------------------------------------------------------------

    def guarded_call(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Run a recorder step; whatever goes wrong refuses the capture and never reaches the program."""
        try:
            return fn(*args)
        except Unsupported as error:
            self.unsupported(error)
        except Exception as error:
            self.internal_error(error)
        return _FAILED

    def guarded_result(self, fn: Callable[..., Any], result: Any, before: Any, *args: Any) -> Any:
        if before is not _FAILED:
            after = self.guarded_call(fn, result, before, *args)
            if after is not _FAILED:
                return after
        self.adopt(result)
        return result

    def adopt(self, result: Any) -> None:
        """Give the tensors of an operation that was refused a place, so that later operations are not refused for them."""
        for tensor in self.ops._tensors(result):
            if id(tensor) not in self.ops.values:
                self.ops.values[id(tensor)] = (tensor, self.ops.graph.call_function(_unrecorded, ()))

    def internal_error(self, error: BaseException) -> None:
        kind = type(error).__name__
        self.refuse("MP901", f"MagPy's own recorder failed ({kind}: {error}); this call ran as plain Python.")

    def outside_tensor(self, tensor: torch.Tensor) -> Source:
        node = self.refgraph.node(tensor)
        if node is not None:
            if type(tensor) is not torch.Tensor:
                self.tensor_class(type(tensor), self.site)
            return node.source
        if self.is_young(tensor):
            if self.lost:  # reported where it was made
                raise Unsupported("", "")
            raise Unsupported("MP105", f"{HERE} takes a tensor that no recorded operation made.")
        raise Unsupported("MP111", f"{HERE} takes a tensor that was reached in a way the monitor can't follow.")

    def read_field(self, source: Source, tensor: torch.Tensor, name: str, value: Any) -> None:
        for written, field_name, _, _ in self.field_writes:
            if written is tensor and field_name == name:
                return
        self.value(self.sources.make("field", source, name), value, self.site)

    def read_container(self, value: Any) -> None:
        node = self.refgraph.node(value)
        if node is not None:
            self.contents(node, self.site)

    def read_offset(self, source: Source, value: int) -> None:
        self.value(self.sources.make("offset", source, None), value, self.site)

    def operation_raised(self, name: str) -> None:
        # whether it raises may depend on data that no guard watches
        self.refuse_once(f"`{name}` raised")

    def tensor_shape_read(self, tensor: torch.Tensor, what: str, result: Any, args: tuple[Any, ...]) -> Any:
        if self.shapes is None:
            return result
        number = self.shapes.read(self, tensor, what, result, args)
        return self.tensor_length(number) if what == "__len__" else number

    def tensor_length(self, number: Any) -> Any:
        """``len`` makes a number of its own: the copy that carries the symbol must be handed out when it returns."""
        sym = self.scalars.get(number)
        if sym is not None:
            if self.pending_call is not None and self.pending_call[1] == "tensor_len":
                self.pending_call = (self.pending_call[0], "tensor_len", (sym,))
            else:
                self.escape(sym, self.site)
        return number

    def sizes_vary(self) -> bool:
        return self.shapes is not None

    def sizes_from_data(self, result: Any) -> None:
        shapes = self.shapes
        for tensor in self.ops._tensors(result) if shapes is not None else ():
            if shapes is not None and id(tensor) in self.ops.values and shapes.from_data(self, tensor):
                self.ops.data_shaped.add(id(tensor))

    def exact_sizes(self, tensors: list[torch.Tensor]) -> None:
        """Python sees something that follows from the sizes of these: they can't vary in this capture."""
        if self.shapes is not None:
            for tensor in tensors:
                for size in self.shapes.expressions(self, tensor) or ():
                    if is_a(size, Sym):
                        self.escape(size, self.site)

    def shape_path(self, node: torch.fx.Node) -> None:
        """What an operation gave follows from sizes beyond its shape: from whether its input was contiguous, say."""
        if self.shapes is not None and not self.shapes.follow(self, node):
            self._hold_sizes()

    def layout_read(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Python is told something of a layout, which may hang on sizes that vary."""
        if name != "is_contiguous":
            self.exact_sizes(self.ops._tensors(args))
        elif self.shapes is not None and self.shapes.contiguous(self, args, kwargs) != result:
            self._hold_sizes()

    def _hold_sizes(self) -> None:
        """No size of an input can vary in this capture."""
        self.exact_sizes([tensor for tensor, _ in self.ops.guarded.values()])

    def free_dims(self, source: Source, tensor: torch.Tensor) -> set[int]:
        """Dimensions of an input that may vary.

        Sizes 0 and 1 are special to operations (broadcasting, squeeze), and where strides are not the plain ones, whether an
        operation copies follows from them: such inputs are guarded as they are.
        """
        dims = self.learned.dims.get(source.path)
        if not dims or tensor.layout is not torch.strided:
            return set()
        with no_torch_function():
            return {d for d in dims if d < tensor.dim() and tensor.shape[d] > 1} if tensor.is_contiguous() else set()

    def tensor_written(self, tensor: torch.Tensor, source: Source) -> None:
        site = self.site
        if tensor.grad_fn is not None:
            self.with_history.add(source.path)
        if (site is None or not is_user_file(site.code.co_filename)) and source.path in self._written_inside:
            return  # a library's steps on one tensor are one finding: finding its place costs time
        self._written_inside.add(source.path)
        self.tensor_writes.append((tensor, source, site))
        self.places.remember(source, self.site)

    def unrecorded(self, name: str) -> None:
        """From the shadow recorder: an operator ran that no recorded call accounts for."""
        fn = self.pending_torch[1] if self.pending_torch is not None else None
        self.pending_torch = None
        self.lost = True
        if isinstance(fn, torch.jit.ScriptFunction):
            self.foreign_compiler(f"`{fn.name}`, a torch.jit function,")
        if self._foreign and self.places.now(None, self.site).location in self._foreign:
            return
        self.refuse(
            "MP105",
            f"{HERE} runs an operator that the graph would miss ({name}): not by one of torch's Python functions.",
            hint="Make the tensor outside the region, or with torch.tensor, torch.stack or torch.zeros: what from_numpy and "
            "constructors like FloatTensor do with tensors and arrays can't be seen.",
        )

    # -- age ---------------------------------------------------------------------------------------------------

    def is_young(self, obj: Any) -> bool | None:
        """Whether the region made ``obj``: the collector is off while recording and its young list was empty at entry, so
        what it lists now was made since. None for objects the collector does not track."""
        if self._young is None:
            self._young = {id(o) for o in gc.get_objects(0)}
        if id(obj) in self._young:
            return True
        return False if gc.is_tracked(obj) else None

    def check_assumptions(self) -> None:
        """Every object that was taken for internal must be young."""
        self._young = None
        for obj, refusal, site in self.only_inside.values():
            if not self.is_young(obj) and not self._explained(site):
                if is_a(refusal, MadeInside):
                    self.refuse_again(refusal, site)
                else:
                    self.refuse(refusal.code, refusal.message, hint=refusal.hint, site=site)
        for obj, site in self.refgraph.assumed_internal.values():
            if id(obj) in self.refgraph.nodes:
                continue
            if self.is_young(obj) is False and not self._explained(site):
                self.refuse(
                    "MP111",
                    f"State outside the region ({kinds.bounded_repr(obj)}) was reached in a way the monitor can't follow.",
                    values=(Value("object", kinds.bounded_repr(obj)),),
                    site=site,
                )

    def _explained(self, site: Any) -> bool:
        """Whether the object that was used at ``site`` comes from a call that has been refused."""
        if not self.broken or site is None:
            return False
        return not is_user_file(site.code.co_filename) or self.places.now(site).location in self._told

    # -- the run -----------------------------------------------------------------------------------------------

    def run(self, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Recorded:
        """Run ``target`` for real under the monitor. The result or exception is the program's own."""
        self.active_error = sys.exception()
        know_accelerator()
        call_args, call_kwargs = self.enter(target, args, kwargs)
        state = global_check()
        random = random_streams()
        shadow = ShadowRecorder(self.ops, self.unrecorded)
        self.collecting = gc.isenabled()
        gc.collect(0)
        gc.disable()
        result: Any = None
        error: BaseException | None = None
        monitor = record(self)
        try:
            try:
                self.places.begin(sys._getframe(), target, args)
                with monitor, self.ops, shadow:
                    try:
                        result = target(*call_args, **call_kwargs)
                    finally:
                        self.shadow_back()
            except BaseException as raised:
                error = raised
            self.places.finished()
            self.ops.drew_random = not same_streams(random, random_streams())
            if monitor.observer_failure is not None and not self.gone:
                self.internal_error(monitor.observer_failure)
            plan = self.guarded_call(self.finish, result, error)
            if plan is not _FAILED and not self.broken and not self.passing and verify.enabled():
                verify.verify(self.refgraph, args, kwargs, self.is_young)
        finally:
            self.places.end()
            for undo in reversed(self.restores):
                undo()
            if self.collecting:
                gc.enable()
        if plan is _FAILED or self.broken or self.passing:
            plan = None
        tensors = []
        for tensor, source in self.ops.guarded.values():
            tensor = self.ops.entry_memory.get(id(tensor), tensor)  # as it was, if its `.data` was assigned
            dims = self.free_dims(source, tensor)
            tensors.append((source, TensorFacts.of(tensor), dims, tensor))
        if error is not None:
            _strip(error)
        return Recorded(self, result, error, plan, self.findings, tensors, state)

    active_error: BaseException | None = None

    def enter(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Root the target and the arguments; numbers known to vary are passed as private copies."""
        fn = target
        if is_a(fn, types.MethodType):
            self.refgraph.add(fn.__self__, self.sources.const(fn.__self__, "self"))
            fn = fn.__func__
        if is_a(fn, types.FunctionType):
            self.const_root(fn)
            self.function_fact(fn)
        elif kinds.kind_of(fn) == kinds.OBJECT:
            self.refgraph.add(fn, self.sources.const(fn, "self"))
            self.class_fact(type(fn), "__call__", None)
        names = parameter_names(target)
        if args and is_a(args[0], torch.nn.Module) and not is_a(target, torch.nn.Module):
            names = [*(names[:1] or ["self"]), *parameter_names(args[0])]  # nn.Module.__call__ itself
        names += [f"args[{i}]" for i in range(len(names), len(args))]
        if args and is_a(args[0], torch.optim.Optimizer):
            names[0] = "optimizer"
        new_args = [self.argument(self.sources.arg(i, names[i]), a) for i, a in enumerate(args)]
        new_kwargs = {k: self.argument(self.sources.kwarg(k), v) for k, v in kwargs.items()}
        return tuple(new_args), new_kwargs

    def argument(self, source: Source, value: Any) -> Any:
        return self.value(source, value, None, handed=True)

    def finish(self, result: Any, error: BaseException | None) -> Plan | None:
        """Turn what was seen into a plan; refuses when anything is in doubt."""
        self.imports_failed()
        self.loggers_changed()
        if self.pending_torch is not None:
            self.torch_call_missed()
        for var, entry, site in self.context_entry.values():
            if var.get(ABSENT) is not entry:
                self.refuse(
                    "MP110", f"The context variable `{var.name}` is left changed; replay can't repeat it.", site=site
                )
        if self._applied is not None:
            self.refuse_once("a custom function raised")
        if self._inference:
            self.refuse("MP106", "An inference mode entered inside the region stays open after it.")
        if self._autocast:
            self.refuse("MP106", "An autocast context entered inside the region stays open after it.")
        self.check_assumptions()
        self.hooks_out_of_reach()
        self.ops.settle_history()
        if error is not None:
            if not is_a(error, Exception):
                self.refuse("MP307", f"The region was left by {type(error).__name__}.")
                return None
            text = " ".join(str(error).split())[:120]
            said = f"{type(error).__name__}: {text}" if text else type(error).__name__
            self.note("MP307", f"The region leaves by an exception (`{said}`); such a call runs as plain Python.",
                      place=self.places.raised(error))  # fmt: skip
            return Plan(Const(None), True, [], [])
        self.errors_raised()
        self.locks_left()
        if self.broken or self.passing:
            return None
        planner = Planner(self.refgraph, self.ops, self.scalars, self.is_young)
        planner.constants = self.code_constants()
        planner.active_error = self.active_error
        planner.error_leaves = self.error_leaves
        planner.plain_array = lambda value: (
            type(value).__name__ == "ndarray" and self.is_plain_array(value) and self.is_plain_array(memory_owner(value))
        )
        plan = planner.plan(result, self.whole_content, self.outputs, self.field_writes)
        self.canonical_numbers()
        return plan

    def errors_raised(self) -> None:
        """An exception from outside that was raised has another traceback now, and perhaps another context."""
        for node, entry in self.refgraph.errors:
            if node.obj.__traceback__ is not entry:
                text = f"A `{type(node.obj).__name__}` from outside is raised and caught, so that its traceback grows."
                self.refuse("MP110", text, place=self.places.raised(node.obj))

    def error_leaves(self, error: BaseException) -> None:
        """Replay can make an exception again, but no frames for its traceback to show."""
        if error.__traceback__ is None:
            self.names_in_error(error)
            return
        text = f"A `{type(error).__name__}` that was raised inside is kept; replay can't make its traceback again."
        hint = "Keep its text, or `error.with_traceback(None)`."
        self.refuse("MP110", text, hint=hint, place=self.places.raised(error))
        raise Unsupported("", "told")

    def whole_content(self, node: Node) -> None:
        node.contents_read = False
        self.contents(node, None)

    def release(self) -> None:
        """Forget what only the run itself needed: a capture must keep neither tensors nor the user's objects alive."""
        self.refgraph.assumed_internal.clear()
        self.refgraph.errors.clear()
        self.locks_held.clear()
        self.scalars.forget_addresses()
        self._functions.clear()
        self.only_inside.clear()
        self.arrays.clear()
        for node in self.refgraph.nodes.values():
            node.summary = node.summary or repr(node)
            if node.kind != kinds.IDENTITY:
                node.obj = None
            node.snapshot = None
            # names of slots stay, for the printer; values and keys that are objects of the user's do not
            node.forced = [(op, k) for op, k in node.forced if op.startswith(("set_", "maybe_")) and type(k) is str]
        self._young = None

    def canonical_numbers(self) -> None:
        """No private copy of a small int stays in the user's world: put the shared object back where one was stored."""
        if not self.scalars:
            return
        for node in self.refgraph.written():
            for key, value in list(_slots_of(node)):
                if type(value) is int and self.scalars.get(value) is not None:
                    _store(node, key, int(str(value)))


def _slots_of(node: Node) -> list[tuple[Any, Any]]:
    if node.kind == kinds.DICT:
        return list(dict.items(node.obj))
    if node.kind == kinds.LIST:
        return list(enumerate(list.__iter__(node.obj)))
    return list((instance_dict(node.obj) or {}).items())


def _store(node: Node, key: Any, value: int) -> None:
    if node.kind == kinds.DICT:
        dict.__setitem__(node.obj, key, value)
    elif node.kind == kinds.LIST:
        list.__setitem__(node.obj, key, value)
    else:
        d = instance_dict(node.obj)
        if d is not None:
            d[key] = value


def _unrecorded() -> None:
    """Stands in the graph of a refused recording for a value no operation gave; such a graph is never run."""
    raise AssertionError("the graph of a refused recording was run")


def _strip(error: BaseException) -> None:
    """Take our own frames off the head of a traceback that goes back to the program."""
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    error.__traceback__ = tb


def parameter_names(target: Any) -> list[str]:
    """Names of the positional parameters, as the caller of ``target`` counts them."""
    fn = target
    if is_a(fn, torch.nn.Module):
        fn = fn.forward
    skip = 0
    if is_a(fn, types.MethodType):
        fn, skip = fn.__func__, 1
    code = getattr(fn, "__code__", None)
    return list(code.co_varnames[skip : code.co_argcount]) if code is not None else []
