"""ValueEvents: arithmetic, comparisons, truth tests and decisions, on symbols and on containers from outside."""

from __future__ import annotations

import types
import weakref
from typing import Any

import torch

from magpy_core._compat.torch.surroundings import watched
from magpy_core.findings import HERE, Severity, Value
from magpy_core.guards import kinds as guard
from magpy_core.monitor.assertions import only_raises
from magpy_core.opgraph.functions import note, opaque_read
from magpy_core.opgraph.scalars import BINARY, COMPARE, UNARY, Sym, can_raise, is_bias_correction, is_pointer
from magpy_core.recording.base import Branch
from magpy_core.recording.calls import CallEvents
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.kinds import is_a

_VALUES = frozenset({int, float, complex, str, bytes})
_FIXED_TRUTH = (types.FunctionType, types.ModuleType, type)


class ValueEvents(CallEvents):
    """Observer methods for operators, and branches."""

    # -- arithmetic --------------------------------------------------------------------------------------------

    def binary(self, site: Any, lhs: Any, rhs: Any) -> None:
        tl, tr = type(lhs), type(rhs)
        if tl in kinds.NUMBER_TYPES and tr in kinds.NUMBER_TYPES:
            if self.scalars and (self.scalars.get(lhs) is not None or self.scalars.get(rhs) is not None):
                self.site = site
                self.escape_raising(BINARY.get((site.name or "").removesuffix("=")), (lhs, rhs), site)
            return
        self.site = site
        if self.data_operator(site, lhs, rhs):
            return
        if self.memory_read(site, lhs, rhs) or is_a(lhs, torch.Tensor) or is_a(rhs, torch.Tensor):
            self.operands(site, lhs, rhs)
            return
        if self.scalars:
            for v in (lhs, rhs):
                if type(v) in kinds.NUMBER_TYPES:
                    sym = self.scalars.get(v)
                    if sym is not None:
                        self.escape(sym, site)
            if site.name == "%" and is_a(lhs, str):
                self.escape_all(site, rhs)
        in_place = site.name is not None and site.name.endswith("=")
        if is_a(lhs, kinds.HASHED) and is_a(rhs, kinds.HASHED):
            self.identified(site, True, lhs, rhs)
        for side, v in (("l", lhs), ("r", rhs)):
            kind = kinds.kind_of(v)
            if kind in (kinds.SCALAR, kinds.IDENTITY):
                continue
            if type(v).__flags__ & (1 << 9):
                self.operator_facts(v, site)
            node = self.node_for(v)
            if node is None:
                continue
            if in_place and side == "l" and node.kind in (kinds.LIST, kinds.SET, kinds.DEQUE, kinds.DICT):
                self.refgraph.snapshot(node)
                self.mark_written(node, site)
                method = {"+=": "__iadd__", "|=": "update"}.get(site.name or "")
                if method is None or not self.blind_write(node, method, (rhs,), {}):
                    node.forced.append((site.name or "", None))
                    self.contents(node, site)
            else:
                self.contents(node, site)
        if site.name == "%" and is_a(lhs, str):
            self.read_deep(site, (rhs,), {})
            for v in rhs if is_a(rhs, tuple) else (rhs,):
                self.text_of(v, site)

    def array_made(self, operands: tuple[Any, ...], result: Any) -> None:
        """An operator on arrays that the region made, and on plain numbers, gives another such array."""
        if all(self.is_plain_array(v) or kinds.kind_of(v) == kinds.SCALAR for v in operands):
            self.keep_arrays(result)

    def binary_result(self, site: Any, lhs: Any, rhs: Any, result: Any) -> Any:
        if self.data_pending is not None or self.data_calls:
            return self.data_operated(site, lhs, result)
        if self.arrays and (self.is_plain_array(lhs) or self.is_plain_array(rhs)):
            self.array_made((lhs, rhs), result)
        if not self.scalars or type(lhs) not in kinds.NUMBER_TYPES or type(rhs) not in kinds.NUMBER_TYPES:
            return result
        a, b = self.scalars.get(lhs), self.scalars.get(rhs)
        if a is None and b is None:
            return result
        fn = BINARY.get((site.name or "").removesuffix("=") if site.name != "=" else "")
        if fn is None or type(result) not in kinds.NUMBER_TYPES:
            for sym in (a, b):
                if sym is not None:
                    self.escape(sym, site)
            return result
        return self.number_made(site, fn, (a or lhs, b or rhs), result)

    def number_made(self, site: Any, fn: Any, args: tuple[Any, ...], result: Any) -> Any:
        """An operation on numbers that vary gives another. Where it would raise instead, it must do so whether or not the
        program uses the number: such a call fails the guard, or the graph."""
        sym = self.scalars.call(fn, args, result)
        if can_raise(fn, args) and (sym.on_host or not is_bias_correction(fn, args)):
            self.branch_on(self.scalars.call(type, (sym,), type(result)), type(result), "type", site)
        return self.scalars.bind(result, sym)

    def unary(self, site: Any, value: Any) -> None:
        if self.data_unary(site, value):
            return
        self.memory_read(site, value)
        if kinds.kind_of(value) == kinds.OBJECT:
            self.operator_facts(value, site)

    def unary_result(self, site: Any, value: Any, result: Any) -> Any:
        if self.data_pending is not None or self.data_calls:
            return self.data_operated(site, None, result)
        if not self.scalars or type(value) not in kinds.NUMBER_TYPES:
            return result
        sym = self.scalars.get(value)
        if sym is None:
            return result
        fn = UNARY.get(site.name or "")
        if fn is None or type(result) not in kinds.NUMBER_TYPES:
            self.escape(sym, site)
            return result
        return self.number_made(site, fn, (sym,), result)

    def call_result(self, site: Any, result: Any) -> Any:
        self.printing = False
        pending = self.pending_call
        if pending is None or pending[0] is not site:
            return result
        self.pending_call = None
        _, fn, args = pending
        if fn == "array" and not self.broken:
            self.keep_arrays(result)
            return result
        if fn == "setting":
            self.setting_read(site, args[0], args[1], result)
            return result
        if fn == "process":
            return self.process_setting(site, args[0], result)
        if fn == "set":
            self.setting_changed(site, args[0], args[1])
            return result
        if fn == "address":
            return self.scalars.bind(result, self.scalars.address(args[0]))
        if fn == "draw":
            return self.drawn(site, args[0], args[1], result)
        if fn == "fast_path":
            return watched(args[0])
        if fn == "tensor_len":
            return self.scalars.bind(result, args[0]) if args and type(result) is int else result
        if fn == "next":
            return self.value(args[0], result, site, handed=True)
        if fn == "len":
            source, size, grown = args
            if type(result) is not int or result != size + grown:
                return result
            self.refgraph.read(source, guard.TYPE, int, site)
            length = self.scalars.source(source, size)
            return self.scalars.bind(result, self.scalars.call(BINARY["+"], (length, grown), result) if grown else length)
        if type(result) not in kinds.NUMBER_TYPES:
            self.escape_all(site, args)
            return result
        return self.number_made(site, fn, tuple(self.scalars.lift(a) for a in args), result)

    # -- comparisons and truth ---------------------------------------------------------------------------------

    def compare(self, site: Any, lhs: Any, rhs: Any) -> None:
        tl, tr = type(lhs), type(rhs)
        if tl in kinds.NUMBER_TYPES and tr in kinds.NUMBER_TYPES:
            if self.scalars:
                a, b = self.scalars.get(lhs), self.scalars.get(rhs)
                if a is not None or b is not None:
                    self.site = site
                    fn = COMPARE[site.name or "=="]
                    if is_pointer(a) and is_pointer(b) and site.name in ("==", "!="):
                        sym = self.ops.same_memory(a, b, lhs == rhs)
                        if sym is not None:
                            self.branch_on(sym, lhs == rhs, "compare", site)
                        return
                    outcome = fn(lhs, rhs)
                    self.branch_on(self.scalars.call(fn, (a or lhs, b or rhs), outcome), outcome, "compare", site)
            return
        self.site = site
        if self.data_compared(site, lhs, rhs):
            return
        if self.memory_read(site, lhs, rhs) or is_a(lhs, torch.Tensor) or is_a(rhs, torch.Tensor):
            self.operands(site, lhs, rhs)
            return
        self.escape_all(site, lhs, rhs)
        self.identified(site, is_a(lhs, kinds.HASHED) and is_a(rhs, kinds.HASHED), lhs, rhs)
        for v in (lhs, rhs):
            kind = kinds.kind_of(v)
            if type(v) is types.MethodType or (kind not in (kinds.SCALAR, kinds.IDENTITY) and type(v).__flags__ & (1 << 9)):
                self.operator_facts(v, site)
            if kind == kinds.OBJECT:
                self.class_fact(type(v), "__eq__", site)
                node = self.node_for(v)
                raw, _ = lookup.class_lookup(type(v), "__eq__")
                if node is not None and raw is object.__eq__:
                    other = rhs if v is lhs else lhs
                    self.is_(site, v, other)
        self.read_deep(site, (lhs, rhs), {})

    def compare_result(self, site: Any, lhs: Any, rhs: Any, result: Any) -> Any:
        return self.data_operated(site, None, result) if self.data_pending is not None or self.data_calls else result

    def item_read_result(self, site: Any, obj: Any, key: Any, result: Any) -> Any:
        return self.data_operated(site, None, result) if self.data_pending is not None else result

    def attr_result(self, site: Any, obj: Any, result: Any) -> Any:
        return self.data_operated(site, None, result) if self.data_pending is not None else result

    def iterate_result(self, site: Any, obj: Any, iterator: Any) -> Any:
        return self.elements(site, obj) if self.is_data(obj) else iterator

    def is_(self, site: Any, lhs: Any, rhs: Any) -> None:
        a, b = self.refgraph.node(lhs), self.refgraph.node(rhs)
        if type(lhs) in _VALUES and type(rhs) is type(lhs):
            self.site = site
            self.escape_all(site, lhs, rhs)
            if not self.is_copying(site) and not all(self.known_identity(v, site) for v in (lhs, rhs)):
                # whether two equal values are one object is not a function of anything a guard watches
                self.refuse("MP103", f"{HERE} compares two `{type(lhs).__name__}` values by identity.", site=site)
            return
        if a is None or b is None or a.kind == kinds.IDENTITY or b.kind == kinds.IDENTITY:
            return
        self.site = site
        if a is not b:
            self.refgraph.read(a.source, guard.NOT_SAME_AS, b.source, site)

    def known_identity(self, value: Any, site: Any) -> bool:
        """Whether guards can fix which object a plain value is: a small int, a constant of the code, one read outside."""
        if type(value) is int and -5 <= value <= 256:
            return True
        if self.scalars and self.scalars.get(value) is not None:
            return False
        reads = [r for r in self.refgraph.reads if r.expected is value and r.kind is guard.EQUAL and r.source.kind != "len"]
        for read in reads:
            self.refgraph.read(read.source, guard.IS, value, site)
        return bool(reads) or any(value is constant for constant in site.code.co_consts)

    def is_result(self, site: Any, lhs: Any, rhs: Any, result: Any) -> Any:
        """A private copy of a number has an identity of its own; what counts is that of the number it stands for."""
        if not self.scalars or (self.scalars.get(lhs) is None and self.scalars.get(rhs) is None):
            return result
        return (self.scalars.original(lhs) is self.scalars.original(rhs)) is (site.name == "is")

    def contains(self, site: Any, item: Any, container: Any) -> None:
        if is_a(container, torch.Tensor):
            return
        self.site = site
        if self.data_contains(site, item, container):
            return
        self.memory_read(site, item, container)
        if not self.keyed_by_address(container, item):
            self.escape_all(site, item, () if type(container) is dict else container)
        kind = kinds.kind_of(container)
        if kind == kinds.OBJECT or (kind in kinds.CONTAINERS and type(container).__flags__ & (1 << 9)):
            self.class_fact(type(container), "__contains__", site)
            self.operator_facts(container, site)
        if type(item) is types.MethodType:
            self.operator_facts(item, site)
        node = self.node_for(container)
        if is_a(container, kinds.HASHED):
            self.identified(site, node is not None or not is_a(container, (set, frozenset, dict)), item)
        if node is None:
            self.identified(site, False, item, container)
            return
        if is_a(item, weakref.ref) and node.kind == kinds.SET:  # a guard on its object would keep that alive
            self.refuse("MP111", "A set is asked for a weak reference, which stands for another object.", site=site)
            return
        if node.kind == kinds.DICT:
            self.read_dict_key(node, item, site)
        elif node.kind in kinds.CONTAINERS:
            self.contents(node, site)
            self.read_deep(site, (container, item), {})  # it is compared with each element, whatever is in it

    def truth(self, site: Any, value: Any) -> None:
        tp = type(value)
        if tp is bool or value is None:
            return
        if is_a(value, torch.Tensor):
            self.site = site
            return
        if tp in kinds.NUMBER_TYPES:
            sym = self.scalars.get(value) if self.scalars else None
            if sym is not None:
                self.site = site
                self.branch_on(self.scalars.call(bool, (sym,), bool(value)), bool(value), "truth", site)
            return
        self.site = site
        if self.data_truth(site, value):
            return
        self.memory_read(site, value)
        kind = kinds.kind_of(value)
        if kind in kinds.CONTAINERS:
            node = self.node_for(value)
            if node is not None:
                if node.snapshot is not None:
                    self.read_len(node, site)
                else:
                    self.refgraph.read(node.source, guard.TRUTH, bool(len(value)), site)
        elif kind == kinds.OBJECT and not is_a(value, _FIXED_TRUTH):
            self.class_fact(tp, "__bool__", site)
            if lookup.missing(lookup.class_lookup(tp, "__bool__")[0]):
                self.class_fact(tp, "__len__", site)

    def branch_on(self, sym: Any, outcome: Any, what: str, site: Any) -> None:
        """The program's path from here on depends on ``sym`` having this outcome."""
        if any(leaf.kind == "address" for leaf in sym.leaves()):
            self.address_shown(sym, site)
            return
        if sym.on_host:
            for leaf in sym.leaves():
                if what == "value" and leaf is sym:
                    self.learned.exact.add(leaf.payload.path)
            self.refgraph.read(self.sources.const(sym, "outcome of " + sym.describe()), guard.OUTCOME, (sym, outcome), site)
            return
        if pointers := [leaf for leaf in sym.leaves() if is_pointer(leaf)]:
            for leaf in pointers:
                self.refuse("MP102", opaque_read("data_ptr"), site=leaf.payload.meta["magpy_site"])
            return
        if self._is_settled(sym):
            return  # it follows from what has been asked: the graph has been cut there
        last = next(iter(reversed(self.ops.graph.nodes)), None)
        number = what in ("value", "__index__", "item", "parts")
        code = "MP101" if not number else "MP109" if what == "parts" else "MP102"
        asserted = what == "type" or (not number and site is not None and only_raises(site, outcome))
        condition = None if asserted else self.ops.condition(sym)
        cut = condition is None and not (asserted or self.whole)
        place = self.places.now(site, self.site).location if cut else None
        self.branches.append(Branch(sym, outcome, last, site, asserted or self.whole, condition, place))
        if not asserted or self.whole:  # an assertion is looked at after the branches behind it
            self.settled[id(sym)] = sym
        if what == "type":
            return  # nobody needs to know that a number stays one
        if condition is not None:
            use = self.describe_use(sym) if number else f"Control flow depends on {self.describe_read(sym)}"
            self.note(
                code,
                f"{use}, data of the region's inputs: it is looked at before the graph runs; each value is another capture.",
                hint="The graph is not cut. Keep what varies a lot in a tensor, or out of the region.",
                values=(Value("outcome", repr(outcome)),),
                site=site,
                severity=Severity.INFORMATION if self.whole else None,
            )
        elif asserted or self.whole:
            if asserted:
                text = (
                    f"This check depends on {self.describe_read(sym)}, a tensor's value: it is made after the graph has run."
                )
            elif number:
                text = f"{self.describe_use(sym)}: it is compared with the recorded one after the graph has run."
            else:
                text = (
                    f"Which way Python goes depends on {self.describe_read(sym)}: it is looked at after the graph has run."
                )
            hint = "Nothing needs to be done. A check outside the region would cost less."
            self.note(code, text, hint=hint, values=(Value("outcome", repr(outcome)),), site=site,
                      severity=Severity.INFORMATION)  # fmt: skip
        elif number:
            self.note(
                code,
                f"{self.describe_use(sym)}, so the graph is cut here.",
                hint="Keep the value in a tensor, or read it after the region.",
                site=site,
            )
        else:
            self.note(
                "MP101",
                f"Which way Python goes depends on {self.describe_read(sym)}, a tensor's value: the graph is cut here.",
                hint="Use torch.where, or move the decision out of the region.",
                values=(Value("outcome", repr(outcome)),),
                site=site,
            )

    def _is_settled(self, sym: Any) -> bool:
        """Whether this capture holds for one value of ``sym`` only, by the branches made so far."""
        if id(sym) in self.settled:
            return True
        return sym.kind == "call" and all(self._is_settled(a) for a in sym.args if is_a(a, Sym))

    def branch(self, sym: Any, outcome: Any, what: str) -> None:
        """From the operator recorder: a tensor's own truth or value decided."""
        self.branch_on(sym, outcome, what, self.site_mark())

    def describe_read(self, sym: Any) -> str:
        if text := self.words():
            return text
        made = [
            n.name.rstrip("_0123456789")
            for leaf in sym.leaves()
            if leaf.kind == "node"
            for n in leaf.payload.all_input_nodes
        ]
        return f"the result of `{made[0]}`" if made else "a tensor's value"

    def describe_use(self, sym: Any) -> str:
        """Who needs the exact number, and where it came from."""
        use = self.words()
        reads = [leaf.payload.meta.get("magpy_site") for leaf in sym.leaves() if leaf.kind == "node"]
        read = next((text for site in reads if (text := self.source_text(site))), "")
        came = f" (`{read}`)" if read and f"`{read}`" != use else ""
        return f"{use} needs a number read from a tensor{came}" if use else f"Python needs a number read from a tensor{came}"

    def site_mark(self) -> Any:
        return self.site

    def mark_operation(self, node: torch.fx.Node, result: Any) -> None:
        """Where an operation stands, and what it gave, for whoever shows it later."""
        note(node, result, magpy_site=self.site, magpy_user=self.places.user_line(self.site))
