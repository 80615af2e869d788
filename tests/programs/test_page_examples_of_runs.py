"""The examples of the findings' pages that need a process of their own or a compiler: how programs end, what is compiled by
Inductor or for a target, and what torch.compile does.

As in test_page_examples.py, the finding is on the marked lines, and not in the version without it.
"""

from __future__ import annotations

import linecache
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from lsp_server.budgets import Budgets, check_budgets
from magpy_core.products.dynamo.session import DynamoSession
from magpy_core.runner.request import SESSIONS
from tests.programs.page_help import Frame, Run, blocks, limits, marked, others, ran
from tests.programs.runner_help import PYTHON, Ran, environment, under_magpy

_HEAD = (
    "import argparse\nimport ctypes\nimport functools\nimport io\nimport sys\nimport time\n\n"
    "import torch\nfrom torch import nn\n\n"
)
_MODEL = (
    "model = nn.Linear(4, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\ncriterion = nn.MSELoss()\n"
    "batches = [(torch.randn(3, 4), torch.randn(3, 1)) for n in range(6)]\n"
)


@dataclass(frozen=True)
class Start:
    """What is around the example in its file, and how it is started."""

    before: str = ""
    after: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    at_the_top: bool = False
    """The finding is about the program as a whole, at the first line of its file; the page says so."""

    def run(self, code: str, folder: Path, *, fixed: bool = False) -> tuple[str, Ran]:
        text = f"{_HEAD}{self.before}\n\n{blocks(code)[fixed]}\n\n{self.after}"
        (folder / "train.py").write_text(text, encoding="utf-8")
        options = {"session_factory": SESSIONS["magpy"], **self.options}
        return text, under_magpy(folder, script="train.py", **options)


STARTS = {
    "MP406": Start(f"{_MODEL}log = io.StringIO()\n", "for x, y in batches:\n    train_step(x, y)\n"),
    "MP904": Start(
        "parser = argparse.ArgumentParser()\nparser.add_argument('--epochs', type=int, default=0)\n", at_the_top=True
    ),
    "MP905": Start("Net = functools.partial(nn.Linear, 4, 8)\n"),
    "MP906": Start(at_the_top=True),
    "MP907": Start("download_everything = functools.partial(time.sleep, 60)\n", options={"timeout": 5.0}),
    "MP909": Start(
        f"{_MODEL}loader = batches\n\n\ndef train_step(x, y):\n"
        "    criterion(model(x), y).backward()\n    optimizer.step()\n",
        at_the_top=True,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("code", STARTS)
def test_how_a_program_ends_is_found(code: str, tmp_path: Path) -> None:
    start = STARTS[code]
    text, run = start.run(code, tmp_path)
    found = [f for f in run.outcome.report.findings if f.code == code]
    lines = {1} if start.at_the_top else marked(code, text)
    assert {f.location.range.start.line + 1 for f in found} == lines != set(), (run.outcome.message, run.stderr)
    assert others(run.outcome.report.findings, code) == []
    if len(blocks(code)) > 1:
        _, run = start.run(code, tmp_path, fixed=True)
        assert run.outcome.kind == "ok" and others(run.outcome.report.findings) == []
        assert code not in run.codes


@pytest.mark.slow
def test_an_unsupported_interpreter_is_refused(tmp_path: Path) -> None:
    """It says that it is the one of the page."""
    (code,) = blocks("MP903")
    version = re.search(r"python3\.(\d+)", code)
    assert version is not None
    python = tmp_path / "python"
    old = f"import sys; sys.version_info = (3, {version[1]}, 0, 'final', 0); "
    python.write_text(
        f"#!{PYTHON}\nimport os, sys\ncode = {old!r} + sys.argv[2]\n"
        f"os.execv({PYTHON!r}, [{PYTHON!r}, '-c', code, *sys.argv[3:]])\n"
    )
    python.chmod(0o755)
    (tmp_path / "train.py").write_text(code, encoding="utf-8")
    run = under_magpy(tmp_path, script="train.py", python=str(python))
    assert run.codes == ["MP903"] and f"Python 3.{version[1]}) is not supported" in run.outcome.message


@pytest.mark.slow
def test_a_command_that_names_no_program_says_what_the_page_says(tmp_path: Path) -> None:
    (block,) = blocks("MP908")
    command, said = (line.removeprefix("# ") for line in block.splitlines())
    tool = [sys.executable, "-m", "lsp_server.cli", *shlex.split(command.removeprefix("$ magpy-lsp "), comments=True)]
    done = subprocess.run(tool, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stderr.startswith(said), done.stderr


# -- on a target, and by Inductor

_ON_TARGET = "# target: cuda:sm_90\n"
_BY_INDUCTOR = "# mode: compiled\n# backend: inductor\n"
TARGETS = {
    "MP407": Frame(args="torch.randn(256, 4096)", settings=_ON_TARGET),
    "MP408": Frame(before="batches = [torch.randn(8, 32) for _ in range(4)]\n", driver="", settings=_ON_TARGET),
    "MP409": Frame(args="torch.randn(4096, 4096)", settings=_ON_TARGET),
    "MP508": Frame("self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(24)])", settings=_ON_TARGET),
    "MP509": Frame(args="torch.randn(256, 4096)", settings=_ON_TARGET),
    "MP510": Frame("self.head = nn.Linear(64, 250_000)", args="torch.randn(64, 64)", settings=_ON_TARGET),
}
COMPILED = {
    "MP405": Frame(
        before="import os\nimport tempfile\n\ncaches = tempfile.mkdtemp()\nos.mkdir(f'{caches}/magpy')\n"
        "os.chmod(f'{caches}/magpy', 0o777)\nos.environ['XDG_CACHE_HOME'] = caches\n"
        "os.environ.pop('TORCHINDUCTOR_CACHE_DIR', None)\n",
        settings=_BY_INDUCTOR,
    ),
    "MP914": Frame(
        before="from magpy_core.backends import cache\nfrom tests.soundness.miscompiled import BUGS, planted\n\n"
        "cache._Found.refusal = ''  # of the program before\nmodel = nn.Linear(4, 4)\nflat = torch.randn(4)\n"
        "bug = planted(next(bug for bug in BUGS if bug.name == 'a write is lost'), graph=None)\nbug.__enter__()\n",
        driver="step = __region__(step)\nfor n in range(4):\n    step(torch.randn(3, 4))\nbug.__exit__(None, None, None)\n",
        settings=_BY_INDUCTOR,
    ),
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return ran({**TARGETS, **COMPILED}, tmp_path_factory, "compiled")


@pytest.mark.slow
@pytest.mark.parametrize("code", [*TARGETS, *COMPILED])
def test_what_the_compiler_shows_is_found(code: str, compiled: dict[str, Run]) -> None:
    run = compiled[code]
    found = run.findings
    if code.startswith("MP5"):
        found = [*found, *check_budgets(run.report, Budgets(limits(code)), compiled=False)]
    lines = {f.location.range.start.line + 1 for f in found if f.code == code}
    assert lines == marked(code, run.text) != set(), (run.error, [(f.code, f.message) for f in found])
    assert others(found, code) == [] and not run.error
    if len(blocks(code)) > 1:
        assert code not in {f.code for f in compiled[f"{code}, fixed"].findings}


@pytest.mark.slow
def test_a_program_that_ends_too_soon_is_told_that_it_was_still_being_compiled(tmp_path: Path) -> None:
    text = Frame().program(blocks("MP404")[0], fixed=False).replace("range(4)", "range(8)")
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    env = environment(TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "cache"))
    env.pop("MAGPY_COMPILE", None)
    run = under_magpy(tmp_path, script="train.py", mode="run", steps=0, env=env, session_factory=SESSIONS["magpy"])
    found = run.finding("MP404")
    assert {found.location.range.start.line + 1} == marked("MP404", text), found
    assert others(run.outcome.report.findings) == []


# -- torch.compile


@pytest.fixture
def dynamo() -> Iterator[DynamoSession]:
    torch._dynamo.reset()
    session = DynamoSession(backend="eager")
    yield session
    session.finish()
    torch._dynamo.reset()


_UNDER_DYNAMO = (
    "Model.forward = forward\nmodel = Model()\ncall = __region__(nn.Module.__call__)\nfor n in range(4):\n"
    "    call(model, torch.randn(3, 4))\n"
)
DYNAMO = {
    "MPD101": Frame(driver=_UNDER_DYNAMO),
    "MPD102": Frame(
        before="layer = nn.Linear(4, 1)\noptimizer = torch.optim.SGD(layer.parameters(), lr=0.1)\n"
        "loss = layer(torch.randn(3, 4)).sum()\n"
        "optimizer.step = functools.partial(__region__(torch.optim.SGD.step), optimizer)\n",
        driver="",
    ),
    "MPD201": Frame("self.calls = 0", fixed_init="self.register_buffer('calls', torch.zeros(()))", driver=_UNDER_DYNAMO),
    "MPD202": Frame(
        driver="scale = __region__(scale)\nfor n in range(10):\n    scale(torch.ones(2), 'a' * n)\n", also=("MPD201",)
    ),
    "MPD301": Frame("self.layers = self.blocks", driver=_UNDER_DYNAMO, also=("MPD101",)),
    "MPD302": Frame(before="custom_operator = torch.sin\n", driver=_UNDER_DYNAMO),
}


@pytest.mark.torch_compile
@pytest.mark.parametrize("code", DYNAMO)
def test_what_torch_compile_does_is_found(
    code: str, dynamo: DynamoSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(module: Any, inputs: Any) -> Any:
        raise RuntimeError("no such kernel")

    if code == "MPD302":  # a backend that can't
        monkeypatch.setattr(dynamo, "backend", fails)
    text = execute(dynamo, code, tmp_path / "program.py", fixed=False)
    assert {f.location.range.start.line + 1 for f in dynamo.findings if f.code == code} == marked(code, text) != set()
    assert others(dynamo.findings, code, *DYNAMO[code].also) == []


@pytest.mark.torch_compile
@pytest.mark.parametrize("code", [code for code in DYNAMO if len(blocks(code)) > 1])
def test_torch_compile_has_nothing_to_say_of_the_other_version(code: str, dynamo: DynamoSession, tmp_path: Path) -> None:
    execute(dynamo, code, tmp_path / "program.py", fixed=True)
    assert dynamo.findings == []


def execute(session: DynamoSession, code: str, file: Path, *, fixed: bool) -> str:
    text = "import functools\n" + DYNAMO[code].program(blocks(code)[fixed], fixed=fixed)
    file.write_text(text, encoding="utf-8")

    def region(target: Any) -> Any:
        line, kind = target.__code__.co_firstlineno, "optimizer" if code == "MPD102" else "module"
        return session.region("region", kind=kind, name="region", file=str(file), line=line, target=target)

    linecache.checkcache(str(file))
    exec(compile(text, str(file), "exec"), {"__name__": "program", "__region__": region})
    return text


CODES: list[str] = [*STARTS, *TARGETS, *COMPILED, *DYNAMO, "MP404", "MP903", "MP908"]
