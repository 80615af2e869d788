"""What another thread may have done while a region was recorded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from magpy_core.recording.interference import Interference
from magpy_core.refgraph.snapshot import Change

VALUE = object()


def node(noted: dict[str, Any], before: dict[str, Any]) -> Any:
    """An object of the region's whose attributes were ``before`` at its start, and which events have seen written."""
    return SimpleNamespace(
        noted=noted,
        snapshot=SimpleNamespace(attrs=before),
        explains=lambda change: False,
        source=SimpleNamespace(describe=lambda: "it", kind="local", base=None),
        kind="object",
        obj=None,
    )


@pytest.mark.parametrize(
    ("before", "table", "unexplained"),
    [
        ({}, {"a": VALUE}, []),
        ({}, {}, ["it"]),
        ({}, {"a": object()}, ["it"]),
        ({"a": 1}, {"a": VALUE}, ["it"]),
    ],
    ids=["its class keeps it in a table", "another thread deleted it", "the table has another value", "it was there"],
)
def test_an_assigned_attribute_that_is_gone(before: dict[str, Any], table: dict[str, Any], unexplained: list[str]) -> None:
    of, kept = node({"a": VALUE}, before), node(table, {})
    interference = Interference(SimpleNamespace(written=lambda: [of, kept], node=lambda obj: None))  # type: ignore[arg-type]
    interference.check(of, Change("del_attr", "a"))
    assert interference.unexplained == unexplained
