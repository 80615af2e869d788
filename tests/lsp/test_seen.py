"""What the last run saw, where it is: hovers on regions and guarded values, inlay hints, lenses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lsp.client import Client
from tests.lsp.conftest import Lab

pytestmark = pytest.mark.asyncio

PROGRAM = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        "漢 🙂"; y = x * self.scale
        return y + self.lin.bias


net = Net()
for step in range(3):
    net(torch.ones(3))
"""
RAN = """
    hello()
    region(5, calls=20, hits=18, captures=2, guard_ms=0.017, eager_ms=4.0, compiled_ms=2.0,
           speedup_low=1.8, speedup_high=2.2, compile_s=1.25, host_reads=1, graphs=1,
           recompiles=[{"call": 2, "name": "self.scale", "old": "1.0", "new": "0.5", "file": request["script"], "line": 6},
                       {"call": 3, "name": "x.shape", "old": "(3,)", "new": "(4,)", "file": request["script"], "line": 6}])
    finding("MP202", 6, 8, 9, "bias", values=[("self.lin.bias", "a -> b")], severity="information")
    done(guards=[("x", "tensor", "<type Tensor>", 6), ("self.scale", "eq", "0.5", 6), ("self.lin", "plain_module", "<m>", 7),
                 ("self.lin.bias", "tensor", "<p>", 7)],
         nodes=[("placeholder", "x", "float32[4]", 0), ("placeholder", "self.lin.bias", "float32[4]", 0),
                ("call", "linear", "float32[9]", 6, "/site-packages/lib.py"),
                ("call", "mul", "float32[4]", 6), ("call", "add", "float32[4]", 7),
                ("call", "relu", "float32[5]", 7, "/site-packages/lib.py")])
    end()
"""


async def _ran(client: Client, lab: Lab, scenario: str = RAN) -> str:
    lab.program.write_text(PROGRAM, encoding="utf-8")
    lab.scenario(scenario)
    uri = client.open(lab.program)
    result = await client.command("magpy.runCompiled", {"uri": uri})
    assert result["state"] == "done", result
    return uri


async def _hover(client: Client, uri: str, line: int, character: int) -> tuple[str, tuple[int, int] | None]:
    params = {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}
    answer = await client.request("textDocument/hover", params)
    if answer is None:
        return "", None
    where = answer.get("range")
    text = answer["contents"]["value"]
    return text, None if where is None else (where["start"]["character"], where["end"]["character"])


async def test_hover_on_a_region_tells_what_it_is(client: Client, lab: Lab) -> None:
    uri = await _ran(client, lab)
    text, _ = await _hover(client, uri, 4, 9)
    for words in (
        "Region `Net` (module): 20 calls, one complete graph", "2 captures, 18 of 20 calls replayed",
        "4 operations in 1 graph, 0 graph breaks", "14 guards, 17 µs per check, 2 side effects", "waits for 1 tensor value",
        "compiled in 1.2 s", "2.00x (1.80x to 2.20x with 95% confidence): 4 ms eager, 2 ms compiled",
        "`self.scale` `1.0` → `0.5` (call 2)",
    ):  # fmt: skip
        assert words in text, text
    client.change(uri, 2, (0, 0, 0, 0, "\n"))
    assert "Region `Net`" in (await _hover(client, uri, 5, 9))[0] and (await _hover(client, uri, 4, 0))[0] == ""


async def test_hover_on_a_guarded_value_tells_its_guard(client: Client, lab: Lab) -> None:
    uri = await _ran(client, lab)
    column = PROGRAM.split("\n")[5].index("self.scale") + 1  # one smiley before it
    text, where = await _hover(client, uri, 5, column + 7)
    assert (
        "Guard of `Net`: valid while `self.scale` = `0.5` stays the same; failed 1 time: `self.scale` `1.0` → `0.5` (call 2)"
        in text
    )
    assert where == (column, column + len("self.scale"))
    text, where = await _hover(client, uri, 5, column - 4)
    assert "`x` = `float32[4]` stays the same; failed 1 time: `x.shape` `(3,)` → `(4,)` (call 3)" in text and where == (
        column - 4,
        column - 3,
    )
    text, _ = await _hover(client, uri, 6, 17 + 11)
    assert "`self.lin.bias` = `float32[4]` stays the same; failed 1 time: `self.lin.bias` `a` → `b`" in text
    assert "self.lin` is" not in text
    text, _ = await _hover(client, uri, 6, 17 + 6)
    assert "`self.lin` is an unchanged module; never failed in this run" in text
    assert await _hover(client, uri, 9, 1) == ("", None)
    client.change(uri, 2, (5, 0, 5, 0, " "))
    assert await _hover(client, uri, 5, column + 8) == ("", None), "the line was changed"


async def test_inlay_hints_are_off_until_asked_for(client: Client, lab: Lab) -> None:
    uri = await _ran(client, lab)
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}

    async def hints(where: dict[str, Any] = whole) -> list[tuple[int, int, str]]:
        found = await client.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": where})
        return [(h["position"]["line"], h["position"]["character"], h["label"]) for h in found]

    assert await hints() == []
    client.settings = {**client.settings, "inlayHints": True}
    end = len(PROGRAM.split("\n")[5]) + 1
    assert await hints() == [
        (5, end, "float32[4]"), (5, end, "x is float32[4], self.scale is 0.5"),
        (6, 32, "float32[5]"), (6, 32, "self.lin.bias is float32[4]"),
    ]  # fmt: skip
    assert {line for line, *_ in await hints({**whole, "start": {"line": 6, "character": 0}})} == {6}
    client.change(uri, 2, (5, 0, 5, 0, " "), (0, 0, 0, 0, "\n"))
    assert {line for line, *_ in await hints()} == {7}, "of the changed line nothing is known"


async def test_lenses_of_a_program_in_another_file(client: Client, lab: Lab) -> None:
    module = lab.folder / "net.py"
    module.write_text("import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n")
    await _ran(client, lab, f"hello()\nregion(4, file={str(module)!r}, captures=2, guards=3)\nend()")
    lenses = await client.request("textDocument/codeLens", {"textDocument": {"uri": client.open(module)}})
    shown = [(x["range"]["start"]["line"], x["command"]["title"], x["command"]["command"]) for x in lenses]
    assert shown == [
        (3, "Net: 2 graphs · 0 breaks · 3 guards · 2 side effects", "magpy.showOperatorGraph"),
        (3, "Check", "magpy.check"), (3, "Run compiled", "magpy.runCompiled"),
    ]  # fmt: skip
    assert lenses[0]["command"]["arguments"] == ["r0"]
    assert lenses[1]["command"]["arguments"] == [{"uri": lab.program.as_uri(), "wait": False}]


STEP = {
    "count": 20, "plain": 9, "compiled": 9, "plain_ms": 12.0, "compiled_ms": 8.0, "speedup_low": 1.4, "speedup_high": 1.6,
    "saved_s": 3.0, "seconds": 60.0, "break_even": 7,
    "parts": [{"name": "Net", "region": "r0", "plain_forward_ms": 1.0, "plain_backward_ms": 3.0, "compiled_forward_ms": 0.5,
               "compiled_backward_ms": 1.5}, {"name": "the rest", "plain_forward_ms": 8.0, "compiled_forward_ms": 6.0}],
}  # fmt: skip


async def test_the_step_is_what_a_compiled_run_says_first(client: Client, lab: Lab) -> None:
    uri = await _ran(client, lab, f"hello()\nregion(5, eager_ms=4.0, compiled_ms=2.0)\ndone(step={STEP!r})\nend()")
    line = "Step: 8.00 ms compiled, 12.0 ms in eager mode (1.50x, 95% interval 1.40 to 1.60). Saved 3.0 s: 60.0 s instead of"
    report = client.output("report")
    assert report.lstrip().startswith(line[:90]) and "Parts of a step (share: of the eager step)" in report
    assert report.index("Parts of a step") < report.index("Regions: eager and compiled")
    (run,) = await client.request("magpy/runs", {})
    assert run["step"].startswith(line)
    assert run["summary"].startswith("train.py: step 8.00 ms compiled, 12.0 ms eager (1.50x) · 1 region · 1 complete")
    text, _ = await _hover(client, uri, 4, 9)
    assert (
        "- 33% of the eager step: 4.00 ms eager (1.00 + 3.00, forward + backward), 2.00 ms compiled (0.500 + 1.50, "
        "forward + backward); the whole step: 1.50x"
    ) in text
    lenses = await client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    titles = [x["command"]["title"] for x in lenses]
    assert "1 graph · 0 breaks · 14 guards · 2 side effects · step 1.50x" in titles, titles


async def test_a_step_that_was_not_measured_leaves_the_regions_speed_up(client: Client, lab: Lab) -> None:
    step = {"count": 3, "plain": 2, "compiled": 1}
    uri = await _ran(
        client,
        lab,
        f"hello()\nregion(5, eager_ms=4.0, compiled_ms=2.0, speedup_low=1.9, speedup_high=2.1)\ndone(step={step!r})\nend()",
    )
    assert "Step: not measured: of 3 steps, 2 ran in eager mode and 1 compiled" in client.output("report")
    (run,) = await client.request("magpy/runs", {})
    assert run["summary"].startswith("train.py: 1 region · 1 complete · up to 2.00x")
    assert "step" not in (await _hover(client, uri, 4, 9))[0]


async def test_the_speed_up_is_in_the_lens_when_it_was_measured(client: Client, lab: Lab) -> None:
    uri = await _ran(client, lab)
    lenses = await client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    titles = [x["command"]["title"] for x in lenses]
    assert "2 graphs · 0 breaks · 14 guards · 2 side effects · 2.00x" in titles
