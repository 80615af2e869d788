"""Natives: attributes that native code reads without events (``attrgetter``, ``str.format``, ``case P(a=x)``,
``copy.copy``).

Key type: Natives.
"""

from __future__ import annotations

import functools
import operator
import re
import types
from typing import Any

import torch

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.knowledge.methods import PICKLE_HOOKS
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.printing import printable
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.fields import custom_dict, instance_dict, slot_names
from magpy_core.refgraph.kinds import is_a

_DEEP_FIELD = re.compile(r"\{[^{}:!]*[.[]")  # a field of a format string with an attribute or item, also in a specification


class Natives(Tracker):
    """Attribute reads by native code, handled like reads by the program."""

    def state_read(self, obj: Any, site: MaybeSite) -> None:
        """All attributes of an object are read at once (``object.__reduce_ex__``)."""
        if kinds.kind_of(obj) in (kinds.SCALAR, kinds.IDENTITY, kinds.TENSOR):
            return
        node = self.context.roots.node_for(obj)
        for name in PICKLE_HOOKS:
            self.context.classes.member(type(obj), name, site)
        if node is None:
            return
        d = instance_dict(obj)
        if d is None and (custom := custom_dict(obj)) is not None:
            self.context.reads.getset(node, obj, "__dict__", site)
            if (held := self.refgraph.node(custom)) is not None:
                self.context.contents.read_all(held, site)
        if d is not None:
            self.context.reads.getset(node, obj, "__dict__", site)  # the program may get this dict itself
            names = tuple(dict(d) if node.snapshot is None or node.snapshot.attrs is None else node.snapshot.attrs)
            self.refgraph.read(self.sources.make("dict", node.source, None), guard.KEYS, names, site)
            for name in list(d):
                self.context.reads.external_attr(node, obj, name, lookup.Found("instance", value=d[name]), site)
        for name in slot_names(type(obj)):
            found = lookup.resolve(obj, name, plain=True)
            if found.where == "slot":
                self.context.reads.external_attr(node, obj, name, found, site)
        if is_a(obj, BaseException):
            self.context.values.read(self.sources.make("field", node.source, "args"), obj.args, site)
            self.context.arguments.read(site, (obj.args,), {})

    def member_used(self, site: MaybeSite, member: Any, name: str, obj: Any) -> None:
        """``C.slot.__get__(obj)``: a slot is used through its descriptor."""
        if is_a(obj, torch.Tensor) or obj is None or name not in ("__get__", "__set__", "__delete__"):
            return
        if name != "__get__" or lookup.class_lookup(type(obj), member.__name__)[0] is not member:
            self.journal.refuse(
                "MP104",
                f"{HERE} uses the slot `{member.__name__}`, but the class has another attribute of that name.",
                site=site,
            )
        else:
            self.context.reads.raw_attr(obj, member.__name__, site)

    def pickles(self, fn: Any, args: tuple[Any, ...]) -> bool:
        """Whether this is pickle's native code with objects as arguments, whose entire state it would read."""
        return getattr(fn, "__module__", None) == "_pickle" and not all(map(printable, args))

    def call_getter(self, site: MaybeSite, fn: Any, args: tuple[Any, ...]) -> None:
        """An ``attrgetter``, ``itemgetter`` or ``methodcaller`` is called."""
        if len(args) != 1:
            return
        obj, (make, given) = args[0], fn.__reduce__()
        keywords: dict[str, Any] = {}
        if is_a(make, functools.partial):  # a methodcaller with keywords
            given, keywords = (*make.args, *given), make.keywords
        if is_a(fn, operator.attrgetter):
            for name in given:
                if "." in name:
                    text = f"{HERE} reads a chain of attributes in C code: MagPy can't see what it reads."
                    self.journal.refuse("MP104", text, hint="Write the attribute chain in Python: `obj.a.b`.", site=site)
                else:
                    self.context.reads.attr(obj, name, site)
        elif is_a(fn, operator.itemgetter):
            self.context.arguments.read(site, args, {})
            for key in given:
                self.context.items.read(obj, key, site)
        else:
            self.context.arguments.read(site, args, {})
            self.context.reads.attr(obj, given[0], site)
            raw, owner = lookup.class_lookup(type(obj), given[0])
            if owner is not None and not is_a(raw, types.FunctionType) and callable(raw):
                self.context.dispatch.dispatch(site, raw, (obj, *given[1:]), keywords)

    def format_fields(self, site: MaybeSite, text: str) -> None:
        """``text.format(...)``: fields with attributes or items read them from the arguments."""
        if _DEEP_FIELD.search(str.replace(text, "{{", "")):
            text = f"{HERE} looks up attributes or items in a format string: MagPy can't see what it reads."
            self.journal.refuse("MP104", text, hint="Use an f-string.", site=site)

    def match_class(self, site: MaybeSite, subject: Any, cls: Any, names: Any) -> None:
        """A class pattern: guard the attributes that it reads, if the subject is an instance."""
        self.context.flow.match(site, subject)
        self.context.classes.shape(type(subject), site)
        if type(cls) is type and not issubclass(type(subject), cls):
            return
        positional = getattr(cls, "__match_args__", ()) if kinds.kind_of(subject) not in (kinds.SCALAR, kinds.TENSOR) else ()
        if positional:
            self.context.reads.attr(cls, "__match_args__", site)
            self.context.arguments.read(site, (positional,), {})
        for name in (*positional, *names):
            self.context.reads.attr(subject, name, site)
