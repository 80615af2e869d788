"""Search in the operator graph: the page's own script in a browser, by operator, name, shape and line, with the keyboard."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lsp_server.formats.html import graph_listing, page
from magpy_core.findings import Report
from magpy_core.findings.details import CaptureDetail, Details, NodeDetail, RegionDetail
from tests.golden.test_formats import TRAIN, report, view
from tests.unit.formats.browser import evaluated
from tests.unit.formats.test_html import EVIL, Page

LAYER = "/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py"
NODES = [
    NodeDetail("x", "placeholder", "x", tensor="float32[2, 4]"),
    NodeDetail("w", "placeholder", "self.layer.weight", tensor="float32[8, 4]"),
    NodeDetail("linear", "call", "linear", ["x", "w"], 0, LAYER, 125, "float32[2, 8]", TRAIN, 4),
    NodeDetail("relu", "call", "relu", ["linear"], 0, TRAIN, 5, "float32[2, 8]"),
    NodeDetail("linear_1", "call", "linear", ["relu"], 0, TRAIN, 6, "float32[2, 3]"),
    NodeDetail("sum_1", "call", "sum", ["linear_1"], 0, TRAIN, 6, "float32[]"),
]

# Searches for `wanted` and presses the keys; then: what is found, current, marked in the picture, and said.
_SEARCH = """
  const box = page.querySelector('.find');
  const press = (key, shiftKey) => box.dispatchEvent(new KeyboardEvent('keydown', {key, shiftKey, cancelable: true}));
  const names = (selector) => [...page.querySelectorAll(selector)].map((part) => part.dataset.n ?? part.textContent);
  for (const part of page.querySelectorAll('details')) part.open = true;
  return %s.map(([wanted, ...keys]) => {
    box.value = wanted;
    box.dispatchEvent(new Event('input'));
    for (const key of keys) press(key.replace('Shift+', ''), key.startsWith('Shift+'));
    return {
      found: names('.listing .match'), current: names('.listing .current'), drawn: names('svg g.match'),
      said: page.querySelector('.found').textContent,
    };
  });
"""


def of(capture: CaptureDetail) -> str:
    one = report()
    return page.text(Report("t.py", one.regions, details=Details([RegionDetail(one.regions[0].id, [capture])])), view())


def searched(capture: CaptureDetail, folder: Path, *searches: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = evaluated(of(capture), _SEARCH % list(searches), folder)
    return found


def test_operator_name_shape_and_line_are_found_and_inputs_are_not(tmp_path: Path) -> None:
    by = searched(
        CaptureDetail(nodes=NODES), tmp_path, ["Linear"], ["linear_1"], ["[2, 8]"], ["train.py:6"], ["linear [2, 3]"],
        ["layer.weight"], ["linear.py:125"], ["nothing"], [""],
    )  # fmt: skip
    assert [one["found"] for one in by] == [
        ["linear", "linear_1"], ["linear_1"], ["linear", "relu"], ["linear_1", "sum_1"], ["linear_1"], ["w"], ["linear"],
        [], [],
    ]  # fmt: skip
    assert by[0]["drawn"] == ["linear w", "linear_1"] and by[5]["drawn"] == ["linear w"], "its box has the parameter"
    assert [one["said"] for one in by[-2:]] == ["no match", ""]


def test_keys_lead_to_the_next_match_and_back_and_around(tmp_path: Path) -> None:
    walks = ["", "Enter", "Enter Enter", "Shift+Enter", "ArrowDown", "ArrowDown ArrowUp", "Escape"]
    by = searched(CaptureDetail(nodes=NODES), tmp_path, *(["float32", *keys.split()] for keys in walks))
    assert [one["current"] for one in by] == [["x"], ["w"], ["linear"], ["sum_1"], ["w"], ["x"], []]
    assert by[1]["said"] == "2 of 6" and by[-1]["said"] == "" and by[-1]["found"] == []


@pytest.mark.slow
def test_thousands_of_operations_are_searched_also_those_that_are_not_drawn(tmp_path: Path) -> None:
    nodes = [
        NodeDetail(f"n{i}", "call", "add", [f"n{i - 1}"] if i else [], 0, TRAIN, 5, f"float32[{i}]") for i in range(4000)
    ]
    rest = "\n".join(f"n{i} = mul(n{i - 1}): float32[{i}]  # train.py:9" for i in range(4000, 6000))
    (by,) = searched(CaptureDetail(nodes=nodes, cut=2000, rest=rest), tmp_path, ["mul", "Shift+Enter"])
    assert by["said"] == "2,000 of 2,000" and by["current"][0].startswith("n5999 = mul(n5998)") and by["drawn"] == []


def test_the_listing_has_every_operation_and_leads_to_the_users_line() -> None:
    text = graph_listing.listing(
        CaptureDetail(nodes=NODES, rest="y = add(x)"), lambda file, line: f"L{line}" if file == TRAIN else None
    )
    assert text.count("<div data-n=") == 6 and "<div>y = add(x)</div>" in text
    linear = re.search(r"<div data-n='linear'>(.*?)</div>", text)
    assert linear is not None and linear[1] == (
        "<b>linear</b> = linear(<i>x, w</i>): float32[2, 8] <a href='#L4'>train.py:4</a> "
        "<span class='soft'>linear.py:125</span>"
    )
    assert "<b>w</b> = input self.layer.weight: float32[8, 4] </div>" in text
    assert "class='find'" not in graph_listing.searchable(CaptureDetail(), lambda file, line: None)


@pytest.mark.parametrize("name", ["label", "name", "tensor"])
def test_names_stay_text(name: str) -> None:
    node = NodeDetail("n", "call", "add", [EVIL], 0, TRAIN, 5)
    setattr(node, name, EVIL)
    found = Page(of(CaptureDetail(nodes=[node], rest=EVIL)))
    assert found.open == [] and found.tags.count("script") == 1 and found.tags.count("img") == 0
