"""Scripts: TODO."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from magpy_core._compat.torch.scripts import (
    CACHED_FORWARD,
    ScriptMethod,
    ScriptUse,
    cpp_module,
    has_script_attribute,
    has_script_method,
    script_use,
)
from magpy_core._compat.torch.torch_state import (
    put_back,
    put_function_mode_back,
    set_aside,
    set_function_mode_aside,
)
from magpy_core.findings import HERE
from magpy_core.monitor.policy import module_of
from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Ledger
from magpy_core.recording.numbers import Numbers
from magpy_core.refgraph import lookup
from magpy_core.refgraph.kinds import is_a

if TYPE_CHECKING:
    from magpy_core.recording.groups import Access, Facts, Nodes

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


class Scripts:
    """TODO."""

    def __init__(
        self, ledger: Ledger, journal: Journal, numbers: Numbers, facts: Facts, access: Access, nodes: Nodes
    ) -> None:
        self.ledger = ledger
        self.journal = journal
        self.numbers = numbers
        self.facts = facts
        self.access = access
        self.nodes = nodes
        self.refgraph = ledger.refgraph
        self.sources = ledger.sources
        self._without_shadow = False
        self._without_functions = False
        self._modules = {}

    def attr(self, site: Any, module: Any, name: str) -> bool:
        """Whether ``module.name``, of a ScriptModule, is the compiled module's, and has been guarded as that."""
        tp = type(module)
        self.facts.classes.read_field(tp, "__mro__", site)  # it looks things up with `super()`, in native code
        owner = lookup.class_lookup(tp, "__getattr__")[1]
        found = lookup.resolve(module, name)
        method = is_a(found.value, (ScriptMethod, CACHED_FORWARD))
        if owner is None or not module_of(owner).startswith("torch.") or not (method or found.where == "python"):
            return False
        cpp = cpp_module(module)
        method = has_script_method(cpp, name)
        if not method and not has_script_attribute(cpp, name):
            return False
        self.facts.classes.member(tp, "__getattr__", site)
        self.facts.classes.member(tp, name, site)
        node = self.facts.roots.node_for(module)
        if node is None:
            self.journal.refuse_compiled_code(f"`{module.original_name}`, a torch.jit module that the region made,")
            return True
        if method:
            self._modules[id(module)] = module
            self.refgraph.read(node.source, "identity", module, site)
            self.refgraph.read(self.sources.make("script_method", node.source, name), "eq", True, site)
        else:
            self.access.reads.absent_attr(node, module, name, site)
            self.facts.values.read(self.sources.make("field", node.source, name), getattr(module, name), site)
        return True

    def call(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """What ``torch.jit`` has compiled reads no Python state: one node, which runs it again."""
        if self.ledger.ops.op_depth or self.nodes.one_node.active is not None:
            return
        what = "method" if is_a(fn, ScriptMethod) else "function"
        made = self.journal.contained(script_use, fn)
        use = made if is_a(made, ScriptUse) else ScriptUse(trouble="does what can't be told")
        module = None
        if what == "method":
            module = next((m for m in self._modules.values() if cpp_module(m) == fn.owner), None)
            if module is None and not use.trouble:
                use = ScriptUse(trouble="belongs to a module that was reached in a way the monitor can't follow")
        state, written = self._script_state(module, use, site) if not use.trouble else ((), 0)
        if state is None:
            use = ScriptUse(trouble="keeps state that no guard can compare")
        if use.trouble:
            self.journal.refuse_compiled_code(f"`{fn.name}`, a torch.jit {what} that {use.trouble},")
            return
        name = fn.name if module is None or fn.name != "forward" else module.original_name
        what = what if name == fn.name else "module"
        text = f"`{name}`, a torch.jit {what}, is called: what it compiled can't be compiled again with the region."
        self.ledger.ops.eager_only.append(("MP112", text, site, _HINT, self.journal.places.now(site)))
        self.numbers.escape_all(site, args, kwargs)
        if what == "function":
            self.nodes.one_node.apply(site, scripted(fn), args, kwargs, checked=True)
        else:
            self.nodes.one_node.apply(site, scripted_method(fn, written), (state, *args), kwargs, checked=True)
        # an error that comes through a mode written in Python has lost its text when the interpreter of scripts shows it
        self._without_shadow = self._without_shadow or set_aside(self.ledger.ops.shadow)

    def restore_modes(self) -> None:
        """After such a call, or at the end of a region that one left by an exception."""
        if self._without_shadow:
            self._without_shadow = False
            put_back(self.ledger.ops.shadow)
        if self._without_functions:
            self._without_functions = False
            put_function_mode_back(self.ledger.ops)

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
        self._without_shadow = self._without_shadow or set_aside(self.ledger.ops.shadow)
        self._without_functions = set_function_mode_aside(self.ledger.ops)
        self.journal.abort(text, None, "MP106", hint)
