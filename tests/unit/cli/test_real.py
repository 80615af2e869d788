"""The command line over the real runner: bad entrypoints, failing programs, output, Ctrl-C. No fake anywhere."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import psutil
import pytest
from watchfiles import watch

from magpy_core.findings.report import report_schema

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "lsp_server.cli"]
SEARCH = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
_NOT_UTF8 = 8 if sys.version_info >= (3, 14) else 1  # the column that the interpreter names
ENV = {**os.environ, "PYTHONPATH": SEARCH, "OMP_NUM_THREADS": "1", "COLUMNS": "120"}


def tool(folder: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *args], cwd=folder, env=ENV, capture_output=True, timeout=120)


@pytest.mark.parametrize(
    ("source", "options", "status", "stdout", "stderr"),
    [
        (None, [], 2, "", "script.py does not exist: check the path"),
        (b"def f(:\n", [], 3, "script.py:1:7: MP905 [error] script.py has a syntax error", "SyntaxError: invalid syntax"),
        (b"s = 'na\xefve'\n", [], 3, f"script.py:1:{_NOT_UTF8}: MP905 [error]", "SyntaxError: Non-UTF-8 code"),
        (b"x = 1\nraise ValueError('no')\n", [], 3, ":2:1: MP905 [error] The program raised ValueError", "line 2, in"),
        (b"raise SystemExit(4)\n", [], 3, "MP905 [error] The program exited with code 4", ""),
        (b"raise SystemExit\n", [], 1, "MP904 [warning] The program ended without calling a module", ""),
        (b"import os\nos.kill(os.getpid(), 9)\n", [], 3, "MP906 [error] The program was killed by SIGKILL", ""),
        (b"import time\ntime.sleep(600)\n", ["--timeout", "4"], 3, "script.py:2:1: MP907 [error]", ""),
    ],
    ids=["missing", "syntax", "encoding", "raises", "exit-4", "exit-0", "killed", "hangs"],
)  # fmt: skip
def test_bad_programs(
    tmp_path: Path, source: bytes | None, options: list[str], status: int, stdout: str, stderr: str
) -> None:
    if source is not None:
        (tmp_path / "script.py").write_bytes(source)
    done = tool(tmp_path, "check", "--format", "concise", *options, "script.py")
    assert done.returncode == status
    assert stdout in done.stdout.decode() and stderr in done.stderr.decode()
    if "raises" in stdout or "raised" in stdout:
        assert b"magpy_core" not in done.stderr, "the traceback has no frames of ours"


@pytest.mark.parametrize(
    ("args", "pyproject", "sentence"),
    [
        (["check", "trian.py"], "", "`magpy-lsp init` finds the programs of a project"),
        (["check", "folder"], "", "`magpy-lsp init` finds the programs of a project"),
        (["check", "-m", "trian"], "", "`magpy-lsp init` finds the programs of a project"),
        (["check", "notes.md"], "", "notes.md is not a Python file: `magpy-lsp init` finds"),
        (["check"], "", "`magpy-lsp init` finds the programs of a project"),
        (["init"], "", "`magpy-lsp demo` shows MagPy on an example"),
        (["check"], "[tool.magpy]\nentrypiont = 'train.py'\n", "`magpy-lsp docs settings` describes the settings"),
        (["init"], "[tool.magpy\n", "is not valid TOML: "),
    ],
    ids=["file", "folder", "module", "not-python", "no-entrypoint", "empty-project", "table", "toml"],
)
def test_errors_of_the_first_minutes_name_the_next_command(
    tmp_path: Path, args: list[str], pyproject: str, sentence: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.md").write_text("# Notes\n\nto do\n")
    if pyproject:
        (tmp_path / "pyproject.toml").write_text(pyproject)
    done = tool(tmp_path, *args)
    assert done.returncode in (2, 3)
    assert sentence in " ".join(done.stderr.decode().split())
    assert b"`magpy-lsp " in done.stderr


def test_without_torch_the_doctor_is_named(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    (tmp_path / "train.py").write_text("")
    env = {**ENV, "PYTHONPATH": str(ROOT)}  # MagPy alone, as if it were installed there
    command = [*COMMAND, "check", "--python", "bare", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "has no torch: run `" in done.stderr
    assert f"`magpy-lsp doctor --python {tmp_path / 'bare/bin/python'}`" in done.stderr


MODEL = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 4), nn.GELU())
for _ in range(4):
    net(torch.rand(2, 4))
"""


@pytest.mark.slow
def test_without_a_compiler_the_doctor_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(MODEL)
    env = {
        **ENV,
        "CXX": "/nowhere/c++",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "i"),
    }
    command = [*COMMAND, "run", "--compile", "foreground", "--color", "never", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "MP902" in done.stdout and "hint: Run `magpy-lsp doctor`" in done.stdout


def test_json_stays_one_document_whatever_the_program_prints(tmp_path: Path) -> None:
    (tmp_path / "a b.py").write_text("import sys\nsys.stdout.buffer.write(bytes(range(256)))\nprint(sys.argv)\n")
    done = tool(tmp_path, "check", "--format", "json", "a b.py", "--", "x y", "--help")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    jsonschema.validate(report, report_schema())
    assert report["entrypoint"] == "a b.py"
    assert bytes(range(256)) + b"['a b.py', 'x y', '--help']" in done.stderr


def test_the_programs_output_comes_before_the_report(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('its own output')\n")
    out = tool(tmp_path, "check", "script.py").stdout.decode()
    assert out.startswith("its own output\n") and out.index("MP904") > 0


def test_ctrl_c_reaches_the_program_and_the_report_follows(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import time\ntry:\n    print('ready', flush=True)\n    time.sleep(600)\nfinally:\n    print('tidied', flush=True)\n"
    )
    process = subprocess.Popen(
        [*COMMAND, "check", "script.py"], cwd=tmp_path, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out.startswith(b"tidied\n") and b"No region was monitored." in out and b"MP905" not in out
    assert b"KeyboardInterrupt" in err and b"magpy-lsp: interrupted; the findings up to that point follow." in err


@pytest.mark.parametrize("several", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["entrypoints", "ranks"])
def test_ctrl_c_ends_several_programs_and_leaves_none(tmp_path: Path, several: bool) -> None:
    (tmp_path / "script.py").write_text("import os, time\nopen(f'{os.getpid()}.pid', 'w').close()\ntime.sleep(600)\n")
    (tmp_path / "pyproject.toml").write_text(
        "".join(f"[[tool.magpy.entrypoints]]\nname = '{name}'\nprogram = 'script.py'\n" for name in "ab")
    )
    options = ["-j", "2"] if several else ["--nproc-per-node", "2", "script.py"]
    process = subprocess.Popen(
        [*COMMAND, "check", *options], cwd=tmp_path, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        for _ in watch(tmp_path, stop_event=None, rust_timeout=1000, yield_on_timeout=True, raise_interrupt=False):
            if len(list(tmp_path.glob("*.pid"))) == 2:
                break
        programs = [psutil.Process(int(file.stem)) for file in tmp_path.glob("*.pid")]
        assert len(programs) == 2
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, out
    assert psutil.wait_procs(programs, timeout=10)[1] == []
    assert "bug in MagPy" not in out and "interrupted" in out
    if several:
        assert "a: interrupted; the findings up to that point follow." in out


SECRETIVE = """
import os, torch
from torch import nn
class Client:
    def __init__(self):
        self.auth_token = "first-of-client"
        self.mode = "shown-of-client"
client = Client()
CONFIG = {"api_key": "k-of-config"}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.password = b"bytes-of-model"
    def forward(self, x):
        if os.environ.get("DATA", "") and os.environ["HUB_TOKEN"] and CONFIG["api_key"] and self.password:
            x = x + 1
        if client.auth_token != "" and client.mode != "":
            x = x + 1
        return self.layer(x)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(8):
    client.auth_token = "first-of-client" if i < 3 else "second-of-client"
    optimizer.zero_grad()
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
raise RuntimeError("no login with " + os.environ["HUB_TOKEN"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "check"])
def test_no_output_shows_a_secret(tmp_path: Path, command: str) -> None:
    """The program's own lines and output are shown as they are."""
    env = {**ENV, "HUB_TOKEN": "hub-of-environment", "DATA": "/data/of/environment"}
    (tmp_path / "prog.py").write_text(SECRETIVE)
    forms = [f"--format={form}=out/{form}" for form in ("json", "sarif", "markdown", "gitlab", "junit", "github")]
    (tmp_path / "out").mkdir()
    line = [*COMMAND, command, "--details", "--steps", "0", "--html", "out", "--events", "out/events", *forms, "prog.py"]
    done = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3, done.stderr
    ours = done.stdout + done.stderr.replace("RuntimeError: no login with hub-of-environment", "")
    texts = {"stdout and stderr": ours, **{file.name: file.read_text() for file in (tmp_path / "out").iterdir()}}
    assert len(texts) == 10
    own = sorted({line.strip() for line in SECRETIVE.splitlines() if "-of-" in line}, key=len, reverse=True)
    for name, text in texts.items():
        shown = html.unescape(re.sub(r"<(?!redacted)[^<>]*>", "", text)) if name == "index.html" else text
        for line in own:  # the program's own, which are shown as they are
            shown = shown.replace(line, "").replace(json.dumps(line)[1:-1], "")
        for secret in ("first-of-client", "second-of-client", "k-of-config", "bytes-of-model", "hub-of-env", "'/data/of"):
            at = shown.find(secret)
            assert at < 0, (name, secret, shown[max(at - 200, 0) : at + 60])
    assert "shown-of-client" in texts["json"] and "<redacted>" in texts["json"]
