"""Kernels for a CUDA device, run on the CPU by Triton's interpreter, agree with eager mode. Needs the ``triton`` package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.programs.kernels.program import GROUPS, Program, programs_of

pytest.importorskip("triton")


def results_of(*arguments: str) -> dict[str, dict[str, Any]]:
    """Of `tests.programs.kernels.run` in a process of its own, by program."""
    command = [sys.executable, "-m", "tests.programs.kernels.run", *arguments]
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=280, check=False)
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0, f"after {[result['name'] for result in results]}: {done.stderr[-3000:]}"
    return {result["name"]: result for result in results}


def problem(program: Program, result: dict[str, Any]) -> str:
    """What is wrong with the run of a program; empty if nothing is."""
    if program.unsupported is not None:
        text, _ = program.unsupported
        return "" if text in result["error"] else f"runs, or fails with another error: {result['error'][:300]!r}"
    return str(result["error"][:300] or "; ".join(result["differences"]))


def test_the_programs_are_many() -> None:
    known = {name: program for part in GROUPS for group in part for name, program in programs_of(group).items()}
    assert sum(program.unsupported is None for program in known.values()) >= 80
    assert {name for name, program in known.items() if program.unsupported} == {"arctangent", "flash_attention"}


@pytest.mark.slow
def test_small_programs_agree() -> None:
    results = results_of("pointwise.chain", "normalization.layer_norm")
    found = {name: result["error"] or result["differences"] for name, result in results.items()}
    assert found == {"chain": [], "layer_norm": []}
    assert all(result["kernels"] for result in results.values())


@pytest.mark.slow
@pytest.mark.parametrize("part", GROUPS, ids="-".join)
def test_kernels_agree_with_eager_mode(part: tuple[str, ...]) -> None:
    programs = {name: program for group in part for name, program in programs_of(group).items()}
    results = results_of(*part)
    assert results.keys() == programs.keys()
    problems = {name: problem(program, results[name]) for name, program in programs.items()}
    assert not {name: text for name, text in problems.items() if text}


@pytest.mark.slow
def test_a_wrong_kernel_is_found() -> None:
    results = results_of("--plant", "xmask = xindex < xnumel", "xmask = xindex < xnumel - 1", "pointwise.chain")
    assert "result 0" in results["chain"]["differences"][0] and not results["chain"]["error"]
