"""The search with a bound: what it finds, keeps and survives, with kinds planted here; and a moment of every real kind."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.soundness.harness.batch import Batch, Kind, shortest
from tests.soundness.search import main

MOMENT = "0.05"  # minutes


def agrees(rng: random.Random, batch: Batch) -> None:
    while not batch.over:
        batch.case("nothing")
        time.sleep(0.01)


def differs(rng: random.Random, batch: Batch) -> None:
    """A case is some numbers; those with a 7 differ."""
    numbers = [*(rng.randrange(7) for _ in range(5)), 7]
    batch.case(f"numbers {numbers}")
    batch.differs(f"numbers {numbers}", lambda: f"numbers {shortest(numbers, lambda some: 7 in some)}")


def dies(rng: random.Random, batch: Batch) -> None:
    batch.case("a deadly case")
    os.abort()


def hangs(rng: random.Random, batch: Batch) -> None:
    batch.case("an endless case")
    time.sleep(1000)


def raises(rng: random.Random, batch: Batch) -> None:
    batch.case("a case that raises")
    raise ValueError("not expected")


def breaks(rng: random.Random, batch: Batch) -> None:
    raise LookupError("of the tool's own")


def searched(tmp_path: Path, *kinds: Kind, minutes: str = MOMENT) -> tuple[int, list[str]]:
    """The exit status, and the texts of the files that were kept."""
    status = main(["--minutes", minutes, "--seed", "5", "--results", str(tmp_path / "kept")], kinds)
    return status, [path.read_text() for path in sorted((tmp_path / "kept").glob("*-5-*.txt"))]


@pytest.mark.slow
def test_nothing_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = time.monotonic()
    assert searched(tmp_path, Kind("agrees", agrees, seconds=1), Kind("other", agrees, missing="not here")) == (0, [])
    assert time.monotonic() - start < 60 * float(MOMENT) + 15
    said = capsys.readouterr().out
    assert "skipped: other (not here)" in said and "seed 5" in said
    _, cases, calls, differences, rate = next(line for line in said.splitlines() if line.startswith("agrees")).split()
    assert int(cases) > 0 and (calls, differences, rate) == ("0", "0", "0.00")


def test_a_difference_is_found_and_shortened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # the kinds have their turns in this order, and the time may be over after the first
    status, kept = searched(tmp_path, Kind("differs", differs), Kind("agrees", agrees, seconds=1), minutes="0.2")
    assert (status, kept) == (1, ["numbers [7]\n"])
    assert "numbers [7]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind("dies", dies), "a deadly case\n\nthe process of the case ended with -6"),
        (Kind("hangs", hangs, limit=1), "an endless case\n\nthe process of the case did not end in 1 s"),
        (Kind("raises", raises), "a case that raises\n\nraises what the case does not expect"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_case_that_does_not_end_well_is_a_difference(tmp_path: Path, kind: Kind, text: str) -> None:
    status, kept = searched(tmp_path, kind, minutes="0.06")
    assert status == 1 and kept and kept[0].startswith(text)


@pytest.mark.slow
def test_a_batch_that_is_cut_off_is_no_difference(tmp_path: Path) -> None:
    start = time.monotonic()
    assert searched(tmp_path, Kind("hangs", hangs)) == (0, [])
    assert time.monotonic() - start < 60 * float(MOMENT) + 15


def test_the_tool_breaks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert searched(tmp_path, Kind("breaks", breaks)) == (2, [])
    assert "LookupError: of the tool's own" in capsys.readouterr().out


@pytest.mark.slow
def test_a_case_of_every_kind() -> None:
    """The first that a fixed seed draws; in a process of their own, as they set what belongs to the process."""
    program = (
        "import random\n"
        "from tests.soundness.harness.batch import Batch\n"
        "from tests.soundness.kinds import KINDS\n"
        "told = []\n"
        "batch = Batch(lambda *what: told.append(what), 0)\n"
        "for kind in [kind for kind in KINDS if not kind.missing]:\n"
        "    batch.cases = 0\n"
        "    kind.run(random.Random('0'), batch)\n"
        "    assert batch.cases, kind.name\n"
        "assert not [value for what, value in told if what == 'difference'], told\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
