"""Numbers: arithmetic on symbolic scalars, and scalars that escape to code that needs their exact value.

Key type: Numbers.
"""

from __future__ import annotations

import collections
import gc
import operator
from types import BuiltinMethodType, CellType, GeneratorType, MappingProxyType
from typing import Any

from magpy_core.findings import HERE
from magpy_core.monitor.events import MaybeSite
from magpy_core.opgraph.host_calls import of_numbers
from magpy_core.opgraph.scalars import Sym, can_raise, is_float_division, may_raise_in_graph
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, lookup, natives
from magpy_core.refgraph.fields import instance_dict, swap_entry
from magpy_core.refgraph.kinds import is_a


def _store(held: Any, key: Any, old: int, new: int) -> None:
    if type(held) in (dict, list):
        swap_entry(held, key, old, new)
    else:
        (dict if is_a(held, dict) else list).__setitem__(held, key, new)


_HOLDERS = (dict, list, tuple, set, frozenset)
_CONTAINS = [holder.__dict__["__contains__"] for holder in _HOLDERS]  # the program's own may do anything
_FEW = 64  # numbers that a dynamic one is compared with


class Numbers(Tracker):
    """Handles numbers that vary between calls."""

    def escape_raising(self, fn: Any, numbers: tuple[Any, ...], site: MaybeSite) -> None:
        """Arithmetic that raises (a division by zero) decides the program's path: the path holds only for these numbers."""
        try:
            if fn is not None:
                of_numbers(fn, numbers)(*numbers)
        except Exception:
            self.escape_all(site, numbers)

    def carries(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return (
            bool(self.ledger.scalars)
            and not kwargs
            and all(type(a) in kinds.NUMBER_TYPES for a in args)
            and any(self.ledger.scalars.get(a) is not None for a in args)
        )

    def compare(self, fn: Any, lhs: Any, rhs: Any, site: MaybeSite) -> None:
        """The program's path depends on the outcome of a comparison ``fn`` of numbers, some of them dynamic."""
        scalars, outcome = self.ledger.scalars, fn(lhs, rhs)
        fn = of_numbers(fn, (lhs, rhs))
        sym = scalars.call(fn, (scalars.get(lhs) or lhs, scalars.get(rhs) or rhs), outcome)
        self.context.decisions.decide(sym, outcome, "compare", site)

    def compare_equal(self, lhs: tuple[int, ...], rhs: tuple[int, ...], site: MaybeSite) -> None:
        """The program's path depends on whether two tuples are equal, in which ints may be dynamic: on all pairs if they
        are, on the first that differs if not."""
        if len(lhs) != len(rhs):
            return
        pairs = list(zip(lhs, rhs, strict=True))
        unequal = next((pair for pair in pairs if pair[0] != pair[1]), None)
        for pair in pairs if unequal is None else [unequal]:
            if self.carries(pair, {}):
                self.compare(operator.eq, *pair, site)

    def looks_up(self, item: Any, container: Any) -> bool:
        """Whether a dynamic number is looked up among a few numbers: what matters is how it compares with each of them."""
        return (
            self.carries((item,), {})
            and is_a(container, _HOLDERS)
            and lookup.class_lookup(type(container), "__contains__")[0] in _CONTAINS
            and len(container) <= _FEW
            and all(type(element) in kinds.NUMBER_TYPES for element in natives.elements(container))
        )

    def escape(self, sym: Sym, site: MaybeSite) -> None:
        """A symbolic scalar is used by code that needs its exact value. That of a text follows from the numbers in it."""
        if type(sym.hint) is str:
            for part in sym.args:
                if is_a(part, Sym):
                    self.escape(part, site)
            return
        self.context.decisions.decide(sym, sym.hint, "value", site)

    def escape_texts(self, site: MaybeSite, *trees: Any) -> None:
        """Every symbolic text inside the given values escapes."""
        if self.ledger.scalars.has_texts:
            self.escape_all(site, *trees, types=kinds.TEXT_TYPE)

    def escape_all(self, site: MaybeSite, *trees: Any, types: frozenset[type] = kinds.CARRYING) -> None:
        """Every symbol inside the given values escapes. ``types``: of the values that carry one."""
        if not self.ledger.scalars:
            return
        stack, budget = list(trees), 100_000
        while stack:
            v = stack.pop()
            budget -= 1
            if budget < 0:
                text = f"{HERE} passes a container of more than 100,000 elements to C code: too many to check."
                self.journal.refuse(
                    "MP111", text, hint="Read only the elements that are needed, or keep the data in a tensor.", site=site
                )
                return
            if type(v) in types:
                sym = self.ledger.scalars.get(v)
                if sym is not None:
                    self.escape(sym, site)
            elif type(v) is BuiltinMethodType:  # a method of a text
                stack.append(v.__self__)
            elif is_a(v, (dict, MappingProxyType)):
                stack.extend(v.keys())
                stack.extend(v.values())
            elif is_a(v, (list, tuple, set, frozenset, collections.deque)) or type(v) in kinds.DICT_VIEWS:
                stack.extend(v)
            elif is_a(v, slice):
                stack.extend((v.start, v.stop, v.step))
            elif hasattr(type(v), "__next__") and type(v) is not GeneratorType:
                # only the values that a generator yields are observed
                if types is kinds.TEXT_TYPE:
                    stack.extend(gc.get_referents(v))  # what it goes over
                else:
                    self.escape_hidden(site)

    def escape_hidden(self, site: MaybeSite) -> None:
        """Native code gets numbers that no event shows (from an iterator or a callback)."""
        for leaf in self.ledger.scalars.leaves():
            self.escape(leaf, site)

    def restore_shared_ints(self) -> None:
        """Replace private copies of small ints and short texts in the program's objects by the shared objects."""
        if not self.ledger.scalars:
            return
        for var, value, _ in self.ledger.context_writes:
            if (shared := self._shared(value)) is not value and var.get() is value:
                var.set(shared)
        for cls, name, value, _ in self.refgraph.class_writes.values():
            if (shared := self._shared(value)) is not value and cls.__dict__.get(name) is value:
                type.__setattr__(cls, name, shared)
        for node in self.refgraph.written():
            if is_a(node.obj, CellType):
                self._restore_in_cell(node.obj)
                continue
            held: Any = node.obj if node.kind in (kinds.DICT, kinds.LIST) else instance_dict(node.obj) or {}
            for key, value in list(dict.items(held) if is_a(held, dict) else enumerate(list.__iter__(held))):
                if (shared := self._shared(value)) is not value:
                    _store(held, key, value, shared)

    def _restore_in_cell(self, cell: CellType) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # unbound
            return
        if (shared := self._shared(value)) is not value:
            cell.cell_contents = shared

    def _shared(self, value: Any) -> Any:
        """What the program would hold instead of a private copy of an int or a text; anything else as it is."""
        if type(value) not in (int, str) or self.ledger.scalars.get(value) is None:
            return value
        return int(str(value)) if type(value) is int else self.ledger.scalars.original(value)

    def expect_computed(self, site: MaybeSite, fn: Any, args: tuple[Any, ...]) -> None:
        """Native arithmetic on dynamic numbers is about to run: its result is dynamic too."""
        self.context.stack.expect(lambda result: self.computed(site, fn, args, result), lambda: self.escape_all(site, args))

    def _symbol(self, value: Any) -> Sym | None:
        return self.ledger.scalars.get(value) if type(value) in kinds.CARRYING else None

    def computed(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], result: Any) -> Any:
        """Make the result of an operation on dynamic numbers symbolic. If the operation would raise for other numbers, that
        must happen even if the program doesn't use the result: the guard, or the graph, fails for such a call. ``fn``: None
        if a graph can't compute it."""
        if fn is None or not (type(result) in kinds.NUMBER_TYPES or type(result) in kinds.BOOLS):
            self.escape_all(site, args)
            return result
        return self.of_symbols(site, of_numbers(fn, args), tuple(self._symbol(a) or a for a in args), result)

    def of_symbols(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], result: Any) -> Any:
        """The number or bool ``result`` of ``fn`` of symbols and constants."""
        sym = self.ledger.scalars.call(fn, args, result)
        if type(result) in kinds.BOOLS:  # `math.isfinite(x)`; a bool can't carry a symbol
            self.context.decisions.decide(sym, result, "compare", site)
            return result
        if may_raise_in_graph(fn, args) or (sym.on_host and can_raise(fn, args)):
            outcome: Any = type(result)
            test = self.ledger.scalars.call(type, (sym,), outcome)
            if is_float_division(fn, args):
                outcome = True
                test = self.ledger.scalars.call(operator.ne, (args[1], 0.0), outcome)
            self.context.decisions.decide(test, outcome, "type", site)
        return self.ledger.scalars.bind(result, sym)
