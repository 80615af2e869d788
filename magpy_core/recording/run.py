"""Run: one monitored run of a region, from its entry to the trace it leaves. Key function: run."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

from magpy_core._compat.torch.tensor_guards import global_check
from magpy_core._compat.torch.torch_state import know_accelerator, random_streams, same_streams
from magpy_core.monitor.record import record
from magpy_core.opgraph.recorder import OpRecorder
from magpy_core.opgraph.shadow import ShadowRecorder
from magpy_core.recording.entry import enter
from magpy_core.recording.journal import FAILED
from magpy_core.recording.recording import Recording
from magpy_core.recording.trace import Live, Recorded, freeze
from magpy_core.recording.verify import verify_trace
from magpy_core.refgraph import verify
from magpy_core.replay.ir import Plan


def run(recording: Recording, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Recorded:
    """Run ``target`` for real under the monitor. The result or exception is the program's own."""
    ledger, journal = recording.ledger, recording.journal
    know_accelerator()
    call_args, call_kwargs = enter(ledger, recording.facts, target, args, kwargs)
    globals_hold = global_check()
    random = random_streams()
    shadow = ShadowRecorder(ledger.ops, recording.basics.host.unrecorded)
    recording.calls.outside.collecting = gc.isenabled()
    gc.collect(0)
    gc.disable()
    result: Any = None
    error: BaseException | None = None
    monitor = record(recording)
    trace, live = None, Live()
    try:
        try:
            journal.places.begin(sys._getframe(), target, args)
            with monitor, OpRecorder(ledger.ops), shadow:
                try:
                    result = target(*call_args, **call_kwargs)
                finally:
                    recording.nodes.scripts.restore_modes()
        except BaseException as raised:
            error = raised
        journal.places.finished()
        ledger.ops.drew_random = not same_streams(random, random_streams())
        if monitor.observer_failure is not None and not journal.aborted:
            journal.internal_error(monitor.observer_failure)
        plan = journal.contained(recording.exit.plan, result, error)
        if isinstance(plan, Plan) and not (journal.refused or journal.skip_reason):
            if verify.enabled():  # its errors are for tests to see
                _check(recording, args, kwargs)
            else:
                journal.contained(_check, recording, args, kwargs)
        if isinstance(plan, Plan) and not (journal.refused or journal.skip_reason):
            made = journal.contained(freeze, ledger, journal, plan, recording.basics.host.free_dims, globals_hold)
            if made is not FAILED:
                trace, live = made
                trace.refgraph.release()
    finally:
        journal.places.end()
        for undo in reversed(ledger.undo):
            undo()
        if recording.calls.outside.collecting:
            gc.enable()
    if error is not None:
        _strip(error)
    recording.close()
    if trace is not None and verify.enabled():
        verify_trace(trace)
    recorded = Recorded(journal, trace, live, result, error)
    try:
        return recorded
    finally:
        del error, recorded  # the frames of its traceback lead to this one: a cycle would keep all that they hold


def _check(recording: Recording, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What was read must be as it was, and what was written as events have shown it, if other threads ran meanwhile."""
    others_ran = recording.basics.interference.others_ran()
    if not (others_ran or verify.enabled()):
        return
    try:
        verify.verify(recording.ledger.refgraph, args, kwargs, recording.basics.age.is_made_inside)
    except verify.RefGraphError as error:
        if not others_ran:
            raise
        recording.journal.skip_call(f"another thread may have changed what was read ({error.problems[0]})")
    if others_ran and recording.basics.interference.unexplained:
        recording.journal.skip_call(f"another thread may have written to {recording.basics.interference.unexplained[0]}")


def _strip(error: BaseException) -> None:
    """Take our own frames off the head of a traceback that goes back to the program."""
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    error.__traceback__ = tb
