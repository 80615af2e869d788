"""The sweep over transformers: three tiny architectures in both modes, and what the report makes of records."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.sweeps.parent import ROOT, read
from benchmarks.transformers_sweep.report import costs, counted, left_out, markdown, merged, summary

NAMES = ("bert", "t5", "vit")


@pytest.mark.slow
def test_three_architectures_are_captured_whole(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the [examples] extra is not installed")
    results, page = tmp_path / "results.jsonl", tmp_path / "page.md"
    command = [sys.executable, "-m", "benchmarks.transformers_sweep", "--results", str(results), "--engine", "magpy"]
    command += ["--only", ",".join(NAMES), "--jobs", "1", "--markdown", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    found = {at: record["magpy"] for at, record in merged(read(results)).items()}
    assert {at: verdict["status"] for at, verdict in found.items()} == {
        (name, mode): "complete" for name in NAMES for mode in ("eval", "train")
    }, found
    assert all(verdict["guards"] > 50 and len(verdict["call_seconds"]) == 3 for verdict in found.values())
    assert "| architectures | 3 | 3 |" in page.read_text()


def test_an_unknown_architecture_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.transformers_sweep", "--only", "no-such", "--results", str(tmp_path / "r")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2 and "no-such" in done.stderr


def record(name: str, mode: str, engine: str, status: str, *seconds: float) -> dict[str, Any]:
    verdict = {"status": status, "reason": "why", "call_seconds": list(seconds)}
    return {"case": name, "mode": mode, "kind": "encoder", "model": "M", engine: verdict}


RECORDS = [
    record("a", "eval", "magpy", "complete", 0.1, 0.1, 0.0),
    record("a", "eval", "dynamo", "complete", 1.0, 0.0, 0.0),
    record("b", "eval", "magpy", "error"),
    record("b", "eval", "magpy", "complete", 0.3, 0.0, 0.0),  # run again: this one counts
    record("b", "eval", "dynamo", "break"),
    record("c", "eval", "magpy", "wrong"),
    record("c", "eval", "dynamo", "complete", 2.0, 0.0, 0.0),
    record("d", "eval", "magpy", "eager failed"),
    record("e", "eval", "magpy", "complete", 0.1, 0.0, 0.0),  # not run under dynamo yet
]


def test_both_engines_are_counted_on_the_same_architectures() -> None:
    assert {r["case"] for r in counted(RECORDS, "eval")} == {"a", "b", "c"}
    magpy, dynamo = (summary(RECORDS, "eval", engine) for engine in ("magpy", "dynamo"))
    assert (magpy["architectures"], magpy["complete"], magpy["wrong"]) == (3, 2, 1)
    assert (dynamo["architectures"], dynamo["complete"], dynamo["break"]) == (3, 2, 1)
    assert [(name, mode) for name, mode, _ in left_out(RECORDS)] == [("d", "eval")]
    cost = costs(RECORDS, "eval")["first two calls"]
    assert (cost["models"], cost["magpy less"]) == (1, 1) and cost["magpy"] == pytest.approx(0.2)
    assert "66.7%" in markdown(RECORDS) and "**wrong** c (eval)" in markdown(RECORDS)
