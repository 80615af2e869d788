"""Decisions: the program's path depends on a value that only the graph computes. Key type: Decisions."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from magpy_core._compat.torch.value_tests import how_to_avoid
from magpy_core.findings import HERE, Finding, Severity, Value
from magpy_core.guards import kinds as guard
from magpy_core.monitor.assertions import only_raises
from magpy_core.monitor.positions import is_user_file
from magpy_core.opgraph import conditions
from magpy_core.opgraph.expectations import Expectation
from magpy_core.opgraph.functions import IS_BACKWARD
from magpy_core.opgraph.raising import may_end_process
from magpy_core.opgraph.replicas import communicates
from magpy_core.opgraph.scalars import Sym
from magpy_core.recording.basic_tracker import BasicTracker
from magpy_core.recording.ledger import Decision
from magpy_core.refgraph.kinds import is_a

_MOST = 2000  # decisions in a call that is worth recording
_IN_LIBRARY = (
    "The test is in a library, where the path ends: pass an argument that avoids it, or call it outside the region."
)
_BRANCH = (
    "If both sides compute, use `torch.where(condition, a, b)`; what only checks, prints or stops goes outside the region."
)


class Decisions(BasicTracker):
    """Each decision cuts the graph, is checked before it as a condition, or is checked after it."""

    _fixed: dict[int, Sym] = field(default_factory=dict, init=False)  # numbers fixed by earlier branches, by id
    _asked: int = field(default=0, init=False)
    _cuts: list[tuple[Finding, str]] = field(default_factory=list, init=False)  # findings of cuts, and what they depend on

    def decide(self, sym: Any, outcome: Any, what: str, site: Any) -> None:
        """From here on, the program's path depends on ``sym`` having this outcome."""
        if sym.on_host:
            for leaf in sym.leaves():
                if what == "value" and leaf is sym:
                    self.ledger.learned.exact.add(leaf.payload.path)
            self.refgraph.read(self.sources.const(sym, "outcome of " + sym.describe()), guard.OUTCOME, (sym, outcome), site)
            return
        if self._is_fixed(sym):
            return  # it follows from an earlier decision: the graph is cut there
        last = next(iter(reversed(self.ledger.ops.graph.nodes)), None)
        number = what in ("value", "__index__", "item", "sizes")
        code = "MP101" if not number else "MP109" if what == "sizes" else "MP102"
        asserted = what == "type" or (not number and site is not None and only_raises(site, outcome))
        condition = None if asserted else conditions.condition(self.ledger.ops, sym)
        cut = condition is None and not (asserted or self.ledger.fullgraph)
        place = self.journal.places.now(site, self.journal.site).location if cut else None
        self._asked += not (asserted or self.ledger.fullgraph)
        self.ledger.decisions.append(Decision(sym, outcome, last, site, asserted or self.ledger.fullgraph, condition, place))
        if not asserted or self.ledger.fullgraph:  # an assertion is checked after the branches that follow it
            self._fixed[id(sym)] = sym
        if what == "type":
            return  # not worth a finding
        read = self._described(sym, what) if number else self.describe_read(sym)
        values: tuple[Value, ...] = (Value("outcome", repr(outcome)),)
        severity: Severity | None = Severity.INFORMATION
        if condition is not None:
            use = read if number else f"Control flow depends on {read}"
            text = (
                f"{use}, data of the region's inputs: it is checked before the graph runs; each value gets its own capture."
            )
            hint = "The graph is not cut. Keep values that vary a lot in a tensor, or outside the region."
            if number and not self.ledger.fullgraph:
                severity = None  # a branch has two outcomes, a number may have any value
            else:
                hint = f"No action needed if it takes few values. {hint}"
        elif what != "sizes" and (asserted or self.ledger.fullgraph):
            if asserted:
                text = f"This check depends on {read}, a tensor value: it is made after the graph has run."
            elif number:
                text = f"{read}: it is compared with the recorded value after the graph has run."
            else:
                text = f"This branch depends on {read}: it is checked after the graph has run."
            hint = "No action needed. A check outside the region would cost less."
        elif what == "sizes":
            text, values, severity = f"{read}, which no compiled backend supports.", (), None
            hint = "Keep the full size and a mask, or read the size outside the region."
        elif number:
            text = f"{read}, so the graph is cut here."
            hint, values, severity = "Keep the value in a tensor, or read it after the region.", (), None
        else:
            text = f"This branch depends on {read}, a tensor value: the graph is cut here."
            hint, severity = _around_branch(site or self.journal.site), None
        found = self.journal.note(code, text, hint=hint, values=values, site=site, severity=severity)
        if cut and found is not None and what != "sizes":
            self.journal.obstacles.append(found)
            self._cuts.append((found, read if number else f"This branch depends on {read}, a tensor value"))

    @property
    def are_too_many(self) -> bool:
        return self._asked > _MOST

    def give_up(self, site: Any) -> None:
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
        # on a wrong path, a graph would communicate where plain Python does not, and on a GPU might end the process
        can = can and not any(map(communicates, ops.graph.nodes))
        on_cpu = all(tensor.device.type == "cpu" for _, _, tensor in ops.inputs.tensors)
        can = can and (on_cpu or not left or not may_end_process(ops.graph, left[0].last_node))
        if not can or not all(Expectation(d.sym, d.outcome).is_possible for d in left):
            return
        for decision in left:
            decision.held = True
        for finding, use in self._cuts:
            text = f"{use}: the compiled graph is not cut here, and writes nothing if the outcome differs."
            hint = "No action needed if the outcome is nearly always the same: if not, the call runs again as plain Python."
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

    def _described(self, sym: Any, what: str) -> str:
        if what != "sizes":
            return self.describe_use(sym)
        return f"{self.journal.quoted_expression() or 'The program'} returns a data-dependent size to Python"

    def describe_use(self, sym: Any) -> str:
        """The expression that needs the exact number, and the one that read it."""
        use = self.journal.quoted_expression()
        reads = [leaf.payload.meta.get("magpy_site") for leaf in sym.leaves() if leaf.kind == "node"]
        read = next((text for site in reads if (text := self.journal.source_text(site))), "")
        came = f" (`{read}`)" if read and f"`{read}`" != use else ""
        return f"{use} needs a number from a tensor{came}" if use else f"Python needs a number read from a tensor{came}"


def _around_branch(site: Any) -> str:
    """What to do about a branch at ``site`` that cuts the graph."""
    if site is None or is_user_file(site.code.co_filename):
        return _BRANCH
    return how_to_avoid(site.code) or _IN_LIBRARY
