"""What each tool says about one small model: ``python -m benchmarks.compared``. Key functions: measure, table.

The model has three causes of graph breaks and recompiles, whose lines are known. Each tool runs it for twelve calls in a
process of its own; then its output is searched for these lines and for the value that changed. Nothing is timed. tlparse and
depyf are left out if they are not installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PROGRAM = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.calls = 0
        self.history = []

    def forward(self, x):
        self.calls += 1
        x = self.layer(x) * (1 + 0.1 * self.calls)
        if x.abs().max() > 3:
            x = x / 2
        self.history.append(x.mean().item())
        return self.layer(x)


def main(model):
    torch.manual_seed(0)
    for _ in range(12):
        model(torch.randn(4, 8))


if __name__ == "__main__":
    main(Net())
"""
#: The lines of the causes, as `torch.compile` has them: a branch on data, a value that Python reads, a number that changes.
CAUSES = {"branch": "if x.abs().max() > 3:", "read": "x.mean().item()", "number": "self.calls += 1"}
_COMPILED = 'import program, torch\nprogram.main(torch.compile(program.Net(), backend="eager"))\n'
_EXPLAINED = "import program, torch\nprint(torch._dynamo.explain(program.Net())(torch.randn(4, 8)))\n"
_DECOMPILED = (
    f"import depyf\nwith depyf.prepare_debug('out'):\n    {_COMPILED.replace(chr(10), chr(10) + '    ').rstrip()}\n"
)
_CHECK = [sys.executable, "-m", "lsp_server.cli", "check", "--steps", "12", "--format", "concise"]


@dataclass(frozen=True)
class Said:
    """``lines`` of output, in files or printed. ``named``: the causes whose file and line it has. ``values``: whether it
    says which value changed, and from what to what."""

    tool: str
    needs: str
    lines: int
    named: frozenset[str]
    values: bool


def _line(text: str) -> int:
    return next(n for n, line in enumerate(PROGRAM.splitlines(), start=1) if text in line)


def _run(folder: Path, *command: str, **env: str) -> str:
    search = os.pathsep.join([str(folder), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **env, "PYTHONPATH": search}, capture_output=True, text=True, timeout=600
    )
    return done.stdout + done.stderr


def _script(folder: Path, source: str, **env: str) -> str:
    (folder / "start.py").write_text(source, encoding="utf-8")
    return _run(folder, sys.executable, "start.py", **env)


def _below(folder: Path) -> str:
    return "\n".join(file.read_text(errors="replace") for file in sorted(folder.rglob("*")) if file.is_file())


def _tlparse(folder: Path) -> str:
    _script(folder, _COMPILED, TORCH_TRACE=str(folder / "trace"))
    (log, *_) = (folder / "trace").iterdir()
    _run(folder, shutil.which("tlparse") or "tlparse", str(log), "-o", str(folder / "out"), "--no-browser")
    return _below(folder / "out")


def _depyf(folder: Path) -> str:
    _script(folder, _DECOMPILED)
    return _below(folder / "out")


#: What the user adds, and what runs the tool and returns its output.
TOOLS: dict[str, tuple[str, Callable[[Path], str]]] = {
    "`magpy-lsp check --engine dynamo`": (
        "nothing",
        lambda folder: _run(folder, *_CHECK, "--engine", "dynamo", "program.py"),
    ),
    "`TORCH_LOGS=graph_breaks,recompiles`": (
        "a variable, `torch.compile` in the code",
        lambda folder: _script(folder, _COMPILED, TORCH_LOGS="graph_breaks,recompiles"),
    ),
    "`torch._dynamo.explain`": ("a call in the code", lambda folder: _script(folder, _EXPLAINED)),
    "tlparse": ("a variable, `torch.compile` in the code, a second command", _tlparse),
    "depyf": ("`torch.compile` and a `with` statement in the code", _depyf),
}


def is_installed(tool: str) -> bool:
    return {"tlparse": shutil.which("tlparse"), "depyf": importlib.util.find_spec("depyf")}.get(tool, True) is not None


def measure(tool: str) -> Said:
    needs, run = TOOLS[tool]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        text = run(folder)
    return Said(tool, needs, text.count("\n"), named_in(text), has_values(text))


def named_in(text: str) -> frozenset[str]:
    """The causes whose place ``text`` has, in any of the tools' ways to write it."""
    ways = r'program\.py\\*"?(?::|, line |, ?\\*"line\\*": ?){}\b'
    return frozenset(cause for cause, line in CAUSES.items() if re.search(ways.format(_line(line)), text))


def has_values(text: str) -> bool:
    """Whether it says that ``calls`` changed, and between which values."""
    return "calls` changed from 0 to 1" in text or all(re.search(rf"calls.{{0,3}} == {n}\b", text) for n in (0, 1))


def table(said: list[Said]) -> str:
    rows = [
        f"| {one.tool} | {one.needs} | {len(one.named)} of {len(CAUSES)} | {'yes' if one.values else 'no'} | {one.lines:,} |"
        for one in said
    ]
    head = "| tool | what you add | causes named with file and line | the value that changed | lines of output |"
    return "\n".join([head, "|---|---|---:|---|---:|", *rows])


if __name__ == "__main__":
    print(table([measure(tool) for tool in TOOLS if is_installed(tool)]))
