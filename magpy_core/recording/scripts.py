"""ScriptEvents: calls of what torch.jit has compiled are refused; attributes of its modules are guarded.

Key type: ScriptEvents.
"""

from __future__ import annotations

from typing import Any, NoReturn

from magpy_core._compat.torch.scripts import (
    CACHED_FORWARD,
    ScriptMethod,
    cpp_module,
    has_script_attribute,
    has_script_method,
)
from magpy_core._compat.torch.torch_state import put_back, put_function_mode_back, set_aside, set_function_mode_aside
from magpy_core.findings import HERE
from magpy_core.monitor.policy import module_of
from magpy_core.recording.opaque import OpaqueEvents
from magpy_core.refgraph import lookup
from magpy_core.refgraph.kinds import is_a


class ScriptEvents(OpaqueEvents):
    """Calls of what ``torch.jit`` has compiled, and attributes of its modules."""

    def script_attr(self, site: Any, module: Any, name: str) -> bool:
        """Whether ``module.name``, of a ScriptModule, is the compiled module's, and has been guarded as that."""
        tp = type(module)
        self.read_class_field(tp, "__mro__", site)  # it looks things up with `super()`, in native code
        owner = lookup.class_lookup(tp, "__getattr__")[1]
        found = lookup.resolve(module, name)
        method = is_a(found.value, (ScriptMethod, CACHED_FORWARD))
        if owner is None or not module_of(owner).startswith("torch.") or not (method or found.where == "python"):
            return False
        cpp = cpp_module(module)
        method = has_script_method(cpp, name)
        if not method and not has_script_attribute(cpp, name):
            return False
        self.class_fact(tp, "__getattr__", site)
        self.class_fact(tp, name, site)
        node = self.node_for(module)
        if node is None or method:
            self.foreign_compiler(f"`{module.original_name}`, a torch.jit module,")
        else:
            self.absent_attr(node, module, name, site)
            self.value(self.sources.make("field", node.source, name), getattr(module, name), site)
        return True

    def call_scripted(self, site: Any, fn: Any) -> None:
        """What ``torch.jit`` has compiled: refused. Its errors would lose their text in a mode written in Python."""
        if self.ops.op_depth or self._applied is not None:
            return
        self.foreign_compiler(f"`{fn.name}`, a torch.jit {'method' if is_a(fn, ScriptMethod) else 'function'},")
        self.without_shadow = self.without_shadow or set_aside(self.ops.shadow)
        self._script_site = site

    _script_site: Any = None
    without_shadow = False

    def shadow_back(self) -> None:
        """After such a call, or at the end of a region that one left by an exception."""
        if self.without_shadow:
            self.without_shadow = False
            put_back(self.ops.shadow)
        if self.without_functions:
            self.without_functions = False
            put_function_mode_back(self.ops)

    without_functions = False

    def compiles_itself(self, frame: Any) -> NoReturn:
        """torch.cond and its kin hand what they are given to a torch.compile of their own, in this frame. That works only
        where our modes are off the stack and no frame is intercepted: the recording ends here."""
        text = "This operator (torch.cond or its kin) gives functions to torch.compile: the region can't be captured."
        self._leave_alone(text, "Make the call outside of the region, or leave this region to torch.compile.")

    def traces_itself(self, frame: Any) -> NoReturn:
        """``torch.jit.trace`` notes down operations itself, and not the right ones where a mode runs each in its place."""
        text = f"{HERE} records operations with torch.jit.trace, which can't be watched at the same time."
        self._leave_alone(text, "Trace outside of the region, or leave it out: MagPy captures the function as it is.")

    def _leave_alone(self, text: str, hint: str) -> NoReturn:
        self.without_shadow = self.without_shadow or set_aside(self.ops.shadow)
        self.without_functions = set_function_mode_aside(self.ops)
        self.let_go(text, None, "MP106", hint)

    def call_result(self, site: Any, result: Any) -> Any:
        if self.without_shadow and site is not None and self._script_site is site:
            self._script_site = None
            self.shadow_back()
        return super().call_result(site, result)

    def foreign_compiler(self, what: str) -> None:
        raise NotImplementedError
