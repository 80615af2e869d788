"""Scripts: refuses code compiled by torch.jit, and other compilers that run inside the region. Key type: Scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, NoReturn

from magpy_core._compat.torch.dynamo import compiles_for_operators
from magpy_core._compat.torch.scripts import ScriptMethod, tracers
from magpy_core._compat.torch.tensor_guards import TENSOR_NEW
from magpy_core._compat.torch.torch_state import resume_mode, suspend_mode
from magpy_core.findings import HERE
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import lookup
from magpy_core.refgraph.kinds import is_a


class Scripts(Tracker):
    """Calls of scripts; attributes of their modules are guarded."""

    _without_shadow: bool = field(default=False, init=False)
    _without_functions: bool = field(default=False, init=False)

    def call(self, site: MaybeSite, fn: Any) -> None:
        """Refuse code compiled by ``torch.jit``. It runs without the shadow mode, which would change its errors' text."""
        if self.ledger.ops.op_depth:
            return
        self.journal.refuse_compiled_code(f"`{fn.name}`, a torch.jit {'method' if is_a(fn, ScriptMethod) else 'function'},")
        self._without_shadow = self._without_shadow or suspend_mode(self.ledger.ops.shadow)
        self.context.stack.on_return(self._returned)

    def constructs_tensor(self, site: MaybeSite) -> None:
        """Refuse ``Sub(x)`` for a subclass of ``torch.Tensor``, whose native constructor raises under a dispatch mode."""
        text = f"{HERE} calls the constructor of a subclass of `torch.Tensor`: MagPy can't record that."
        self.journal.refuse_call(
            "MP105", text, hint="Use `x.as_subclass(...)`, or create the tensor outside the region.", site=site
        )
        self._without_shadow = self._without_shadow or suspend_mode(self.ledger.ops.shadow)
        self.context.stack.on_return(self._returned)

    def _returned(self, result: Any) -> Any:
        self.restore_modes()
        return result

    def restore_modes(self) -> None:
        """Restore suspended modes after such a call, or at the end of the region if the call raised."""
        if self._without_shadow:
            self._without_shadow = False
            resume_mode(self.ledger.ops.shadow)
        if self._without_functions:
            self._without_functions = False
            resume_mode(self.ledger.ops.recorder)

    def compiles_itself(self, frame: Any) -> NoReturn:
        """In this frame, torch.cond and similar operators pass their arguments to their own torch.compile. That works only
        without MagPy's modes and frame interception: the recording ends here."""
        text = "This operator (such as torch.cond) runs torch.compile on its functions, so MagPy can't record it."
        self._abort_without_modes(text, "Call it outside the region, or use torch.compile for this region.")

    def traces_itself(self, frame: Any) -> NoReturn:
        """``torch.jit.trace`` records operations itself, but incorrectly under a mode that runs them."""
        text = f"{HERE} records operations with torch.jit.trace: MagPy can't record them at the same time."
        self._abort_without_modes(text, "Trace outside the region, or call the function itself: MagPy compiles it.")

    def asks_for_modes(self) -> NoReturn:
        """Native code is about to ask which modes are in force, and no event shows the answer: it must be the program's."""
        text = f"{HERE} asks for torch's modes from C code: MagPy can't see the result."
        self._abort_without_modes(text, "Use a comprehension or a lambda: its calls are observed.")

    def tensors_from_native_code(self, cls: type) -> None:
        """Native code may call the constructor of ``cls`` from now on, if that is one that raises under a dispatch mode."""
        if lookup.class_lookup(cls, "__new__")[0] is TENSOR_NEW:
            self._abort_without_modes(f"{HERE} creates tensors of a subclass from native code.", "Use a comprehension.")

    def _abort_without_modes(self, text: str, hint: str) -> NoReturn:
        self._without_shadow = self._without_shadow or suspend_mode(self.ledger.ops.shadow)
        self._without_functions = suspend_mode(self.ledger.ops.recorder)
        self.journal.abort(text, None, "MP106", hint)


FRAMES: dict[Callable[..., Any], Callable[..., bool]] = {
    **dict.fromkeys(compiles_for_operators(), Scripts.compiles_itself),
    **dict.fromkeys(tracers(), Scripts.traces_itself),
}
