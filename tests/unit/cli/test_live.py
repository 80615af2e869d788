"""The panel below a running program, in a terminal (a pseudo-terminal, whose screen pyte keeps)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.cli.screen import COLUMNS, PATIENCE, ROOT, ROWS, Screen


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Screen]]:
    opened: list[Screen] = []

    def start(source: str, *options: str, **size: int) -> Screen:
        opened.append(Screen(tmp_path, source, *options, **size))
        return opened[-1]

    yield start
    for screen in opened:
        screen.close()


LINES = """
import os, sys
print("terminal", sys.stdout.isatty(), sys.stderr.isatty(), os.get_terminal_size().columns)
for n in range(60):
    print("step", n, "loss", n / 8, file=sys.stderr if n % 2 else sys.stdout)
input("go on? ")
for n in range(60, 100):
    print("step", n)
input("end? ")
"""


def test_lines_scroll_above_the_panel_and_all_of_them_are_there(start: Callable[..., Screen]) -> None:
    screen = start(LINES)
    screen.shows("go on?")
    assert not screen.has_panel, "before there are figures"
    screen.progress(59)
    screen.until(lambda s: s.has_panel, "the panel")
    assert "MagPy: step 59, loss 7.375" in screen.text and "24.3 steps/s compiled, 15.9 eager: 1.53x" in screen.text
    assert 5 <= len(screen.lines) - screen.text.split("╭")[0].count("\n") <= 8
    screen.type("\n")
    screen.shows("end?")
    assert screen.has_panel, "output does not reach it"
    screen.type("yes\n")
    assert screen.end() == 0
    printed = [line for line in screen.above if line]
    assert printed == [
        f"terminal True True {COLUMNS}",
        *(f"step {n} loss {n / 8}" for n in range(60)),
        "go on?",
        *(f"step {n}" for n in range(60, 100)),
        "end? yes",
        "the report",
    ]
    assert screen.is_clean


BAR = """
import sys
for n in range(40):
    sys.stderr.write(f"\\r{n:3}% |{'#' * n:40}| loss={n}.5")
    sys.stderr.flush()
    if n == 20:
        sys.stdin.readline()
sys.stderr.write("\\n")
print("below")
sys.stdin.readline()
"""


def test_a_progress_bar_of_the_program_stays_one_line(start: Callable[..., Screen]) -> None:
    screen = start(BAR)
    screen.shows(" 20% |")
    screen.progress(3)
    screen.until(lambda s: s.has_panel, "the panel")
    bar = f" 20% |{'#' * 20:40}| loss=20.5"
    assert [line for line in screen.above if line] == [bar]
    assert "loss 19.5" in screen.text, "of the last piece that has ended"
    screen.type("\n")  # the terminal's echo goes to the next line, and the program's bar with it
    screen.shows("below")
    assert [line for line in screen.above if line] == [bar, f" 39% |{'#' * 39:40}| loss=39.5", "below"] and screen.has_panel
    screen.type("\n")
    assert screen.end() == 0


def test_typed_answers_are_read_and_shown_above_the_panel(start: Callable[..., Screen]) -> None:
    screen = start("""
        print("first")
        name = input("your name? ")
        print("hello", name)
        print("again", input())
        input("end? ")
    """)
    screen.shows("your name?")
    screen.progress(1)
    screen.until(lambda s: s.has_panel, "the panel")
    screen.type("Ada\n")
    screen.shows("hello Ada")
    screen.type("Alan\n")  # without a prompt
    screen.shows("end?")
    assert [line for line in screen.above if line] == ["first", "your name? Ada", "hello Ada", "Alan", "again Alan", "end?"]
    screen.progress(2)
    screen.shows("MagPy: step 2")
    assert screen.has_panel
    screen.type("\n")
    assert screen.end() == 0


def test_a_program_that_draws_on_the_screen_has_all_of_it(start: Callable[..., Screen]) -> None:
    screen = start("""
        import os
        input("ready? ")
        print("\\x1b[2J\\x1b[Hmine", os.get_terminal_size().lines, "\\x1b[24;1Hlast", end="", flush=True)
        input()
        print("\\x1b[2J\\x1b[H", os.get_terminal_size().lines, "rows")
        input()
    """)
    screen.shows("ready?")
    screen.progress(1)
    screen.until(lambda s: s.has_panel, "the panel")
    screen.type("\n")
    screen.shows("mine")
    screen.until(lambda s: s.lines[-1].startswith("last"), "the last row is the program's")
    screen.progress(2)
    screen.type("\n")
    screen.shows(f"{ROWS} rows")
    assert "MagPy" not in screen.text
    screen.type("\n")
    assert screen.end() == 0 and "MagPy" not in screen.text


def test_settings_of_the_terminal_are_the_programs_while_it_runs(start: Callable[..., Screen]) -> None:
    screen = start("""
        import sys, termios
        settings = termios.tcgetattr(1)
        settings[3] &= ~termios.ECHO
        input("quiet? ")
        termios.tcsetattr(1, termios.TCSANOW, settings)
        print("quiet")
        print("read", sys.stdin.readline().strip())
    """)
    before = termios.tcgetattr(screen.theirs)
    screen.shows("quiet?")
    screen.type("\n")
    screen.until(lambda s: "\nquiet\n" in f"\n{s.text}\n", "the program's word")
    assert not termios.tcgetattr(screen.theirs)[3] & termios.ECHO
    screen.type("secret\n")
    assert screen.end() == 0
    assert screen.text.count("secret") == 1 and "read secret" in screen.text
    assert termios.tcgetattr(screen.theirs) == before


@pytest.mark.parametrize(("options", "size"), [(["--no-live"], {}), ([], {"rows": 9}), ([], {"columns": 30})])
def test_no_panel_where_it_is_unwanted_or_has_no_room(
    options: list[str], size: dict[str, int], start: Callable[..., Screen]
) -> None:
    screen = start("input('go? '); print('gone')", *options, **size)
    screen.shows("go?")
    screen.progress(1)
    screen.type("\n")
    screen.shows("gone")
    assert screen.end() == 0 and b"MagPy" not in screen.written and b"\x1b7" not in screen.written


def test_whoever_is_terminated_leaves_the_terminal_as_it_was(start: Callable[..., Screen]) -> None:
    screen = start("input('go? ')")
    screen.shows("go?")
    screen.progress(1)
    screen.until(lambda s: s.has_panel, "the panel")
    screen.process.terminate()
    assert screen.end() == -signal.SIGTERM
    assert screen.is_clean


def test_malformed_messages_and_a_larger_terminal(start: Callable[..., Screen]) -> None:
    screen = start("input('go? ')")
    screen.shows("go?")
    screen.send(type="progress", rate=1.0, compiled=0.0, step={"plain_ms": "fast"})
    screen.progress(1)
    screen.until(lambda s: s.has_panel, "the panel")
    termios.tcsetwinsize(screen.theirs, (30, 90))
    screen.screen.resize(30, 90)
    screen.until(lambda s: s.has_panel and len(s.lines[-1]) > COLUMNS, "the panel at its new place")
    screen.type("\n")
    assert screen.end() == 0 and "MagPy" not in screen.text


def test_without_a_terminal_the_output_is_the_programs_own(tmp_path: Path) -> None:
    program, fifo = tmp_path / "prog.py", tmp_path / "messages"
    program.write_text("import sys\nprint('out', sys.stdout.isatty())\nprint('err', sys.stderr.isatty(), file=sys.stderr)")
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "tests.unit.cli.live_driver", str(fifo), str(program)]
    process = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with open(fifo, "wb") as messages:
        messages.write(b'{"type": "progress", "rate": 1.0, "compiled": 1.0, "step": null}\n')
    assert process.communicate(timeout=PATIENCE) == (b"out False\nthe report\n", b"err False\n")
