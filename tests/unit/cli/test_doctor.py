"""doctor: each fact judged with meaning and fix; the probe survives hangs, noise and foreign interpreters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lsp_server.cli import doctor as doctor_module
from lsp_server.cli.checks import Check, Status, evaluate
from lsp_server.cli.doctor import extension_versions, probe
from lsp_server.cli.main import cli
from magpy_core import __version__

GOOD: dict[str, dict[str, Any]] = {
    "python": {"version": [3, 12, 4], "implementation": "CPython", "executable": "/v/bin/python", "headers": True},
    "compiler": {"path": "/usr/bin/g++", "version": "g++ 12.2.0"},
    "magpy_core": {"version": __version__, "error": None},
    "torch": {"version": "2.12.1+cu128", "error": None},
    "triton": {"version": "3.5.0", "error": None},
    "device": {"cuda": True, "built_for": "12.8", "name": "Some GPU", "capability": [9, 0], "count": 2},
    "inductor-start": {"device": "cpu"},
    "inductor": {"device": "cpu", "works": True, "error": None, "seconds": 4.25},
    "ended": {"how": "exit", "code": 0, "detail": ""},
}
CPU = {"cuda": False, "built_for": None, "mps": False}


def facts(**changes: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The good facts with some replaced in part; None takes one away."""
    changed = {k.replace("inductor_start", "inductor-start"): v for k, v in changes.items()}
    names = [n for n in GOOD if changed.get(n, {}) is not None]
    return [{"fact": n, **GOOD[n], **(changed.get(n) or {})} for n in names]


def checks(given: list[dict[str, Any]], **extensions: str) -> dict[str, Check]:
    return {c.id: c for c in evaluate(given, extensions, 60.0)}


def test_a_good_machine() -> None:
    found = checks(facts())
    assert list(found) == [
        "python", "magpy", "torch", "device", "triton", "compiler", "headers", "inductor-cpu", "editor",
    ]  # fmt: skip
    assert {c.status for c in found.values()} == {Status.OK}
    assert all(c.fix == "" and c.meaning for c in found.values())
    assert "Some GPU (and 1 more), compute capability 9.0" in found["device"].found


@pytest.mark.parametrize(
    ("changes", "check", "status", "fix"),
    [
        ({"python": {"version": [3, 9, 2]}}, "python", Status.FAIL, "virtual environment with Python 3.14"),
        ({"python": {"implementation": "PyPy"}}, "python", Status.FAIL, "virtual environment with Python 3.14"),
        ({"magpy_core": {"version": "0.0.1"}}, "magpy", Status.FAIL, f"pip install magpy-lsp=={__version__}"),
        ({"magpy_core": {"version": None, "error": "SyntaxError: x"}}, "magpy", Status.FAIL, "pip install magpy-lsp"),
        ({"torch": {"version": None}}, "torch", Status.FAIL, "/v/bin/python -m pip install 'torch>=2.11,<2.16'"),
        ({"torch": {"version": None, "error": "OSError: libcudart"}}, "torch", Status.FAIL, "pip install 'torch"),
        ({"torch": {"version": "2.10.0"}}, "torch", Status.FAIL, "pip install 'torch>=2.11,<2.16'"),
        ({"torch": {"version": "2.16.0a0"}}, "torch", Status.FAIL, "pip install 'torch>=2.11,<2.16'"),
        ({"torch": {"version": "strange"}}, "torch", Status.FAIL, "pip install 'torch>=2.11,<2.16'"),
        ({"triton": {"version": None}}, "triton", Status.FAIL, "pip install triton"),
        ({"triton": {"version": None, "error": "E: x"}, "device": CPU}, "triton", Status.WARN, "pip install triton"),
        ({"device": {"capability": [6, 1]}}, "device", Status.WARN, "compute capability 7.0"),
        ({"device": {"cuda": False}}, "device", Status.WARN, "nvidia-smi"),
        ({"device": {**CPU, "error": "RuntimeError: driver"}}, "device", Status.WARN, "nvidia-smi"),
        ({"compiler": {"path": None, "cxx": None}}, "compiler", Status.FAIL, "apt install g++"),
        ({"compiler": {"path": None, "cxx": "/no/g++"}}, "compiler", Status.FAIL, "apt install g++"),
        ({"python": {"headers": False}}, "headers", Status.WARN, "apt install python3.12-dev"),
        ({"python": {"headers": False}, "inductor": {"works": False}}, "headers", Status.FAIL, "python3.12-dev"),
        ({"inductor": {"works": False, "error": "CppCompileError: x"}}, "inductor-cpu", Status.FAIL, "--backend aot_eager"),
        ({"inductor": {"works": False}}, "inductor-cpu", Status.FAIL, "update both"),
        ({"inductor": None, "ended": {"how": "timeout", "code": -9}}, "inductor-cpu", Status.WARN, "--timeout"),
        ({"inductor": None, "ended": {"code": -11}}, "inductor-cpu", Status.FAIL, "Reinstall torch"),
        ({"ended": {"how": "timeout"}}, "probe", Status.WARN, "--timeout"),
        ({"ended": {"code": 1, "detail": "last words"}}, "probe", Status.WARN, "import torch"),
    ],
)  # fmt: skip
def test_each_problem_has_its_mend(changes: dict[str, Any], check: str, status: Status, fix: str) -> None:
    found = checks(facts(**changes))[check]
    assert found.status is status
    assert fix in found.fix
    assert found.meaning.endswith(".") and found.found


@pytest.mark.parametrize(
    ("ended", "found"),
    [
        ({"how": "not started", "detail": "Exec format error"}, "could not be started (Exec format error)"),
        ({"how": "timeout", "code": -9, "detail": ""}, "timed out"),
        ({"how": "exit", "code": 1, "detail": "SyntaxError"}, "ended with status 1 (SyntaxError)"),
    ],
)
def test_an_interpreter_that_says_nothing(ended: dict[str, Any], found: str) -> None:
    check = checks([{"fact": "ended", **ended}])["python"]
    assert (check.status, check.found) == (Status.FAIL, found)
    assert "--python" in check.fix


def test_without_a_gpu_triton_is_not_needed_and_magpy_need_not_be_installed() -> None:
    found = checks(facts(device=CPU, triton={"version": None}, magpy_core={"version": None}))
    assert {c.status for c in found.values()} == {Status.OK}


def test_extension_versions(tmp_path: Path) -> None:
    for folder, text in {
        ".vscode/extensions/magpy.magpy-0.0.9": '{"name": "magpy", "version": "0.0.9"}',
        ".vscode-server/extensions/magpy.magpy-x": "not json",
        ".local/share/code-server/extensions/magpy.magpy-1": json.dumps({"version": __version__}),
        ".vscode/extensions/other.magpy-like-1.0.0": '{"version": "1"}',
    }.items():
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "package.json").write_text(text)
    found = extension_versions(tmp_path)
    assert sorted(found.values()) == sorted(["0.0.9", "unreadable", __version__])
    assert extension_versions(tmp_path / "nobody") == {}
    by_version = {c.found.split()[0]: c.status for c in evaluate(facts(), found, 1.0) if c.id == "editor"}
    assert by_version == {"0.0.9": Status.WARN, "unreadable": Status.WARN, __version__: Status.OK}


def fake_python(folder: Path, body: str) -> str:
    """An 'interpreter' that is a shell script."""
    file = folder / "python"
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return str(file)


def test_probe_of_this_interpreter() -> None:
    found = {f["fact"]: f for f in probe(sys.executable, inductor=False, timeout=120)}
    assert found["python"]["version"] == list(sys.version_info[:3])
    assert found["torch"]["error"] is None and found["torch"]["version"].startswith("2.")
    assert found["ended"] == {"fact": "ended", "how": "exit", "code": 0, "detail": ""}
    assert "inductor" not in found


def test_probe_is_not_misled_by_the_folder_it_is_started_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("raise RuntimeError('not this one')")
    monkeypatch.chdir(tmp_path)
    found = {f["fact"]: f for f in probe(sys.executable, inductor=False, timeout=120)}
    assert found["torch"]["error"] is None


def test_probe_skips_noise_and_keeps_last_words(tmp_path: Path) -> None:
    body = """echo hello; echo 'magpy-fact {"fact": "python"}'; echo 'magpy-fact {"fac'; echo dying >&2; exit 7"""
    assert probe(fake_python(tmp_path, body), inductor=True, timeout=20) == [
        {"fact": "python"},
        {"fact": "ended", "how": "exit", "code": 7, "detail": "dying"},
    ]


def test_probe_ends_a_hang_with_everything_it_started(tmp_path: Path) -> None:
    body = f"""echo 'magpy-fact {{"fact": "python"}}'; sleep 300 & echo $! > {tmp_path}/pid; wait"""
    *_, ended = probe(fake_python(tmp_path, body), inductor=True, timeout=1.0)
    assert ended["how"] == "timeout"
    pid = int((tmp_path / "pid").read_text())
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    assert state == "" or state.startswith("Z")


def test_probe_of_what_is_no_program(tmp_path: Path) -> None:
    file = tmp_path / "python"
    file.write_bytes(b"\0\1\2")
    file.chmod(0o755)
    (ended,) = probe(str(file), inductor=False, timeout=5)
    assert ended["how"] == "not started"


def test_command_line_status_and_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = facts()
    monkeypatch.setattr(doctor_module, "probe", lambda python, inductor, timeout: given)
    monkeypatch.setenv("HOME", str(tmp_path))
    good = CliRunner().invoke(cli, ["doctor"])
    assert good.exit_code == 0 and "Everything works." in good.stdout
    given = facts(torch={"version": "1.0"}, python={"headers": False})
    bad = CliRunner().invoke(cli, ["doctor"])
    assert bad.exit_code == 1
    assert "FAIL torch: 1.0" in bad.stdout and "fix: /v/bin/python -m pip install" in bad.stdout
    assert "1 failure, 1 warning." in bad.stdout
    data = json.loads(CliRunner().invoke(cli, ["doctor", "--format", "json"]).stdout)
    assert {c["id"]: c["status"] for c in data["checks"]}["torch"] == "fail"
    assert data["python"] == os.path.abspath(sys.executable)


def test_nothing_is_missing_where_magpy_itself_is_installed() -> None:
    """What doctor asks for is what the package brings along."""
    checks = evaluate(probe(sys.executable, inductor=False, timeout=120), {}, 120)
    assert [c.title for c in checks if c.status is Status.FAIL] == []


@pytest.mark.slow
def test_inductor_is_really_tried() -> None:
    found = {f["fact"]: f for f in probe(sys.executable, inductor=True, timeout=300)}
    assert found["inductor"]["works"] is True, found["inductor"]
