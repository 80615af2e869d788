"""Kernels for a device: made after the findings are shown, on their lines in hovers and lenses, and their code as a text."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from magpy_core.runner import handle
from magpy_core.runner.launch import launch
from magpy_core.runner.request import RunRequest
from tests.lsp.client import VSCODE, Client, ServerError
from tests.lsp.conftest import Lab
from tests.lsp.test_seen import _hover

PROGRAM = """\
import torch


class Net(torch.nn.Module):
    def block(self, x):
        return torch.nn.functional.gelu(self.up(x))

    def forward(self, x):
        x = self.block(x)
        return self.down(x)


net = Net()
net(torch.ones(3))
"""
BLOCK, FORWARD = 4, 7  # lines of the definitions
MADE = """
    kernels = on_h100(
        kernel("mm", 6, code=False, us=10.0, operators=("mm",)), kernel("triton_gelu_0", 6, 9, launches=4),
        kernel("triton_down_1", 10, graph="backward", spills=52), kernel("triton_gelu_0", 6, graph="inference"),
    )
"""
RAN = f"""{MADE}
    hello()
    finding("MP102", 5, 15, 40, "read here")
    region(8)
    captured(guards=[("x", "tensor", "<type Tensor>", 6)])
    lowering(0, 2)
    lowering(2, 2)
    done(kernels=kernels)
    end()
"""


def _write(lab: Lab, scenario: str = RAN) -> None:
    lab.program.write_text(PROGRAM, encoding="utf-8")
    lab.scenario(scenario)


async def _made(client: Client, lab: Lab, scenario: str = RAN) -> str:
    """The URI of a program whose kernels were made."""
    _write(lab, scenario)
    uri = client.open(lab.program)
    result = await client.command("magpy.check", {"uri": uri, "target": "H100"})
    assert result["state"] == "done", result
    return uri


async def _titles(client: Client, uri: str) -> list[tuple[int, str, str, Any]]:
    lenses = await client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    of = [(one["range"]["start"]["line"], one["command"]) for one in lenses]
    return [(line, command["title"], command["command"], command.get("arguments")) for line, command in of]


@pytest.mark.asyncio
async def test_they_are_made_when_everything_else_is_there(client: Client, lab: Lab) -> None:
    client.settings = {**client.settings, "target": "cuda:sm_90"}
    lab.gate("kernels")
    _write(lab, RAN.replace("lowering(2, 2)", 'gate("kernels")'))
    uri = client.open(lab.program)
    _, answer = client.begin_command("magpy.check", {"uri": uri})
    status = await client.status(lowering=[0, 2])
    assert status["state"] == "running" and "train.py: 0 of 2 graphs for H100 SXM" in status["summary"]
    assert lab.request["target"] == "cuda:sm_90" and not answer.done()
    await client.diagnostics_where(uri, lambda d: [one["code"] for one in d] == ["MP102"], "while kernels are made")
    assert "Region `Net`" in (await _hover(client, uri, FORWARD, 8))[0]
    guards = await client.request("magpy/text", {"kind": "guards"})
    assert "x tensor" in guards["text"]
    assert "Compiling kernels… (click to cancel)" in [title for _, title, *_ in await _titles(client, uri)]
    with pytest.raises(ServerError, match=r"kernels of train\.py are being made"):
        await client.request("magpy/kernels", {"uri": uri})
    lab.open_gate("kernels")
    result = await asyncio.wait_for(answer, 30)
    assert result["state"] == "done" and "4 kernels for H100 SXM" in result["summary"]
    assert "on H100 SXM: forward 5 kernels, at least 20.0 µs" in client.output("report")


def test_the_limit_is_the_programs(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.gate("kernels")
    _write(lab, RAN.replace("lowering(2, 2)", 'gate("kernels")'))
    now = 0.0
    monkeypatch.setattr(handle, "time", SimpleNamespace(monotonic=lambda: now))
    run = launch(RunRequest(script=str(lab.program), python=str(lab.python), timeout=60, target="cuda:sm_90", steps=0))
    for message in run:
        if message["type"] == "lowering":
            break
    now = 1000.0
    opening = threading.Thread(target=lab.open_gate, args=("kernels",))
    opening.start()
    assert run.outcome.kind == "ok", run.outcome.message
    opening.join()


@pytest.mark.asyncio
async def test_cancelling_them_keeps_the_findings(client: Client, lab: Lab) -> None:
    lab.gate("never")
    _write(lab, RAN.replace("lowering(2, 2)", 'gate("never")'))
    uri = client.open(lab.program)
    _, answer = client.begin_command("magpy.check", {"uri": uri, "target": "cuda:sm_90"})
    await client.status(lowering=[0, 2])
    assert await client.command("magpy.cancel", {"uri": uri}) == {"cancelled": 1}
    result = await asyncio.wait_for(answer, 30)
    assert (result["state"], result["failure"]) == ("done", None) and "no kernels for H100 SXM" in result["summary"]
    assert lab.processes() == []
    assert [d["code"] for d in client.diagnostics(uri)] == ["MP102"]
    assert (await client.request("magpy/kernels", {"uri": uri}))["missing"] is True


@pytest.mark.asyncio
async def test_progress_goes_on_after_the_steps(client: Client, lab: Lab) -> None:
    lab.gate("shown")  # a run may be over before the client has made a place for its progress
    _write(lab, RAN.replace("captured(", 'send(type="step", n=3)\n    gate("shown")\n    captured('))
    _, answer = client.begin_command("magpy.check", {"uri": client.open(lab.program), "target": "cuda:sm_90"})
    await client.until(lambda: client.all("$/progress"), "progress")
    await asyncio.to_thread(lab.open_gate, "shown")
    await asyncio.wait_for(answer, 30)
    values = [p["value"] for p in client.all("$/progress") if p["value"]["kind"] != "end"]
    shown = [value["percentage"] for value in values]
    assert shown == sorted(shown) and shown[0] == 0, shown


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("setting", "table", "argument", "target"),
    [
        (None, "", None, ""), (None, "h100", None, "cuda:sm_90"), ("", "h100", None, "cuda:sm_90"),
        ("none", "h100", None, ""), ("A100", "h100", None, "cuda:sm_80"), ("A100", "", "b200", "cuda:sm_100"),
        ("tpu", "", None, ""),
    ],
)  # fmt: skip
async def test_which_device(
    client: Client, lab: Lab, setting: str | None, table: str, argument: str | None, target: str
) -> None:
    if table:
        (lab.folder / "pyproject.toml").write_text(f'[tool.magpy]\ntarget = "{table}"\n')
    client.settings = {**client.settings, "target": setting}
    _write(lab, "hello()\nend()")
    await client.command("magpy.check", {"uri": client.open(lab.program), "target": argument})
    assert lab.request["target"] == target
    messages = [m["message"] for m in client.all("window/showMessage")]
    assert any("setting magpy.target must be none, or a device" in m for m in messages) == (setting == "tpu")


@pytest.mark.asyncio
async def test_only_checks_of_magpy_make_kernels(client: Client, lab: Lab) -> None:
    client.settings = {**client.settings, "target": "h100"}
    _write(lab, "hello()\nend()")
    uri = client.open(lab.program)
    for command, more in (("magpy.runCompiled", {}), ("magpy.check", {"engine": "dynamo"})):
        await client.command(command, {"uri": uri, **more})
        assert lab.request["target"] == "", command
    with pytest.raises(ServerError, match="target is invalid: 'tpu' is not a target; known: cuda:sm_80"):
        await client.command("magpy.check", {"uri": uri, "target": "tpu"})


@pytest.mark.asyncio
async def test_a_mistake_in_the_table_is_marked(client: Client, lab: Lab) -> None:
    file = lab.folder / "pyproject.toml"
    file.write_text('[tool.magpy]\ntarget = "cuda:sm_9"\n')
    uri = client.open(file)
    (found,) = await client.diagnostics_where(uri, lambda d: len(d) == 1, "of the table")
    assert found["range"]["start"] == {"line": 1, "character": 9} and "Did you mean cuda:sm_90?" in found["message"]


@pytest.mark.asyncio
async def test_a_line_tells_its_kernels(client: Client, lab: Lab) -> None:
    uri = await _made(client, lab)
    text, _ = await _hover(client, uri, 5, 9)
    assert "4 Triton kernels and 1 of a library on H100 SXM, at least 20.0 µs" in text
    assert "- forward: mm (library); 10.0 µs (launch), moves 1.5 kB" in text
    one = "- forward `triton_gelu_0`: gelu of train.py:6,9; 2.5 µs (launch), 4 times, moves 1.5 kB, 40 registers"
    assert one in text and "inference" not in text, text
    assert "nothing ran there. [Show Triton](command:magpy.showTriton?%5B%7B%22uri%22%3A" in text
    text, _ = await _hover(client, uri, 9, 16)
    assert "1 Triton kernel on H100 SXM, at least 2.5 µs\n" in text and "spills 52 B" in text
    assert "on H100 SXM: forward 5 kernels, at least 20.0 µs; backward 1 kernel" in (await _hover(client, uri, 7, 9))[0]
    client.change(uri, 2, (9, 20, 9, 20, " "), (0, 0, 0, 0, "\n"))
    assert "Triton" not in (await _hover(client, uri, 10, 16))[0], "the line was changed"
    assert "4 Triton kernels" in (await _hover(client, uri, 6, 9))[0], "the line has moved"


@pytest.mark.asyncio
async def test_functions_and_regions_have_a_lens(client: Client, lab: Lab) -> None:
    uri = await _made(client, lab)
    on_device = [(line, title) for line, title, *_ in await _titles(client, uri) if "H100" in title]
    assert on_device == [
        (FORWARD, "H100 SXM: 5 Triton kernels and 1 of a library, at least 22.5 µs"),
        (BLOCK, "H100 SXM: 4 Triton kernels and 1 of a library, at least 20.0 µs"),
    ]
    found = [(command, arguments) for _, title, command, arguments in await _titles(client, uri) if "H100" in title]
    assert found == [
        ("magpy.showTriton", [{"uri": uri, "first": FORWARD, "last": FORWARD, "region": "r0"}]),
        ("magpy.showTriton", [{"uri": uri, "first": BLOCK, "last": BLOCK + 1, "region": ""}]),
    ]


@pytest.mark.asyncio
async def test_other_clients_get_no_commands_of_our_extension(server: Client, lab: Lab) -> None:
    server.settings = {"interpreter": str(lab.python)}
    await server.initialize({**VSCODE, "experimental": {}}, folder=lab.folder)
    uri = await _made(server, lab)
    assert {command for _, title, command, _ in await _titles(server, uri) if "H100" in title} == {""}
    text, _ = await _hover(server, uri, 5, 9)
    assert text.endswith("nothing ran there.")


@pytest.mark.asyncio
async def test_their_code_is_one_text_with_its_lines(client: Client, lab: Lab) -> None:
    uri = await _made(client, lab)
    found = await client.request("magpy/kernels", {"uri": uri})
    lines = found["text"].split("\n")
    assert (found["language"], found["device"], found["label"]) == ("python", "H100 SXM", "train.py")
    assert lines[0] == "# train.py on H100 SXM (cuda:sm_90): 4 kernels, in order"
    assert "# ==== r0, forward: 5 kernels, at least 20.0 µs" in lines and "import triton" not in lines
    product, fused, *_ = found["kernels"]
    assert lines[product["first"]] == "# #1 mm: mm (library); at least 10.0 µs (launch)"
    assert lines[product["last"]].endswith("A library's kernel: it has no Triton source.")
    assert lines[fused["first"]] == "# #2 triton_gelu_0: gelu; at least 2.5 µs (launch), 4 times"
    assert lines[fused["last"] - 2 : fused["last"] + 1] == ["@triton.jit", "def triton_gelu_0(x):", "    pass"]
    assert [(at["uri"], at["line"]) for at in fused["places"]] == [(uri, 5), (uri, 8)]
    linked = [(lines[one["line"]][one["start"] : one["end"]], one["place"]["line"]) for one in found["links"]]
    assert linked == [("train.py:6", 5), ("train.py:6", 5), ("train.py:9", 8), ("train.py:10", 9), ("train.py:6", 5)]
    client.change(uri, 2, (0, 0, 0, 0, "\n"))
    moved = await client.request("magpy/kernels", {"uri": uri, "text": False})
    assert moved["text"] == "" and [at["line"] for at in moved["kernels"][1]["places"]] == [6, 9]
    assert [one["first"] for one in moved["kernels"]] == [one["first"] for one in found["kernels"]]


@pytest.mark.asyncio
async def test_one_lines_code(client: Client, lab: Lab) -> None:
    uri = await _made(client, lab)
    found = await client.request("magpy/kernels", {"uri": uri, "line": 9, "code": "ptx"})
    assert found["language"] == "plaintext" and found["text"].startswith("// train.py on H100 SXM")
    assert ".entry triton_down_1" in found["text"] and ".entry triton_gelu_0" not in found["text"]
    with pytest.raises(ServerError, match=r"anything of line 1; kernels compute something of lines 6,9-10"):
        await client.request("magpy/kernels", {"uri": uri, "line": 0})
    with pytest.raises(ServerError, match="Unknown kind of code: 'sass'"):
        await client.request("magpy/kernels", {"uri": uri, "code": "sass"})


@pytest.mark.asyncio
async def test_what_to_do_where_there_are_none(client: Client, lab: Lab, tmp_path: Path) -> None:
    _write(lab, "hello()\nregion(8)\nend()")
    uri = client.open(lab.program)
    missing = await client.request("magpy/kernels", {"uri": uri})
    assert (missing["missing"], missing["program"]) == (True, {"uri": uri})
    assert {"target": "cuda:sm_90", "title": "H100 SXM"} in missing["devices"]
    client.settings = {**client.settings, "entrypoints": [{"name": "small", "program": str(lab.program)}]}
    await client.command("magpy.check", {"uri": uri, "name": "small"})
    missing = await client.request("magpy/kernels", {"uri": (tmp_path / "other.py").as_uri()})
    assert missing["program"] == {"uri": uri, "name": "small"}
    other = lab.folder / "other_train.py"
    other.write_text(PROGRAM, encoding="utf-8")
    missing = await client.request("magpy/kernels", {"uri": other.as_uri()})
    assert missing["program"] == {"uri": other.as_uri()}, "a program itself, which was not run"


@pytest.mark.asyncio
async def test_the_report_has_them(client: Client, lab: Lab) -> None:
    await _made(client, lab)
    page = (await client.request("magpy/page", {}))["html"]
    assert "<h2 id='kernels'>" in page and "triton_<wbr>gelu_<wbr>0" in page
