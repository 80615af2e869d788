"""Findings that repeat are one finding with a count."""

from __future__ import annotations

from dataclasses import replace

from lsp_server.repeats import merged, pattern
from magpy_core.findings import Finding, Location, Position, Range, Value

HERE = Location("/p/a.py", Range(Position(4, 0), Position(4, 9)))


def slot(n: int, **values: object) -> Finding:
    text = f"`self.taken[{n}]` changed from 0 to {n + 1}: it may vary from now on."
    found = Finding("MP202", text, HERE, region="r", values=(Value(f"self.taken[{n}]", f"0 -> {n + 1}"),))
    return replace(found, **values)


def test_one_finding_for_the_slots_of_a_list() -> None:
    (one,) = merged([slot(n, cost_ms=float(n), steps=n, step_ms=9.0 if n else None) for n in range(6)])
    assert one.step_ms == 9.0
    assert one.count == 6 and len(one.values) == 5 and one.steps == 5
    assert one.cost_ms == 5.0, "of the dearest: each recompile costs that much"
    assert one.message == (
        "`self.taken[0]` changed from 0 to 1: it may vary from now on. "
        "(also `self.taken[1]`, `self.taken[2]`, `self.taken[3]` and 2 more)"
    )


def test_costs_of_cuts_add_up_and_the_second_line_stays() -> None:
    cut = Finding("MP102", "`x[0].item()` is read\nmore", HERE, region="r", cost_ms=1.0)
    (one,) = merged([cut, replace(cut, message="`x[1].item()` is read\nmore", cost_ms=2.0)])
    (kept,) = merged(
        [replace(cut, cost_ms=None, at_most_ms=2.0), replace(cut, message="`x[1].item()` is read\nmore", at_most_ms=2.0)]
    )
    assert kept.at_most_ms == 2.0, "of the region, which is one"
    assert one.cost_ms == 3.0 and one.message == "`x[0].item()` is read (also `x[1].item()`)\nmore"


def test_what_differs_otherwise_stays() -> None:
    other = Location("/p/a.py", Range(Position(5, 0), Position(5, 9)))
    others = [slot(1, region="q"), slot(1, location=other), slot(1, code="MP201"), slot(1, ranks=(1,))]
    others.append(slot(1, message="`self.left[1]` changed from 0 to 2: it may vary from now on."))
    assert merged([slot(0), *others]) == [slot(0), *others]
    guards = [slot(n, code="MP204") for n in range(3)]
    assert merged(guards) == guards, "each guard names a value of its own"


def test_a_pattern_has_no_subscripts_and_numbers() -> None:
    assert pattern("`a[b['c'][0]]` and 35 more, 1.5e-3") == "`a` and # more, #"
