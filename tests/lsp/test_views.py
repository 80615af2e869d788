"""The views' requests: against a real program, and against reports of any shape."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from lsp_server.features.documents import Documents
from lsp_server.features.notebooks import Cell, Notebook
from lsp_server.features.run_findings import RunFindings
from lsp_server.features.settings import Settings
from lsp_server.features.tracking import Tracker
from lsp_server.features.views import graphs, requests, texts
from lsp_server.features.views.shown import Lines, NotShown, Shown
from magpy_core.findings import RegionSummary
from magpy_core.findings.details import (
    CaptureDetail,
    Details,
    FactDetail,
    GuardDetail,
    NodeDetail,
    ObjectDetail,
    RegionDetail,
)
from magpy_core.findings.json_form import build
from tests.lsp.client import Client, ServerError
from tests.lsp.conftest import Lab

PROGRAM = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0
        self.fc = nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return torch.relu(self.fc(x)) * self.scale


if __name__ == "__main__":
    net = Net()
    for _ in range(4):
        net(torch.ones(2, 4))
"""


@pytest.mark.asyncio
async def test_a_run_can_be_looked_into(server: Client, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    server.settings = {"interpreter": sys.executable}
    await server.initialize(folder=tmp_path)
    uri = server.open(program)
    for nothing in (None, {}, []):  # Lua has one empty table for the last two
        assert await server.request("magpy/runs", nothing) == []
    with pytest.raises(ServerError, match="There is no run yet"):
        await server.request("magpy/graph", {"kind": "operators"})
    result = await server.command("magpy.check", {"uri": uri})
    assert result["state"] == "done", result

    (run,) = await server.request("magpy/runs", {})
    assert run["label"] == "train.py" and run["uri"] == uri and run["mode"] == "check" and run["older"] is False
    (region,) = run["regions"]
    assert region["name"] == "net: Net" and region["place"]["line"] == 11 and region["end"] is None
    assert [c["number"] for c in region["captures"]] == list(range(1, len(region["captures"]) + 1))
    assert any("self.calls" in f["message"] for f in region["sideEffects"])
    assert all(c["guards"] and c["operations"] and c["objects"] for c in region["captures"])
    assert any(w["text"].endswith("calls") and w["place"]["line"] == 12 for w in region["captures"][-1]["writes"])

    graph = await server.request("magpy/graph", {"run": run["key"], "region": region["id"], "kind": "operators"})
    named = {node["label"]: node for node in graph["nodes"]}
    assert {"linear", "relu", "mul"} <= set(named)
    assert named["linear"]["place"] == {"uri": uri, "line": 13, "character": 0}, "the user's line, not torch's"
    assert any(text.startswith("in torch/nn/modules/linear.py:") for text in named["linear"]["tooltip"])
    assert any("float32[2, 4]" in text for text in named["linear"]["tooltip"])
    order = [node["label"] for node in graph["nodes"]]
    assert [order.index("linear"), order.index("relu")] in graph["edges"]

    references = await server.request("magpy/graph", {"kind": "references"})
    root = next(node for node in references["nodes"] if node["label"] == "self")
    assert root["kind"] == "written" and any("calls" in text for text in root["tooltip"])
    assert any(references["nodes"][a] is root for a, _ in references["edges"])

    guards = await server.request("magpy/text", {"kind": "guards"})
    lines = guards["text"].split("\n")
    scale = next(i for i, line in enumerate(lines) if line.startswith("self.scale == 2.0"))
    (link,) = [one for one in guards["links"] if one["line"] == scale]
    assert lines[scale][link["start"] : link["end"]] == "train.py:14" and link["place"]["line"] == 13
    for kind in ("operators", "references", "guardCode", "replayCode"):
        page = await server.request("magpy/text", {"kind": kind})
        assert len(page["text"].split("\n")) > 3, kind
    with pytest.raises(ServerError, match="Check compiles nothing"):
        await server.request("magpy/text", {"kind": "generatedCode"})
    with pytest.raises(ServerError, match="no capture 99"):
        await server.request("magpy/text", {"kind": "guards", "capture": 99})

    found = await server.request("magpy/nodes", {"uri": uri, "line": 13})
    assert found[0]["nodes"] and {"linear", "relu"} <= set(found[0]["nodes"])
    page = await server.request("magpy/page", {"run": run["key"]})
    assert page["html"].startswith("<!DOCTYPE html>") and "Captures" in page["html"]

    server.change(uri, 2, (0, 0, 0, 0, "# one more line\n"))
    assert [n["nodes"] for n in await server.request("magpy/nodes", {"uri": uri, "line": 14})] == [n["nodes"] for n in found]
    assert (await server.request("magpy/runs", {}))[0]["older"] is True
    await server.command("magpy.clear")
    assert await server.request("magpy/runs", {}) == []


@pytest.mark.asyncio
async def test_a_run_without_captures_says_so(client: Client, lab: Lab) -> None:
    lab.scenario("""
        hello()
        region(5)
        finding("MP102", 5, 29, 43, "found")
        end()
    """)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    (run,) = await client.request("magpy/runs", {})
    assert [f["code"] for f in run["regions"][0]["findings"]] == ["MP102"]
    with pytest.raises(ServerError, match="available when its run has ended"):
        await client.request("magpy/graph", {"run": run["key"]})


@pytest.mark.asyncio
async def test_entrypoints_of_the_project(client: Client, lab: Lab) -> None:
    uri = lab.program.as_uri()
    assert await client.request("magpy/entrypoints", {"uri": uri}) == []
    table = '[[tool.magpy.entrypoints]]\nname = "small"\nprogram = "train.py"\nargs = ["--small"]\nsteps = 2\n'
    (lab.folder / "pyproject.toml").write_text(table)
    (entry,) = await client.request("magpy/entrypoints", {"uri": uri})
    assert entry["name"] == "small" and entry["args"] == ["--small"] and entry["folder"] == str(lab.folder)
    (lab.folder / "pyproject.toml").write_text("[tool.magpy]\nstepz = 1\n")
    with pytest.raises(ServerError, match=r"pyproject.toml:2: .*stepz"):
        await client.request("magpy/entrypoints", {"uri": uri})


def _lines(*files: Path) -> Lines:
    return Lines(Tracker(2**63 - 1, ()), Documents())


def test_two_thousand_nodes_are_laid_out_at_once(tmp_path: Path) -> None:
    nodes = [NodeDetail("x", "placeholder", "x")]
    for i in range(2000):
        nodes.append(NodeDetail(f"n{i}", "call", "add", [nodes[-1].name if i % 7 else "x"], segment=i // 1000))
    graph = graphs.operator_graph(CaptureDetail(nodes=nodes, cut=3), _lines())
    places = {(node["x"], node["y"]) for node in graph["nodes"]}
    assert len(places) == len(nodes) == 2001, "no box hides another"
    assert len(graph["cuts"]) == 1 and graph["left"] == 3
    assert all(graph["nodes"][a]["y"] < graph["nodes"][b]["y"] for a, b in graph["edges"])
    assert max(node["x"] for node in graph["nodes"]) + graph["boxWidth"] <= graph["width"]


def test_what_is_not_drawn_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from magpy_core.regions.reports import details
    from magpy_core.regions.session import Session

    def target(x: Any) -> Any:
        for _ in range(6):
            x = x.sin()
        return x

    session = Session(mode="observe", backend="eager")
    region = session.region(1, kind="function", name="r", file=__file__, line=1, target=target)
    region(torch.ones(3))
    whole = details.region_detail(region).captures[0]
    assert (whole.cut, whole.rest, whole.objects_cut, whole.objects_rest) == (0, "", 0, "") and len(whole.nodes) == 7
    monkeypatch.setattr(details, "_NODES", 3)
    monkeypatch.setattr(details, "_OBJECTS", 1)
    (capture,) = details.region_detail(region).captures
    assert (len(capture.nodes), capture.cut, len(capture.objects)) == (3, 4, 1)
    assert capture.objects_cut == len(whole.objects) - 1 == len(capture.objects_rest.splitlines())
    assert build(CaptureDetail, asdict(capture)) == capture
    assert graphs.operator_graph(capture, _lines())["left"] == 4
    assert graphs.reference_graph(capture, _lines())["left"] == capture.objects_cut

    def listed(kind: str, of: CaptureDetail) -> list[str]:
        page = texts.Page(_lines())
        texts._KINDS[kind][1](page, of, "r")
        return [(line.rpartition("  # ")[0] or line).rstrip() for line in page.text if " = " in line]

    assert listed("operators", capture) == listed("operators", whole), "every node, drawn or not"
    assert len(listed("operators", whole)) == 7


def test_objects_stand_to_the_right_of_what_they_were_reached_from() -> None:
    objects = [ObjectDetail("self", "object")]
    objects += [ObjectDetail(f"self.m{i}", "object", parent=0 if i < 20 else i - 19, step=f".m{i}") for i in range(60)]
    objects += [ObjectDetail(f"g{i}", "module") for i in range(40)]
    graph = graphs.reference_graph(CaptureDetail(objects=objects), _lines())
    nodes = graph["nodes"]
    assert len({(node["x"], node["y"]) for node in nodes}) == len(nodes)
    assert all(nodes[a]["x"] < nodes[b]["x"] and nodes[a]["y"] < nodes[b]["y"] for a, b in graph["edges"])
    assert graph["width"] > 2 * 400, "trees stand beside each other"
    assert all(node["x"] + graph["boxWidth"] <= graph["width"] for node in nodes)


def test_lines_of_a_notebooks_script_are_its_cells(tmp_path: Path) -> None:
    cells = [
        Cell(["import torch"], "vscode-notebook-cell:/n.ipynb#a"),
        Cell(["x = 1", "y = 2"], "vscode-notebook-cell:/n.ipynb#b"),
    ]
    notebook = Notebook(str(tmp_path / "n.ipynb"), str(tmp_path / "n.py"), cells)
    Path(notebook.script).write_text("\n".join(notebook.lines()))
    lines = Lines(Tracker(2**63 - 1, ()), Documents(), {str(tmp_path / "n.py"): notebook})
    text = Path(notebook.script).read_text().split("\n")
    assert lines.place(notebook.script, text.index("y = 2") + 1) == {"uri": cells[1].uri, "line": 1, "character": 0}
    assert lines.place(notebook.script, 1) is None, "a comment of ours"


def test_an_object_that_is_touched_before_its_parent_is_a_root() -> None:
    objects = [ObjectDetail("a.b", "object B", parent=1, step=".b"), ObjectDetail("a", "object A")]
    graph = graphs.reference_graph(CaptureDetail(objects=objects), _lines())
    assert [n["label"] for n in graph["nodes"]] == [".b", "a"] and graph["edges"] == []


def test_text_is_safe_and_links_count_utf16(tmp_path: Path) -> None:
    file = tmp_path / "π 🙂.py"
    file.write_text("x = 1\n", encoding="utf-8")
    guards = [GuardDetail("self.🙂", "eq", "'\x1b[31m'", str(file), 1), GuardDetail("gone", "is", "1", str(file), 99)]
    capture = CaptureDetail(guards=guards, objects=[ObjectDetail("self", "object", writes=[FactDetail("written: a")])])
    shown = texts.text_of("guards", capture, "t", _lines(file))
    (link,) = shown["links"]
    line = shown["text"].split("\n")[link["line"]]
    assert "\x1b" not in line and line.endswith("# π 🙂.py:1")
    units = line.encode("utf-16-le")[2 * link["start"] : 2 * link["end"]].decode("utf-16-le")
    assert units == "π 🙂.py:1"
    assert "written: a" in texts.text_of("references", capture, "t", _lines())["text"]
    with pytest.raises(NotShown, match="kind"):
        texts.text_of("nonsense", capture, "t", _lines())


def test_generated_code_links_to_the_lines_of_its_nodes(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text("y = f(x)\n")
    code = "# Topologically Sorted Source Nodes: [conv1d, relu], Original ATen: []\nbuf0 = k()"
    nodes = [
        NodeDetail("conv1d", "call", "conv1d", [], 0, "/lib.py", 9, "", str(file), 1),
        NodeDetail("relu", "call", "relu"),
    ]
    shown = texts.text_of("generatedCode", CaptureDetail(nodes=nodes, generated_code=[code]), "t", _lines(file))
    (link,) = shown["links"]
    assert shown["text"].split("\n")[1][link["start"] : link["end"]] == "conv1d"


def test_generated_code_is_that_of_a_capture_that_has_some() -> None:
    found = RunFindings("file:///t.py", Tracker(0, ()), Settings())
    found.regions["r"] = RegionSummary("r", "module", "Net", "/t.py", 1, captures=2)
    found.details = Details([RegionDetail("r", [CaptureDetail(), CaptureDetail(generated_code=["kernel"])])])
    shown = Shown(found, None, _lines())
    for params, number in (
        ({"kind": "generatedCode"}, 1),
        ({"kind": "guards"}, 2),
        ({"kind": "generatedCode", "capture": 2}, 2),
    ):
        _, head, _ = requests._capture([shown], params)
        assert head["capture"] == number, params


def test_code_of_ours_links_to_what_caused_it(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text("y = f(x)\n")
    guards = [GuardDetail("self.a", "eq", "1", str(file), 1)]
    capture = CaptureDetail(guards=guards, guard_code="v0 = args[0]\nif v0.a != 1: return MISS  # m.py:1\nz  # other.py:1")
    (link,) = texts.text_of("guardCode", capture, "t", _lines(file))["links"]
    assert link["line"] == 3 and link["place"]["line"] == 0
