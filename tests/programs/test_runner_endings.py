"""Every way a run can end has its outcome, its exit code, and one sentence that says what to do."""

from __future__ import annotations

import signal
import stat
import subprocess
from pathlib import Path

import pytest

from magpy_core.runner import bootstrap
from magpy_core.runner.launch import RunRequest, launch
from magpy_core.runner.request import SESSIONS
from tests.environments import torch_only
from tests.programs.runner_help import PYTHON, ROOT, byte_compile, environment, plainly, under_magpy, write

pytestmark = pytest.mark.slow  # each of them starts a program

TRAIN = """
    import sys
    import torch
    net = torch.nn.Linear(3, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    def step(i):
        net(torch.ones(2, 3)).sum().backward()
        opt.step()
        print("step", i, flush=True)
"""


def train(folder: Path, rest: str) -> str:
    import textwrap

    return write(folder, textwrap.dedent(TRAIN) + textwrap.dedent(rest))


def one_sentence(message: str) -> bool:
    return message.endswith(".") and "\n" not in message and ". " not in message


# -- bad entrypoints: exit code 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"script": "missing.py"}, "missing.py does not exist: check the path"),
        ({"script": "gone/x.py"}, "gone/x.py does not exist: check the path"),
        ({"script": "folder"}, "folder is a folder without __main__.py: name a script in it"),
        ({"script": "stale.pyc"}, "was not compiled by Python 3."),
        ({"script": "short.pyc"}, "short.pyc is damaged"),
        ({"module": "nowhere"}, "No module named nowhere: check the name, and run from the folder that contains it"),
        ({"module": "package"}, "'package' is a package and cannot be directly executed: add a __main__.py to it"),
        ({"module": "package.nothing"}, "No module named package.nothing: check the name"),
        ({"module": "nowhere.deeper"}, "ModuleNotFoundError"),
        ({"module": "ok.py"}, "ok.py is a file, and -m takes a module name: use the file without -m"),
        ({"module": "package.py"}, "No module named package.py: check the name"),
        ({"module": ".ok"}, "-m takes a dotted name"),
        ({"module": ""}, "-m takes a dotted name"),
    ],
    ids=lambda v: " ".join(map(str, v.values())) if isinstance(v, dict) else "",
)
def test_a_bad_entrypoint(tmp_path: Path, options: dict[str, str], says: str) -> None:
    write(tmp_path, "", "folder/thing.py")
    write(tmp_path, "", "package/__init__.py")
    write(tmp_path, "print('ok')", "ok.py")
    (tmp_path / "stale.pyc").write_bytes(b"\0" * 30)
    byte_compile(tmp_path, "ok.py", "short.pyc")
    (tmp_path / "short.pyc").write_bytes((tmp_path / "short.pyc").read_bytes()[:17])
    ran = under_magpy(tmp_path, **options)
    assert ran.outcome.kind == "bad-entrypoint" and ran.outcome.cli_exit_code == 2
    assert says in ran.outcome.message and one_sentence(ran.outcome.message.replace("...", "")), ran.outcome.message
    assert ran.codes == ["MP908"] and ran.kinds[-1] == "done"
    assert ran.stderr == b"" and ran.stdout == b""


def test_a_request_names_one_entrypoint() -> None:
    for request in (RunRequest(), RunRequest(script="a.py", module="a")):
        with pytest.raises(ValueError, match="either a script or a module"):
            launch(request)


# -- the tool can't work: exit code 2


def test_no_such_interpreter(tmp_path: Path) -> None:
    write(tmp_path, "")
    text = tmp_path / "text"
    text.write_text("hello")
    for python, says in (
        ("/no/such/python", "/no/such/python is not a Python interpreter"),
        ("no-such-python-on-path", "no-such-python-on-path is not a Python interpreter"),
        (str(text), "can't be started (Permission denied)"),
        (str(tmp_path), "can't be started"),
        ("/bin/true", "/bin/true is not a working Python interpreter"),
        ("/bin/false", "/bin/false is not a working Python interpreter"),
    ):
        ran = under_magpy(tmp_path, script="prog.py", python=python)
        assert ran.outcome.kind == "tool-error" and ran.outcome.cli_exit_code == 2
        assert says in ran.outcome.message and "--python" in ran.outcome.message and one_sentence(ran.outcome.message)
        assert ran.codes == ["MP903"]


def test_an_executable_that_is_no_program(tmp_path: Path) -> None:
    write(tmp_path, "")
    text = tmp_path / "text"
    text.write_bytes(b"\x7fELF nonsense")
    text.chmod(text.stat().st_mode | stat.S_IXUSR)
    ran = under_magpy(tmp_path, script="prog.py", python=str(text))
    assert ran.outcome.kind == "tool-error" and "Exec format error" in ran.outcome.message


def test_no_such_working_folder(tmp_path: Path) -> None:
    ran = under_magpy(tmp_path, script="prog.py", cwd=str(tmp_path / "gone"))
    assert ran.outcome.kind == "tool-error" and "working directory" in ran.outcome.message


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(folder / "bin" / "python")


@pytest.mark.parametrize("installed", [False, True])
def test_an_interpreter_without_torch(tmp_path: Path, bare_python: str, installed: bool) -> None:
    write(tmp_path, "print('never')")
    ran = under_magpy(tmp_path, script="prog.py", python=bare_python, env={"PYTHONPATH": str(ROOT)} if installed else {})
    assert ran.outcome.kind == "tool-error" and one_sentence(ran.outcome.message) and ran.stdout == b""
    assert f"{bare_python} has no torch: run `{bare_python} -m pip install 'torch>=2.11,<2.16'`" in ran.outcome.message


def test_an_interpreter_with_torch_alone(tmp_path: Path) -> None:
    """The engine is that of the tool. Nothing else of the tool's environment is there for the program."""
    train(tmp_path, "step(1)\nstep(2)\nimport importlib.util\nprint(importlib.util.find_spec('rich'))\n")
    python = str(torch_only(tmp_path / "env"))
    ran = under_magpy(tmp_path, script="prog.py", python=python, env={}, session_factory=SESSIONS["magpy"])
    assert ran.outcome.kind == "ok", ran.outcome.message
    assert ran.stdout.splitlines()[-1] == b"None" and ran.outcome.report.regions


@pytest.mark.parametrize("version", ["2.10.1", "1.13", "2.16.0.dev2026+cpu", "3.0"])
def test_an_unsupported_torch(tmp_path: Path, version: str) -> None:
    write(tmp_path, "print('never')")
    write(tmp_path, "", "torch/__init__.py")
    write(tmp_path, f"__version__ = '{version}'\n", "torch/version.py")
    ran = under_magpy(tmp_path, script="prog.py")
    assert ran.outcome.kind == "tool-error" and ran.codes == ["MP903"] and ran.stdout == b""
    assert f"torch {version} is not supported: MagPy works with torch 2.11 to 2.15; install" in ran.outcome.message


def test_an_unsupported_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "SUPPORTED_PYTHON", ((3, 98), (3, 99)))
    write(tmp_path, "print('never')")
    ran = under_magpy(tmp_path, script="prog.py")
    assert ran.outcome.kind == "tool-error" and ran.codes == ["MP903"] and ran.stdout == b""
    assert "is not supported: MagPy runs on CPython 3.98 or 3.99; choose" in ran.outcome.message


def test_another_version_of_magpy_in_the_interpreter(tmp_path: Path) -> None:
    write(tmp_path, "print('never')")
    write(tmp_path, "__version__ = '0.0.1'\n", "elsewhere/magpy_core/__init__.py")
    ran = under_magpy(tmp_path, script="prog.py", env=environment(PYTHONPATH=str(tmp_path / "elsewhere")))
    assert ran.outcome.kind == "tool-error" and "MagPy 0.0.1 is installed for" in ran.outcome.message


# -- the program fails: exit code 3


def test_a_syntax_error(tmp_path: Path) -> None:
    write(tmp_path, "x = 1\ndef f(:\n    pass\n")
    ran = under_magpy(tmp_path, script="prog.py")
    assert ran.outcome.kind == "failed" and ran.outcome.cli_exit_code == 3 and ran.outcome.exit_code == 1
    assert ran.outcome.message == "prog.py has a syntax error (invalid syntax): fix it and run again."
    place = ran.finding("MP905").location
    assert (place.range.start.line, place.range.start.character) == (1, 6)


def test_it_raises_in_step_2(tmp_path: Path) -> None:
    train(tmp_path, "step(1)\nstep\nstep(2) if False else None\nraise ValueError('too\\nlong')\n")
    ran = under_magpy(tmp_path, script="prog.py")
    assert ran.outcome.kind == "failed" and ran.outcome.cli_exit_code == 3 and ran.outcome.exit_code == 1
    assert "raised ValueError: too long at " in ran.outcome.message and "in step 2" in ran.outcome.message
    assert one_sentence(ran.outcome.message)
    assert ran.regions() == {"net: Linear": 1, "opt: SGD": 1}, "what was found so far is reported"
    assert "MP204" in ran.codes and ran.finding("MP905").location.range.start.line == 12
    assert ran.stderr.startswith(b"Traceback") and [m["type"] for m in ran.messages].count("failed") == 1


def test_it_exits_with_a_code(tmp_path: Path) -> None:
    write(tmp_path, "import sys\nsys.exit(4)")
    ran = under_magpy(tmp_path, script="prog.py")
    assert (ran.outcome.kind, ran.outcome.exit_code, ran.outcome.cli_exit_code) == ("failed", 4, 3)
    assert "exited with code 4" in ran.outcome.message and ran.codes == ["MP905"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_it_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    train(tmp_path, f"import os\nstep(1)\nos.kill(os.getpid(), {int(number)})\n")
    ran = under_magpy(tmp_path, script="prog.py")
    assert (ran.outcome.kind, ran.outcome.signal, ran.outcome.cli_exit_code) == ("killed", number, 3)
    assert number.name in ran.outcome.message and one_sentence(ran.outcome.message)
    assert ran.codes[-1] == "MP906" and "MP204" in ran.codes and ran.kinds[-1] == "done"


def test_it_crashes_in_native_code(tmp_path: Path) -> None:
    write(tmp_path, "import ctypes\nctypes.string_at(0)\n")
    ran = under_magpy(tmp_path, script="prog.py")
    assert (ran.outcome.kind, ran.outcome.signal) == ("killed", signal.SIGSEGV) and "faulthandler" in ran.outcome.message


HANGS = {
    "python": "while True: pass",
    "waiting": "import threading; threading.Event().wait()",
    "holding the interpreter lock": "import ctypes\nctypes.PyDLL(None).sleep(1000)",
    "deaf": "import signal, time\nfor s in (15, 2, 1): signal.signal(s, signal.SIG_IGN)\nwhile True: time.sleep(1000)",
    "on exit": "import atexit, threading; atexit.register(threading.Event().wait)",
    "a thread": "import threading; threading.Thread(target=threading.Event().wait).start()",
    "stopped": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "swallowing": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
}


@pytest.mark.parametrize("how", HANGS)
def test_it_hangs(tmp_path: Path, how: str) -> None:
    write(tmp_path, "x = 1\n" + HANGS[how])
    ran = under_magpy(tmp_path, script="prog.py", timeout=1.0)
    assert ran.outcome.kind == "timeout" and ran.outcome.cli_exit_code == 3
    assert "did not finish within 1 s, 0 of 3 steps done" in ran.outcome.message and one_sentence(ran.outcome.message)
    assert ran.codes == ["MP907"] and ran.outcome.report.timings["total"] < 4.0
    if how in ("python", "holding the interpreter lock", "deaf", "swallowing"):
        line = ran.finding("MP907").location.range.start.line
        assert "(it was at " in ran.outcome.message and line >= 1, "the finding is where it hangs"


# -- it ends well, but not as hoped: exit code 0 and a finding


@pytest.mark.parametrize(
    "source", ["", "import sys; sys.exit(0)", "import torch\nprint(torch.ones(1))", "import os; os._exit(0)"]
)
def test_it_calls_no_module(tmp_path: Path, source: str) -> None:
    write(tmp_path, source)
    ran = under_magpy(tmp_path, script="prog.py")
    assert ran.outcome.kind == "ok" and ran.outcome.cli_exit_code == 0 and ran.codes == ["MP904"]
    assert ran.finding("MP904").location.file == str(tmp_path / "prog.py")
    assert one_sentence(ran.finding("MP904").message)


def test_it_ends_before_the_last_step(tmp_path: Path) -> None:
    train(tmp_path, "step(1)\nstep(2)\nsys.exit()\n")
    ran = under_magpy(tmp_path, script="prog.py", steps=3)
    assert ran.outcome.kind == "ok" and ran.codes[-1] == "MP909"
    assert "after 2 of 3 steps" in ran.finding("MP909").message
    to_the_end = under_magpy(tmp_path, script="prog.py", steps=0)
    assert to_the_end.outcome.kind == "ok" and "MP909" not in to_the_end.codes


@pytest.mark.parametrize(
    ("rest", "codes"),
    [
        ("for _ in range(4): net(torch.ones(2, 3))", set()),
        ("for _ in range(2): net(torch.ones(2, 3))", {"MP909"}),
        ("for _ in range(4): net(torch.ones(2, 3)).sum().backward()", {"MP909"}),  # the first step never came
    ],
    ids=["evaluates", "evaluates_little", "trains"],
)
def test_the_steps_of_an_evaluation_are_its_calls(tmp_path: Path, rest: str, codes: set[str]) -> None:
    train(tmp_path, rest)
    ran = under_magpy(tmp_path, script="prog.py", steps=3, session_factory=SESSIONS["magpy"], backend="eager")
    assert ran.outcome.kind == "ok" and {code for code in ran.codes if code.startswith("MP9")} == codes


@pytest.mark.parametrize("options", [{"script": "prog.pyc"}, {"module": "prog"}], ids=["script", "module"])
def test_a_program_without_source(tmp_path: Path, options: dict[str, str]) -> None:
    train(tmp_path, "step(1)\n")
    byte_compile(tmp_path, "prog.py", "prog.pyc")
    (tmp_path / "prog.py").unlink()
    ran = under_magpy(tmp_path, **options, steps=0)
    assert ran.outcome.kind == "ok" and ran.stdout == b"step 1\n" and ran.codes.count("MP911") == 1
    assert ran.finding("MP911").location.file == str(tmp_path / "prog.pyc")
    assert one_sentence(ran.finding("MP911").message) and ran.regions() == {"net: Linear": 1, "opt: SGD": 1}


def test_it_leaves_by_os_exit(tmp_path: Path) -> None:
    train(tmp_path, "import os\nstep(1)\nos._exit(int(sys.argv[1]))\n")
    ran = under_magpy(tmp_path, script="prog.py", args=["0"])
    assert ran.outcome.kind == "ok" and ran.regions() == {"net: Linear": 1, "opt: SGD": 1} and ran.codes[-1] == "MP909"
    ran = under_magpy(tmp_path, script="prog.py", args=["3"])
    assert (ran.outcome.kind, ran.outcome.exit_code) == ("failed", 3) and "MP204" in ran.codes


def test_a_read_only_working_folder(tmp_path: Path) -> None:
    write(tmp_path, "import os\ntry:\n    open('x', 'w')\nexcept OSError:\n    print('read-only')\n")
    ran = under_magpy(tmp_path, script=str(tmp_path / "prog.py"), cwd="/proc")
    assert ran.outcome.kind == "ok" and ran.stdout == b"read-only\n"


def test_it_closes_every_descriptor(tmp_path: Path) -> None:
    train(tmp_path, "import os\nos.closerange(3, 4096)\nf = open('mine', 'w')\nstep(1)\nf.write('x')\nf.close()\nstep(2)\n")
    ran = under_magpy(tmp_path, script="prog.py", steps=2)
    assert ran.outcome.kind == "ok" and ran.regions() == {"net: Linear": 2, "opt: SGD": 2}, ran.stderr
    assert (tmp_path / "mine").read_text() == "x" and ran.messages[-1]["type"] == "done"
    assert ran.outcome.report.timings["program"] > 0


def test_it_forks_by_hand(tmp_path: Path) -> None:
    train(
        tmp_path,
        """
        import os
        step(1)
        pid = os.fork()
        if pid == 0:
            step(100)
            step(101)
            step(102)
            raise ValueError("in the forked process")
        print("status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        step(2)
        """,
    )
    ran = under_magpy(tmp_path, script="prog.py", steps=2)
    assert ran.outcome.kind == "ok" and ran.regions() == {"net: Linear": 2, "opt: SGD": 2}
    assert ran.stdout.split(b"\n")[:5] == [b"step 1", b"step 100", b"step 101", b"step 102", b"status 1"]
    assert ran.stderr == plainly(tmp_path, "prog.py").stderr


def test_the_engine_is_broken(tmp_path: Path) -> None:
    train(tmp_path, "for i in range(10): step(i)\n")
    ran = under_magpy(tmp_path, script="prog.py", session_factory="tests.programs.runner_fake:BrokenSession")
    assert ran.outcome.kind == "ok" and ran.codes == ["MP901"] and "no engine today" in ran.finding("MP901").message
    assert ran.stdout == b"step 0\nstep 1\n", "the program ran, and ended in its third step"


def test_the_engine_fails_at_the_end_of_a_step(tmp_path: Path) -> None:
    train(tmp_path, "for i in range(10): step(i)\n")
    ran = under_magpy(tmp_path, script="prog.py", session_factory="tests.programs.runner_fake:FailingSession")
    assert ran.outcome.kind == "ok" and ran.codes.count("MP901") == 1 and "no step 1 today" in ran.finding("MP901").message
    assert ran.stdout == b"step 0\nstep 1\n", "the program ran, and ended in its third step"


def test_a_reader_that_fails_does_not_fail_the_program(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "for i in range(100000): print(i)\n")

    def sink(data: bytes) -> None:
        raise RuntimeError("window closed")

    ran = under_magpy(tmp_path, script="prog.py", stdout=sink)
    assert ran.outcome.kind == "ok" and "window closed" in capfd.readouterr().err


def test_an_exception_whose_text_can_not_be_shown_or_controls_a_terminal(tmp_path: Path) -> None:
    source = """
        import sys
        class Odd(Exception):
            def __str__(self):
                raise RuntimeError("no text")
        class Exits(Exception):
            def __str__(self):
                raise SystemExit(7)
        red = ValueError("\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07and\\x00 more")
        raise {"odd": Odd(), "exits": Exits(), "red": red, "exit": SystemExit("\\x1b[1mbold")}[sys.argv[1]]
    """
    write(tmp_path, source)
    texts = {
        "odd": "raised Odd: <Odd: its text can't be shown> at",
        "exits": "raised Exits: <Exits: its text can't be shown> at",
        "red": "raised ValueError: red and\N{REPLACEMENT CHARACTER} more at",
        "exit": "exited with code 1 (bold):",
    }
    for name, text in texts.items():
        ran, plain = under_magpy(tmp_path, script="prog.py", args=[name]), plainly(tmp_path, "prog.py", name)
        assert text in ran.outcome.message, ran.outcome
        assert (ran.outcome.exit_code, ran.stderr) == (plain.returncode, plain.stderr), name


@pytest.mark.parametrize("env", [{"A=B": "1"}, {"A": "1\0"}])
def test_an_environment_that_the_system_refuses(tmp_path: Path, env: dict[str, str]) -> None:
    ran = under_magpy(tmp_path, script="prog.py", env=env)
    assert ran.outcome.kind == "tool-error" and "correct the interpreter's path or the environment" in ran.outcome.message


@pytest.mark.parametrize("handler", ["", "signal.signal(signal.SIGINT, lambda *a: print('mine'))"], ids=["plain", "own"])
@pytest.mark.parametrize("end", ["", "raise SystemExit(0)"], ids=["end", "exit"])
def test_ctrl_c_ends_only_the_search_for_a_cause(tmp_path: Path, handler: str, end: str) -> None:
    """Its report is whole. What the program has printed is shown before, and it never hears of the signal."""
    source = f"""
        import signal, torch
        net = torch.nn.Linear(2, 2)
        {handler}
        for _ in range(4):
            net(torch.ones(1, 2))
        print("trained")
        {end}
    """
    script = write(tmp_path, source)
    output = tmp_path / "output"
    session = "tests.programs.runner_fake:EndlessTracingSession"
    with open(output, "wb") as file:
        request = RunRequest(
            script=script,
            cwd=str(tmp_path),
            mode="run",
            steps=0,
            session_factory=session,
            stdout=file.fileno(),
            env=environment(),
        )
        with launch(request) as run:
            for message in run:
                if message["type"] == "tracing":
                    assert output.read_bytes() == b"trained\n" and message["where"] == [f"{Path(script).name}:2"]
                    run.interrupt()
            outcome = run.outcome
    assert (outcome.kind, outcome.exit_code, output.read_bytes()) == ("ok", 0, b"trained\n")
    assert {finding.hint for finding in outcome.report.findings if finding.code == "MP914"} == {"The search was ended."}


def test_a_run_waits_a_while_for_the_cause_of_a_difference(tmp_path: Path) -> None:
    """Beyond its time limit, which is the program's."""
    source = """
        import time, torch
        net = torch.nn.Linear(2, 2)
        for _ in range(4):
            net(torch.ones(1, 2))
        print("trained")
    """
    session = "tests.programs.runner_fake:TracingSession"
    write(tmp_path, source)
    ran = under_magpy(tmp_path, script="prog.py", mode="run", steps=0, session_factory=session)
    assert (ran.outcome.kind, ran.stdout) == ("ok", b"trained\n")
    assert ran.kinds.count("tracing") == 1 and ran.kinds.index("tracing") < ran.kinds.index("done")
    hints = [
        one["finding"]["hint"] for one in ran.messages if one["type"] == "finding" and one["finding"]["code"] == "MP204"
    ]
    assert hints[-1] == "The cause is known after at most 30 s." == ran.finding("MP204").hint
    checked = under_magpy(tmp_path, script="prog.py", steps=0, session_factory=session)
    assert "tracing" not in checked.kinds, "nothing is compiled in a check"
