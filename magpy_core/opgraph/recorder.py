"""The recorders of the torch operations that a region executes.

OpRecorder, a ``TorchFunctionMode``, sees each public operation while it runs on real tensors; nodes are found by tensor
identity. Parameters, buffers and every other tensor from outside are placeholders. ShadowRecorder, below it, sees every ATen
operation and checks that it runs inside a recorded call; one that doesn't (``torch.Tensor(...)``, ``from_numpy``, native
extensions) makes the capture fail. Key function: `begin`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from magpy_core._compat.torch.eval_frame import never_intercept
from magpy_core._compat.torch.mode_reads import is_of_program
from magpy_core._compat.torch.surroundings import dispatched_function
from magpy_core._compat.torch.tensor_guards import has_own_functions, no_subclass_functions, no_torch_function
from magpy_core._compat.torch.torch_state import PlainDispatchMode, resume_mode, suspend_mode
from magpy_core._compat.torch.value_tests import body_of
from magpy_core.findings import Unsupported
from magpy_core.monitor.hooks import belongs_to_user
from magpy_core.opgraph import functions as fns
from magpy_core.opgraph import special_calls
from magpy_core.opgraph.backward import BACKWARD, Backward, refuse_from_outside
from magpy_core.opgraph.host import Finish
from magpy_core.opgraph.operation import Operation
from magpy_core.opgraph.operator_graph import OperatorGraph


class OpRecorder(TorchFunctionMode):
    """Function-level recorder of one recording."""

    def __init__(self, ops: OperatorGraph) -> None:
        super().__init__()
        self.ops = ops
        ops.recorder = self

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        ops = self.ops
        try:
            func = dispatched_function(func)  # it inspects the calling frames: call it directly from here
        except Exception as error:
            ops.failure = ops.failure or error.with_traceback(None)
        if _contained(ops, False, is_of_program, func):
            return NotImplemented  # the program passes its own function to its subclasses: no mode of its own is in force
        if ops.failure is not None or ops.op_depth or _contained(ops, True, ops.host.paused):
            if func in BACKWARD:
                ops.leaves.replicas.run_hooks()
            return func(*args, **kwargs)
        if (body := _contained(ops, None, body_of, func)) is not None:
            with self:
                return body(*args, **kwargs)
        ops.op_depth += 1
        try:
            return _record(ops, func, types, args, kwargs)
        finally:
            ops.op_depth -= 1


# In inference mode, composite operations are not decomposed before they get here.
_READS = frozenset(
    {torch.ops.aten._local_scalar_dense.default, torch.ops.aten.item.default, torch.ops.aten.is_nonzero.default}
)


class ShadowRecorder(PlainDispatchMode):
    """Dispatch-level check of one recording."""

    def __init__(self, ops: OperatorGraph, unrecorded: Callable[[str], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ops = ops
        ops.shadow = self
        self.unrecorded = unrecorded

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        ops = self.ops
        if ops.failure is None and ops.op_depth == 0 and not _contained(ops, True, ops.host.paused):
            _contained(ops, None, self.unrecorded, str(func))
            ops.op_depth += 1  # the call below goes through torch functions again, which must not record it
            try:
                # without the ``__torch_function__`` of a subclass, which would wrap the result
                with no_subclass_functions():
                    result = func(*args, **(kwargs or {}))
            finally:
                ops.op_depth -= 1
            _contained(ops, None, ops.host.name_result, result)
            return result
        if func in _READS:
            ops.read_inside.append(args[0])
        with no_subclass_functions():  # without this mode, they would not run here either
            return func(*args, **(kwargs or {}))


def record_call(
    ops: OperatorGraph, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run and record one torch call of ours as if the program had made it."""
    with unrecorded(ops):
        return _record(ops, func, types, args, kwargs)


@contextmanager
def unrecorded(ops: OperatorGraph) -> Iterator[None]:
    """Record no torch call of ours."""
    ops.op_depth += 1
    try:
        with no_torch_function():
            yield
    finally:
        ops.op_depth -= 1


def _record(ops: OperatorGraph, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run ``func`` for real, exactly once, and record it. Raises only what ``func`` itself raises."""
    pending = _contained(ops, None, ops.host.begin, begin, ops, func, types, args, kwargs)
    if type(pending) is Backward:  # recorded as the operations that it consists of
        gradients = _record(ops, torch.autograd.grad, (), (pending.roots, pending.leaves), pending.options)
        pending.gradients = [(leaf, g) for leaf, g in zip(pending.leaves, gradients, strict=True) if g is not None]
        _contained(ops, None, pending.accumulate, partial(_record, ops))
        if pending.gradients:  # one of our own steps failed
            torch.autograd.backward([leaf for leaf, _ in pending.gradients], [g for _, g in pending.gradients])
        return None
    if func in BACKWARD:
        ops.leaves.replicas.run_hooks()
    aside = _contained(ops, False, _disable_shadow, ops, pending)
    try:
        result = func(*args, **kwargs)
    except Exception:
        _contained(ops, None, lambda: ops.host.operation_raised(fns.function_name(func)))
        raise
    finally:
        if aside:
            _contained(ops, None, resume_mode, ops.shadow)
    return _contained(ops, result, ops.host.finish, pending, result)


def _disable_shadow(ops: OperatorGraph, pending: Any) -> bool:
    """Disable the shadow recorder inside a recorded call, unless it has to observe the call; whether that was done."""
    return not (type(pending) is Operation and pending.is_observed_inside) and suspend_mode(ops.shadow)


def _contained(ops: OperatorGraph, instead: Any, step: Callable[..., Any], *args: Any) -> Any:
    """Run one of our own steps during the program's operation. If it raises, the recording ends and ``instead`` is
    returned."""
    try:
        return step(*args)
    except Exception as error:
        if belongs_to_user(error):
            raise
        ops.failure = ops.failure or error.with_traceback(None)
        return instead


def begin(
    ops: OperatorGraph, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Finish | Backward:
    """How to record a torch call that is about to run; raises Unsupported."""
    host = ops.host
    host.torch_call_started()
    for cls in filter(has_own_functions, types):
        raise fns.own_code(cls, "__torch_function__")
    ops.values.release_unreachable(ops.inputs.guarded)
    ops.read_inside = []
    if func in BACKWARD:
        if host.is_given_up:  # Python in the pass would see that gradients are assigned after it, and not during it
            host.graph_incomplete = True
            refuse_from_outside(ops, func, args, kwargs)
            raise Unsupported("", "what is given up runs as in eager mode")
        return Backward.prepare(ops, func, args, kwargs)
    name = fns.function_name(func)
    if name.startswith(("get:", "set:", "del:")):
        return special_calls.attribute(ops, func, name, args)
    if str(getattr(func, "_qualified_op_name", func)).startswith(("profiler::", "profiler.")):
        return lambda result: result  # a profiler's range
    for special in special_calls.BY_NAME.get(name, ()):
        finish = special(ops, name, args, kwargs)
        if finish is not None:
            return finish
    return Operation.prepare(ops, func, args, kwargs)


# An operation is one event: neither our handler nor the Python inside the operation is monitored.
never_intercept(OpRecorder.__torch_function__)
never_intercept(ShadowRecorder.__torch_dispatch__)
