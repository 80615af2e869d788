"""What captures print, against a committed text. ``MAGPY_UPDATE_GOLDEN=1 pytest tests/golden`` writes them anew."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import magpy_core
from tests.golden import programs

GOLDEN = Path(__file__).parent / "captures"
X = torch.ones(2, 2)


def counter() -> Any:
    torch.manual_seed(0)
    c = magpy_core.compile(programs.Counter(), backend="eager")
    for _ in range(3):
        c(X)
    return c


def branches() -> Any:
    c = magpy_core.compile(programs.branches, backend="eager")
    c(X, [])
    return c


def writes() -> Any:
    c = magpy_core.compile(programs.writes, backend="eager")
    c(X, {"old": 1})
    return c


def stable(text: str) -> str:
    """Without what torch's own printer adds, and what classes have in their ``__dict__``, in some versions only."""
    text = re.sub(r"(?<=__dict__ are frozenset of )\d+", "n", text)
    kept = [line.rstrip() for line in text.splitlines() if not line.strip().startswith("# No stacktrace")]
    return "\n".join(kept).strip() + "\n"


@pytest.mark.parametrize("make", [counter, branches, writes], ids=lambda f: f.__name__)
@pytest.mark.parametrize("what", ["capture", "refgraph"])
def test_captures_print_as_committed(make: Callable[[], Any], what: str) -> None:
    capture = magpy_core.captures(make())[0]
    text = stable(capture.print_readable() if what == "capture" else str(capture.refgraph))
    file = GOLDEN / f"{make.__name__}.{what}.txt"
    if os.environ.get("MAGPY_UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_the_same_program_prints_the_same_text_twice() -> None:
    texts = [stable(magpy_core.captures(counter())[0].print_readable()) for _ in range(2)]
    assert texts[0] == texts[1]
