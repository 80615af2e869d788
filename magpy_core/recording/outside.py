"""Outside: settings, random streams, NumPy, context variables, locks, and native code that depends on outside state.

Key type: Outside.
"""

from __future__ import annotations

import contextvars
import copy
import random
import types
from dataclasses import field
from typing import Any

import torch

from magpy_core._compat.cpython.layout import bound_object
from magpy_core._compat.torch.state_changers import changes_cuda_setting, cuda_settings
from magpy_core.findings import HERE, Unsupported, Value
from magpy_core.guards import kinds as guard
from magpy_core.knowledge import policy
from magpy_core.knowledge.callables import LRU_CACHE
from magpy_core.knowledge.methods import LOCK_METHODS
from magpy_core.knowledge.modules import Verdict
from magpy_core.monitor.events import MaybeSite
from magpy_core.opgraph.functions import opaque_hint, opaque_read
from magpy_core.recording.callees import CALLBACKS
from magpy_core.recording.facts.arrays import numpy_errors
from magpy_core.recording.places import Place
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds
from magpy_core.refgraph.arrays import is_array
from magpy_core.refgraph.draws import Drawn, is_in_python, is_module_stream, is_seed
from magpy_core.refgraph.fields import ABSENT
from magpy_core.refgraph.kinds import is_a

_DOES_IO = "does input or output inside the region: compiled code can't repeat it."
_SETTING_HINT = "Make the setting once, before the region is called."
_SETTING_WRITTEN = f"{HERE} changes a setting of torch: a graph can't repeat that."


class Outside(Tracker):
    """Calls whose results depend on more than their arguments."""

    collecting: bool = field(default=True, init=False)  # whether the program has enabled the garbage collector
    _seeded: dict[int, Any] = field(
        default_factory=dict, init=False
    )  # random.Randoms that the region created and seeded, by id
    # settings for CUDA devices at entry, and the site of the first change
    _cuda_settings: tuple[list[Any], Any] | None = field(default=None, init=False)
    # context variables that were set, with their value at entry
    _context_entry: dict[int, tuple[Any, Any, Any]] = field(default_factory=dict, init=False)
    _reset_outside: set[int] = field(default_factory=set, init=False)  # by id: reset with a token from outside

    def expect_setting(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], *, refuses: bool = False) -> None:
        """A setting is about to be read: guard its value. ``refuses``: refuse if it can't be guarded."""

        def receive(result: Any) -> Any:
            if not self.context.settings.read(site, fn, args, result) and refuses:
                self.context.stack.torch = (site, fn)
                self.context.torch_calls.missed()
            return result

        self.context.stack.expect(receive, self.context.callbacks.unobservable(site, fn))

    def array_made(self, result: Any) -> Any:
        if not self.journal.refused:
            self.context.arrays.keep(result)
        return result

    def setting_written(self, site: MaybeSite, fn: Any, args: tuple[Any, ...]) -> None:
        """A setting of torch is about to be changed."""
        self.context.stack.torch = None
        if not changes_cuda_setting(fn, args):
            self.journal.refuse("MP117", _SETTING_WRITTEN, hint=_SETTING_HINT, site=site)
        elif self._cuda_settings is None:
            self._cuda_settings = (cuda_settings(), site)

    def settings_left(self) -> None:
        """At exit: settings for CUDA devices may change if they are restored and no tensor is on such a device."""
        if self._cuda_settings is None:
            return
        before, site = self._cuda_settings
        ops = self.ledger.ops
        used = (*(t for t, _ in ops.values), *(t for t, _ in ops.inputs.guarded.values()))
        if cuda_settings() != before or any(t.device.type != "cpu" for t in used):
            self.journal.refuse("MP117", _SETTING_WRITTEN, hint=_SETTING_HINT, site=site)
        for getter, args, value in before:
            self.context.settings.read(site, getter, args, value)

    def call_numpy(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """NumPy on plain numbers is arithmetic; on arrays it reads memory that no guard checks."""
        owner = getattr(fn, "__self__", None)  # of a method
        if self.journal.graph_incomplete and not self.ledger.ops.op_depth:
            return  # its arguments may be the result of a refused call
        if not self.ledger.ops.op_depth and any(is_a(v, torch.Tensor) for v in (*args, *kwargs.values())):
            self.journal.refuse_call("MP102", opaque_read("numpy"), hint=opaque_hint("numpy"), site=site)
            return
        if self.ledger.ops.op_depth and policy.is_pure_numpy(fn):  # inside one node, which computes this again
            self.context.arguments.read(site, (*args, *(() if is_a(owner, types.ModuleType) else (owner,))), kwargs)
            return
        is_function = owner is None or is_a(owner, types.ModuleType)
        if is_function and policy.is_pure_numpy(fn) and self.context.host_calls.makes(site, fn, args, kwargs):
            return
        known = is_function or self._plain((owner,))
        if known and policy.is_pure_numpy(fn) and self._plain((*args, *kwargs.values())):
            self.context.numbers.escape_all(site, args, kwargs)
            self.context.arguments.read(site, args, kwargs)
            self.context.settings.read(site, numpy_errors, (), numpy_errors())
            self.context.stack.expect(self.array_made)
        elif not (policy.is_pure_numpy(fn) and self.context.arrays.memory_read(site, owner, *args, *kwargs.values())):
            self.host_call(site, fn, policy.verdict(fn))

    def _plain(self, tree: Any) -> bool:
        """Whether guards determine all values in ``tree``: numbers, types, and arrays that the region made from them."""
        items = tree.values() if is_a(tree, dict) else tree
        return all(
            (kinds.kind_of(v) in (kinds.SCALAR, kinds.IDENTITY) and not is_a(v, CALLBACKS))
            or self.context.arrays.is_plain_array(v)
            or kinds.is_numpy_value(type(v))
            or (kinds.kind_of(v) in kinds.CONTAINERS and self._plain(v))
            for v in items
        )

    def seeded_inside(self, obj: Any, name: str, args: tuple[Any, ...]) -> bool:
        """Whether the region created and seeded this random stream, so that it draws the same numbers at every call."""
        if type(obj) is random.Random and name == "seed":
            self._seeded.pop(id(obj), None)
            if is_seed(args) and self.context.age.is_made_inside(obj):
                self._seeded[id(obj)] = obj
        return id(obj) in self._seeded

    def draw(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Numbers are drawn from a random stream. False if the region created it, or the arguments are not plain."""
        stream = fn.__self__
        if self.ledger.ops.op_depth:  # the node draws again, but after all draws that replay makes before the graph
            self.host_call(site, fn, Verdict.HOST)
            return True
        if is_module_stream(stream):
            module = "random" if type(stream).__module__ == "random" else "numpy.random"
            base = self.sources.const(stream, module)
        elif (node := self.refgraph.node(stream)) is not None:
            base = node.source
        else:
            return False
        # the draws are made before everything else, so their arguments are fixed, or follow from other draws and arrays
        args = tuple(self._of_draws(value, site) or value for value in args)
        kwargs = {name: self._of_draws(value, site) or value for name, value in kwargs.items()}
        if not self._plain_tree(value for value in (*args, *kwargs.values()) if type(value) is not Drawn):
            return False
        self.context.numbers.escape_all(site, args, kwargs)
        self.context.arguments.read(site, args, kwargs)
        if is_in_python(fn):
            self.context.pauses.during_call()
        source = self.sources.make("draw", base, copy.deepcopy((len(self.ledger.draws), fn.__name__, args, kwargs)))
        self.context.stack.expect(
            lambda result: self.drawn(site, source, fn, result), self.context.callbacks.unobservable(site, fn)
        )
        return True

    def _of_draws(self, value: Any, site: MaybeSite) -> Drawn | None:
        """The argument of a draw if it is computed from draws, or from arrays from outside."""
        arrays = self.context.array_values
        if is_array(value):
            sym = arrays.sym(value, site)
        else:
            sym = self.ledger.scalars.get(value) if type(value) in (int, float) else None
        if sym is None or not sym.on_host:
            return None
        known = all(leaf.payload.kind == "draw" or arrays.is_outside(leaf) for leaf in sym.leaves())
        return Drawn(sym) if known else None

    def _plain_tree(self, values: Any) -> bool:
        """Whether all values are numbers, strings, None or plain arrays, in tuples or lists of any depth."""
        return all(
            type(v) in (int, float, bool, str, type(None))
            or (type(v) in (tuple, list) and self._plain_tree(v))
            or self.context.arrays.is_plain_array(v)
            for v in values
        )

    def drawn(self, site: MaybeSite, source: Any, fn: Any, result: Any) -> Any:
        if is_array(result) and result.dtype.kind in "fiub":
            _, _, args, kwargs = source.key
            varies = any(type(a) is Drawn for a in (*args, *kwargs.values()))  # perhaps it is the size
            self.ledger.draws.append(source)
            self.context.array_values.keep(result, self.ledger.scalars.source(source, None), None if varies else (), site)
            return result
        if type(result) in (int, float):
            self.ledger.draws.append(source)
            return self.ledger.scalars.bind(result, self.ledger.scalars.source(source, result))
        self.host_call(site, fn, Verdict.HOST)
        return result

    def context_variable(self, var: contextvars.ContextVar[Any], name: str, args: tuple[Any, ...], site: MaybeSite) -> None:
        """A context variable is read, or set inside the region; at exit it must have its old value."""
        now = var.get(ABSENT)
        if name == "get":
            entry = self._context_entry.get(id(var))
            if entry is not None and entry[1] is not now:
                return  # a value that the region set
            node = self.refgraph.node(var)
            if node is None:
                self.context.age.assume_internal(var)
                return
            source = self.sources.make("context", node.source, self.sources.const(ABSENT, "unset"))
            if now is ABSENT:
                self.refgraph.read(source, guard.IS, ABSENT, site)
            elif type(now) in kinds.NUMBER_TYPES and len(args) == 0:
                read = self.context.values.read
                self.context.stack.expect(
                    lambda result: read(source, result, site, to_program=True), lambda: read(source, now, site, exact=True)
                )
            else:
                self.context.values.read(source, now, site)
        elif name in ("set", "reset"):
            self._context_entry.setdefault(id(var), (var, now, site))
            self.ledger.other_effects += 1
            if name == "reset" and args and self.refgraph.node(args[0]) is not None:
                self._reset_outside.add(id(var))  # the token is used up

    def context_left(self) -> None:
        """At exit: a context variable that has not its old value is set by replay, or refused."""
        for var, entry, site in self._context_entry.values():
            now = var.get(ABSENT)
            if now is entry and id(var) not in self._reset_outside:
                continue
            if now is not ABSENT and id(var) not in self._reset_outside:
                self.ledger.context_writes.append((var, now, site))
            else:
                text = f"The context variable `{var.name}` stays changed after the call; compiled code can't repeat it."
                hint = f"Set it outside the region, or back at its end: `{var.name}.reset(token)`."
                self.journal.refuse("MP110", text, hint=hint, site=site)

    def lock_used(self, site: MaybeSite, obj: Any, name: str, fn: Any) -> None:
        """A lock from outside indicates other threads, and replay does not hold it. A cache's statistics are not replayed
        either."""
        if name in ("cache_info", "cache_clear") and is_a(obj, LRU_CACHE):
            self.host_call(site, fn, Verdict.UNKNOWN)
        elif is_a(obj, kinds.LOCKS) and name in LOCK_METHODS and not self.context.age.is_made_inside(obj):
            text = f"{HERE} uses a lock that other threads may take: compiled code can't hold it."
            hint = "Take the lock around the call of the region, or keep what it protects out of the region."
            self.journal.refuse_if_repeated(Unsupported("MP115", text, hint=hint), site)

    def host_call(self, site: MaybeSite, fn: Any, what: Verdict, place: Place | None = None) -> None:
        if self.ledger.ops.op_depth and policy.is_decimal(fn):
            return  # inside one node: computed again, with the context of that time
        name = policy.shown_name(fn)
        if name.endswith(".__subclasses__"):  # libraries list them once and cache the result
            self.journal.skip_call("the subclasses of a class were listed: no guard can check them")
            return
        if what == Verdict.IO and name.endswith(".__exit__") and self.journal.refused:
            return  # opening the file has already been reported
        if what == Verdict.IO:
            code, text = "MP113", _DOES_IO
        elif what == Verdict.HOST:
            does = "reads the clock" if policy.is_clock(name) else "can return a different result on every call"
            code, text = "MP103", f"{does}, so the code around it can't be one compiled graph."
        else:
            code = "MP104"
            text = f"calls the native function `{name}`: MagPy doesn't know what it reads and changes."
        hint = _hint_to_declare(fn) if code == "MP104" else self._hint_to_move(name)
        self.journal.refuse(code, f"{HERE} {text}", hint=hint, values=(Value("call", name),), site=site, place=place)

    def loads(self, site: MaybeSite, name: str) -> None:
        """A function of the import system looks for a module, or reads files of one: libraries do so once, at first use."""
        text = f"{self.journal.quoted_expression(site) or 'The program'} {_DOES_IO}"
        self.journal.refuse_if_repeated(Unsupported("MP113", text, hint=self._hint_to_move(name)), site)

    def _hint_to_move(self, name: str) -> str:
        """Where a call of the outside world can be, instead of inside the region."""
        called = self.journal.places.called_at()
        where = f"{called}, where the region is called" if called else "the call of the region"
        if policy.is_clock(name):
            return f"Read the clock outside the region: before and after {where}."
        return f"Move the call before or after {where}; if the region needs its result, pass it in as an argument."


def _hint_to_declare(fn: Any) -> str:
    """The line of the settings that makes MagPy know a function; empty for a method, whose object may have state."""
    if type(fn) is not types.BuiltinFunctionType or bound_object(fn) is not None:
        return ""
    declared = f'`"{policy.dotted_name(fn)}" = "pure"` under `[tool.magpy.call-policy]` in pyproject.toml'
    return f"If it depends on its arguments only and changes nothing, declare {declared}; else call it outside the region."
