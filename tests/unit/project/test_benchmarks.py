"""The benchmarks' arithmetic and command line: ratios, verdicts, result files, unknown names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, ROOT, _called
from benchmarks.result import Result, Row
from benchmarks.timing import Samples, interleave, interleave_commands, ratio_of


def test_ratio_pairs_rounds_before_it_takes_the_median() -> None:
    base = Samples(wall=[1.0, 2.0, 4.0], cpu=[1.0, 1.0, 1.0])
    twice = Samples(wall=[2.0, 4.0, 8.0], cpu=[3.0, 1.0, 1.0])
    ratio = ratio_of(twice, base)
    assert ratio.wall_median == 2.0
    assert ratio.wall_min == 2.0
    assert ratio.cpu_median == 1.0


def test_ratio_refuses_contenders_with_different_rounds() -> None:
    with pytest.raises(ValueError):
        ratio_of(Samples([1.0], [1.0]), Samples([1.0, 1.0], [1.0, 1.0]))


@pytest.mark.parametrize(("value", "target", "verdict"), [(1.1, 1.15, "met"), (1.15, 1.15, "met"), (1.2, 1.15, "MISSED")])
def test_verdict(value: float, target: float, verdict: str) -> None:
    assert Row("replay", value, "x", target).verdict == verdict


def test_a_name_stands_for_all_that_begin_with_it() -> None:
    assert _called("guards") == ["guards_bert", "guards_gpt48"]
    assert _called("replay_mlp3") == ["replay_mlp3"] and _called("guard") == []


def test_a_share_is_shown_in_percent() -> None:
    assert Row("guards / step", 0.25, "%", 3.0).shown(0.25) == "0.25%"


def test_a_row_without_target_has_no_verdict() -> None:
    assert Row("replay", 9.0, "x").verdict == ""


def test_result_survives_json() -> None:
    result = Result([Row("a", 1.0, "ms", 2.0, "detail")], {"a": {"wall_s": [1.0], "cpu_s": [1.0]}})
    again = Result.from_json(result.to_json())
    assert again == result


def test_interleave_calls_every_contender_in_every_round() -> None:
    calls = {"one": 0, "two": 0}

    def count(name: str) -> int:
        calls[name] += 1
        return sum(range(20_000))

    samples = interleave({"one": lambda: count("one"), "two": lambda: count("two")}, rounds=4, slice_s=0.0001)
    assert [len(s.wall) for s in samples.values()] == [4, 4]
    assert all(seconds > 0 for s in samples.values() for seconds in s.wall)
    assert min(calls.values()) >= 4


def test_a_failing_command_is_an_error_with_its_output() -> None:
    with pytest.raises(RuntimeError, match="no such luck"):
        interleave_commands({"fails": [sys.executable, "-c", "raise SystemExit('no such luck')"]}, rounds=1)


def test_unknown_name_is_refused_with_the_list(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "nonsense", "--json", str(tmp_path / "out.json")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
    )
    assert done.returncode == 2
    assert "nonsense" in done.stderr
    assert all(name in done.stderr for name in BENCHMARKS)
    assert not (tmp_path / "out.json").exists()
