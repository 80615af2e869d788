"""The first level of a guard: the checks that hold as long as no watched dict is written.

Most reads of a deep model's guard are in the ``__dict__`` of its modules and in their tables, in the names of modules and
classes, and in the code, defaults and cells of functions. Once checked, they hold until one of those dicts is written, an
object gets another class or ``__dict__``, or a function, class or cell gets another value; dict version tags and pointers
in memory (``dict_tags.py``, ``slot_words.py`` in ``_compat/cpython``) show this. The other checks remain: the paths to the
roots (which must be the same objects), and lists, sets, slots and tensor properties, which have no tags. If a tag has
changed, the full guard decides. Key type: FirstLevel.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch

from magpy_core._compat.cpython import dict_tags
from magpy_core._compat.cpython.dict_tags import Watch, instance_dict, names_of, type_is_fixed
from magpy_core._compat.cpython.slot_words import slot
from magpy_core.guards.helpers import HOOK_DICTS
from magpy_core.guards.kinds import TENSOR, Is, is_plain_key
from magpy_core.refgraph import kinds
from magpy_core.refgraph.guard_kind import Read
from magpy_core.refgraph.source import Source

_MIN_COVERED = 150  # number of covered checks from which on the tags cost less than they save
_NAMESPACE = ".__dict__"
_UNREACHABLE = (AttributeError, LookupError, TypeError, ValueError, ReferenceError)
CHANGED: Any = type("CHANGED", (), {"__repr__": lambda self: "CHANGED"})()
"""The result of a function with a fast guard if a tag or root has changed."""


def _memoized(find: Callable[[FirstLevel, Source], bool]) -> Callable[[FirstLevel, Source], bool]:
    """Computes the result once for each source; False for a path that leads back to itself."""

    def found(level: FirstLevel, source: Source) -> bool:
        key = (find.__name__, id(source))
        known = level._known.get(key)
        if known is None:
            level._known[key] = False
            known = level._known[key] = find(level, source)
        return known

    return found


class FirstLevel:
    """Which of ``reads`` the tags cover for the current objects (``args`` and ``kwargs`` of a call whose full guard holds).
    ``volatile``: paths of namespaces, tables and roots that have changed too often."""

    def __init__(
        self, reads: Sequence[Read], args: tuple[Any, ...], kwargs: dict[str, Any], volatile: frozenset[str]
    ) -> None:
        self._volatile = volatile
        self._call: tuple[tuple[Any, ...], dict[str, Any]] = (args, kwargs)
        self._values: dict[int, Any] = {}
        self._known: dict[tuple[str, int], bool] = {}
        self._namespaces: dict[int, dict[str, Any]] = {}
        self._objects: list[tuple[Source, Any]] = []
        self._names: list[tuple[str, dict[str, Any]]] = []
        self._slots: list[int] = []
        self._kept = {id(read.source): read.expected for read in reads if isinstance(read.kind, Is)}
        self._tables: list[tuple[str, dict[Any, Any]]] = []
        # the starts of the paths to watched objects, with the addresses of the objects that they must lead to
        self.roots: dict[int, tuple[Source, int]] = {}
        self._own_paths: list[str] = []  # of the objects with a namespace, in the same order
        self._table_paths: list[str] = []
        self.covered = {id(read) for read in reads if self._may_cover(read)}
        self.fixed = self._tensor_tables(reads)
        self._call = ((), {})

    def watch(self, on_death: Any) -> Watch:
        """Start watching. Raises Unwatchable."""
        objects = [(value, self._namespaces.get(id(source))) for source, value in self._objects]
        names = [own for _, own in self._names]
        watch = Watch(objects, [table for _, table in self._tables], on_death, names, self._slots)
        # drop the references to the program's objects: only their paths and addresses are needed from now on
        self._own_paths = [s.path + _NAMESPACE for s, _ in self._objects if id(s) in self._namespaces]
        self._own_paths += [path for path, _ in self._names]
        self._table_paths = [path for path, _ in self._tables]
        for held in (self._values, self._namespaces, self._objects, self._names, self._kept, self._tables, self.fixed):
            held.clear()
        return watch

    def changed_paths(self, watch: Watch, args: tuple[Any, ...], kwargs: dict[str, Any]) -> set[str]:
        """The paths of the roots that have changed since ``watch``; if none, those of the namespaces and tables."""
        roots: set[str] = set()
        for source, address in self.roots.values():
            try:
                if id(source.evaluate(args, kwargs)) != address:
                    roots.add(source.path)
            except _UNREACHABLE:
                roots.add(source.path)
        if roots:
            return roots
        own, tables = watch.changed()
        return {self._own_paths[i] for i in own} | {self._table_paths[i] for i in tables}

    @property
    def is_worthwhile(self) -> bool:
        return len(self.covered) >= (1 if dict_tags.eagerly() else _MIN_COVERED)

    # -- what the tags cover ---------------------------------------------------------------------------------

    def value(self, source: Source) -> Any:
        """The value at ``source``. Raises LookupError if the step would run user code or have an effect."""
        found = self._values.get(id(source), self)
        if found is not self:
            return found
        if source.base is None:
            found = source.evaluate(*self._call)
        else:
            inside = self.value(source.base)
            if not is_plain_key(source.key) or not source.step_kind.may_follow(inside, source.key):
                raise LookupError(source.path)
            found = source.step_kind.read(inside, source.key)
        self._values[id(source)] = found
        return found

    def _may_cover(self, read: Read) -> bool:
        try:
            return read.kind.covered_by_tag(self, read)
        except _UNREACHABLE:
            return False

    @_memoized
    def held(self, source: Source) -> bool:
        """Whether the value at ``source`` is the same object while the tags are unchanged."""
        return (source.kind == "const" or is_plain_key(source.key)) and source.step_kind.held(self, source)

    def slot(self, source: Source) -> bool:
        """Whether comparing a pointer shows that a function, class or cell holds the same value. The guard must keep the
        value alive, or another value could get its address (a dict's tag would change as well)."""
        base = source.parent
        found = slot(base.key, source.key or "cell_contents") if base.kind == "const" else None
        if found is None:
            return False
        address, value = found
        kept = self._kept.get(id(source), self) is value
        if not kept and not (source.key == "__kwdefaults__" and self.add_table(source.path, value)):
            return False
        self._slots.append(address)
        return True

    def is_stable(self, source: Source) -> bool:
        """Whether the object at ``source`` is the same while the tags, and the roots found so far, are unchanged."""
        if source.kind == "dict":
            return id(source.base) in self._namespaces
        return self.held(source) or self._known.get(("watched", id(source)), False)

    def contents(self, source: Source) -> bool:
        """Whether the contents of the dict at ``source`` are fixed."""
        if source.kind == "dict":
            return source.base is not None and self.namespace(source.base)
        return self.table(source)

    @_memoized
    def watched(self, source: Source) -> bool:
        """Whether the object at ``source`` keeps its class."""
        root = not self.held(source)
        if root and (not source.step_kind.watchable or source.path in self._volatile):
            return False
        value = self.value(source)
        if type_is_fixed(value) or type(value).__weakrefoffset__ == 0 or kinds.is_a(value, (type, torch.Tensor)):
            return False
        own = instance_dict(value)
        if own is not None and source.path + _NAMESPACE not in self._volatile:
            self._namespaces[id(source)] = own
        if root:
            self.roots[id(source)] = (source, id(value))
        self._objects.append((source, value))
        return True

    def namespace(self, source: Source) -> bool:
        return (self.watched(source) and id(source) in self._namespaces) or self.fixed_names(source)

    @_memoized
    def fixed_names(self, source: Source) -> bool:
        """Whether this is a class, a module or a module's namespace, and its entries are fixed."""
        path = source.path + _NAMESPACE
        own = names_of(source.key) if source.kind == "const" else None
        if own is None or path in self._volatile:
            return False
        self._names.append((path, own))
        return True

    def table(self, source: Source, *, keys: bool = True) -> bool:
        """Whether the dict at ``source`` is directly in a fixed namespace, and its contents are fixed. ``keys``: their order
        must be fixed too, which an OrderedDict can change without a new tag."""
        return self._is_table(source) and (not keys or type(self.value(source)) is dict)

    @_memoized
    def _is_table(self, source: Source) -> bool:
        return source.step_kind.table(self, source)

    def add_table(self, path: str, table: Any) -> bool:
        if path in self._volatile or type(table) not in (dict, OrderedDict):
            return False
        self._tables.append((path, table))
        return True

    def hooks(self, source: Source) -> bool:
        if not self.namespace(source) or id(source) not in self._namespaces:
            return False
        own = self._namespaces[id(source)]
        return all(self.add_table(f"{source.path}.attr({name!r})", own[name]) for name in HOOK_DICTS)

    def _tensor_tables(self, reads: Sequence[Read]) -> list[tuple[Source, dict[Any, Any]]]:
        """Tables that contain only tensors: the fast guard refers to them directly instead of by their paths. This keeps no
        model alive (the death of a module ends the watch), and no tensor that was removed from one of them."""
        out: dict[int, tuple[Source, dict[Any, Any]]] = {}
        for read in reads:
            base = read.source.base
            if read.kind is TENSOR and base is not None and id(base) not in out and base.kind != "dict" and self.table(base):
                table = self.value(base)
                if all(v is None or kinds.is_a(v, torch.Tensor) for v in table.values()):
                    out[id(base)] = (base, table)
        return list(out.values())
