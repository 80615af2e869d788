"""``magpy-lsp doctor``: checks this machine and says how to fix problems.

A probe (``probe.py``) collects facts in a process of the selected interpreter; ``checks.py`` evaluates them.
Key functions: doctor, probe.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from lsp_server.cli.checks import Check, Status, evaluate
from lsp_server.cli.console import console
from lsp_server.cli.targets import interpreter
from lsp_server.formats.view import clean, count
from lsp_server.interpreters import of_project
from magpy_core import __version__
from magpy_core.runner.bootstrap import WITHOUT_FOLDER

_MARK = "magpy-fact "
_STYLES = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}


def doctor(python: str | None, output_format: str, *, inductor: bool, timeout: float, color: str) -> int:
    """Runs and prints the checks; returns the exit status: 1 if one failed."""
    chosen = interpreter(python) or of_project(Path.cwd()) or sys.executable
    if inductor and sys.stderr.isatty():
        click.echo("magpy-lsp: compiling a tiny graph, which can take a minute ...", err=True)
    facts = probe(chosen, inductor=inductor, timeout=timeout)
    checks = evaluate(facts, extension_versions(Path.home()), timeout)
    if output_format == "json":
        click.echo(json.dumps(_as_json(chosen, checks), indent=2))
    else:
        _show(console(sys.stdout, color), chosen, checks)
    return 1 if any(c.status is Status.FAIL for c in checks) else 0


def probe(python: str, *, inductor: bool, timeout: float) -> list[dict[str, Any]]:
    """The facts about the interpreter ``python``, in order. The fact ``ended`` is about the end of the probe's process."""
    source = Path(__file__).with_name("probe.py").read_text(encoding="utf-8")
    command = [python, "-c", WITHOUT_FOLDER + source, *(["--inductor"] if inductor else [])]
    with tempfile.TemporaryDirectory(prefix="magpy-doctor-", ignore_cleanup_errors=True) as cache:
        # An empty cache, so that the compiler really runs. Python processes that it starts import nothing from this folder.
        env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1", "PYTHONSAFEPATH": "1"}
        try:
            process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return [{"fact": "ended", "how": "not started", "detail": error.strerror or str(error)}]
        how = "exit"
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            how = "timeout"
            _kill_tree(process)
            out, err = process.communicate()
    facts = [fact for line in out.decode("utf-8", "replace").splitlines() if (fact := _fact(line)) is not None]
    last_line = err.decode("utf-8", "replace").strip().splitlines()[-1:]
    return [*facts, {"fact": "ended", "how": how, "code": process.returncode, "detail": "".join(last_line)}]


def _fact(line: str) -> dict[str, Any] | None:
    """The fact in a line of the probe's output; None for output of torch or a sitecustomize."""
    if not line.startswith(_MARK):
        return None
    try:
        fact = json.loads(line.removeprefix(_MARK))
    except ValueError:  # truncated by the time limit
        return None
    return fact if isinstance(fact, dict) and "fact" in fact else None


def _kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Kills the probe and the compilers that it started, which are in its process group."""
    if sys.platform == "win32":
        process.kill()
        return
    with suppress(ProcessLookupError):  # it has just ended
        os.killpg(process.pid, signal.SIGKILL)


def extension_versions(home: Path) -> dict[str, str]:
    """Version of the MagPy extension in each of this user's editors, by its folder."""
    folders = [*home.glob(".vscode*/extensions"), *home.glob(".cursor*/extensions"), *home.glob(".windsurf*/extensions")]
    folders += [home / ".local/share/code-server/extensions", home / ".openvscode-server/extensions"]
    found: dict[str, str] = {}
    for folder in sorted(folders):
        for manifest in sorted(folder.glob("magpy.magpy*/package.json")):
            try:
                data = json.loads(manifest.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                found[str(manifest.parent)] = "unreadable"
                continue
            found[str(manifest.parent)] = str(data.get("version", "unknown")) if isinstance(data, dict) else "unreadable"
    return found


def _as_json(python: str, checks: list[Check]) -> dict[str, Any]:
    return {"version": __version__, "python": python, "checks": [{**asdict(c), "status": c.status.value} for c in checks]}


def _show(out: Console, python: str, checks: list[Check]) -> None:
    out.print(Text.assemble(f"MagPy {__version__}, checking ", (clean(python), "bold")), soft_wrap=True)
    for check in checks:
        line = Text.assemble((f"{check.status.value.upper():<5}", _STYLES[check.status]), (f"{check.title}: ", "bold"))
        line.append(clean(check.found))
        out.print(line, soft_wrap=True)
        out.print(Text(f"     {clean(check.meaning)}"), soft_wrap=True)
        if check.fix:
            out.print(Text.assemble("     ", ("fix: ", "bold"), clean(check.fix)), soft_wrap=True)
    failed = sum(c.status is Status.FAIL for c in checks)
    warned = sum(c.status is Status.WARN for c in checks)
    if failed or warned:
        out.print(
            Text(f"{count(failed, 'failure')}, {count(warned, 'warning')}.", _STYLES[Status.FAIL if failed else Status.WARN])
        )
    else:
        out.print(Text("Everything works.", "green"))
