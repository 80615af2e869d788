"""A second client: Neovim, with the configuration that docs/how-to/editors.md gives. Skipped where there is no nvim."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lsp.conftest import Lab
from tests.lsp.conftest import lab as lab  # the fixture

ROOT = Path(__file__).parents[2]
SCENARIO = """
    hello()
    send(type="step", n=1)
    finding("MP102", 5, 29, 43, "`x.sum().item()` is read by Python", values=[("x.sum()", "3.0")])
    region(5)
    print("loss 1.25", flush=True)
    gate("go")
    end()
"""
# Waits are on conditions; vim.wait gives up (and the test fails on what is missing) after 20 s.
SCRIPT = """
local seen = {}
local function wait(what, good)
  seen[what] = vim.wait(20000, good, 20)
end
vim.cmd("edit " .. vim.env.MAGPY_FILE)
wait("attached", function() return #vim.lsp.buf_get_clients(0) == 1 and vim.lsp.buf_get_clients(0)[1] ~= nil end)
local function ask(method, params)
  local answers = vim.lsp.buf_request_sync(0, method, params, 20000) or {}
  for _, answer in pairs(answers) do return answer.result end
end
local function lenses()
  local titles = {}
  for _, lens in ipairs(ask("textDocument/codeLens", { textDocument = { uri = vim.uri_from_bufnr(0) } }) or {}) do
    table.insert(titles, lens.command and lens.command.title or "")
  end
  return titles
end
seen.lenses = lenses()
vim.cmd("MagpyCheck")
wait("streamed", function() return #vim.diagnostic.get(0) > 0 end)
seen.running = vim.g.magpy_status
if seen.streamed then -- else nobody waits there, and opening it would wait for ever
  io.open(vim.env.MAGPY_GATE, "w"):close()
end
wait("ended", function() return (vim.g.magpy_status or ""):find("complete") ~= nil end)
seen.diagnostics = vim.tbl_map(function(d) return { d.lnum, d.col, d.message, d.source } end, vim.diagnostic.get(0))
seen.after = lenses()
local at = { textDocument = { uri = vim.uri_from_bufnr(0) }, position = { line = 5, character = 32 } }
seen.hover = (ask("textDocument/hover", at) or {}).contents
seen.messages = vim.fn.execute("messages")
seen.runs = ask("magpy/runs", {})
vim.cmd("MagpyClear")
wait("cleared", function() return #vim.diagnostic.get(0) == 0 end)
local out = io.open(vim.env.MAGPY_OUT, "w")
out:write(vim.json and vim.json.encode(seen) or vim.fn.json_encode(seen))
out:close()
vim.cmd("qall!")
"""


@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed")
def test_neovim_checks_a_program(lab: Lab) -> None:
    (snippet,) = re.findall(r"```lua\n(.*?)```", (ROOT / "docs" / "how-to" / "editors.md").read_text(), re.DOTALL)
    assert '"python3"' in snippet and "interpreter = magpy.python" in snippet
    # The server runs with this Python, the program with the laboratory's.
    snippet = snippet.replace('"python3"', json.dumps(sys.executable))
    snippet = snippet.replace("interpreter = magpy.python", f"interpreter = {json.dumps(str(lab.python))}")
    lab.scenario(SCENARIO)
    lab.gate("go")
    folder = lab.folder / "nvim"
    folder.mkdir()
    (folder / "init.lua").write_text(snippet)
    (folder / "script.lua").write_text(SCRIPT)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    env |= {name: str(folder) for name in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    env |= {
        "MAGPY_FILE": str(lab.program),
        "MAGPY_OUT": str(folder / "out.json"),
        "MAGPY_GATE": str(lab.machine / "gate.go"),
    }
    command = ["nvim", "--headless", "--noplugin", "-n", "-i", "NONE", "-u", str(folder / "init.lua")]
    command += ["-S", str(folder / "script.lua")]
    ended = subprocess.run(command, cwd=lab.folder, env=env, capture_output=True, text=True, timeout=90)
    assert ended.returncode == 0, ended.stderr
    assert (folder / "out.json").exists(), ended.stderr
    seen = json.loads((folder / "out.json").read_text())
    assert [seen[step] for step in ("attached", "streamed", "ended", "cleared")] == [True] * 4, seen
    assert seen["lenses"] == ["Check", "Run compiled"]
    assert "Checking train.py" in seen["running"], "the finding was there while the program ran"
    ((line, column, message, source),) = seen["diagnostics"]
    assert (line, source) == (5, "magpy") and message.startswith("`x.sum().item()` is read by Python")
    # Neovim counts bytes: the π before the range is two of them, the smiley four.
    assert column == lab.program.read_bytes().split(b"\n")[5].index(b"x.sum()")
    assert any(title.startswith("Net: 1 graph") for title in seen["after"])
    assert "x.sum()" in json.dumps(seen["hover"]) and "3.0" in json.dumps(seen["hover"])
    assert "loss 1.25" in seen["messages"]
    assert [run["label"] for run in seen["runs"]] == ["train.py"]
