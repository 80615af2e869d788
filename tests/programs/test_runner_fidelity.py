"""A program under the runner sees what it sees under eager mode, and its tracebacks read the same."""

from __future__ import annotations

import json
import os
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.programs.runner_help import ROOT, byte_compile, environment, plainly, under_magpy, write

PROBE = """
    import sys
    seen = dict(
        argv=sys.argv, path=sys.path, orig_argv=sys.orig_argv, flags=repr(sys.flags), name=__name__, file=__file__,
        spec=getattr(__spec__, "name", None), loader=type(__loader__).__name__, package=__package__, doc=__doc__,
        cached=__cached__, names=sorted(globals()), builtins=type(__builtins__).__name__,
        main=sys.modules["__main__"].__dict__ is globals(), recursion=sys.getrecursionlimit(),
        torch="torch" in sys.modules, magpy_names=[n for n in sys.modules if n == "magpy_bootstrap"],
    )
    import ctypes, json, os, signal, threading  # ctypes: its library may keep a file of its own open
    seen.update(
        cwd=os.getcwd(), env=dict(os.environ), leader=None, fds=sorted(int(f) for f in os.listdir("/proc/self/fd"))[:4],
        first_free=os.open("/dev/null", 0), sigint=repr(signal.getsignal(signal.SIGINT)),
        sigterm=repr(signal.getsignal(signal.SIGTERM)), sigchld=repr(signal.getsignal(signal.SIGCHLD)),
        threads=threading.active_count(), native=len(os.listdir("/proc/self/task")), stdin=sys.stdin.read(),
        wakeup=signal.set_wakeup_fd(-1), excepthook=sys.excepthook is sys.__excepthook__, umask=os.umask(0o22),
    )
    print(json.dumps(seen))
"""


def both(folder: Path, args: list[str], **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    plain = plainly(folder, *args)
    assert plain.returncode == 0, plain.stderr
    if args[0] == "-m":
        ran = under_magpy(folder, module=args[1], args=args[2:], **options)
    else:
        ran = under_magpy(folder, script=args[0], args=args[1:], **options)
    assert ran.outcome.kind == "ok", ran.outcome
    return json.loads(plain.stdout), json.loads(ran.stdout)


@pytest.mark.parametrize(
    "args",
    [
        ["prog.py"],
        ["./prog.py", "a b", "--steps", "", "é", "-m"],
        ["sub/../prog.py"],
        ["sub/linked.py"],
        ["sub/linked"],
        ["prog.pyc"],
        ["folder"],
        ["app.zip"],
        ["-m", "prog", "a b"],
        ["-m", "package.inner", "x"],
        ["-m", "package"],
        ["-m", "compiled"],
    ],
    ids=" ".join,
)
def test_the_program_sees_the_same_world(tmp_path: Path, args: list[str]) -> None:
    write(tmp_path, PROBE)
    for name in ("package/__main__.py", "package/inner.py", "folder/__main__.py", "sub/compiled.py"):
        write(tmp_path, PROBE, name)
    write(tmp_path, "", "package/__init__.py")
    (tmp_path / "sub" / "linked.py").symlink_to(tmp_path / "prog.py")
    (tmp_path / "sub" / "linked").symlink_to(tmp_path / "prog.py")
    byte_compile(tmp_path, "prog.py", "prog.pyc")
    byte_compile(tmp_path, "sub/compiled.py", "compiled.pyc")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as z:
        z.write(tmp_path / "prog.py", "__main__.py")
    plain, ours = both(tmp_path, args)
    assert ours == plain


def test_an_absolute_path_from_elsewhere(tmp_path: Path) -> None:
    write(tmp_path, PROBE, "a dir/prog.py")
    plain, ours = both(tmp_path, [str(tmp_path / "a dir" / "prog.py")])
    assert ours == plain and ours["path"][0] == str(tmp_path / "a dir")


def test_safe_path_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    write(tmp_path, PROBE)
    for args in (["prog.py"], ["folder"]):
        write(tmp_path, PROBE, "folder/__main__.py")
        plain, ours = both(tmp_path, args)
        assert ours == plain


SHADOW = """
    import posix
    log = posix.open({log!r}, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND)
    posix.write(log, b"{name} ")
    posix.close(log)
    raise ImportError("this is not the standard library's {name}")
"""
IMPORTS = """
    import sys
    print(sys.path[0])
    for name in ("dataclasses", "json", "re", "select"):
        try:
            print(getattr(__import__(name), "__file__", name))
        except ImportError as error:
            print(error)
    raise SystemExit(len(sys.argv) > 1)
"""


def shadow(folder: Path) -> Path:
    """Modules named as those of the standard library, which the interpreter itself doesn't need; returns their log."""
    log = folder / "log"
    write(folder, "import sys; print(*sys.modules)", "names.py")
    needed = plainly(folder, "-m", "names").stdout.decode().split()
    for name in sys.stdlib_module_names.difference(needed):
        if not name.startswith("_"):
            write(folder, SHADOW.format(log=str(log), name=name), f"{name}.py")
    return log


def test_nothing_is_imported_from_the_working_directory_before_the_program(tmp_path: Path) -> None:
    """Nor does what MagPy has imported hide the program's own modules of those names."""
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    log = shadow(folder)
    write(folder, IMPORTS, "mod.py")
    write(elsewhere, IMPORTS, "prog.py")
    write(elsewhere, "1 / 0", "fails.py")
    for args in (["../elsewhere/prog.py"], ["../elsewhere/prog.py", "1"], ["-m", "mod"], ["-m", "mod", "1"], ["mod.py"]):
        plain = plainly(folder, *args)
        seen = log.read_text() if log.exists() else ""
        log.unlink(missing_ok=True)
        named = {"module": "mod", "args": args[2:]} if args[0] == "-m" else {"script": args[0], "args": args[1:]}
        ran = under_magpy(folder, **named)
        assert (log.read_text() if log.exists() else "") == seen, args
        assert (ran.stdout, ran.outcome.exit_code) == (plain.stdout, plain.returncode), (args, ran.stderr)
        log.unlink(missing_ok=True)
    assert under_magpy(folder, script="../elsewhere/fails.py").outcome.kind == "failed"
    assert not log.exists()
    # The folder may also be named by PYTHONPATH: then the program finds its modules, and MagPy still its own.
    env = {"env": {**environment(), "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}}
    ran = under_magpy(folder, script="../elsewhere/prog.py", **env)
    assert ran.outcome.kind == "ok", ran.outcome
    assert "this is not the standard library's json" in ran.stdout.decode()


TRACEBACKS = {
    "raises": """
        def deep(n):
            return 1 / n if n == 0 else deep(n - 1)
        deep(3)
    """,
    "chained": """
        def first(): raise KeyError("a")
        try:
            first()
        except KeyError as e:
            try:
                raise ValueError("b") from e
            except ValueError:
                raise RuntimeError("c")
    """,
    "group": """
        def one(n): raise ValueError(n)
        errors = []
        for i in range(2):
            try:
                one(i)
            except ValueError as e:
                errors.append(e)
        raise ExceptionGroup("several", errors)
    """,
    "syntax": "x = (1,\ny = 2\n",
    "indentation": "if True:\nx = 1\n",
    "null": "x = 1\0\n",
    "imports bad syntax": "import badly",
    "exit code": "import sys; print('bye'); sys.exit(7)",
    "exit text": "raise SystemExit('no such file: x')",
    "exit object": "raise SystemExit(['a'])",
    "exit none": "raise SystemExit",
    "own hook": "import sys; sys.excepthook = lambda *a: print('hooked', a[0].__name__, a[2].tb_lineno)\n1/0",
    "hook fails": "import sys\ndef hook(*a): raise KeyError('in hook')\nsys.excepthook = hook\n1/0",
    "hook exits": "import sys\ndef hook(*a): raise SystemExit(5)\nsys.excepthook = hook\n1/0",
    "exec": "exec('def f(): raise ValueError\\nf()')",
    "missing import": "import no_such_module_at_all",
    "in atexit": "import atexit\natexit.register(lambda: 1/0)",
    "in a thread": "import threading\nt = threading.Thread(target=lambda: 1/0, name='T'); t.start(); t.join()",
    "recursion": "def f(): f()\nf()",
    "late output": "import atexit\natexit.register(print, 'at exit')\nprint('x')\n1/0",
    "interrupt": "import signal\nsignal.raise_signal(signal.SIGINT)",
    "killed": "import os, signal\nprint('here', flush=True)\nos.kill(os.getpid(), signal.SIGTERM)",
    "last": "import atexit, sys\natexit.register(lambda: print(sys.last_value, '__file__' in globals()))\n1/0",
}


def comparable(text: bytes) -> str:
    """Without addresses, and without how often a recursion went round: a few frames of ours are below the program's."""
    return re.sub(r"0x[0-9a-f]+|repeated \d+ more", "...", text.decode())


@pytest.mark.parametrize("how", ["script", "module"])
@pytest.mark.parametrize("case", TRACEBACKS)
def test_the_program_fails_as_it_would(tmp_path: Path, case: str, how: str) -> None:
    write(tmp_path, "def f(:\n", "badly.py")
    write(tmp_path, TRACEBACKS[case])
    if how == "script":
        plain, ran = plainly(tmp_path, "prog.py"), under_magpy(tmp_path, script="prog.py")
    else:
        plain, ran = plainly(tmp_path, "-m", "prog"), under_magpy(tmp_path, module="prog")
    assert comparable(ran.stderr) == comparable(plain.stderr)
    assert ran.stdout == plain.stdout
    code, number = (plain.returncode, None) if plain.returncode >= 0 else (None, -plain.returncode)
    assert (ran.outcome.exit_code, ran.outcome.signal) == (code, number)


@pytest.mark.parametrize("declared", [True, False])
def test_a_source_that_is_not_utf8(tmp_path: Path, declared: bool) -> None:
    cookie = b"# -*- coding: latin-1 -*-\n" if declared else b"\n"
    (tmp_path / "prog.py").write_bytes(cookie + b"x = 1\ns = '\xe9'\nprint(ascii(s))\n")
    plain, ran = plainly(tmp_path, "prog.py"), under_magpy(tmp_path, script="prog.py")
    assert (ran.stdout, ran.stderr.decode()) == (plain.stdout, plain.stderr.decode())
    assert ran.outcome.kind == ("ok" if declared else "failed")
    if not declared:
        assert ran.outcome.cli_exit_code == 3 and "Non-UTF-8" in ran.outcome.message


def test_a_region_leaves_no_frame_in_the_traceback(tmp_path: Path) -> None:
    source = """
        import torch
        class Inner(torch.nn.Module):
            def forward(self, x):
                return x.view(-1, 7)
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Inner()
            def forward(self, x):
                return self.inner(x)
        net = Net()
        try:
            net(torch.ones(3))
        except RuntimeError as e:
            raise ValueError("wrapped") from e
    """
    write(tmp_path, source)
    plain, ran = plainly(tmp_path, "prog.py"), under_magpy(tmp_path, script="prog.py")
    theirs = re.sub(r'  File "[^"]*runner_fake.py".*\n.*\n.*\n', "", ran.stderr.decode())
    assert theirs == plain.stderr.decode() and b"_call_impl" in ran.stderr
    assert "Net" in str(ran.regions())
    finding = ran.finding("MP905")
    assert finding.location.range.start.line == 15 - 1 + 1 and finding.location.file == str(tmp_path / "prog.py")


def test_binary_on_stdout_and_stdin_pass_untouched(tmp_path: Path) -> None:
    data = bytes(range(256)) * 400
    write(tmp_path, "import sys, os\nsys.stdout.buffer.write(bytes(range(256)) * 400)\nos.write(2, b'\\xff\\n{\"type\"')")
    ran = under_magpy(tmp_path, script="prog.py")
    assert ran.stdout == data and ran.stderr == b'\xff\n{"type"'
    assert ran.outcome.kind == "ok"


@pytest.mark.slow
def test_torch_is_imported_by_the_program_and_not_before(tmp_path: Path) -> None:
    source = """
        import os, sys
        assert not any(m.split('.')[0] in ('torch', 'numpy', 'bytecode') for m in sys.modules)
        os.environ["OMP_NUM_THREADS"] = "3"
        import torch
        print(torch.get_num_threads())
    """
    write(tmp_path, source)
    env = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    ran = under_magpy(tmp_path, script="prog.py", env={**env, "PYTHONPATH": os.getcwd()})
    assert ran.outcome.kind == "ok", ran.stderr
    assert ran.stdout == plainly(tmp_path, "prog.py").stdout
