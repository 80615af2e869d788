"""What a program's output does to a terminal: split anywhere, it is whole, and whoever places things by hand is seen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.cli.escape_sequences import EscapeSequences

PIECES = (
    b"text\n", b"\r 50%|##", "naïve 猫 🙂".encode(), b"\x1b[1;31mred\x1b[0m", b"\x1b[3A\x1b[2K", b"\x1b]0;title\x07",
    b"\x1b]8;;u\x1b\\", b"\xff\xfe", b"\x1b(B", b"\x1b[?25l", b"\x1b=",
)  # fmt: skip


def fed(data: bytes, size: int) -> tuple[list[bytes], EscapeSequences]:
    found = EscapeSequences()
    return [found.whole(data[i : i + size]) for i in range(0, len(data), size)] + [found.rest()], found


@given(st.lists(st.sampled_from(PIECES)), st.integers(1, 9))
def test_nothing_is_lost_and_no_cut_is_in_a_sequence_or_a_character(pieces: list[bytes], size: int) -> None:
    data = b"".join(pieces)
    given_on, found = fed(data, size)
    assert b"".join(given_on) == data and given_on[-1] == b"" and not found.takes_screen
    shown = b""
    for part in given_on:
        shown += part
        assert EscapeSequences().whole(shown) == shown, "what was given on so far is whole"


@given(st.binary(max_size=300), st.integers(1, 20))
def test_any_bytes_pass(data: bytes, size: int) -> None:
    assert b"".join(fed(data, size)[0]) == data


@pytest.mark.parametrize(
    "data",
    [b"\x1b[2J", b"\x1b[H", b"\x1b[5;10f", b"\x1b[3d", b"\x1b[?1049h", b"\x1b[r", b"\x1b[J", b"\x1b7", b"\x1b[s", b"\x1bc",
     b"\x1b[6n", b"\x1b[2L", b"\x1bM", b"\x1b[!p", b"\x1b[?25;1049h"],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 100])
def test_who_places_things_on_the_screen_is_seen(data: bytes, size: int) -> None:
    assert fed(b"text " + data + b" text", size)[1].takes_screen


@pytest.mark.parametrize("data", [b"\x1b\n", b"\x1b\x1b\x07", b"\x1b[3\n", b"\x1b]0;title\nmore", b"\x1b[3\x1b[0m"])
def test_what_is_no_sequence_is_not_held_back(data: bytes) -> None:
    assert EscapeSequences().whole(data + b"text") == data + b"text"


def test_a_sequence_without_an_end_is_not_held_back_for_ever() -> None:
    found = EscapeSequences()
    assert found.whole(b"\x1b]0;" + b"x" * 100) == b""
    assert len(found.whole(b"x" * 10_000)) == 10_104


def test_what_is_still_on_is_undone_and_done_again() -> None:
    program = EscapeSequences()
    program.whole(b"\x1b[?1049h\x1b[?25l\x1b[?1000;1006h\x1b[?2004h\x1b[2;9r text \x1b[?1000l")
    assert program.leaving() == b"\x1b7\x1b[r\x1b8\x1b[?25h\x1b[?1006l\x1b[?1049l"
    assert program.returning() == b"\x1b[?1049h\x1b[?1006h\x1b[?25l"
    program.whole(b"\x1b[?1049;1006l\x1b[r\x1b[?25h")
    assert program.leaving() == program.returning() == b""
    program.whole(b"\x1b[?1049h\x1bc")
    assert program.leaving() == b"", "a reset ends everything"
