"""What a program's output does to a terminal, besides printing text. Key type: EscapeSequences."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    rb"\x1b(?:\[(?P<params>[0-?]*)(?P<between>[ -/]*)(?P<final>[@-~])"  # CSI: colors, cursor, modes
    rb"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # OSC, DCS and similar: the title of the window, a link
    rb"|[ -/]+[0-~]"  # character sets
    rb"|(?P<simple>[0-OQ-WYZ\\`-~]))"
)
_BEGINNING = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\n]*\x1b?|[ -/]*)\Z")
# Colors, moves relative to the cursor, and erasing in its line: right wherever the lines of the program are on the screen.
_RELATIVE = frozenset(b"mABCDEFGK")
_MODES = frozenset(b"hl")
_SCREEN_MODES = frozenset({b"3", b"6", b"47", b"69", b"1047", b"1048", b"1049"})  # another size, origin, screen
_HARMLESS = frozenset(b"=>")  # of the keypad
# Modes that nobody expects afterwards: cursor keys, mouse, another screen. Without 25, no cursor is shown.
_LASTING = (b"1", b"1000", b"1002", b"1003", b"1004", b"1006", b"47", b"1047", b"1049")
_CURSOR = b"25"
_LONGEST = 8192  # bytes of a sequence; what is longer is none


class EscapeSequences:
    """``takes_screen``: the program has placed something on the screen by itself: moved the cursor to a row, cleared the
    screen, or asked about it."""

    def __init__(self) -> None:
        self.takes_screen = False
        self._held = b""
        self._modes: dict[bytes, bool] = {_CURSOR: True}
        self._has_margins = False

    def whole(self, data: bytes) -> bytes:
        """What a terminal can be given now of the output so far: it ends neither in a sequence nor in a character, so that
        something else may follow. The rest is held back."""
        data = self._held + data
        end = 0
        for found in _SEQUENCE.finditer(data):
            end = found.end()
            self.takes_screen = self.takes_screen or _places(found)
            self._note(found)
        begun = _BEGINNING.search(data, end)
        cut = begun.start() if begun is not None else len(data) - _begun(data)
        if len(data) - cut > _LONGEST:
            cut = len(data)
        self._held = data[cut:]
        return data[:cut]

    def leaving(self) -> bytes:
        """Undoes what the program has switched on and not off again, the screen last."""
        margins = b"\x1b7\x1b[r\x1b8" if self._has_margins else b""
        off = b"".join(b"\x1b[?%bl" % mode for mode in _LASTING if self._modes.get(mode))
        return margins + (b"" if self._modes[_CURSOR] else b"\x1b[?25h") + off

    def returning(self) -> bytes:
        """Switches it on again; the screen is empty until the program draws."""
        on = b"".join(b"\x1b[?%bh" % mode for mode in reversed(_LASTING) if self._modes.get(mode))
        return on + (b"" if self._modes[_CURSOR] else b"\x1b[?25l")

    def _note(self, found: re.Match[bytes]) -> None:
        if found["simple"] == b"c":  # everything as at first
            self._modes, self._has_margins = {_CURSOR: True}, False
        if found["between"] or not found["final"]:
            return
        final, params = found["final"], found["params"]
        if final == b"r" and params[:1] != b"?":
            self._has_margins = bool(params)
        elif final in (b"h", b"l") and params[:1] == b"?":
            self._modes.update(dict.fromkeys(params[1:].split(b";"), final == b"h"))

    def rest(self) -> bytes:
        """What is held back, after the end of the output."""
        rest, self._held = self._held, b""
        return rest


def _begun(data: bytes) -> int:
    """How many bytes of an unfinished UTF-8 character ``data`` ends with."""
    for length in (1, 2, 3):
        byte = data[-length] if length <= len(data) else 0
        if byte & 0xC0 != 0x80:
            needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2
            return length if 0xC2 <= byte <= 0xF4 and length < needed else 0
    return 0


def _places(found: re.Match[bytes]) -> bool:
    if found["simple"]:
        return found["simple"][0] not in _HARMLESS
    if not found["final"]:
        return False
    final, params = found["final"][0], found["params"]
    if found["between"]:
        return found["between"] != b" " or final != ord("q")  # the cursor's shape
    if final in _MODES and params[:1] == b"?":
        return not _SCREEN_MODES.isdisjoint(params[1:].split(b";"))
    return final not in _RELATIVE
