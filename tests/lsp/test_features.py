"""The pure parts: positions, tracking, entrypoints, settings, output."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from lsp_server.features.documents import Document
from lsp_server.features.entrypoint import entrypoint_line
from lsp_server.features.hover import hover_text
from lsp_server.features.positions import from_units, split_lines, to_units
from lsp_server.features.settings import parse_settings
from lsp_server.features.tracking import TrackedFile, Tracker, match_lines, read_source
from lsp_server.server.output import OutputPump
from magpy_core.findings import Finding, Location, Position, Range, Severity

ENCODINGS = ("utf-8", "utf-16", "utf-32")


@pytest.mark.parametrize(("encoding", "units"), [("utf-8", 1 + 2 + 3 + 4), ("utf-16", 5), ("utf-32", 4)])
def test_units(encoding: str, units: int) -> None:
    assert to_units("aé漢🙂z", 4, encoding) == units
    assert from_units("aé漢🙂z", units, encoding) == 4
    assert from_units("aé漢🙂z", 99, encoding) == 5


@given(st.text(alphabet="aé漢🙂\t"), st.integers(0, 20), st.sampled_from(ENCODINGS))
def test_units_there_and_back(line: str, column: int, encoding: str) -> None:
    column = min(column, len(line))
    assert from_units(line, to_units(line, column, encoding), encoding) == column


def test_lines_end_where_python_and_lsp_say() -> None:
    assert split_lines("a\x0cb\u2028c\r\nd\re\n") == ["a\x0cb\u2028c", "d", "e", ""]
    assert split_lines("") == [""]


def _apply_plainly(text: str, change: types.TextDocumentContentChangePartial) -> str:
    """The definition of an edit: on the whole text, in UTF-16."""
    lines = text.split("\n")

    def offset(p: types.Position) -> int:
        before = sum(len(line.encode("utf-16-le")) + 2 for line in lines[: p.line])
        return before + 2 * p.character

    raw = text.encode("utf-16-le")
    return (raw[: offset(change.range.start)] + change.text.encode("utf-16-le") + raw[offset(change.range.end) :]).decode(
        "utf-16-le"
    )


@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_any_edits_keep_text_and_map_right(rng: random.Random, count: int) -> None:
    """After any edits a line that is still placed holds the text it held, and the document is what the edits make it."""
    pieces = ["", "a", "🙂", "漢 = 1", "x.item()", "\n", "  y\n", "b\nc\n"]
    text = "\n".join(rng.choice(["a", "", "x🙂.item()", "  y", "漢"]) for _ in range(rng.randint(1, 8)))
    document = Document("file:///t.py", 1, text)
    tracked = TrackedFile(text)
    for _ in range(count):
        ends = []
        for _ in range(2):
            line = rng.randrange(len(document.lines))
            ends.append((line, to_units(document.lines[line], rng.randint(0, len(document.lines[line])), "utf-16")))
        ends.sort()
        where = types.Range(types.Position(*ends[0]), types.Position(*ends[1]))
        change = types.TextDocumentContentChangePartial(text=rng.choice(pieces), range=where)
        text = _apply_plainly(text, change)
        tracked.apply(document.apply(change, "utf-16"), document.lines)
        assert document.text == text
        placed = [(i, now) for i in range(len(tracked.lines)) if (now := tracked.place(i, i)) is not None]
        assert all(document.lines[now] == tracked.lines[i] for i, now in placed)
        assert [now for _, now in placed] == sorted({now for _, now in placed}), "in order, no line twice"


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_match_lines_matches_only_what_is_equal(old: list[str], new: list[str]) -> None:
    matched = match_lines(old, new)
    assert all(new[now] == old[i] for i, now in enumerate(matched) if now is not None)
    kept = [now for now in matched if now is not None]
    assert kept == sorted(set(kept))
    if old == new:
        assert matched == list(range(len(old)))


def test_a_finding_over_two_lines_needs_both_and_adjacent() -> None:
    tracked = TrackedFile("a\nb\nc\n", now=["a", "new", "b", "c", ""])
    assert tracked.place(0, 0) == 0 and tracked.place(1, 2) == 2
    assert tracked.place(0, 1) is None
    assert tracked.place(0, 9) is None and tracked.place(-1, 0) is None


def test_a_file_changed_after_the_start_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("a\n")
    changed = path.stat().st_mtime_ns
    assert Tracker(changed, []).file(str(path)) is not None
    assert Tracker(changed - 1, []).file(str(path)) is None


def test_sources_in_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes("# -*- coding: latin-1 -*-\ns = 'é'\n".encode("latin-1"))
    assert read_source(str(path)) == "# -*- coding: latin-1 -*-\ns = 'é'\n"
    path.write_bytes(b"s = '\xe9'\n")
    assert read_source(str(path)) is None


MAIN = 'if __name__ == "__main__":\n    main()\n'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"import os\n\n{MAIN}", 2),
        ("if '__main__' == __name__ and True:\n    pass\n", 0),
        (f"try:\n    import torch\nexcept ImportError:\n    pass\n{MAIN}", 4),
        (f"def f():\n    {MAIN.splitlines()[0]}\n        pass\n", None),
        ("x = 'if __name__ == \"__main__\":'\n", None),
        ('if __name__ != "__main__":\n    raise SystemExit\n', None),
        ("import torch\nfor i in range(3):\n    print(torch.ones(i))\n", 0),
        ("import torch\nmodel = torch.nn.Linear(1, 1)\ny = 3\nmodel(torch.ones(1))\n", 0),
        ("from torch import nn\ndef main(): ...\nmain()\n", 0),
        ("import torch.nn as nn\nwith nn.x():\n    class A: ...\n    A()\n", 0),
        ("import torch\ntorch.manual_seed(0)\ntorch.set_num_threads(1)\n", None),
        ("import logging, torch\nlog = logging.getLogger()\nlog.setLevel(10)\nD = dict()\nD.update(a=1)\n", None),
        ("import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        for i in x: print(i)\n", None),
        ("import torch\nDEVICE = torch.device('cpu')\nTABLE = [f(x) for x in range(3)]\n", None),
        ("for i in range(3):\n    print(i)\n", None),
        ("from .torch import x\nfor i in range(3):\n    print(i)\n", None),
        ("def broken(:\n\nif __name__ == '__main__':\n    pass\n", 2),
        ("def broken(:\n", None),
        ("", None),
        ("\x00", None),
    ],
)
def test_entrypoints(text: str, line: int | None) -> None:
    assert entrypoint_line(split_lines(text)) == line


@pytest.mark.parametrize("path", ["lsp_server/features/hover.py", "magpy_core/findings/registry.py"])
def test_our_own_modules_are_no_entrypoints(path: str) -> None:
    assert entrypoint_line(split_lines((Path(__file__).parents[2] / path).read_text())) is None


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({"interpreter": 3}, "interpreter"),
        ({"steps": "3"}, "steps"),
        ({"steps": True}, "steps"),
        ({"timeout": -1}, "timeout"),
        ({"args": "a"}, "args"),
        ({"args": [1]}, "args"),
        ({"env": {"A": 1}}, "env"),
        ({"backend": "nope"}, "inductor"),
        ({"severity": {"MP102": "loud"}}, "MP102"),
        ({"severity": []}, "severity"),
        ({"codeLens": 1}, "codeLens"),
        ({"inlayHints": "on"}, "inlayHints"),
        ({"runOnSave": 1}, "runOnSave"),
        ({"runOnSaveDelay": -1}, "runOnSaveDelay"),
        ({"entrypoints": {}}, "entrypoints"),
        ({"entrypoints": [{"name": "a", "program": "x.py", "nproc": 0}]}, "entrypoints.0.nproc"),
        ([], "object"),
    ],
)
def test_wrong_settings_are_named_and_have_no_effect(raw: object, problem: str) -> None:
    settings, problems = parse_settings(raw)
    assert len(problems) == 1 and problem in problems[0]
    assert settings == parse_settings(None)[0]


def test_nulls_and_unknown_settings_are_nothing() -> None:
    assert parse_settings({"steps": None, "trace": {"server": "off"}, "revealOutput": "never"}) == parse_settings(None)


def test_severity_by_code_before_family() -> None:
    settings, _ = parse_settings({"severity": {"MP1": "off", "MP102": "error"}})
    where = Location("/f.py", Range(Position(0, 0), Position(0, 1)))
    assert settings.severity_of(Finding("MP102", "m", where)) is Severity.ERROR
    assert settings.severity_of(Finding("MP103", "m", where)) is None
    assert settings.severity_of(Finding("MP301", "m", where)) is Severity.INFORMATION


def test_many_findings_on_a_line_stay_readable() -> None:
    where = Location("/f.py", Range(Position(0, 0), Position(0, 1)))
    many = [(Finding("MP204", f"guard {n}", where), Severity.HINT) for n in range(40)]
    text = hover_text(many, markdown=True)
    assert text.count("*Why:*") == 1 and "guard 11" in text and "and 28 more" in text
    plain = hover_text(many, markdown=False)
    assert plain.count("Why:") == 1 and "and 28 more" in plain
    codes = [(Finding(code, f"m{code}", where), Severity.WARNING) for code in ("MP101", "MP102", "MP103", "MP104", "MP105")]
    text = hover_text(codes, markdown=True)
    assert text.count("*Why:*") == 3 and "- **MP105** mMP105" in text


def test_messages_keep_their_code_and_lose_their_markup() -> None:
    where = Location("/f.py", Range(Position(0, 0), Position(0, 1)))
    found = [(Finding("MP102", "`a*b*c` is *read* by <b> _x_", where), Severity.WARNING)]
    assert r"`a*b*c` is \*read\* by \<b\> \_x\_" in hover_text(found, markdown=True)
    assert "is *read*" not in hover_text(found, markdown=True, is_above=lambda finding, severity: True)


async def _pumped(chunks: list[tuple[str, bytes]]) -> list[tuple[str, str]]:
    sent: list[tuple[str, str]] = []
    pump = OutputPump(lambda stream, text: sent.append((stream, text)))
    for stream, data in chunks:
        pump.feed(stream, data)
    pump.close()
    return sent


def test_output_keeps_order_and_split_characters() -> None:
    smiley = "🙂".encode()
    sent = asyncio.run(
        _pumped([("stdout", b"a" + smiley[:2]), ("stderr", b"!"), ("stdout", smiley[2:]), ("stdout", b"\xff")])
    )
    assert sent == [("stdout", "a"), ("stderr", "!"), ("stdout", "🙂�")]
    assert asyncio.run(_pumped([("stdout", smiley[:3])])) == [("stdout", "�")]


def test_output_of_a_flood_keeps_both_ends() -> None:
    sent = asyncio.run(
        _pumped([("stdout", b"first\n"), *[("stdout", b"x" * 65536)] * 50, ("stdout", b"last\n"), ("report", b"table")])
    )
    text = "".join(part for _, part in sent)
    assert text.startswith("first\n") and text.endswith("last\ntable") and "omitted" in text
    assert len(text) < 150_000
