"""Guard code generation: reference-graph reads become one readable Python function body.

Values are reached from the region's roots; each value on the way is assigned to a local variable once. Constants are in a
table, never in the text. Key type: GuardWriter.
"""

from __future__ import annotations

import re
import types
from collections import Counter
from collections.abc import Callable, Mapping
from types import FunctionType, MappingProxyType
from typing import Any

from magpy_core.guards.first_level import FirstLevel
from magpy_core.guards.helpers import HELPERS
from magpy_core.guards.kinds import KEYS, TYPE
from magpy_core.opgraph.scalars import Sym
from magpy_core.refgraph.guard_kind import Read
from magpy_core.refgraph.lookup import class_lookup, overrides
from magpy_core.refgraph.source import Source

_INLINE = (bool, int, str, type(None))
MISS = "return MISS"

_ASSIGN = re.compile(r"(v\d+) = (.+)")
_NAME = re.compile(r"\bv\d+\b")


def inline_single_uses(lines: list[str], used_later: list[str]) -> list[str]:
    """Move an expression into the next line if only that line uses it, which saves a store and a load per check."""
    counts = Counter(name for line in (*lines, *used_later) for name in _NAME.findall(line))
    out: list[str] = []
    for line in lines:
        previous = _ASSIGN.fullmatch(out[-1]) if out else None
        if previous and counts[previous[1]] == 2 and line.startswith("if ") and previous[1] in _NAME.findall(line):
            out[-1] = re.sub(rf"\b{previous[1]}\b", lambda _, e=previous[2]: e, line, count=1)  # type: ignore[misc]
        else:
            out.append(line)
    return out


class GuardWriter:
    """Writes statements into ``lines``; a check that fails returns MISS. ``where`` returns the comment for a site.

    With a first level ``level``, the reads that it covers are not checked, its fixed sources are constants, and CHANGED is
    returned if one of its roots leads to another object."""

    def __init__(self, where: Callable[[Any], str] = lambda site: "", level: FirstLevel | None = None) -> None:
        self.lines: list[str] = []
        self.table: dict[str, Any] = dict(HELPERS)
        self.where = where
        self._covered, self._roots = (level.covered, level.roots) if level else (set(), {})
        self._vars: dict[int, str] = {}
        self._dicts: dict[int, str] = {}
        self._consts: dict[int, str] = {}
        self._keep: list[Any] = []
        self.checks = 0
        self.deferred: list[Callable[[], None]] = []  # add tests of entries, once everything else is written
        self._entries: dict[str, dict[str, None]] = {}  # variable of a dict -> tests of ``d`` that must be false for it
        self._types: dict[int, type] = {}  # id of a source -> type that a check fixes
        self._bulk: dict[int, list[Read]] = {}  # types of all values of one dict, by its source
        for source, table in level.fixed if level else ():
            self._vars[id(source)] = self.const(table)

    # -- names -------------------------------------------------------------------------------------------------

    def const(self, value: Any) -> str:
        """An expression for a constant: a literal if that is safe, else a table entry."""
        if type(value) in _INLINE and not (type(value) is str and len(value) > 60):
            return repr(value)
        name = self._consts.get(id(value))
        if name is None:
            name = self._consts[id(value)] = f"C{len(self._consts)}"
            self.table[name] = value
            self._keep.append(value)
        return name

    def object_const(self, value: Any) -> str:
        """A table entry for exactly this object; an equal literal would be another object."""
        name = f"K{len(self.table)}"
        self.table[name] = value
        return name

    def has(self, source: Source) -> bool:
        """Whether a variable holds the value at ``source``."""
        return id(source) in self._vars

    def dict_of(self, source: Source) -> str:
        """A variable holding ``source``'s ``__dict__``."""
        name = self._dicts.get(id(source))
        if name is None:
            if source.kind == "const" and isinstance(source.key, (type, types.ModuleType)):
                # the namespace of a class is a live view and that of a module is never replaced: one lookup is enough
                name = self.const(source.key.__dict__)
            else:
                base = self.var(source)
                name = f"d{len(self._dicts)}"
                plain = not isinstance(
                    class_lookup(self._types.get(id(source), object), "__getattribute__")[0], FunctionType
                )
                self.lines.append(f"{name} = {base}.__dict__" if plain else f"{name} = namespace({base})")
            self._dicts[id(source)] = name
            self._keep.append(source)
        return name

    def var(self, source: Source) -> str:
        """A variable (or constant) holding ``source``'s value; emits the access on first use."""
        name = self._vars.get(id(source))
        return self._bind(source, source.step_kind.code(self, source)) if name is None else name

    def _bind(self, source: Source, name: str) -> str:
        self._vars[id(source)] = name
        self._keep.append(source)
        if id(source) in self._roots:
            self.lines.append(f"if id({name}) != {self._roots[id(source)][1]}: return CHANGED")
        return name

    def key(self, source: Source) -> str:
        """The expression of a step's key."""
        return self.var(source.key) if isinstance(source.key, Source) else self.const(source.key)

    def type_of(self, source: Source) -> type | None:
        return type(source.key) if source.kind == "const" else self._types.get(id(source))

    def new_name(self, prefix: str) -> str:
        return f"{prefix}{len(self._vars)}"

    def assign(self, expression: str) -> str:
        """A new variable with this value."""
        name = self.new_name("v")
        self.lines.append(f"{name} = {expression}")
        return name

    # -- checks ------------------------------------------------------------------------------------------------

    def fail_if(self, condition: str, site: Any) -> None:
        note = self.where(site)
        self.lines.append(f"if {condition}: {MISS}" + (f"  # {note}" if note else ""))
        self.checks += 1

    def write(self, reads: list[Read]) -> None:
        """Write all checks, except those that a cache counts, in the order in which the values were read."""
        self._types = {id(r.source): r.expected for r in reads if r.kind is TYPE}
        for read in self._bulk_types([r for r in reads if not (r.counted or id(r) in self._covered)]):
            if not self._defer_to_entry_loop(read):
                self.check(read)
        for source, _ in self._roots.values():
            self.var(source)
        self._write_deferred()

    def write_counted(self, reads: list[Read]) -> None:
        """Write the checks that a cache counts. They come last: what fails before leaves the caches as they are."""
        for read in reads:
            if read.counted:
                self.check(read)
        self._write_deferred()

    def _write_deferred(self) -> None:
        for add in self.deferred:
            add()
        self.deferred.clear()
        same_tests: dict[tuple[str, ...], list[str]] = {}  # a loop runs faster than the unrolled tests
        for name, tests in self._entries.items():
            same_tests.setdefault(tuple(tests), []).append(name)
        for shared, names in same_tests.items():
            self.lines += [f"for d in ({', '.join(names)},):", f"    if {' or '.join(shared)}: {MISS}"]
        self._entries.clear()

    def entry(self, name: str, test: str) -> None:
        """Fail if ``test`` is true for the dict ``d`` in variable ``name``. Dicts with the same tests share a loop."""
        self._entries.setdefault(name, {})[test] = None

    def _defer_to_entry_loop(self, read: Read) -> bool:
        """Whether the read is moved to the loop over entries: it reads one entry of an object's namespace or of a module's
        tables, and nothing else needs the value."""
        base = read.source.base
        if base is None or base.kind == "const" or type(read.source.key) is not str:
            return False
        own = base.kind == "dict" and base.base is not None and base.base.kind != "const"
        test = read.kind.entry_test(self, read, own)
        if test is None:
            return False
        self.entry(self.var(base), test)
        self.checks += 1
        return True

    def _bulk_types(self, reads: list[Read]) -> list[Read]:
        """Collect the type checks of all values of one dict (a ModuleList, a Sequential), which are compared at once after
        its keys. Returns the other reads."""
        groups: dict[int, list[Read]] = {}
        for read in reads:
            if read.kind is TYPE and read.source.kind == "dict_item" and isinstance(read.source.key, str):
                groups.setdefault(id(read.source.base), []).append(read)
        keys = {id(r.source): r.expected for r in reads if r.kind is KEYS}
        self._bulk = {}
        done: set[int] = set()
        for base, group in groups.items():
            if len(group) > 3 and tuple(r.source.key for r in group) == keys.get(base):
                self._bulk[base] = group
                done.update(id(r) for r in group)
        return [r for r in reads if id(r) not in done]

    def types_of_values(self, source: Source) -> None:
        """Write the check of all value types of the dict at ``source``, if ``_bulk_types`` has collected it."""
        group = self._bulk.get(id(source))
        if group is None:
            return
        names = [f"v{len(self._vars) + i}" for i in range(len(group))]
        held = "native_values({})" if overrides(self.type_of(source), "values") else "{}.values()"
        self.lines.append(f"{', '.join(names)} = values = tuple({held.format(self.var(source))})")
        self.fail_if(f"tuple(map(type, values)) != {self.const(tuple(r.expected for r in group))}", group[0].site)
        self.checks += len(group) - 1
        for read, name in zip(group, names, strict=True):
            self._bind(read.source, name)

    def check(self, read: Read) -> None:
        read.kind.code(self, read)

    def distinct(self, sources: list[Source]) -> None:
        """Check that no two of these are the same object."""
        names = [self.var(s) for s in sources]
        self.fail_if(f"len({{{', '.join(f'id({n})' for n in names)}}}) != {len(names)}", None)

    # -- scalars -----------------------------------------------------------------------------------------------

    def scalar(self, sym: Any, nodes: Mapping[Any, str] = MappingProxyType({})) -> str:
        """A Python expression for a symbolic scalar; ``nodes`` maps values of the graph, and reads of clocks
        after it, to their variables."""
        if not isinstance(sym, Sym):
            return self.const(sym)
        if sym.kind == "source":
            return self.var(sym.payload)
        if sym in nodes:  # a value that is used several times
            return nodes[sym]
        if sym.kind in ("node", "clock", "tensor"):
            return nodes[sym.payload]
        args = ", ".join(self.scalar(a, nodes) for a in sym.args)
        return f"{self.const(sym.payload)}({args})"
