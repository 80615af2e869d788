"""Scripts: what torch.jit has compiled, and other compilers at work inside the region, are refused. Key type: Scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, NoReturn

from magpy_core._compat.torch.dynamo import compiles_for_operators
from magpy_core._compat.torch.scripts import ScriptMethod, tracers
from magpy_core._compat.torch.torch_state import resume_mode, suspend_mode
from magpy_core.findings import HERE
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.kinds import is_a


class Scripts(Tracker):
    """Calls of scripts; attributes of their modules are guarded."""

    _without_shadow: bool = field(default=False, init=False)
    _without_functions: bool = field(default=False, init=False)

    def call(self, site: Any, fn: Any) -> None:
        """What ``torch.jit`` has compiled: refused. Its errors would lose their text in a mode written in Python."""
        if self.ledger.ops.op_depth:
            return
        self.journal.refuse_compiled_code(f"`{fn.name}`, a torch.jit {'method' if is_a(fn, ScriptMethod) else 'function'},")
        self._without_shadow = self._without_shadow or suspend_mode(self.ledger.ops.shadow)
        self.basics.stack.on_return(self._returned)

    def _returned(self, result: Any) -> Any:
        self.restore_modes()
        return result

    def restore_modes(self) -> None:
        """After such a call, or at the end of a region that one left by an exception."""
        if self._without_shadow:
            self._without_shadow = False
            resume_mode(self.ledger.ops.shadow)
        if self._without_functions:
            self._without_functions = False
            resume_mode(self.ledger.ops.recorder)

    def compiles_itself(self, frame: Any) -> NoReturn:
        """torch.cond and its like give their arguments to a torch.compile of their own, in this frame. That works only
        where our modes are off the stack and no frame is intercepted: the recording ends here."""
        text = "This operator (torch.cond or its kin) passes functions to torch.compile: the region can't be captured."
        self._leave_alone(text, "Make the call outside of the region, or leave this region to torch.compile.")

    def traces_itself(self, frame: Any) -> NoReturn:
        """``torch.jit.trace`` notes down operations itself, and not the right ones where a mode runs each in its place."""
        text = f"{HERE} records operations with torch.jit.trace, which can't be monitored at the same time."
        self._leave_alone(text, "Trace outside the region, or remove the trace: MagPy captures the function as it is.")

    def _leave_alone(self, text: str, hint: str) -> NoReturn:
        self._without_shadow = self._without_shadow or suspend_mode(self.ledger.ops.shadow)
        self._without_functions = suspend_mode(self.ledger.ops.recorder)
        self.journal.abort(text, None, "MP106", hint)


FRAMES: dict[Callable[..., Any], Callable[..., bool]] = {
    **dict.fromkeys(compiles_for_operators(), Scripts.compiles_itself),
    **dict.fromkeys(tracers(), Scripts.traces_itself),
}
