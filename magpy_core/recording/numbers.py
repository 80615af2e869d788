"""Numbers: arithmetic on symbolic scalars, and scalars that escape to code that needs their exact value.

Key type: Numbers.
"""

from __future__ import annotations

import collections
import operator
import types
from typing import Any

from magpy_core.findings import HERE
from magpy_core.opgraph.scalars import Sym, can_raise, is_float_division, may_raise_in_graph
from magpy_core.recording.basic_tracker import BasicTracker
from magpy_core.recording.call_stack import CallStack
from magpy_core.recording.decisions import Decisions
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


class Numbers(BasicTracker):
    """Handles numbers that vary between calls."""

    stack: CallStack
    decisions: Decisions

    def escape_raising(self, fn: Any, numbers: tuple[Any, ...], site: Any) -> None:
        """Arithmetic that raises (a division by zero) decides the program's path: the path holds only for these numbers."""
        try:
            if fn is not None:
                fn(*numbers)
        except Exception:
            self.escape_all(site, numbers)

    def carries(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return (
            bool(self.ledger.scalars)
            and not kwargs
            and all(type(a) in kinds.NUMBER_TYPES for a in args)
            and any(self.ledger.scalars.get(a) is not None for a in args)
        )

    def compare(self, fn: Any, lhs: Any, rhs: Any, site: Any) -> None:
        """The program's path depends on the outcome of a comparison ``fn`` of numbers, some of them dynamic."""
        scalars, outcome = self.ledger.scalars, fn(lhs, rhs)
        sym = scalars.call(fn, (scalars.get(lhs) or lhs, scalars.get(rhs) or rhs), outcome)
        self.decisions.decide(sym, outcome, "compare", site)

    def compare_equal(self, lhs: tuple[int, ...], rhs: tuple[int, ...], site: Any) -> None:
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

    def escape(self, sym: Sym, site: Any) -> None:
        """A symbolic scalar is used by code that needs its exact value."""
        self.decisions.decide(sym, sym.hint, "value", site)

    def escape_all(self, site: Any, *trees: Any) -> None:
        """Every symbol inside the given values escapes."""
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
            if type(v) in kinds.NUMBER_TYPES:
                sym = self.ledger.scalars.get(v)
                if sym is not None:
                    self.escape(sym, site)
            elif is_a(v, (dict, types.MappingProxyType)):
                stack.extend(v.keys())
                stack.extend(v.values())
            elif is_a(v, (list, tuple, set, frozenset, collections.deque)) or type(v) in kinds.DICT_VIEWS:
                stack.extend(v)
            elif is_a(v, slice):
                stack.extend((v.start, v.stop, v.step))
            elif hasattr(type(v), "__next__") and type(v) is not types.GeneratorType:
                self.escape_hidden(site)  # only the values that a generator yields are observed

    def escape_hidden(self, site: Any) -> None:
        """Native code gets numbers that no event shows (from an iterator or a callback)."""
        for leaf in self.ledger.scalars.leaves():
            self.escape(leaf, site)

    def restore_shared_ints(self) -> None:
        """Replace private copies of small ints in the program's objects by the shared objects."""
        if not self.ledger.scalars:
            return
        for node in self.refgraph.written():
            if is_a(node.obj, types.CellType):
                self._restore_in_cell(node.obj)
                continue
            held: Any = node.obj if node.kind in (kinds.DICT, kinds.LIST) else instance_dict(node.obj) or {}
            for key, value in list(dict.items(held) if is_a(held, dict) else enumerate(list.__iter__(held))):
                if type(value) is int and self.ledger.scalars.get(value) is not None:
                    _store(held, key, value, int(str(value)))

    def _restore_in_cell(self, cell: types.CellType) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # unbound
            return
        if type(value) is int and self.ledger.scalars.get(value) is not None:
            cell.cell_contents = int(str(value))

    def expect_computed(self, site: Any, fn: Any, args: tuple[Any, ...]) -> None:
        """Native arithmetic on dynamic numbers is about to run: its result is dynamic too."""
        self.stack.expect(lambda result: self.computed(site, fn, args, result), lambda: self.escape_all(site, args))

    def computed(self, site: Any, fn: Any, args: tuple[Any, ...], result: Any) -> Any:
        """Make the result of an operation on dynamic numbers symbolic. If the operation would raise for other numbers, that
        must happen even if the program doesn't use the result: the guard, or the graph, fails for such a call. ``fn``: None
        if a graph can't compute it."""
        if fn is None or type(result) not in (*kinds.NUMBER_TYPES, bool):
            self.escape_all(site, args)
            return result
        args = tuple(self.ledger.scalars.get(a) or a for a in args)
        sym = self.ledger.scalars.call(fn, args, result)
        if type(result) is bool:  # `math.isfinite(x)`; a bool can't carry a symbol
            self.decisions.decide(sym, result, "compare", site)
            return result
        if may_raise_in_graph(fn, args) or (sym.on_host and can_raise(fn, args)):
            outcome: Any = type(result)
            test = self.ledger.scalars.call(type, (sym,), outcome)
            if is_float_division(fn, args):
                outcome = True
                test = self.ledger.scalars.call(operator.ne, (args[1], 0.0), outcome)
            self.decisions.decide(test, outcome, "type", site)
        return self.ledger.scalars.bind(result, sym)
