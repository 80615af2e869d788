"""The verdict about runs, from states, lines and files that are made up here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from magpy_core.limits import LIMITS
from magpy_core.verification.runs.verdict import RunVerdict, judge

ONES = torch.linspace(1.0, 2.0, 64)
EPS = 1e-6


class Runs:
    """Writes what runs have left; ``change`` is added to the weight after each step."""

    def __init__(self, base: Path) -> None:
        self.base = base

    def add(self, name: str, change: Any = 0.0, *, text: str = "done\n", steps: int = 4, files: Any = ()) -> None:
        folder = self.base / name
        (folder / "files").mkdir(parents=True)
        states = {}
        for number, label in enumerate(["1", "2", "4", "end"]):
            changed = change[number] if isinstance(change, list) else change
            torch.save({"Net.weight": ONES + changed, "seen": torch.tensor(3)}, folder / f"{label}.pt")
            states[label] = f"{label}.pt"
        index = {"states": states, "left_out": [], "error": "", "itself": True, "steps": steps}
        (folder / "index.json").write_text(json.dumps(index))
        (folder / "stdout").write_text(text)
        for file, content in dict(files).items():
            if isinstance(content, str):
                (folder / "files" / file).write_text(content)
            else:
                torch.save(content, folder / "files" / file)

    def verdict(self) -> RunVerdict:
        return judge(self.base)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    made = Runs(tmp_path)
    made.add("eager")
    return made


def test_equal_bits_are_the_verdict_of_two_runs(runs: Runs) -> None:
    runs.add("compiled")
    assert (runs.verdict().kind, runs.verdict().need, runs.verdict().compared_steps) == ("equal", "", [1, 2, 4])


def test_a_difference_needs_an_eager_run_again_and_then_noise(runs: Runs) -> None:
    runs.add("compiled", [0.0, EPS, EPS, EPS])
    assert runs.verdict().need == "again"
    runs.add("again")
    assert runs.verdict().need == "noise"
    runs.add("noise-0", EPS)
    found = runs.verdict()
    assert (found.kind, found.need) == ("rounding", "")
    assert [(one.step, one.compiled > 0, one.noise > 0) for one in found.growth] == [
        (1, False, True), (2, True, True), (4, True, True), (None, True, True)
    ]  # fmt: skip


def test_more_than_noise_is_a_difference_at_the_first_step_that_has_it(runs: Runs) -> None:
    runs.add("compiled", [0.0, 100 * EPS, 200 * EPS, 300 * EPS])
    runs.add("again")
    for number in range(LIMITS.noisy_programs):
        runs.add(f"noise-{number}", EPS)
        assert runs.verdict().need == ("" if number == LIMITS.noisy_programs - 1 else "noise")
    found = runs.verdict()
    (difference,) = found.differences
    assert found.kind == "differs" and (difference.what, difference.name, difference.step) == ("state", "Net.weight", 2)
    assert difference.largest == pytest.approx(1e-4, rel=0.1) and difference.explained == pytest.approx(1e-6, rel=0.3)


def save_updates(base: Path, kind: str, *, gradient: float, update: float) -> None:
    """Of one optimizer in step 2: what is added to what the eager run has, as a part of it."""
    for name, by, moved in (("eager", 0.0, 0.0), ("compiled", gradient, update)):
        saved = {"gradients": {"0": ONES * (1 + by)}, "updates": {"0": -ONES * (1 + moved)}, "sizes": {"0": 1e-7}}
        torch.save([{"kind": kind, **saved}], base / name / "updates-2.pt")
        index = json.loads((base / name / "index.json").read_text())
        (base / name / "index.json").write_text(json.dumps({**index, "updates": {"2": "updates-2.pt"}}))


ORIGIN = {"operation": "addmm", "where": "train.py:3", "apart": 1e-7, "step": 2}


def test_the_operation_and_the_optimizer_that_make_a_difference_are_named(runs: Runs) -> None:
    runs.add("compiled", [0.0, EPS, EPS, EPS])
    runs.add("again")
    runs.add("noise-0", EPS)
    assert runs.verdict().origin is None and "gave the same bits" in runs.verdict().why_no_origin
    assert runs.verdict().amplified is None
    (runs.base / "compiled" / "origin.json").write_text(json.dumps({"origin": ORIGIN, "why": []}))
    save_updates(runs.base, "Adadelta", gradient=1e-6, update=1e-2)
    found = runs.verdict()
    assert found.origin == ORIGIN and found.why_no_origin == "" and found.amplified is not None
    assert (found.amplified.optimizer, found.amplified.step) == ("Adadelta", 2)
    assert found.amplified.factor == pytest.approx(1e4, rel=0.1)


@pytest.mark.parametrize(("gradient", "update"), [(1e-6, 2e-6), (0.0, 1e-2), (float("nan"), 1.0), (1e-6, float("nan"))])
def test_an_optimizer_that_only_passes_a_difference_on_is_not_named(runs: Runs, gradient: float, update: float) -> None:
    runs.add("compiled", EPS)
    save_updates(runs.base, "SGD", gradient=gradient, update=update)
    assert runs.verdict().amplified is None


def test_what_storing_a_parameter_rounds_away_is_no_amplification(runs: Runs) -> None:
    runs.add("compiled", EPS)
    save_updates(runs.base, "SGD", gradient=1e-9, update=5e-9)  # less than the sizes say
    assert runs.verdict().amplified is None


def test_a_difference_that_left_no_trace_in_the_state_explains_none(runs: Runs) -> None:
    runs.add("compiled", [0.0, EPS, EPS, EPS])
    runs.add("again")
    runs.add("noise-0", EPS)
    early = {"origin": {**ORIGIN, "step": 1}, "why": []}
    (runs.base / "compiled" / "origin.json").write_text(json.dumps(early))
    found = runs.verdict()
    assert (found.kind, found.need, found.between, found.origin) == ("rounding", "origin", (1, 2), None)
    (runs.base / "origin").mkdir()
    assert runs.verdict().need == "" and "gave the same bits" in runs.verdict().why_no_origin
    (runs.base / "origin" / "origin.json").write_text(json.dumps({"origin": ORIGIN, "why": []}))
    assert runs.verdict().origin == ORIGIN and runs.verdict().need == ""


def test_where_the_time_was_up_before_states_differ_one_more_run_looks_from_there_on(runs: Runs) -> None:
    runs.add("compiled", [0.0, EPS, EPS, EPS])
    runs.add("again")
    runs.add("noise-0", EPS)
    for until, need in ((1, "origin"), (2, "")):
        up = {"origin": None, "why": ["the time was up"], "until": until}
        (runs.base / "compiled" / "origin.json").write_text(json.dumps(up))
        found = runs.verdict()
        assert (found.need, found.origin) == (need, None)
    assert found.why_no_origin == "the time was up"


def test_an_operation_that_differs_after_the_first_difference_does_not_explain_it(runs: Runs) -> None:
    runs.add("compiled", [EPS, EPS, EPS, EPS])
    (runs.base / "compiled" / "origin.json").write_text(json.dumps({"origin": ORIGIN, "why": []}))
    found = runs.verdict()
    assert found.origin is None and "in step 2, which is later" in found.why_no_origin
    why = "calls of compiled code could not be compared: it communicates"
    (runs.base / "compiled" / "origin.json").write_text(json.dumps({"origin": None, "why": [why]}))
    assert runs.verdict().why_no_origin == why


def test_chaos_at_the_end_hides_no_difference_of_an_early_step(runs: Runs) -> None:
    runs.add("compiled", [1e-3, 1e-2, 1e-1, 1.0])
    runs.add("again")
    for number in range(LIMITS.noisy_programs):
        runs.add(f"noise-{number}", [EPS, 1e-2, 1.0, 1.0])
    assert runs.verdict().kind == "differs" and runs.verdict().differences[0].step == 1


def test_two_eager_runs_that_differ_say_that_seeds_are_not_fixed(runs: Runs) -> None:
    runs.add("compiled", 0.5)
    runs.add("again", [0.0, 0.25, 0.25, 0.25])
    assert (runs.verdict().kind, runs.verdict().why, runs.verdict().need) == ("unseeded", "2", "")


def test_states_that_differ_only_before_an_equal_end_were_saved_at_other_points(runs: Runs) -> None:
    runs.add("compiled", [0.0, 0.5, 0.0, 0.0])
    found = runs.verdict()
    assert found.kind == "equal" and found.ignored


def test_lines_and_files_are_compared(runs: Runs) -> None:
    runs.add("compiled", text="gone\n", files={"log.txt": "a"})
    runs.add("again")
    for number in range(LIMITS.noisy_programs):
        runs.add(f"noise-{number}", EPS)
    assert [(one.what, one.name) for one in runs.verdict().differences] == [("stdout", "stdout"), ("file", "log.txt")]


@pytest.mark.parametrize(("size", "kind"), [(EPS, "rounding"), (1e-3, "differs")])
def test_saved_tensors_are_compared_as_numbers(tmp_path: Path, size: float, kind: str) -> None:
    runs = Runs(tmp_path)
    for name, change in [("eager", 0.0), ("compiled", size), ("again", 0.0), *((f"noise-{n}", EPS) for n in range(3))]:
        runs.add(name, files={"last.pt": {"model": {"w": ONES + change}, "epoch": 3, "name": "net"}})
    assert runs.verdict().kind == kind
    if kind == "differs":
        assert runs.verdict().differences[0].text.startswith("`model.w` differs by up to 0.001")


def test_a_time_in_a_file_is_left_out(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    for name, text in [("eager", "1.5 s"), ("compiled", "2.5 s"), ("again", "1.7 s")]:
        runs.add(name, files={"log.txt": text})
    assert runs.verdict().kind == "equal" and runs.verdict().ignored == [
        "log.txt: numbers that differ between two eager runs"
    ]


def test_another_number_of_steps_is_a_difference_unless_noise_changes_it(runs: Runs) -> None:
    runs.add("compiled", steps=5)
    runs.add("again")
    runs.add("noise-0", EPS)
    assert runs.verdict().differences[0].text == "eager mode makes 4 steps, compiled code 5"
    runs.add("noise-1", EPS, steps=6)
    assert runs.verdict().kind == "rounding"


def test_a_run_without_an_end_can_not_be_compared(runs: Runs) -> None:
    (runs.base / "compiled").mkdir()
    assert runs.verdict().kind == "nothing" and "ended before" in runs.verdict().why


def test_tensors_that_only_one_run_has_are_named(runs: Runs) -> None:
    runs.add("compiled")
    path = runs.base / "compiled" / "end.pt"
    torch.save({**torch.load(path), "Other.weight": ONES}, path)
    assert runs.verdict().ignored == ["tensors that only one run has (1, such as Other.weight)"]
