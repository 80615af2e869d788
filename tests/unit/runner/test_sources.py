"""Source is compiled as Python does it, whatever it is; where the search for training loops fails, it stays as it is."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import Any

import pytest

from magpy_core._compat.versions import PY314
from magpy_core.runner.loop_progress import LoopProgress
from magpy_core.runner.loops import Loops
from magpy_core.runner.named import NamedRegions
from magpy_core.runner.sources import Sources

TRAINS = """
def train(model, optimizer, loader):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
"""
CHAIN = "def pick(k):\n    if k == 0: return 0\n" + "".join(f"    elif k == {i}: return {i}\n" for i in range(1, 500))
SUM = f"total = {' + '.join(['1'] * 600)}\n"
FILE = "/program/train.py"


@pytest.fixture(autouse=True)
def usual_limit() -> Iterator[None]:
    """What is too deep depends on it, and other tests raise it."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


def plainly(source: str | bytes) -> CodeType:
    return compile(source, FILE, "exec", dont_inherit=True)


class Made:
    def __init__(self, *names: str) -> None:
        self.findings: list[tuple[str, str]] = []
        self.marked: list[str] = []
        self.sources = Sources(NamedRegions(names, self.wrap), Loops(lambda: None, LoopProgress(lambda what, error: None)))  # type: ignore[arg-type, return-value]
        self.sources.report_to(lambda code, message, *, file, hint="": self.findings.append((code, message)))

    def wrap(self, function: Any, name: str) -> Any:
        self.marked.append(name)
        return function

    def compiled(self, source: str | bytes) -> Any:
        return self.sources.compile(source.encode() if isinstance(source, str) else source, FILE)


@pytest.mark.parametrize("deep", [CHAIN, SUM], ids=["chain", "sum"])
def test_source_too_deep_for_the_search_is_compiled_unchanged(deep: str) -> None:
    made = Made()
    assert made.compiled(TRAINS + deep) == plainly(TRAINS + deep)
    assert [code for code, _ in made.findings] == ["MP406"]
    assert made.compiled(TRAINS) != plainly(TRAINS) and len(made.findings) == 1


def test_any_error_of_the_search_is_contained(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object) -> None:
        raise KeyError("a")

    made = Made("__main__.train")
    monkeypatch.setattr(Loops, "cut", fails)
    code = made.compiled(TRAINS)
    assert made.findings == [("MP901", "MagPy could not look for the training loops in this file (KeyError: 'a').")]
    names: dict[str, Any] = {}
    exec(code, names)
    assert made.marked == ["__main__.train"]  # the named function is found nevertheless
    monkeypatch.setattr(NamedRegions, "mark", fails)
    assert made.compiled(TRAINS) == plainly(TRAINS)
    assert "named functions" in made.findings[-1][1]


@pytest.mark.parametrize(
    "source",
    [
        "\ufeffname = 'é'\n".encode() + TRAINS.encode(),
        b"# -*- coding: latin-1 -*-\nname = '\xe9'\n",
        b"\f\nx = 1\f\n",
        b"x = '''a\r\nb'''\r\n",
        b"from __future__ import annotations\ndef f(x: Unknown): ...\n",
    ],
    ids=["BOM", "encoding", "form feed", "line ends", "future"],
)
def test_what_python_reads_is_read_the_same(source: bytes) -> None:
    whole = source + b"# backward( .step(\n"
    made = Made()
    assert [made.compiled(whole).co_consts[0]] == [plainly(whole).co_consts[0]]
    assert made.findings == []


@pytest.mark.parametrize(
    "source",
    [
        b"x = 1\0",
        b"# -*- coding: nope -*-\n",
        b"x = '\xe9'",
        b"x = " + b"(" * 250 + b"1" + b")" * 250,
        pytest.param(b"x = a" + b".b" * 5000, marks=pytest.mark.skipif(PY314, reason="3.14 compiles it")),
    ],
)
def test_what_python_refuses_raises_its_error(source: bytes) -> None:
    whole = source + b"\n# backward( .step(\n"
    with pytest.raises((SyntaxError, ValueError, RecursionError)) as plain:
        plainly(whole)
    with pytest.raises(plain.type) as ours:
        Made().compiled(whole)
    assert str(ours.value) == str(plain.value)


def test_warnings_of_the_source_are_given_once() -> None:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        Made().compiled(TRAINS + "x = 1 is 1\n")
    assert [warning.category for warning in given] == [SyntaxWarning]
