"""Run: one monitored run of a region, from its entry to the trace. Key function: run."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from magpy_core._compat.torch.tensor_guards import global_check
from magpy_core._compat.torch.torch_state import look_up_accelerator, random_streams, same_streams
from magpy_core.monitor.hooks import belongs_to_user
from magpy_core.monitor.record import record
from magpy_core.opgraph.recorder import OpRecorder, ShadowRecorder
from magpy_core.recording.entry import enter
from magpy_core.recording.journal import FAILED
from magpy_core.recording.ledger import Ledger
from magpy_core.recording.recording import Recording
from magpy_core.recording.trace import Live, Recorded, freeze
from magpy_core.recording.verify import verify_trace
from magpy_core.refgraph import verify
from magpy_core.replay.ir import Plan


@dataclass
class Outcome:
    """Result or exception of the program's run; set as soon as it has ended, even if the recording fails."""

    done: bool = False
    result: Any = None
    error: BaseException | None = None

    def take(self) -> tuple[BaseException | None, Any]:
        """Returns and drops error and result: frames in an error's traceback refer to this object."""
        taken = self.error, self.result
        self.error = self.result = None
        return taken


def run(
    recording: Recording, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], outcome: Outcome
) -> Recorded:
    """Run ``target`` under the monitor. ``outcome`` gets the result for the program."""
    ledger, journal, context = recording.ledger, recording.journal, recording.context
    trace, live = None, Live()
    with ExitStack() as at_the_end:
        at_the_end.callback(_strip, outcome)
        at_the_end.callback(_undo, ledger)
        look_up_accelerator()
        call_args, call_kwargs = enter(context, target, args, kwargs)
        globals_hold = global_check()
        random = random_streams()
        shadow = ShadowRecorder(ledger.ops, context.host.unrecorded)
        outside = context.outside
        outside.collecting = gc.isenabled()
        at_the_end.callback(lambda: gc.enable() if outside.collecting else None)
        gc.collect(0)
        gc.disable()
        monitor = record(recording)
        journal.places.begin(sys._getframe(), target, args)
        at_the_end.callback(journal.places.end)
        try:
            with monitor, OpRecorder(ledger.ops), shadow:
                try:
                    outcome.result = target(*call_args, **call_kwargs)
                except BaseException as error:
                    outcome.error = error
                    raise
                finally:
                    outcome.done = True
                    journal.contained(context.scripts.restore_modes)
        except BaseException as error:
            if not outcome.done:
                raise
            if error is not outcome.error and not belongs_to_user(error):
                journal.internal_error(error)
            else:
                outcome.error = error
        journal.places.finished()
        ledger.ops.writes.drew_random = not same_streams(random, random_streams())
        if monitor.observer_failure is not None and not journal.aborted:
            journal.internal_error(monitor.observer_failure)
        if ledger.ops.failure is not None:
            journal.internal_error(ledger.ops.failure)
        plan = journal.contained(context.exit.plan, outcome.result, outcome.error)
        if isinstance(plan, Plan) and not (journal.refused or journal.skip_reason):
            if verify.enabled():  # errors must reach the tests
                _check(recording, args, kwargs)
            else:
                journal.contained(_check, recording, args, kwargs)
        if isinstance(plan, Plan) and not (journal.refused or journal.skip_reason):
            made = journal.contained(freeze, ledger, journal, plan, context.host.free_dims, globals_hold)
            if made is not FAILED:
                trace, live = made
                trace.refgraph.release()
    has_tensors = journal.aborted or any(True for _ in ledger.ops.values)
    recording.close()
    if trace is not None and verify.enabled():
        verify_trace(trace)
    return Recorded(journal, trace, live, has_tensors)


def _undo(ledger: Ledger) -> None:
    """Undo the recording's own changes to the program's objects."""
    with ExitStack() as undone:  # all of them, even if one raises
        for undo in ledger.undo:
            undone.callback(undo)


def _check(recording: Recording, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """If other threads ran, check that all reads still hold and that events explain all writes."""
    interference, age = recording.context.interference, recording.context.age
    others_ran = interference.others_ran()
    if not (others_ran or verify.enabled()):
        return
    try:
        verify.verify(recording.ledger.refgraph, args, kwargs, age.is_made_inside)
    except verify.RefGraphError as error:
        if not others_ran:
            raise
        recording.journal.skip_call(f"another thread may have changed what was read ({error.problems[0]})")
    if others_ran and interference.unexplained:
        recording.journal.skip_call(f"another thread may have written to {interference.unexplained[0]}")


def _strip(outcome: Outcome) -> None:
    """Remove MagPy's frames from the head of the traceback that the program gets."""
    if outcome.error is not None:
        tb = outcome.error.__traceback__
        while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
            tb = tb.tb_next
        outcome.error.__traceback__ = tb
