"""The findings corpus: users' programs with the findings they should get written on their lines. Key type: Program.

``loss.item()  # expect: MP102 `loss.item()` `` says that this finding, and no other at warning level or above, underlines
exactly the text in backticks. More of it:

- several findings on a line: ``# expect: MP102 `a.item()`, MP301 `self.a` ``
- the second occurrence of the text in its line: ``MP102 `x.item()`#2``
- a range over several lines: ``MP104 `encode(` to `)`+2`` ends with the ``)`` two lines further down
- two findings of one code at one place: ``MP201 `mode` x2``
- a line that can't have a comment: ``# expect[-1]: ...`` is about the line before
- a finding about the file as a whole: ``MP909 (file)``

Columns are found in the text, so they count code points as a finding's do. Functions marked ``# region`` on their ``def``
line are regions, as are outermost module calls and optimizer steps. Settings at the top choose how a program runs, see
:class:`Program`.
"""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass, field
from pathlib import Path

from magpy_core.findings import Location, Position, Range

FOLDER = Path(__file__).parent / "findings"
LIBRARIES = FOLDER / "site-packages"
"""What programs import from here is an installed package to MagPy, which tells by the folder's name."""

_ITEM = re.compile(
    r"(?P<code>MP\d{3}) (?:`(?P<text>[^`]+)`(?:#(?P<nth>\d+))?(?: to `(?P<last>[^`]+)`\+(?P<lines>\d+))?|\(file\))"
    r"(?: x(?P<times>\d+))?(?:, |\s*(?=#|$))"
)
_EXPECT = re.compile(r"# expect(?:\[(?P<offset>[+-]\d+)\])?: (?P<items>(?:[^#]|(?<=`)#(?=\d))*)")
_SETTING = re.compile(r"# (?P<name>mode|backend|run|measured|files|target|steps): (?P<value>.*)")


class BadExpectation(Exception):
    """A comment that can't be understood, or whose text is not in its line."""


@dataclass(frozen=True, order=True)
class Expected:
    """One finding that must be there, and how often."""

    file: str
    range: Range
    code: str
    times: int = 1


@dataclass
class Program:
    """``settings``: ``mode`` (observe, compiled), ``backend``, ``run`` (``cli``: by ``magpy-lsp check``, in a process of its
    own), ``measured`` (times that replace the measured ones), ``files`` (modules of the program beside this one), ``target``
    (the device that its graphs are compiled for, too), ``steps`` (``counted``)."""

    path: Path
    text: str = ""
    expected: list[Expected] = field(default_factory=list)
    marked: set[int] = field(default_factory=set)
    settings: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def read(path: Path) -> Program:
        program = Program(path, path.read_text(encoding="utf-8"))
        for token in _comments(program.text):
            if re.search(r"# region\b", token.string):
                program.marked.add(token.start[0])
            if setting := _SETTING.fullmatch(token.string):
                program.settings[setting["name"]] = setting["value"]
        for file in program.files:
            program.expected += expectations(file, file.read_text(encoding="utf-8"))
        return program

    @property
    def files(self) -> list[Path]:
        """The user's own files of this program."""
        return [self.path, *(FOLDER / name for name in self.settings.get("files", "").split())]

    @property
    def in_child(self) -> bool:
        return self.settings.get("run") == "cli"


def corpus(folder: Path = FOLDER) -> dict[str, Program]:
    """Every program by its name."""
    return {path.stem: Program.read(path) for path in sorted(folder.glob("*.py"))}


def expectations(file: Path, text: str) -> list[Expected]:
    lines = text.splitlines()
    out = []
    for token in _comments(text):
        for said in _EXPECT.finditer(token.string):
            offset = int(said["offset"] or 0)
            line = token.start[0] - 1 + offset
            end = 0
            for item in _ITEM.finditer(said["items"]):
                if item.start() != end:
                    break
                end = item.end()
                place = Range(Position(0, 0), Position(0, 0)) if item["text"] is None else _range(lines, line, item, file)
                out.append(Expected(str(file), place, item["code"], int(item["times"] or 1)))
            if end != len(said["items"]):
                raise BadExpectation(f"{file.name}:{line + 1}: {said['items'][end:]!r} can't be understood")
    return out


def _comments(text: str) -> list[tokenize.TokenInfo]:
    return [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.COMMENT]


def _range(lines: list[str], line: int, item: re.Match[str], file: Path) -> Range:
    start = -1
    for _ in range(int(item["nth"] or 1)):
        start = lines[line].find(item["text"], start + 1)
    if start < 0 or lines[line].find("# expect") in range(start):
        raise BadExpectation(f"{file.name}:{line + 1}: there is no {item['text']!r} in this line")
    last, end = line, start + len(item["text"])
    if item["last"] is not None:
        last = line + int(item["lines"])
        end = lines[last].find(item["last"]) + len(item["last"])
        if item["last"] not in lines[last]:
            raise BadExpectation(f"{file.name}:{last + 1}: there is no {item['last']!r} in this line")
    return Range(Position(line, start), Position(last, end))


def shown(place: Location | Expected) -> str:
    """A range as readers count: lines and columns from 1."""
    start, end = place.range.start, place.range.end
    return f"{Path(place.file).name}:{start.line + 1}:{start.character + 1}-" + (
        f"{end.line + 1}:{end.character + 1}" if end.line != start.line else f"{end.character + 1}"
    )
