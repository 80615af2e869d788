"""ScriptEvents: torch.jit's functions, and methods of its modules. Each call is one node of the graph, which makes it again.

What a method reads of its module is read by the guards as well: tensors are inputs of the node, so that what it writes into
them (running statistics) is known and can be undone; plain values (``training``) are compared. Key type: ScriptEvents.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from magpy_core._compat.torch.scripts import (
    CACHED_FORWARD,
    ScriptMethod,
    ScriptUse,
    cpp_module,
    has_script_attribute,
    has_script_method,
    is_plain_state,
    script_attribute,
    script_use,
)
from magpy_core._compat.torch.torch_state import put_back, put_function_mode_back, set_aside, set_function_mode_aside
from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.monitor.policy import module_of
from magpy_core.recording.opaque import OpaqueEvents
from magpy_core.refgraph import lookup
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.source import Source

_HINT = "Call the Python function or module that it was made from: MagPy compiles the whole region."


@functools.lru_cache(maxsize=1024)
def scripted(fn: Any) -> Callable[..., Any]:
    """A plain function that calls a ``torch.jit.script`` function."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    run.__name__ = f"script_{fn.name}"
    return run


def scripted_method(fn: Any, statistics: int) -> Callable[..., Any]:
    """A plain function that calls a method of a compiled module. ``state`` is what the method reads: tensors of the module's
    own, of which it changes the first ones without leaving a trace."""

    def run(state: Any, *args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    run.__name__ = f"script_{fn.name}"
    run.changes_first = statistics  # type: ignore[attr-defined]
    return run


class ScriptEvents(OpaqueEvents):
    """Calls of what ``torch.jit`` has compiled, and attributes of its modules."""

    _scripts: dict[int, Any]

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
        if node is None:
            self.foreign_compiler(f"`{module.original_name}`, a torch.jit module that the region made,")
            return True
        if method:
            self._scripts[id(module)] = module
            self.refgraph.read(node.source, guard.IDENTITY, module, site)
            self.refgraph.read(self.sources.make("script_method", node.source, name), guard.EQUAL, True, site)
        else:
            self.absent_attr(node, module, name, site)
            self.value(self.sources.make("field", node.source, name), getattr(module, name), site)
        return True

    def call_scripted(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """What ``torch.jit`` has compiled reads no Python state: one node, which runs it again."""
        if self.ops.op_depth or self._applied is not None:
            return
        what = "method" if is_a(fn, ScriptMethod) else "function"
        made = self.guarded_call(script_use, fn)
        use = made if is_a(made, ScriptUse) else ScriptUse(trouble="does what can't be told")
        module = None
        if what == "method":
            module = next((m for m in self._scripts.values() if cpp_module(m) == fn.owner), None)
            if module is None and not use.trouble:
                use = ScriptUse(trouble="belongs to a module that was reached in a way the monitor can't follow")
        state, written = self._script_state(module, use, site) if not use.trouble else ((), 0)
        if state is None:
            use = ScriptUse(trouble="keeps state that no guard can compare")
        if use.trouble:
            self.foreign_compiler(f"`{fn.name}`, a torch.jit {what} that {use.trouble},")
            return
        name = fn.name if module is None or fn.name != "forward" else module.original_name
        what = what if name == fn.name else "module"
        text = f"`{name}`, a torch.jit {what}, is called: what it compiled can't be compiled again with the region."
        self.ops.eager_only.append(("MP112", text, site, _HINT, self.places.now(site)))
        self.escape_all(site, args, kwargs)
        if what == "function":
            self.apply_as(site, scripted(fn), args, kwargs, checked=True)
        else:
            self.apply_as(site, scripted_method(fn, written), (state, *args), kwargs, checked=True)
        # an error that comes through a mode written in Python has lost its text when the interpreter of scripts shows it
        self.without_shadow = self.without_shadow or set_aside(self.ops.shadow)

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
        if self.without_shadow and self._applied is not None and self._applied.site is site:
            self.shadow_back()
        return super().call_result(site, result)

    def _script_state(self, module: Any, use: ScriptUse, site: Any) -> tuple[tuple[Any, ...] | None, int]:
        """The tensors that a method reads, first those it changes without a trace, and how many these are. Guards what else
        it reads. None if some of it can't be guarded."""
        if module is None:
            return (), 0
        node = self.node_for(module)
        assert node is not None
        cpp = cpp_module(module)
        root = self.sources.make("script", node.source, None)
        self.refgraph.read(root, guard.IDENTITY, cpp, site)
        tensors: dict[tuple[str, ...], torch.Tensor] = {}
        plain: dict[tuple[str, ...], Any] = {}
        for path in use.reads:
            source: Source = root
            value = cpp
            for name in path:
                source, value = self.sources.make("script_attr", source, name), script_attribute(value, name)
            if is_a(value, torch.Tensor):
                self.value(source, value, site)
                tensors[path] = value
            elif is_plain_state(value):
                self.refgraph.read(source, guard.EQUAL, value, site)
                plain[path] = value
            else:
                return None, 0
        changed = [path for path, flag in use.statistics if path in tensors and (plain.get(flag, True) if type(flag) is tuple
                   else flag)]  # fmt: skip
        first = dict.fromkeys(changed)
        return (*(tensors[p] for p in first), *(t for p, t in tensors.items() if p not in first)), len(first)

    def foreign_compiler(self, what: str) -> None:
        raise NotImplementedError
