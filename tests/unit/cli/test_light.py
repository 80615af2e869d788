"""`pip install magpy-lsp` without torch: what needs none works, and programs run in the environment of their project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lsp_server import interpreters
from lsp_server.interpreters import find_interpreter, of_project
from magpy_core import __version__
from tests.environments import light, torch_only

PROGRAM = """\
import torch

model = torch.nn.Linear(2, 2)
for step in range(4):
    model(torch.ones(1, 2)).sum().backward()
"""
NOWHERE = "/no/such/folder"


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has MagPy and no torch."""
    return light(tmp_path_factory.mktemp("light"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "report.json").write_text(json.dumps({"findings": [], "regions": []}))
    return tmp_path


def magpy(tool: Path, project: Path, *args: str, **more: str) -> subprocess.CompletedProcess[str]:
    left_out = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH")
    env = {**{k: v for k, v in os.environ.items() if k not in left_out}, "PATH": NOWHERE, "COLUMNS": "100", **more}
    command = [str(tool), "-P", "-m", "lsp_server.cli", *args]
    return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("--version", __version__),
        ("--help", "check"),
        ("check --help", "--python"),
        ("check --show-settings train.py", 'entrypoint = "train.py"'),
        ("explain MP101", "MP101"),
        ("docs", "cli"),
        ("docs cli", "The command line"),
        ("init --no-ci .", "train.py"),
        ("cache info", "graphs:"),
        ("mcp --skill", "name: magpy"),
    ],
)
def test_what_needs_no_torch(tool: Path, project: Path, command: str, says: str) -> None:
    ran = magpy(tool, project, *command.split())
    assert (ran.returncode, ran.stderr) == (0, "") or command.startswith("init"), ran.stderr
    assert ran.returncode == 0 and says in ran.stdout


@pytest.mark.parametrize("command", ["check", "run", "verify", "kernels", "compile"])
def test_without_any_torch_there_is_one_message_with_the_command(tool: Path, project: Path, command: str) -> None:
    ran = magpy(tool, project, command, "train.py")
    assert ran.returncode == 2 and "Traceback" not in ran.stdout + ran.stderr
    assert f"{tool} has no torch: run `{tool} -m pip install 'torch>=2.11,<2.16'`" in ran.stderr.replace("\n", " ")


def test_the_public_functions_say_it_too(tool: Path, project: Path) -> None:
    command = [str(tool), "-c", "import magpy_core\nmagpy_core.compile"]
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=60)
    wanted = f"MagPy's engine needs torch, which is not installed: run `{tool} -m pip install 'magpy-lsp[engine]'`."
    assert ran.stderr.splitlines()[-1].endswith(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("found_by", ["VIRTUAL_ENV", "CONDA_PREFIX", ".venv", "PATH", "--python"])
def test_a_check_takes_torch_from_the_project(tool: Path, project: Path, found_by: str) -> None:
    environment = project / (found_by if found_by == ".venv" else "elsewhere")
    torch_only(environment)
    more = {
        "PATH": {"PATH": str(environment / "bin")}, "VIRTUAL_ENV": {"VIRTUAL_ENV": str(environment)},
        "CONDA_PREFIX": {"CONDA_PREFIX": str(environment)},
    }.get(found_by, {})  # fmt: skip
    given = ["--python", str(environment)] if found_by == "--python" else []
    ran = magpy(tool, project, "check", *given, "--format", "json", "train.py", **more)
    assert ran.returncode == 0, ran.stderr
    assert [region["name"] for region in json.loads(ran.stdout)["regions"]]


def test_an_interpreter_with_torch_is_used_itself(tmp_path: Path) -> None:
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
    assert of_project(tmp_path) is None


def test_the_order_of_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters.importlib.util, "find_spec", lambda name: None)  # as if without torch
    inner = tmp_path / "project" / "scripts"
    inner.mkdir(parents=True)
    made = {}
    for name in ("active", "conda", "project/venv", "project/.venv"):
        python = tmp_path / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text("#!/bin/sh\nexit 1\n")
        python.chmod(0o700)
        made[name] = str(python)
    both = {"VIRTUAL_ENV": str(tmp_path / "active"), "CONDA_PREFIX": str(tmp_path / "conda"), "PATH": NOWHERE}
    assert of_project(inner, both) == made["active"]
    assert of_project(inner, {**both, "VIRTUAL_ENV": NOWHERE}) == made["conda"]
    assert of_project(inner, {"PATH": NOWHERE}) == made["project/.venv"]
    assert of_project(tmp_path, {"PATH": str(tmp_path / "active" / "bin")}) is None, "it has no torch"
    assert of_project(tmp_path, {"PATH": NOWHERE}) is None
    assert find_interpreter(str(tmp_path / "project" / "venv")) == made["project/venv"]
    assert find_interpreter(str(tmp_path / "project")) is None
