"""The verifier finds graphs that contradict the state they were recorded from; the printer shows what they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.guards import kinds as guard
from magpy_core.refgraph.graph import RefGraph
from magpy_core.refgraph.source_kinds import SOURCE_KINDS
from magpy_core.refgraph.source_table import SourceTable
from magpy_core.refgraph.verify import RefGraphError, enabled, verify
from tests.unit.engine_pair import code_of


class Box:
    def __init__(self) -> None:
        self.items = [1, 2]
        self.name = "box"


def graph_of(box: Box) -> RefGraph:
    """What a region reads of ``box``, its only argument."""
    g = RefGraph()
    root = g.sources.arg(0, "box")
    g.add(box, root)
    g.read(root, guard.TYPE, Box, None)
    g.read(g.sources.attr(root, "name"), guard.EQUAL, "box", None)
    items = g.sources.attr(root, "items")
    g.add(box.items, items)
    g.read(g.sources.make("len", items, None), guard.EQUAL, 2, None)
    g.read(g.sources.item(items, 0, "list_item"), guard.EQUAL, 1, None)
    g.read(g.sources.item(g.sources.make("dict", root, None), "absent"), guard.ABSENT, None, None)
    return g


def problems(g: RefGraph, box: Box, **options: Any) -> list[str]:
    try:
        verify(g, (box,), {}, **options)
    except RefGraphError as error:
        return error.problems
    return []


def test_it_is_on_in_tests() -> None:
    assert enabled()


def test_a_right_graph_passes_before_and_after_the_region_wrote() -> None:
    box = Box()
    g = graph_of(box)
    assert problems(g, box) == []
    for node in list(g.nodes.values()):
        g.snapshot(node)
        node.written_at["here"] = None
    box.items.append(3)
    box.items[0] = 9
    box.name = "other"
    box.absent = 1  # type: ignore[attr-defined]
    assert problems(g, box) == []  # what is written tells nothing of the entry


def test_a_write_without_a_snapshot_contradicts_the_guards() -> None:
    box = Box()
    g = graph_of(box)
    box.items.append(3)
    assert problems(g, box) == ["the guard 'eq' on `len(box.items)` does not hold for the recorded entry state"]


def wrong_identity(g: RefGraph, box: Box) -> None:
    g.nodes[1] = g.nodes.pop(id(box))


def wrong_source(g: RefGraph, box: Box) -> None:
    node = g.node(box.items)
    assert node is not None
    node.source = g.sources.attr(g.sources.arg(0, "box"), "name")


def written_without_snapshot(g: RefGraph, box: Box) -> None:
    node = g.node(box.items)
    assert node is not None
    node.forced.append(("set_item", 0))


def wrong_kind(g: RefGraph, box: Box) -> None:
    node = g.node(box.items)
    assert node is not None
    node.kind = 0


def wrong_expectation(g: RefGraph, box: Box) -> None:
    g.reads[1].expected = "Box"


def wrong_type_of_number(g: RefGraph, box: Box) -> None:
    g.reads[3].expected = True


def rootless(g: RefGraph, box: Box) -> None:
    lost = SourceTable().arg(5, "lost")
    lost.step_kind = SOURCE_KINDS["attr"]
    g.reads[1].source.base = lost


def present(g: RefGraph, box: Box) -> None:
    box.absent = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "damage, text",
    [
        (wrong_identity, "filed under another object's identity"),
        (wrong_source, "leads to another object"),
        (written_without_snapshot, "was written and has no snapshot"),
        (wrong_kind, "is recorded as a scalar but is a list"),
        (wrong_expectation, "the guard 'eq' on `box.name` does not hold"),
        (wrong_type_of_number, "the guard 'eq' on `box.items[0]` does not hold"),
        (rootless, "does not start at a root"),
        (present, "the guard 'absent' on `box.absent`"),
    ],
)
def test_every_kind_of_damage_is_found(damage: Callable[[RefGraph, Box], None], text: str) -> None:
    box = Box()
    g = graph_of(box)
    damage(g, box)
    found = problems(g, box)
    assert any(text in p for p in found), found


def test_an_object_the_region_made_must_have_no_source() -> None:
    box = Box()
    g = graph_of(box)
    found = problems(g, box, is_internal=lambda obj: obj is box.items)
    assert found == ["`box.items` has a node for an object that the region created itself"]


def test_aliases_are_checked_both_ways() -> None:
    shared: list[Any] = []
    g = RefGraph()
    a, b = g.sources.arg(0, "a"), g.sources.arg(1, "b")
    g.add(shared, a)
    g.read(b, guard.SAME_AS, a, None)
    verify(g, (shared, shared), {})
    with pytest.raises(RefGraphError, match="is_source"):
        verify(g, (shared, []), {})


# -- the printer ----------------------------------------------------------------------------------------------------------


def captured() -> RefGraph:
    def f(x: torch.Tensor, box: Box) -> torch.Tensor:
        if box.name == "box":
            box.items.append("new")
        return x + 1

    c = magpy_core.compile(f, backend="eager")
    c(torch.ones(2), Box())
    graph: RefGraph = code_of(c).refgraph
    return graph


def test_text_shows_nodes_reads_and_writes_with_their_places() -> None:
    lines = [" ".join(line.split()) for line in str(captured()).splitlines()]
    assert lines[0].endswith("guarded reads")
    assert "box: object Box" in lines and "x: tensor" in lines and "box.items: list" in lines
    line = captured.__code__.co_firstlineno + 2
    assert f"box.name == 'box' # test_verify.py:{line}" in lines
    assert f"written # test_verify.py:{line + 1}" in lines


def test_repr_is_short() -> None:
    assert repr(captured()).startswith("<RefGraph: ") and "\n" not in repr(captured())
