"""OutsideCallEvents: calls of NumPy, of random streams, and of native code that answers for the world outside.

Key type: OutsideCallEvents.
"""

from __future__ import annotations

import contextvars
import copy
import functools
import threading
import types
from typing import Any

import torch

from magpy_core._compat.torch.settings import get_settings, set_setting, setter_name, settings
from magpy_core.findings import HERE, Value
from magpy_core.guards import kinds as guard
from magpy_core.monitor import policy
from magpy_core.recording.builtin_calls import BuiltinEvents
from magpy_core.refgraph import kinds
from magpy_core.refgraph.draws import is_hidden
from magpy_core.refgraph.fields import ABSENT
from magpy_core.refgraph.kinds import is_a

CALLBACKS = (types.FunctionType, types.MethodType, functools.partial)
_SETTINGS = (bool, int, float, str, type(None), torch.dtype)
_HOST_HINT = "Move the call out of the region, or pass its result in as an argument."


_CACHED = type(functools.lru_cache(lambda: None))


class OutsideCallEvents(BuiltinEvents):
    """What NumPy, random streams and unknown native code mean to a recording."""

    def setting_read(self, site: Any, fn: Any, args: tuple[Any, ...], result: Any) -> None:
        """A setting of torch was asked for: the capture holds while it is the same."""
        if type(result) not in _SETTINGS or any(type(a) not in _SETTINGS for a in args):
            return
        key = (fn, args)
        source = self._settings.get(key)
        if source is None and self._set_one and (fn, args) not in list(settings()):
            self.refuse("MP106", f"{HERE} asks for a setting of torch after the region has changed another one.", site=site)
        elif source is None:
            root = self.const_root(fn, f"torch's {fn.__name__.removeprefix('_')}").source
            source = self._settings[key] = self.sources.make("setting", root, args)
            self.refgraph.read(source, guard.EQUAL, result, site)

    _settings: dict[Any, Any]
    _set_one = False  # whether the region has changed a setting

    def setting_written(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A setting of torch is about to be changed, which is a node of the graph. What the others are from then on follows
        from what they were, so all of them are guarded."""
        self.pending_torch = None
        if kwargs or any(type(a) not in _SETTINGS for a in args):
            self.refuse("MP106", f"{HERE} changes a setting of torch in a way that can't be recorded.", site=site)
            return
        self.escape_all(site, args)
        if not self._set_one:
            self._set_one = True
            try:
                for (getter, where), value in zip(settings(), get_settings(), strict=True):
                    self.setting_read(site, getter, where, value)
            except RuntimeError as error:
                self.refuse("MP106", f"{HERE} changes a setting of torch, of which two contradict: {error}", site=site)
        self.pending_call = (site, "set", (fn, args))

    def setting_changed(self, site: Any, fn: Any, args: tuple[Any, ...]) -> None:
        """The setter has returned."""
        node = self.ops.graph.call_function(set_setting, (setter_name(fn), *args))
        node.meta["magpy_site"] = site
        text = f"{HERE} changes a setting of torch, which a compiled graph can't do."
        self.ops.eager_only.append(("MP106", text, site))

    def call_numpy(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """NumPy on plain numbers is arithmetic; on arrays it reads memory that no guard watches."""
        owner = getattr(fn, "__self__", None)  # of a method
        if self.ops.op_depth and policy.is_pure_numpy(fn):  # inside of what is one node, which computes this again
            self.read_deep(site, (*args, *(() if is_a(owner, types.ModuleType) else (owner,))), kwargs)
            return
        known = owner is None or is_a(owner, types.ModuleType) or self._plain((owner,))
        if known and policy.is_pure_numpy(fn) and self._plain((*args, *kwargs.values())):
            self.escape_all(site, args, kwargs)
            self.read_deep(site, args, kwargs)
            self.pending_call = (site, "array", ())
        elif not (policy.is_pure_numpy(fn) and self.memory_read(site, owner, *args, *kwargs.values())):
            self.host_call(site, fn, policy.verdict(fn))

    def _plain(self, tree: Any) -> bool:
        """Whether all this follows from what guards watch: numbers, types, and arrays that the region made of such."""
        items = tree.values() if is_a(tree, dict) else tree
        return all(
            (kinds.kind_of(v) in (kinds.SCALAR, kinds.IDENTITY) and not is_a(v, CALLBACKS))
            or self.is_plain_array(v)
            or kinds.is_numpy_value(type(v))
            or (kinds.kind_of(v) in kinds.CONTAINERS and self._plain(v))
            for v in items
        )

    def keep_arrays(self, result: Any) -> None:
        """The result of a NumPy function of plain values is plain too."""
        for value in result if is_a(result, (tuple, list)) else (result,):
            if kinds.holds_memory(type(value)) and type(value).__name__ == "ndarray":
                self.arrays[id(value)] = value

    def draw(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Numbers are drawn from a random stream; False when it is one of the region's own, or their number is not plain."""
        stream = fn.__self__
        if self.ops.op_depth:  # the node draws again, after all that are drawn ahead of the graph
            self.host_call(site, fn, policy.HOST)
            return True
        if is_hidden(stream):
            module = "random" if type(stream).__module__ == "random" else "numpy.random"
            base = self.sources.const(stream, module)
        elif (node := self.refgraph.node(stream)) is not None:
            base = node.source
        else:
            return False
        if not self._plain_tree((*args, *kwargs.values())):
            return False
        self.escape_all(site, args, kwargs)  # how many, and of what: the draws are made before all else, so this is fixed
        self.read_deep(site, args, kwargs)
        source = self.sources.make("draw", base, copy.deepcopy((len(self.draws), fn.__name__, args, kwargs)))
        self.pending_call = (site, "draw", (source, fn))
        return True

    def _plain_tree(self, values: Any) -> bool:
        """Numbers, text and None, and arrays whose numbers are known or can be fixed; in tuples or lists of any depth."""
        return all(
            type(v) in (int, float, bool, str, type(None))
            or (type(v) in (tuple, list) and self._plain_tree(v))
            or self.is_plain_array(v)
            or id(v) in self.data
            for v in values
        )

    def drawn(self, site: Any, source: Any, fn: Any, result: Any) -> Any:
        if type(result) in (int, float):
            self.draws.append(source)
            return self.scalars.bind(result, self.scalars.source(source, result))
        if not self.drawn_array(site, source, result):
            self.host_call(site, fn, policy.HOST)
        return result

    def drawn_array(self, site: Any, source: Any, result: Any) -> bool:
        raise NotImplementedError

    def context_variable(self, var: contextvars.ContextVar[Any], name: str, args: tuple[Any, ...], site: Any) -> None:
        """A context variable is read, or set for the time of the region; at exit it must be as it was."""
        now = var.get(ABSENT)
        if name == "get":
            entry = self.context_entry.get(id(var))
            if entry is not None and entry[1] is not now:
                return  # the region's own value
            node = self.refgraph.node(var)
            if node is None:
                self.assume_internal(var)
                return
            source = self.sources.make("context", node.source, self.sources.const(ABSENT, "unset"))
            if now is ABSENT:
                self.refgraph.read(source, guard.IS, ABSENT, site)
            else:
                self.value(source, now, site)
        elif name in ("set", "reset"):
            self.context_entry.setdefault(id(var), (var, now, site))

    def lock_used(self, site: Any, obj: Any, name: str, asks: bool, fn: Any) -> None:
        """A lock changes no result, unless it is asked whether it is held (threading asks only for those it holds); nor does
        a cache's count of its calls, unless it is asked for. A replay keeps no count."""
        if name in ("cache_info", "cache_clear") and is_a(obj, _CACHED):
            self.host_call(site, fn, policy.UNKNOWN)
            return
        name = name.removesuffix("_lock")  # the names of old
        asks = name in ("locked", "_is_owned") or (name == "acquire" and asks)
        if type(obj).__module__ != "_thread" or site.code.co_filename == threading.__file__:
            return
        if asks:
            self.host_call(site, fn, policy.UNKNOWN)
        elif name in ("acquire", "release"):
            count, _, _ = self.locks_held.get(id(obj), (0, obj, site))
            self.locks_held[id(obj)] = count + (1 if name == "acquire" else -1), obj, site

    locks_held: dict[int, tuple[int, Any, Any]]

    def locks_left(self) -> None:
        """At exit: a lock that the region leaves to others to release, or has released for them."""
        for count, _, site in self.locks_held.values():
            if count:
                self.refuse("MP110", f"{HERE} leaves a lock held or released, which no replay would.", site=site)

    def host_call(self, site: Any, fn: Any, what: str) -> None:
        if self.ops.op_depth and policy.is_decimal(fn):
            return  # inside of what is one node: computed again, with the context of then
        name = policy.shown_name(fn)
        if name.endswith(".__subclasses__"):  # libraries look for what there is once, and keep what they found
            self.refuse_once("the subclasses of a class were asked for, which no guard can watch")
            return
        values = (Value("call", name),)
        if what == policy.IO and name.endswith(".__exit__") and self.broken:
            return  # the file was opened here: that has been said
        if what == policy.IO:
            self.refuse(
                "MP113", f"{HERE} does input or output inside the region.", hint=_HOST_HINT, values=values, site=site
            )
        elif what == policy.UNKNOWN or what == policy.PURE:
            self.refuse(
                "MP104",
                f"{HERE} calls native code that MagPy knows nothing about (`{name}`): what it does can't be guarded.",
                values=values,
                site=site,
            )
        else:
            self.refuse(
                "MP103",
                f"{HERE} can give another result at every call, and nothing can guard it.",
                hint=_HOST_HINT,
                values=values,
                site=site,
            )
