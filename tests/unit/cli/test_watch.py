"""--watch with the real runner and the real file system: again on a change, superseded while it runs, clean Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from lsp_server.cli.watch import _Filter, _folders
from tests.unit.cli.test_real import COMMAND, ENV

from watchfiles import Change  # isort: skip


class Watched:
    """A ``check --watch`` under way, read line by line."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [*COMMAND, "check", "--watch", "--format", "concise", *options, "script.py"]
        self.process = subprocess.Popen(
            command, cwd=folder, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._guard = threading.Timer(90, self.process.kill)
        self._guard.start()

    def until(self, text: str) -> list[str]:
        """The lines up to one with ``text`` in it."""
        lines: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            lines.append(line.rstrip("\n"))
            if text in line:
                return lines
        raise AssertionError(f"it ended without {text!r}: {lines}")

    def end(self) -> None:
        self._guard.cancel()
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "script.py").write_text("import helper\nprint('one', helper.VALUE)\n")
    (tmp_path / "helper.py").write_text("VALUE = 1\n")
    return tmp_path


@pytest.fixture
def watched(folder: Path) -> Iterator[Watched]:
    made = Watched(folder)
    yield made
    made.end()


def test_again_when_a_file_changes_and_ctrl_c_ends_it_cleanly(watched: Watched, folder: Path) -> None:
    first = watched.until("watching")
    assert "one 1" in first and any("MP904" in line for line in first)
    (folder / "notes.txt").write_text("no matter")
    (folder / "helper.py").write_text("VALUE = 2\n")
    again = watched.until("watching")
    assert again[0] == "magpy-lsp: helper.py changed." and "one 2" in again
    (folder / "pyproject.toml").write_text("[tool.magpy]\nstep = 3\n")
    broken = watched.until("watching")
    assert any("`tool.magpy.step` is not a setting" in line for line in broken)
    assert any("using those of the last run" in line for line in broken) and "one 2" in broken
    watched.process.send_signal(signal.SIGINT)
    rest, _ = watched.process.communicate(timeout=30)
    assert watched.process.returncode == 130 and "Traceback" not in rest


def test_a_change_ends_the_run_under_way_and_leaves_no_process(watched: Watched, folder: Path) -> None:
    watched.until("watching")
    (folder / "script.py").write_text("import os, time\nprint('pid', os.getpid(), flush=True)\ntime.sleep(600)\n")
    pid = int(watched.until("pid ")[-1].split()[1])
    (folder / "script.py").write_text("print('quick')\n")
    assert "quick" in watched.until("watching")
    assert not psutil.pid_exists(pid)


def test_ctrl_c_during_a_run_ends_program_and_watch(watched: Watched, folder: Path) -> None:
    watched.until("watching")
    (folder / "script.py").write_text("import os, time\nprint('pid', os.getpid(), flush=True)\ntime.sleep(600)\n")
    pid = int(watched.until("pid ")[-1].split()[1])
    watched.process.send_signal(signal.SIGINT)
    watched.process.communicate(timeout=30)
    assert watched.process.returncode == 130 and not psutil.pid_exists(pid)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/p/train.py", True),
        ("/p/pyproject.toml", True),
        ("/p/report.json", False),
        ("/p/other.toml", False),
        ("/p/__pycache__/train.py", False),
        ("/p/.venv/lib/x.py", False),
        ("/p/env/lib/python3.11/site-packages/x.py", False),
    ],
)
def test_what_counts_as_a_change(path: str, wanted: bool) -> None:
    assert _Filter()(Change.modified, path) is wanted


def test_a_document_on_stdout_can_not_be_watched(folder: Path) -> None:
    command = [*COMMAND, "check", "--watch", "--format", "json", "script.py"]
    done = subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "write a document to a file" in " ".join(done.stderr.split())


def test_folders_below_another_are_not_watched_twice(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    assert _folders([], {str(tmp_path), str(inner), str(tmp_path / "gone")}) == [str(tmp_path)]
