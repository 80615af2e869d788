"""Whoever has the terminal after a run with a panel finds it as it was: Ctrl-Z, signals, programs that die at work."""

from __future__ import annotations

import signal
import subprocess
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.screen import ROWS, Screen, Shell

ASKS = """
print("begin")
while (word := input("word? ")) != "end":
    print("read", word)
"""
WRITES = """
import os, time
print("begin")
while not os.path.exists("go"):
    time.sleep(0.01)
print("in the background,", os.get_terminal_size().lines, "rows")
while not os.path.exists("end"):
    time.sleep(0.01)
"""
SECRET = """
import sys, termios
settings = termios.tcgetattr(1)
settings[3] &= ~termios.ECHO
termios.tcsetattr(1, termios.TCSANOW, settings)
print("begin", flush=True)
while (word := input("word? ")) != "end":
    print("read", word)
"""
# As a program with curses does, and then it dies.
DRAWS = """
import os, signal
print("before")
input("ready? ")
print("\\x1b[?1049h\\x1b[?25l\\x1b[?1003h\\x1b[1;5r\\x1b[H\\x1b[2Jdrawn", end="", flush=True)
input()
os.kill(os.getpid(), signal.SIGKILL)
"""
CURSES = """
import curses, os
input("ready? ")
def main(screen):
    key = ""
    while key != "q":
        screen.clear()
        screen.addstr(0, 0, f"rows {screen.getmaxyx()[0]}, key {key}")
        screen.addstr(screen.getmaxyx()[0] - 1, 0, "the last row")
        screen.refresh()
        key = screen.getkey()
curses.wrapper(main)
print("after curses")
input("end? ")
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Screen]]:
    opened: list[Screen] = []

    def start(kind: type[Screen], source: str, *options: str) -> Screen:
        opened.append(kind(tmp_path, source, *options))
        return opened[-1]

    yield start
    for screen in opened:
        screen.close()


def with_panel(screen: Screen, shown: str) -> Screen:
    screen.shows(shown)
    screen.progress(1)
    screen.until(lambda s: s.has_panel, "the panel")
    return screen


def echoes(screen: Screen) -> bool:
    return bool(termios.tcgetattr(screen.theirs)[3] & termios.ECHO)


def test_ctrl_z_gives_the_terminal_to_the_shell_and_fg_brings_the_panel_back(start: Callable[..., Shell]) -> None:
    shell = with_panel(start(Shell, ASKS), "word?")
    shell.type("\x1a")
    shell.until_stopped()
    assert shell.is_clean
    shell.type("for n in 1 2 3 4 5 6 7 8; do echo line $n; done\n")
    shell.until(lambda s: "line 8" in s.lines and s.lines[s.screen.cursor.y] == "$", "the shell's own output")
    shell.type("fg\n")
    shell.until(lambda s: s.has_panel, "the panel again")
    assert "line 8" in shell.above, "what the shell printed stays"
    shell.type("tree\n")
    shell.shows("read tree")
    assert shell.has_panel
    shell.type("end\n")
    shell.no_more_messages()
    shell.shows("the report")
    assert shell.is_clean


def test_without_a_panel_the_program_stops_as_well(start: Callable[..., Shell], tmp_path: Path) -> None:
    events = tmp_path / "events"
    shell = start(Shell, ASKS, "--no-live", "--events", str(events))
    shell.shows("word?")
    shell.progress(1)
    shell.until(lambda s: events.exists() and '"progress"' in events.read_text(), "that the run is followed")
    shell.type("\x1a")
    shell.until_stopped()
    shell.type("echo for'the'shell\n")
    shell.shows("fortheshell")  # the program, which waits for a word, has not read it
    shell.type("fg\n")
    shell.type("tree\n")
    shell.shows("read tree")
    assert "read echo" not in shell.text and "read fg" not in shell.text


def test_in_the_background_there_is_no_panel(start: Callable[..., Shell]) -> None:
    shell = with_panel(start(Shell, WRITES), "begin")
    shell.type("\x1a")
    shell.until_stopped()
    shell.type("bg\n")
    shell.until(lambda s: "&" in s.text and s.lines[s.screen.cursor.y] == "$", "the job in the background")
    shell.progress(2)
    shell.type("touch go\n")
    shell.shows("in the background, 24 rows")
    assert shell.is_clean
    shell.type("fg\n")
    shell.until(lambda s: s.has_panel and "step 2" in s.text, "the panel again")


def test_the_programs_settings_hold_only_while_the_terminal_is_its_own(start: Callable[..., Shell]) -> None:
    shell = with_panel(start(Shell, SECRET), "word?")
    assert not echoes(shell)
    shell.type("\x1a")
    shell.until_stopped()
    shell.type("echo visi'ble'\n")
    shell.until(lambda s: "visi'ble'" in s.text and "visible" in s.text, "the echo, and the word")
    shell.type("fg\n")
    shell.until(lambda s: not echoes(s), "the program's settings")
    shell.type("end\n")
    shell.no_more_messages()
    shell.shows("the report")
    shell.until(echoes, "the shell's settings")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_whoever_is_terminated_leaves_the_terminal_as_it_was(number: signal.Signals, start: Callable[..., Screen]) -> None:
    screen = with_panel(start(Screen, SECRET), "word?")
    assert not echoes(screen)
    screen.process.send_signal(number)
    assert screen.end() == -number
    assert screen.is_clean and echoes(screen)


class Unhung(Screen):
    """As under nohup."""

    def _start(self, command: list[str], **around: Any) -> subprocess.Popen[bytes]:
        return super()._start(["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *command], **around)


def test_a_signal_that_is_ignored_stays_so(start: Callable[..., Screen]) -> None:
    screen = with_panel(start(Unhung, ASKS), "word?")
    screen.process.send_signal(signal.SIGHUP)
    screen.type("tree\n")
    screen.shows("read tree")
    screen.progress(2)
    screen.shows("step 2")
    assert screen.has_panel
    screen.type("end\n")
    assert screen.end() == 0


def test_ctrl_c_is_the_programs_and_the_report_follows(start: Callable[..., Shell]) -> None:
    source = """
        import time
        try:
            print("go?")
            while True:
                time.sleep(0.01)  # a signal just before a long wait does not end that
        except KeyboardInterrupt:
            print("saved before the end")
    """
    shell = with_panel(start(Shell, source), "go?")
    shell.type("\x03")
    shell.shows("saved before the end")
    shell.no_more_messages()
    shell.shows("the report")
    assert shell.is_clean


def test_ctrl_backslash_leaves_no_panel(start: Callable[..., Shell]) -> None:
    shell = with_panel(start(Shell, ASKS), "word?")
    shell.type("\x1c")
    shell.until(lambda s: "Quit" in s.text and s.lines[s.screen.cursor.y] == "$", "the shell's prompt")
    assert shell.is_clean


def test_a_program_that_dies_with_the_screen_leaves_it(start: Callable[..., Screen]) -> None:
    screen = with_panel(start(Screen, DRAWS), "ready?")
    screen.type("\n")
    screen.shows("drawn")
    assert "MagPy" not in screen.text
    assert screen.screen.margins == (0, 4) and screen.screen.cursor.hidden
    screen.type("\n")
    assert screen.end() == 0
    undone = screen.written.partition(b"drawn")[2]
    assert b"\x1b[?1049l" in undone and b"\x1b[?1003l" in undone
    assert undone.index(b"\x1b[?1049l") < undone.index(b"the report"), "it is on the screen that stays"
    assert screen.is_clean and not screen.screen.cursor.hidden


def test_ctrl_z_leaves_the_programs_screen_and_fg_returns_to_it(start: Callable[..., Shell]) -> None:
    shell = with_panel(start(Shell, DRAWS), "ready?")
    shell.type("\n")
    shell.shows("drawn")
    shell.type("\x1a")
    shell.until_stopped()
    assert shell.is_clean and not shell.screen.cursor.hidden
    assert shell.written.rindex(b"\x1b[?1049l") > shell.written.rindex(b"\x1b[?1049h")
    shell.type("fg\n")
    shell.until(lambda s: s.written.rindex(b"\x1b[?1049h") > s.written.rindex(b"\x1b[?1049l"), "its screen")
    shell.until(lambda s: s.screen.cursor.hidden, "without a cursor")


def test_a_curses_program_has_the_whole_screen(start: Callable[..., Screen]) -> None:
    screen = with_panel(start(Screen, CURSES), "ready?")
    before = termios.tcgetattr(screen.theirs)
    screen.type("\n")
    screen.shows(f"rows {ROWS}")
    screen.until(lambda s: s.lines[-1] == "the last row", "the last row is the program's")
    screen.progress(2)
    screen.type("x")  # without a line's end, as curses has set the terminal
    screen.shows(f"rows {ROWS}, key x")
    assert "MagPy" not in screen.text
    screen.type("q")
    screen.shows("end?")
    assert termios.tcgetattr(screen.theirs) == before, "curses has set it back"
    screen.type("\n")
    assert screen.end() == 0 and screen.is_clean


def test_a_smaller_terminal_has_no_panel_and_a_larger_one_has_it_again(start: Callable[..., Screen]) -> None:
    screen = with_panel(start(Screen, ASKS), "word?")
    for rows, columns, room in [(9, 70, False), (24, 30, False), (18, 60, True), (40, 100, True)]:
        screen.resize(rows, columns)
        if room:
            screen.until(lambda s: s.has_panel, f"the panel in {rows} rows and {columns} columns")
        else:
            screen.until(lambda s: s.is_clean, f"no panel in {rows} rows and {columns} columns")
        screen.type(f"word {rows}\n")
        screen.shows(f"read word {rows}")
    screen.type("end\n")
    assert screen.end() == 0 and screen.is_clean
