"""Each fix on a real program: the finding is gone when the fixed program is checked again, and it prints what it printed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import Client
from tests.lsp.edits import applied

HEAD = """\
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.scale = 1.0

    def forward(self, x, t):
"""
TAIL = """\


torch.manual_seed(0)
net = Net()
for step in range(6):
    net.scale = 1.0 / (step + 3)
    x = torch.ones({rows}, 4) * (1 - step % 3)
    x.requires_grad_(True)
    out = net(x, {given})
    out.sum().backward()
    print("漢 🙂", repr(out.sum().item()), x.grad.tolist(), net.lin.bias.grad.tolist(), out.dtype)
"""


def _program(body: str, *, given: str = "0.5", rows: str = "2") -> str:
    return (
        HEAD
        + "".join(f"        {line}\n" if line else "\n" for line in body.splitlines())
        + TAIL.format(given=given, rows=rows)
    )


LOGGING = _program("y = self.lin(x) * 2\nprint(sorted([y.mean().item(), y.max().item()]))  # now and then\nreturn y")
WHERE = _program("y = self.lin(x) * 2\nif (y > 0.6).any():\n    y = y * 3 - 1\nelse:\n    y = -y + 0.5\nreturn y * t")
KEPT = _program("y = self.lin(x) * 2\nif y.abs().max() > 0.9:\n    y = y * 0.5\nreturn y * t")
RETURNS = _program("y = self.lin(x) * 2\nif y.sum() > 0:\n    return y - 1\nreturn 2 * y")
ATTRIBUTE = _program("y = self.lin(x) * self.scale\nreturn y / 2")
ARGUMENT = _program("y = self.lin(x)\nreturn y * t", given="step * 0.5 + 0.1")
CAUSAL = _program("y = self.lin(self.blocks(x[None], mask=self.mask))\nreturn y[0] * t").replace(
    "        self.scale = 1.0\n",
    "        self.scale = 1.0\n"
    "        layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True)\n"
    "        self.blocks = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)\n"
    "        self.mask = nn.Transformer.generate_square_subsequent_mask(2)\n",
)
IDENTITY = _program("y = self.lin(x)\nreturn y * 2 if float(x.shape[0]) is t else y * t")
SIZES = _program("return self.lin(x) / 2", rows="2 + step")


ALL = _program(
    "y = self.lin(x) * self.scale\n"
    "y = y * t\n"
    "if (y > 0.1).any():\n    y = y * 3 - 1\nelse:\n    y = -y + 0.5\n"
    "print(sorted([y.mean().item(), y.max().item()]))  # now and then\n"
    "return y",
    given="step * 0.5 + 0.1",
)
ALL_DYNAMO = _program(
    "y = self.lin(x) / 2\nprint(f'mean {y.mean().item():.4f}')\nreturn y",
    rows="2 + step",
)
CASES = {
    "all": (
        ALL,
        "magpy",
        [("MP101", "torch.where"), ("MP202", "`self.scale`"), ("MP202", "`t`"), ("MP102", "Move this logging")],
    ),
    "all-dynamo": (ALL_DYNAMO, "dynamo", [("MPD101", "Move this logging"), ("MPD201", "Mark dimension 0 of `x`")]),
    "logging": (LOGGING, "magpy", [("MP102", "Move this logging")]),
    "where": (WHERE, "magpy", [("MP101", "torch.where")]),
    "where-returns": (RETURNS, "magpy", [("MP101", "torch.where")]),
    "where-one-side": (KEPT, "magpy", [("MP101", "torch.where")]),
    "attribute": (ATTRIBUTE, "magpy", [("MP202", "Pass `self.scale`")]),
    "argument": (ARGUMENT, "magpy", [("MP202", "Pass `t`")]),
    "causal": (CAUSAL, "magpy", [("MP101", "Pass `is_causal=True`, if `mask` is always causal")]),
    "identity": (IDENTITY, "magpy", [("MP103", "Compare with `==`")]),
    "dynamic": (SIZES, "dynamo", [("MPD201", "Mark dimension 0 of `x`")]),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.asyncio
async def test_the_fixed_program_is_clean_and_the_same(server: Client, tmp_path: Path, case: str) -> None:
    program, engine, wanted = CASES[case]
    path = tmp_path / "train.py"
    path.write_text(program, encoding="utf-8")
    asked = {code: "information" for code in ("MP202", "MPD201")}  # facts, which are diagnostics for who names them
    env = {"OMP_NUM_THREADS": "1"}
    server.settings = {"interpreter": sys.executable, "backend": "eager", "env": env, "severity": asked}
    await server.initialize(folder=tmp_path)
    uri = server.open(path)
    before = await _check(server, uri, engine)
    gone = {code for code, _ in wanted}
    await server.diagnostics_where(uri, lambda d: gone <= {x["code"] for x in d}, "what will be mended")
    fixed = program
    for version, (code, title) in enumerate(wanted, start=2):
        await server.sync()
        found = [d for d in server.diagnostics(uri) if d["code"] == code]
        actions = [a for d in found for a in await _actions(server, uri, d) if title in a["title"]]
        assert actions, (title, found, [a["title"] for d in found for a in await _actions(server, uri, d)])
        assert (actions[0].get("isPreferred") or case in ("causal", "identity")) and code in [
            d["code"] for d in actions[0]["diagnostics"]
        ]
        shorter = applied(fixed, actions[0]["edit"], uri)
        assert shorter != fixed
        fixed = shorter
        change = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": fixed}]}
        server.notify("textDocument/didChange", change)
        seen = len(server.all("textDocument/publishDiagnostics"))
        await server.until(lambda n=seen: len(server.all("textDocument/publishDiagnostics")) > n, "moved")  # type: ignore[misc]
    path.write_text(fixed, encoding="utf-8")
    assert await _check(server, uri, engine) == before
    left = await server.diagnostics_where(uri, lambda d: not gone & {x["code"] for x in d}, f"{gone} gone from\n{fixed}")
    assert not [d for d in left if d["severity"] <= 2]


COND = _program(
    "y = self.lin(x) * 2\nif y.sum() > 0:\n    y = self.lin(y).tanh()\nelse:\n    z = y * t\n    y = z.sin()\nreturn y - 1"
)
COND_KEPT = _program("y = self.lin(x) * 2\nif y.sum() > 0:\n    y = self.lin(y).tanh()\nreturn y - 1")
COND_RETURNS = _program("y = self.lin(x) * 2\nif y.sum() > 0:\n    return y.exp()\nelse:\n    return self.lin(y)")


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(COND, id="both-sides"),
        pytest.param(COND_KEPT, marks=pytest.mark.exhaustive, id="one-side"),
        pytest.param(COND_RETURNS, marks=pytest.mark.exhaustive, id="returns"),
    ],
)
@pytest.mark.asyncio
async def test_the_sketch_of_cond_taken_for_the_branch_ends_the_break(server: Client, tmp_path: Path, program: str) -> None:
    path = tmp_path / "train.py"
    # What a sketch can't know: the result is of one dtype and shape here, and `t` is a number, which is left out of it.
    program = program.replace("{t}", "t").replace("t):", "t):\n        t = x.new_tensor(t)")
    path.write_text(program, encoding="utf-8")
    server.settings = {"interpreter": sys.executable, "backend": "eager", "env": {"OMP_NUM_THREADS": "1"}}
    await server.initialize(folder=tmp_path)
    uri = server.open(path)
    before = await _check(server, uri, "dynamo")
    found = await server.diagnostics_where(uri, lambda d: "MPD101" in {x["code"] for x in d}, "the graph break")
    actions = [a for d in found if d["code"] == "MPD101" for a in await _actions(server, uri, d)]
    (sketch,) = (a for a in actions if "torch.cond" in a["title"])
    fixed = _taken(applied(program, sketch["edit"], uri))
    path.write_text(fixed, encoding="utf-8")
    whole = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": fixed}]}
    server.notify("textDocument/didChange", whole)
    assert await _check(server, uri, "dynamo") == before, fixed
    await server.diagnostics_where(uri, lambda d: not [x for x in d if x["severity"] <= 2], f"no break in\n{fixed}")
    assert await _check(server, uri, "magpy") == before
    await server.diagnostics_where(uri, lambda d: "MP106" in {x["code"] for x in d}, "MagPy says that it runs plainly")


def _taken(text: str) -> str:
    """The program with the sketch in the place of the branch that it stands before."""
    lines = text.split("\n")
    start = next(n for n, line in enumerate(lines) if "# torch.cond, as a sketch" in line)
    branch = next(n for n in range(start, len(lines)) if lines[n].lstrip().startswith("if "))
    indent = lines[branch][: len(lines[branch]) - len(lines[branch].lstrip())]
    end = next(n for n in range(branch + 1, len(lines)) if not lines[n].startswith((f"{indent} ", f"{indent}else")))
    sketch = [line.replace("# ", "", 1) for line in lines[start + 1 : branch]]
    return "\n".join([*lines[:start], *sketch, *lines[end:]])


DATA = _program("y = self.lin(x.data + 1) * 2\nn = range(int((x.data * 3).sum().item()) % 3 + 1)\nreturn y * len(n)")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["magpy", "dynamo"])
@pytest.mark.asyncio
async def test_detach_in_place_of_data_changes_nothing_else(server: Client, tmp_path: Path, engine: str) -> None:
    """The finding of the read stays, only that of `.data` goes, and nothing comes."""
    path = tmp_path / "train.py"
    path.write_text(program := DATA.replace("x.grad.tolist()", "x.grad"), encoding="utf-8")
    server.settings = {"interpreter": sys.executable, "backend": "eager", "env": {"OMP_NUM_THREADS": "1"}}
    await server.initialize(folder=tmp_path)
    uri = server.open(path)
    printed = await _check(server, uri, engine)
    code = "MP102" if engine == "magpy" else "MPD101"
    found = await server.diagnostics_where(uri, lambda d: code in {x["code"] for x in d}, "the read")
    actions = [a for d in found if d["code"] == code for a in await _actions(server, uri, d)]
    (detach,) = (a for a in actions if "detach" in a["title"])
    fixed = applied(program, detach["edit"], uri)
    assert fixed == program.replace("(x.data * 3)", "(x.detach() * 3)")
    path.write_text(fixed, encoding="utf-8")
    whole = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": fixed}]}
    server.notify("textDocument/didChange", whole)
    assert await _check(server, uri, engine) == printed

    def told(diagnostics: list[dict[str, Any]]) -> list[tuple[str, int]]:
        return sorted((d["code"], d["range"]["start"]["line"]) for d in diagnostics)

    left = [one for one in told(found) if one != ("MP308", detach["diagnostics"][0]["range"]["start"]["line"])]
    await server.diagnostics_where(uri, lambda d: told(d) == left, "the same findings")


@pytest.mark.slow
@pytest.mark.asyncio
async def test_detach_in_place_of_data_ends_its_own_finding(server: Client, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(program := _program("y = self.lin(x)\nreturn y / (y.data * y.data).sum().sqrt()"), encoding="utf-8")
    server.settings = {"interpreter": sys.executable, "backend": "eager", "env": {"OMP_NUM_THREADS": "1"}}
    await server.initialize(folder=tmp_path)
    uri = server.open(path)
    printed = await _check(server, uri, "magpy")
    for version in (2, 3):
        found = await server.diagnostics_where(uri, lambda d: "MP308" in {x["code"] for x in d}, "the use of `.data`")
        told = next(d for d in found if d["code"] == "MP308")
        (detach,) = (a for a in await _actions(server, uri, told) if "detach" in a["title"])
        program = applied(program, detach["edit"], uri)
        path.write_text(program, encoding="utf-8")
        whole = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": program}]}
        server.notify("textDocument/didChange", whole)
        assert await _check(server, uri, "magpy") == printed
    assert "(y.detach() * y.detach())" in program
    await server.diagnostics_where(uri, lambda d: "MP308" not in {x["code"] for x in d}, "no use of `.data`")


def test_a_0d_double_does_what_a_float_does() -> None:
    """Bit for bit, forward and backward: what the fix for numbers stands on."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        for value in (0.1, 1 / 3, -2.7182818284590455, 1e-9, 12345.678901234567):
            for name in ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__"):
                given = torch.randn(37, dtype=dtype)
                results = []
                for operand in (value, torch.tensor(value, dtype=torch.float64)):
                    x = given.clone().requires_grad_(True)
                    out = getattr(x, name)(operand)
                    out.backward(torch.ones_like(out) / 3)
                    results.append((out, x.grad))
                (a, ga), (b, gb) = results
                assert a.dtype == b.dtype == dtype and torch.equal(a, b) and torch.equal(ga, gb), (dtype, value, name)


async def _check(client: Client, uri: str, engine: str) -> str:
    """What the program printed."""
    before = len(client.output("stdout"))
    result = await client.command("magpy.check", {"uri": uri, "steps": 0, "engine": engine})
    assert result["state"] == "done", (result["failure"], client.output("stderr")[-2000:])
    await client.until(lambda: client.output("stdout")[before:].count("漢") == 6, "six steps")
    return client.output("stdout")[before:]


async def _actions(client: Client, uri: str, diagnostic: dict[str, Any]) -> list[dict[str, Any]]:
    params = {"textDocument": {"uri": uri}, "range": diagnostic["range"], "context": {"diagnostics": [diagnostic]}}
    actions = await client.request("textDocument/codeAction", params)
    assert isinstance(actions, list)
    return actions
