"""The line of a region in plain English has what was measured, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from lsp_server.formats import brief, regions
from magpy_core.findings import Recompile, RegionSummary, Report, Unused
from tests.golden.test_formats import view


def line(name: str = "model: GPT", **values: Any) -> str:
    region = RegionSummary("r", "module", name, "", 0, **{"calls": 3, "captures": 1, "complete": True, **values})
    return next(brief.lines(Report("t.py", [region]), view())).plain


def test_the_example_of_the_page() -> None:
    changes = [Recompile(2, "torch's grad mode", "off", "on"), Recompile(3, "self.tokens_seen", "0", "1024")]
    times = {"eager_ms": 42.0, "compiled_ms": 20.0, "speedup_low": 1.9, "speedup_high": 2.3}
    got = line(calls=30, captures=3, guards=470, side_effects=1, recompiles=changes, **times)
    assert got == (
        "model GPT: one graph, 3 captures (train and eval, changing numbers), 470 guards, 1 side effect replayed; 2.10x"
    )


def test_a_region_that_is_captured_at_nearly_every_call() -> None:
    assert line(calls=5, captures=4) == "model GPT: one graph, 4 captures in 5 calls, 0 guards"
    assert line(calls=3, captures=2) == "model GPT: one graph, 2 captures, 0 guards"


def test_what_is_not_one_graph() -> None:
    assert line(complete=False, graphs=4, graph_breaks=1) == "model GPT: 4 graphs, cut at 1 place, 1 capture, 0 guards"
    assert line(complete=False, graph_breaks=2).startswith("model GPT: a graph cut at 2 places")
    assert line(captures=0, complete=False) == "model GPT: no graph, it runs in eager mode"


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("self.training", "True", "False", "train and eval"),
        ("torch's autocast", "off", "on", "autocast"),
        ("optimizer.state[p]", "absent", "dict of 3", "state that the first call creates"),
        ("x.shape[0]", "32", "17", "changing sizes"),
        ("x.shape", "(32, 3)", "(17, 3)", "changing sizes"),
        ("self.lr", "1e-05", "0.1", "changing numbers"),
        ("self.mode", "'a'", "'b'", "changed `self.mode`"),
    ],
)
def test_why_it_was_captured_again(name: str, old: str, new: str, words: str) -> None:
    assert brief.cause(Recompile(1, name, old, new)) == words


def test_what_a_run_did_not_look_at() -> None:
    def totals(*unused: tuple[Unused, int]) -> list[str]:
        found = [RegionSummary("r", "module", f"m{i}", "", 0, unused=why, captures=n) for i, (why, n) in enumerate(unused)]
        return [text.plain for text in regions.totals(Report("t.py", found), view())]

    assert totals(("", 1), ("costly", 1)) == ["No findings."]
    assert totals(("", 1), ("costly", 0)) == [
        "No findings.", "m1 was not recorded, so the run looked for no findings there: `magpy-lsp check` does."
    ]  # fmt: skip
    assert totals(("costly", 0), ("budget", 0), ("budget", 0))[1].startswith("m0 and 2 more were not recorded")
