"""Decisions: the program's path depends on a value that only the graph computes. Key type: Decisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from magpy_core._compat.torch.value_tests import how_to_avoid
from magpy_core.findings import HERE, Finding, Severity, Value
from magpy_core.guards import kinds as guard
from magpy_core.monitor.assertions import only_raises
from magpy_core.monitor.events import MaybeSite
from magpy_core.monitor.positions import is_user_file
from magpy_core.opgraph import conditions
from magpy_core.opgraph.expectations import Expectation
from magpy_core.opgraph.functions import IS_BACKWARD
from magpy_core.opgraph.raising import may_end_process
from magpy_core.opgraph.replicas import communicates
from magpy_core.opgraph.scalars import Sym
from magpy_core.recording.ledger import Decision
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.kinds import is_a

_MOST = 2000  # decisions in a call that is worth recording


class _Use(Enum):
    """What the program does with the value."""

    BRANCH = auto()  # control flow depends on it
    NUMBER = auto()  # Python computes with it
    SIZE = auto()  # it is a size that depends on data


class _Check(Enum):
    """When a compiled capture finds out whether the outcome is the recorded one."""

    CONDITION = auto()  # before the graph: the value depends on the region's inputs alone
    ONLY_CONDITION = auto()  # the same, in a region that may be only one graph
    ASSERTION = auto()  # after the graph: any other outcome only raises
    AFTERWARDS = auto()  # after the graph, because the region may be only one graph
    CUT = auto()  # between two graphs: the first computes the value


_USES = {"value": _Use.NUMBER, "__index__": _Use.NUMBER, "item": _Use.NUMBER, "sizes": _Use.SIZE}
_CODES = {_Use.BRANCH: "MP101", _Use.NUMBER: "MP102", _Use.SIZE: "MP109"}


@dataclass(frozen=True, slots=True)
class _Message:
    """How a finding says it; ``{read}`` is the expression that needs the value."""

    text: str
    hint: str
    severity: Severity | None = Severity.INFORMATION  # None: that of the code
    shows_outcome: bool = True


_OWN_CAPTURES = "MagPy compiles one graph per value, and checks the value before the graph runs."
_IF_IT_VARIES = "The graph is not cut. Keep values that vary a lot in a tensor, or outside the region."
_IF_FEW_VALUES = f"No action needed if it takes few values. {_IF_IT_VARIES}"
_COSTS_LITTLE = "No action needed. A check outside the region would cost less."
_IN_LIBRARY = (
    "The test is in a library, where the path ends: pass an argument that avoids it, or call it outside the region."
)
_BRANCH = (
    "If both sides compute, use `torch.where(condition, a, b)`; if the branch only checks, prints or stops, do that outside "
    "the region."
)
_COMPILED_SIZE = _Message(
    "{read}: no compiled backend supports that.",
    "Keep the full size and a mask, or read the size outside the region.",
    severity=None,
    shows_outcome=False,
)
# A branch has two outcomes, a number may have any value: captures for each of its values are worth a warning.
_VARYING_NUMBER = _Message(f"{{read}}: {_OWN_CAPTURES}", _IF_IT_VARIES, severity=None)
_NUMBER_OF_FEW_VALUES = _Message(f"{{read}}: {_OWN_CAPTURES}", _IF_FEW_VALUES)
_BRANCH_ON_INPUTS = _Message(f"Control flow depends on {{read}}: {_OWN_CAPTURES}", _IF_FEW_VALUES)

_MESSAGES: dict[tuple[_Check, _Use], _Message] = {
    (_Check.CONDITION, _Use.BRANCH): _BRANCH_ON_INPUTS,
    (_Check.CONDITION, _Use.NUMBER): _VARYING_NUMBER,
    (_Check.CONDITION, _Use.SIZE): _VARYING_NUMBER,
    (_Check.ONLY_CONDITION, _Use.BRANCH): _BRANCH_ON_INPUTS,
    (_Check.ONLY_CONDITION, _Use.NUMBER): _NUMBER_OF_FEW_VALUES,
    (_Check.ONLY_CONDITION, _Use.SIZE): _NUMBER_OF_FEW_VALUES,
    (_Check.ASSERTION, _Use.BRANCH): _Message(
        "This check depends on {read}, a tensor value: it is made after the graph has run.", _COSTS_LITTLE
    ),
    (_Check.AFTERWARDS, _Use.BRANCH): _Message(
        "This branch depends on {read}: it is checked after the graph has run.", _COSTS_LITTLE
    ),
    (_Check.AFTERWARDS, _Use.NUMBER): _Message(
        "{read}: it is compared with the recorded value after the graph has run.", _COSTS_LITTLE
    ),
    (_Check.AFTERWARDS, _Use.SIZE): _COMPILED_SIZE,
    (_Check.CUT, _Use.BRANCH): _Message(
        "This branch depends on {read}, a tensor value: the graph is cut here.",
        "",  # it depends on where the branch is
        severity=None,
    ),
    (_Check.CUT, _Use.NUMBER): _Message(
        "{read}, so the graph is cut here.",
        "Keep the value in a tensor, or read it after the region.",
        severity=None,
        shows_outcome=False,
    ),
    (_Check.CUT, _Use.SIZE): _COMPILED_SIZE,
}


class Decisions(Tracker):
    """Each decision cuts the graph, is checked before it as a condition, or is checked after it."""

    _fixed: dict[int, Sym] = field(default_factory=dict, init=False)  # numbers fixed by earlier branches, by id
    _asked: int = field(default=0, init=False)
    _cuts: list[tuple[Finding, str]] = field(default_factory=list, init=False)  # findings of cuts, and what they depend on

    def decide(self, sym: Any, outcome: Any, what: str, site: MaybeSite) -> None:
        """From here on, the program's path depends on ``sym`` having this outcome."""
        use = _USES.get(what, _Use.BRANCH)
        if use is _Use.BRANCH and what != "type":
            self.journal.branched()
        if (use is _Use.NUMBER or use is _Use.SIZE) and self.context.clocks.fixed(sym):
            return
        if sym.on_host:
            self._guard_number(sym, outcome, what, site)
            return
        if self._is_fixed(sym):
            return  # it follows from an earlier decision: the graph is cut there
        last = next(iter(reversed(self.ledger.ops.graph.nodes)), None)
        check, condition = self._check_of(sym, outcome, what, site)
        place = self.journal.places.now(site, self.journal.site).location if check is _Check.CUT else None
        asserted = check is _Check.ASSERTION or self.ledger.fullgraph
        self._asked += not asserted
        self.ledger.decisions.append(Decision(sym, outcome, last, site, asserted, condition, place))
        if check is not _Check.ASSERTION or self.ledger.fullgraph:
            # not for an assertion, which is checked after the branches that follow it
            self._fixed[id(sym)] = sym
        if what != "type":  # which is not worth a finding
            self._report(sym, outcome, use, check, site)

    def _guard_number(self, sym: Any, outcome: Any, what: str, site: MaybeSite) -> None:
        """A decision on numbers from outside: a guard computes it again."""
        for leaf in sym.leaves():
            if what == "value" and leaf is sym:
                self.ledger.learned.exact.add(leaf.payload.path)
        source = self.sources.const(sym, "result of " + sym.describe())
        if self.refgraph.read(source, guard.OUTCOME, (sym, outcome), site):
            self.journal.places.remember(source, site)

    def _check_of(self, sym: Any, outcome: Any, what: str, site: Any) -> tuple[_Check, Any]:
        """When the outcome is checked, and the condition if that is before the graph."""
        may_assert = what not in _USES and site is not None
        if what == "type" or (may_assert and only_raises(site, outcome)):
            return _Check.ASSERTION, None
        condition = None if sym.follows_clock() or sym.needs_host else conditions.condition(self.ledger.ops, sym)
        if condition is not None:
            return _Check.ONLY_CONDITION if self.ledger.fullgraph else _Check.CONDITION, condition
        return _Check.AFTERWARDS if self.ledger.fullgraph else _Check.CUT, None

    def _report(self, sym: Any, outcome: Any, use: _Use, check: _Check, site: MaybeSite) -> None:
        read = self._described(sym, use)
        message = _MESSAGES[check, use]
        text = message.text.format(read=read)
        found = self.journal.note(
            _CODES[use],
            text.replace(", a tensor value", ", what a clock shows") if sym.follows_clock() else text,
            hint=message.hint or _around_branch(site or self.journal.site),
            values=(Value("value", repr(outcome)),) if message.shows_outcome else (),
            site=site,
            severity=message.severity,
        )
        if check is _Check.CUT and found is not None and use is not _Use.SIZE:
            self.journal.obstacles.append(found)
            text = read if use is _Use.NUMBER else f"This branch depends on {read}, a tensor value"
            self._cuts.append((found, text))

    @property
    def are_too_many(self) -> bool:
        return self._asked > _MOST

    def give_up(self, site: MaybeSite) -> None:
        """What is recorded from here on would serve nobody: end the recording, which makes the call slow."""
        text = f"{HERE} runs in a call that has asked for tensor values {_MOST} times, each of which would cut the graph."
        hint = "Read many values at once (`for value in values.tolist():`), or do this outside the region."
        self.journal.abort(text, site, "MP102", hint)

    def hold(self) -> None:
        """At the end of a run with a backward pass: if a compiled graph can hold its writes until all decisions are known,
        it need not be cut."""
        left = [d for d in self.ledger.decisions if d.condition is None]
        ops = self.ledger.ops
        can = self.ledger.learned.holds and any(IS_BACKWARD in node.meta for node in ops.graph.nodes)
        # on a wrong path, a graph would communicate where eager mode does not, and on a GPU might end the process
        can = can and not any(map(communicates, ops.graph.nodes))
        on_cpu = all(tensor.device.type == "cpu" for _, _, tensor in ops.inputs.tensors)
        can = can and (on_cpu or not left or not may_end_process(ops.graph, left[0].last_node))
        if not can or not all(Expectation(d.sym, d.outcome).is_possible for d in left):
            return
        for decision in left:
            decision.held = True
        for finding, use in self._cuts:
            text = f"{use}: the compiled graph is not cut here, and writes nothing if the result differs."
            hint = "No action needed if the result is nearly always the same: if not, the call runs again in eager mode."
            self.journal.revise(finding, text, hint=hint, severity=Severity.INFORMATION)

    def _is_fixed(self, sym: Any) -> bool:
        """Whether earlier branches restrict this capture to one value of ``sym``."""
        if id(sym) in self._fixed:
            return True
        return sym.kind == "call" and all(self._is_fixed(a) for a in sym.args if is_a(a, Sym))

    def branch(self, sym: Any, outcome: Any, what: str) -> None:
        """From the operator recorder: the truth or value of a tensor decides."""
        self.decide(sym, outcome, what, self.journal.site)

    def describe_read(self, sym: Any) -> str:
        if text := self.journal.quoted_expression():
            return text
        made = [
            n.name.rstrip("_0123456789")
            for leaf in sym.leaves()
            if leaf.kind == "node"
            for n in leaf.payload.all_input_nodes
        ]
        return f"the result of `{made[0]}`" if made else "a tensor's value"

    def _described(self, sym: Any, use: _Use) -> str:
        if use is _Use.BRANCH:
            return self.describe_read(sym)
        if use is _Use.NUMBER:
            return self.describe_use(sym)
        return f"{self.journal.quoted_expression() or 'The program'} returns a data-dependent size to Python"

    def describe_use(self, sym: Any) -> str:
        """The expression that needs the exact number, and the one that read it."""
        use = self.journal.quoted_expression()
        reads = [leaf.payload.meta.get("magpy_site") for leaf in sym.leaves() if leaf.kind == "node"]
        read = next((text for site in reads if (text := self.journal.source_text(site))), "")
        came = f" (`{read}`)" if read and f"`{read}`" != use else ""
        return f"{use} needs a number from a tensor{came}" if use else f"Python needs a number read from a tensor{came}"


def _around_branch(site: MaybeSite) -> str:
    """What to do about a branch at ``site`` that cuts the graph."""
    if site is None or is_user_file(site.code.co_filename):
        return _BRANCH
    return how_to_avoid(site.code) or _IN_LIBRARY
