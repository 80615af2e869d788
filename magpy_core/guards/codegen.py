"""Guard code generation: reference-graph reads become one readable Python function body.

Values are reached by walking from the region's roots; each value on the way is a local variable, made once. Constants
live in a table, never in the text. Key type: GuardWriter.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Container, Sequence
from types import FunctionType
from typing import Any

from magpy_core.guards.helpers import HELPERS
from magpy_core.guards.kinds import KEYS, TYPE
from magpy_core.opgraph.scalars import Sym
from magpy_core.refgraph.graph import Read
from magpy_core.refgraph.lookup import class_lookup, overrides
from magpy_core.refgraph.source import Source

_INLINE = (bool, int, str, type(None))


_ASSIGN = re.compile(r"(v\d+) = (.+)")
_NAME = re.compile(r"\bv\d+\b")
_TARGETS = re.compile(r"((?:[vd]\d+_*(?:, )?)+) = (.+)")
_ANY_NAME = re.compile(r"\b[vd]\d+_*\b")
# What may be left out if nothing looks at the value: steps along a path, which do nothing else.
_STEP = re.compile(
    r"\w+(\.__dict__|\.cell_contents|\[[^\[\]]*\])*|"
    r"(namespace|dict_getitem|dict_entry|list_getitem|len)\([^()]*\)|values = tuple\(\w+\.values\(\)\)"
)


def inline_single_uses(lines: list[str], used_later: list[str]) -> list[str]:
    """Put a value that only the next line looks at into that line: one store and load less a check."""
    counts: dict[str, int] = {}
    for line in (*lines, *used_later):
        for name in _NAME.findall(line):
            counts[name] = counts.get(name, 0) + 1
    out: list[str] = []
    for line in lines:
        previous = _ASSIGN.fullmatch(out[-1]) if out else None
        if (
            previous is not None
            and counts[previous[1]] == 2
            and line.startswith("if ")
            and previous[1] in _NAME.findall(line)
        ):
            out[-1] = re.sub(rf"\b{previous[1]}\b", lambda _, e=previous[2]: e, line, count=1)  # type: ignore[misc]
        else:
            out.append(line)
    return out


def drop_unused(lines: list[str], used_later: list[str]) -> list[str]:
    """Without the steps to values that nothing looks at any more."""
    used = {name for line in used_later for name in _ANY_NAME.findall(line)}
    out: list[str] = []
    for line in reversed(lines):
        assigned = _TARGETS.fullmatch(line)
        if assigned is not None and used.isdisjoint(_ANY_NAME.findall(assigned[1])) and _STEP.fullmatch(assigned[2]):
            continue
        used.update(_ANY_NAME.findall(line))
        out.append(line)
    return out[::-1]


class GuardWriter:
    """Writes statements into ``lines``; ``miss`` is the statement executed when a check fails."""

    def __init__(self, miss: str = "return MISS", where: Callable[[Any], str] | None = None) -> None:
        self.lines: list[str] = []
        self.table: dict[str, Any] = dict(HELPERS)
        self.miss = miss
        self.where = where or (lambda site: "")
        self._vars: dict[int, str] = {}
        self._dicts: dict[int, str] = {}
        self._consts: dict[int, str] = {}
        self._keep: list[Any] = []
        self.checks = 0
        self.at_end: list[Callable[[], None]] = []  # adds tests of entries, once all else is written
        # variable of a dict -> what must not hold of it, as tests of ``d``, and the reads each test stands for
        self._entries: dict[str, dict[str, list[Read]]] = {}
        self._entries_at = 0
        self.reads_of: dict[int, Sequence[Read]] = {}  # index of a line in ``lines`` -> the reads that it checks
        self._reading: Sequence[Read] = ()
        self._distinct: dict[int, list[Source]] = {}  # index of a line -> what must be different objects there
        self._types: dict[int, type] = {}  # what ``type`` checks have fixed so far: source -> type

    # -- names -------------------------------------------------------------------------------------------------

    def const(self, value: Any) -> str:
        """An expression for a constant: literal where that is safe, a table entry otherwise."""
        if type(value) in _INLINE and not (type(value) is str and len(value) > 60):
            return repr(value)
        name = self._consts.get(id(value))
        if name is None:
            name = self._consts[id(value)] = f"C{len(self._consts)}"
            self.table[name] = value
            self._keep.append(value)
        return name

    def this_object(self, value: Any) -> str:
        """A name for one very object, where an equal literal would be another."""
        name = f"K{len(self.table)}"
        self.table[name] = value
        return name

    def has(self, source: Source) -> bool:
        """Whether a variable holds what is at ``source``."""
        return id(source) in self._vars

    def dict_of(self, source: Source) -> str:
        """A variable holding ``source``'s ``__dict__``."""
        name = self._dicts.get(id(source))
        if name is None:
            if source.kind == "const" and isinstance(source.key, (type, types.ModuleType)):
                # the namespace of a class is a live view, that of a module is never replaced: look it up once
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
        if name is not None:
            return name
        name = source.step_kind.code(self, source)
        self._vars[id(source)] = name
        self._keep.append(source)
        return name

    def key(self, source: Source) -> str:
        """The expression of a step's key."""
        return self.var(source.key) if isinstance(source.key, Source) else self.const(source.key)

    def type_of(self, source: Source) -> type | None:
        return type(source.key) if source.kind == "const" else self._types.get(id(source))

    def fresh(self, prefix: str) -> str:
        return f"{prefix}{len(self._vars)}"

    def assign(self, expression: str) -> str:
        """A new variable with this value."""
        name = self.fresh("v")
        while any(line.startswith(name + " = ") for line in self.lines[-1:]):
            name += "_"
        self.lines.append(f"{name} = {expression}")
        return name

    # -- checks ------------------------------------------------------------------------------------------------

    def fail_if(self, condition: str, site: Any) -> None:
        note = self.where(site)
        if self._reading:
            self.reads_of[len(self.lines)] = self._reading
        self.lines.append(f"if {condition}: {self.miss}" + (f"  # {note}" if note else ""))
        self.checks += 1

    def write(self, reads: list[Read]) -> None:
        """All checks, in the order the values were read."""
        self._types = {id(r.source): r.expected for r in reads if r.kind is TYPE}
        reads = self._bulk_types(reads)
        for read in reads:
            if not self._put_off(read):
                self._reading = (read,)
                self.check(read)
        self._reading = ()
        for add in self.at_end:
            add()
        self.at_end.clear()  # they refer to this writer
        self._entries_at = len(self.lines)
        self.lines += self._entry_lines(frozenset())

    def _put_off(self, read: Read) -> bool:
        """Checks of single entries of an object's namespace, or of a module's tables, that give no value on: dicts of which
        the same is asked are looked at in one loop, as code that runs once a call costs more than what it does."""
        base = read.source.base
        if base is None or base.kind == "const" or type(read.source.key) is not str:
            return False
        own = base.kind == "dict" and base.base is not None and base.base.kind != "const"
        test = read.kind.entry_test(self, read, own)
        if test is None:
            return False
        self.entry(self.var(base), test, read)
        self.checks += 1
        return True

    def entry(self, name: str, test: str, read: Read) -> None:
        self._entries.setdefault(name, {}).setdefault(test, []).append(read)

    def _entry_lines(self, covered: Container[int]) -> list[str]:
        alike: dict[tuple[str, ...], list[str]] = {}
        for name, tests in self._entries.items():
            asked = tuple(test for test, reads in tests.items() if any(id(r) not in covered for r in reads))
            if asked:
                alike.setdefault(asked, []).append(name)
        lines: list[str] = []
        for asked, names in alike.items():
            lines += [f"for d in ({', '.join(names)},):", f"    if {' or '.join(asked)}: {self.miss}"]
        return lines

    def without(self, lines: list[str], covered: Container[int], stays: Callable[[Source], bool]) -> list[str]:
        """The guard's ``lines``, once written, but for the checks of nothing but ``covered`` reads (by id), and of nothing
        but objects that stay the same ones."""
        entries = self._entry_lines(frozenset())
        start, end = self._entries_at, self._entries_at + len(entries)
        out: list[str] = []
        for i, line in enumerate(lines):
            reads = self.reads_of.get(i)
            if reads is not None and all(id(r) in covered for r in reads):
                continue
            if i in self._distinct and all(map(stays, self._distinct[i])):
                continue
            if i == start:
                out += self._entry_lines(covered)
            if not start <= i < end:
                out.append(line)
        return out

    def name_of(self, source: Source) -> str | None:
        """The variable or constant that holds a source's value, if anything asked for it."""
        return self._dicts.get(id(source.base)) if source.kind == "dict" else self._vars.get(id(source))

    def _bulk_types(self, reads: list[Read]) -> list[Read]:
        """Types of all values of one dict (a ModuleList, a Sequential) are compared in one go after its keys are."""
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
        """The check that ``_bulk_types`` has put together for the dict at ``source``, if any."""
        group = self._bulk.get(id(source))
        if group is None:
            return
        names = []
        for read in group:
            name = self._vars[id(read.source)] = f"v{len(self._vars)}"
            self._keep.append(read.source)
            names.append(name)
        held = f"{self.var(source)}.values()"
        if overrides(self.type_of(source), "values"):
            held = f"native_values({self.var(source)})"
        self.lines.append(f"{', '.join(names)} = values = tuple({held})")
        self._reading = group
        self.fail_if(f"tuple(map(type, values)) != {self.const(tuple(r.expected for r in group))}", group[0].site)
        self.checks += len(group) - 1

    _bulk: dict[int, list[Read]]

    def check(self, read: Read) -> None:
        read.kind.code(self, read)

    def distinct(self, sources: list[Source]) -> None:
        """No two of these are one object."""
        names = [self.var(s) for s in sources]
        self._distinct[len(self.lines)] = sources
        self.fail_if(f"len({{{', '.join(f'id({n})' for n in names)}}}) != {len(names)}", None)

    # -- scalars -----------------------------------------------------------------------------------------------

    def scalar(self, sym: Any, nodes: Callable[[Any], str] | None = None) -> str:
        """A Python expression for a symbolic scalar; ``nodes`` names the variable of a graph value."""
        if not isinstance(sym, Sym):
            return self.const(sym)
        if sym.kind == "source":
            return self.var(sym.payload)
        if sym.kind == "node":
            if nodes is None:
                raise AssertionError("a value of the graph is not known yet")
            return nodes(sym.payload)
        args = ", ".join(self.scalar(a, nodes) for a in sym.args)
        return f"{self.const(sym.payload)}({args})"
