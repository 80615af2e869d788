"""The report for a CUDA device, without one: child processes that hang, crash and fail, the time limit, the files."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from benchmarks.gpu import child, report
from benchmarks.gpu.child import Ran, Verdict, run
from benchmarks.gpu.document import Document
from benchmarks.gpu.graphed import make_capturable
from benchmarks.gpu.jobs import CALLS, FILES, ROOT, STEPS, TESTS, Job, jobs, known_files
from benchmarks.gpu.replay import NAMES
from benchmarks.gpu.schedule import Schedule
from benchmarks.gpu.table import Table, milliseconds
from benchmarks.gpu.whole_step import difference, flat
from benchmarks.whole_step.programs import LARGE, PROGRAMS

_LONG = 600.0


def _script(body: str, **options: float | bool) -> Job:
    """A child that tells what ``body`` says with ``tell``."""
    start = "import os, signal, sys; from benchmarks.gpu.events import Events; tell = Events().send"
    return Job("script", (sys.executable, "-c", f"{start}\n{body}"), **options)  # type: ignore[arg-type]


def _ran(job: Job, seconds: float = _LONG) -> tuple[Ran, str]:
    log = io.BytesIO()
    return run(job, seconds, log, {**os.environ, "PYTHONPATH": str(ROOT)}), log.getvalue().decode()


def _verdict(test: str, outcome: str) -> str:
    return f"tell({{'test': {test!r}, 'outcome': {outcome!r}, 'seconds': 1.5, 'message': 'why'}})"


# -- a child -------------------------------------------------------------------------------------------------------------


def test_a_child_that_ends_as_it_should() -> None:
    body = f"tell({{'tests': ['a', 'b']}}); {_verdict('a', 'passed')}; {_verdict('b', 'failed')}; print('done'); sys.exit(1)"
    ran, log = _ran(_script(body, are_tests=True))
    assert ran.verdicts == {"a": Verdict("passed", 1.5, "why"), "b": Verdict("failed", 1.5, "why")}
    assert ran.problem == "" and ran.remaining == [] and ran.status == 1
    assert "done" in log and "script: complete" in log


def test_a_crash_belongs_to_the_test_that_ran() -> None:
    body = f"tell({{'tests': ['a', 'b', 'c']}}); {_verdict('a', 'passed')}; tell({{'test': 'b'}}); os.kill(os.getpid(), 11)"
    ran, _ = _ran(_script(body, are_tests=True))
    assert {test: verdict.outcome for test, verdict in ran.verdicts.items()} == {"a": "passed", "b": "crashed"}
    assert ran.remaining == ["c"] and "signal 11" in ran.problem


def test_a_test_that_hangs_is_killed_with_what_it_has_started() -> None:
    """The child's own child keeps the pipe open: it must not keep the report waiting."""
    body = "tell({'tests': ['a', 'b']}); tell({'test': 'a'}); os.fork(); signal.pause()"
    ran, _ = _ran(_script(body, are_tests=True, silence_s=0.2))
    assert ran.verdicts["a"].outcome == "too slow" and ran.remaining == ["b"] and ran.status is None
    assert not ran.is_cut and "killed" in ran.problem


def test_the_end_of_the_report_is_no_fault_of_a_test() -> None:
    body = "tell({'tests': ['a', 'b']}); tell({'test': 'a'}); signal.pause()"
    ran, _ = _ran(_script(body, are_tests=True), seconds=0.5)
    assert ran.is_cut and ran.verdicts == {} and set(ran.remaining) <= {"a", "b"}


def test_a_measurement_that_fails_says_why() -> None:
    ran, log = _ran(_script("raise SystemExit('no such luck')"))
    assert ran.problem == "exit status 1" and ran.output == "no such luck" and "no such luck" in log


def test_half_a_line_is_no_event() -> None:
    body = "tell({'device': {'name': 'x'}}); os.write(int(os.environ['MAGPY_REPORT_FD']), b'{\"table\": {'); os._exit(0)"
    ran, _ = _ran(_script(body))
    assert ran.device == {"name": "x"} and ran.tables == []


def test_an_interrupted_report_leaves_nothing_running() -> None:
    """``end_all`` kills what runs, and the child is over."""
    heard = child._Child._hear

    def hear(self: child._Child, event: dict[str, object]) -> None:
        heard(self, event)
        child.end_all()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child._Child, "_hear", hear)
        ran, _ = _ran(_script("tell({'test': 'a'}); signal.pause()"))
    assert "signal 9" in ran.problem


# -- the schedule --------------------------------------------------------------------------------------------------------


class _Machine:
    """Runs jobs in no time and counts the seconds that they are said to take."""

    def __init__(self, seconds: dict[str, float], results: dict[str, Ran] | None = None) -> None:
        self.now = 0.0
        self.seconds, self.results = seconds, results or {}
        self.order: list[str] = []

    def run(self, job: Job, limit: float) -> Ran:
        self.order.append(job.name)
        taken = min(self.seconds.get(job.name, 1.0), limit)
        self.now += taken
        ran = self.results.pop(job.name, Ran(job, 0))
        ran.is_cut = taken < self.seconds.get(job.name, 1.0)
        return ran

    def schedule(self, beside: Sequence[Job], alone: Sequence[Job], seconds: float = 100.0) -> Schedule:
        schedule = Schedule(self.run, lambda ran: None, seconds, 1, lambda: self.now)
        schedule.run(beside, alone)
        return schedule


def _job(name: str, are_tests: bool = True) -> Job:
    return Job(name, ("true",), are_tests)


def test_tests_then_measurements() -> None:
    machine = _Machine({})
    schedule = machine.schedule([_job("a"), _job("b")], [_job("m", False), _job("n", False)])
    assert machine.order == ["a", "b", "m", "n"] and schedule.not_run == []


def test_measurements_have_their_share_and_tests_what_is_left() -> None:
    machine = _Machine({"a": 40.0, "b": 20.0, "m": 10.0})
    schedule = machine.schedule([_job("a"), _job("b"), _job("c")], [_job("m", False)])
    assert machine.order == ["a", "m", "b", "c"] and schedule.not_run == []


def test_what_the_time_did_not_allow_is_named() -> None:
    machine = _Machine({"a": 39.0, "m": 90.0})
    schedule = machine.schedule([_job("a"), _job("b")], [_job("m", False), _job("n", False)])
    assert machine.order == ["a", "m"] and [job.name for job in schedule.not_run] == ["b", "n"]


def test_tests_after_a_crash_run_in_another_process() -> None:
    first = Ran(_job("a"), -11, verdicts={"one": Verdict("crashed")}, tests=["one", "two"])
    machine = _Machine({}, {"a": first})
    machine.schedule([_job("a")], [])
    assert machine.order == ["a", "a"]


def test_a_process_that_never_comes_to_a_test_is_not_started_again() -> None:
    machine = _Machine({}, {"a": Ran(_job("a"), -11, tests=["one", "two"])})
    machine.schedule([_job("a")], [])
    assert machine.order == ["a"]


# -- the document --------------------------------------------------------------------------------------------------------


def _document() -> Document:
    document = Document("abc", "2026-11-26", 9.0)
    job = Job("test_x", ("true",), True)
    document.add(Ran(Job("probe", ()), 0, device={"name": "H100", "torch": "2.11"}))
    verdicts = {
        "tests/gpu/test_x.py::a": Verdict("passed", 1.0),
        "tests/gpu/test_x.py::b": Verdict("failed", 2.0, "E  1 != 2"),
    }
    document.add(Ran(job, 1, verdicts=verdicts, tests=[*verdicts, "tests/gpu/test_x.py::c"]))
    for name in ("one", "two"):
        document.add(Ran(Job(name, ()), 0, tables=[Table("Steps", ["step", "ms"], [[name, "1.5"]]).to_json()]))
    document.add(Ran(Job("three", ()), -9, problem="killed after 90 s", output="compiling"))
    return document


def test_the_pages_say_everything(tmp_path: Path) -> None:
    document = _document()
    document.not_run = ["step vit"]
    document.write(tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    for part in (
        "# Report for H100", "Not complete", "1 passed, 1 failed, 1 without a verdict", "E  1 != 2", "| one | 1.5 |",
        "three: killed after 90 s: compiling", "- step vit", "| test_x.py::c | not run |", "- torch: 2.11", "Commit abc",
    ):  # fmt: skip
        assert part in text, text
    assert text.count("### Steps") == 1, "rows of one table are together"
    data = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert data["counts"] == {"passed": 1, "failed": 1} and len(data["tables"][0]["rows"]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "report.md"]
    document.is_over = True
    assert "Not complete" not in document.markdown()


def test_numbers_have_three_digits() -> None:
    assert [milliseconds(s) for s in (0.00001234, 0.001234, 0.01234, 0.1234, 1.234)] == [
        "0.012", "1.23", "12.3", "123", "1234",
    ]  # fmt: skip


# -- what there is to run ------------------------------------------------------------------------------------------------


def test_every_test_file_and_program_is_in_the_plan() -> None:
    assert set(FILES) == {path.stem for path in TESTS.glob("test_*.py")} == set(known_files())
    assert set(STEPS) <= PROGRAMS.keys() | LARGE.keys() and set(CALLS) == set(NAMES)
    beside, alone = jobs("cuda")
    assert beside[0].name.split()[0] == FILES[0] and alone[0].name == f"step {STEPS[0]}"
    assert {job.name for job in alone} >= {f"step {name}" for name in STEPS} | {f"call {name}" for name in CALLS}
    assert "kernels" in {job.name for job in alone} - {job.name for job in jobs("cpu")[1]}


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "bert"])
def test_a_step_makes_no_tensors_elsewhere(name: str) -> None:
    """On the meta device, which refuses a tensor of another one."""
    with torch.device("meta"):
        program = PROGRAMS[name]()
    for _ in range(2):
        program.step()
    assert {p.device.type for p in program.parameters()} == {"meta"}


@pytest.mark.parametrize("name", ["gpt_3", "mlp", "gan"])
def test_a_program_is_moved_with_its_batch(name: str) -> None:
    """The optimizers keep their parameters; only what is floating-point changes its type."""
    program = PROGRAMS[name]().to("cpu", torch.float64)
    optimized = [p for optimizer in program.optimizers.values() for group in optimizer.param_groups for p in group["params"]]
    assert {id(p) for p in optimized} <= {id(p) for p in program.parameters()}
    batch = [value for value in vars(program._batch).values() if isinstance(value, torch.Tensor)]
    assert batch and {t.dtype for t in [*optimized, *batch]} <= {torch.float64, torch.int64}
    program.step()


def test_a_capturable_optimizer_counts_on_the_device() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    optimizers = [torch.optim.AdamW([weight]), torch.optim.SGD([weight], lr=0.1)]
    make_capturable(optimizers)
    assert optimizers[0].param_groups[0]["capturable"] and "capturable" not in optimizers[1].param_groups[0]


def test_a_difference_is_a_share_of_the_change() -> None:
    start, wanted = torch.zeros(2), torch.tensor([3.0, 4.0])
    assert difference(wanted, wanted, start) == 0.0
    assert difference(torch.tensor([3.0, 4.5]), wanted, start) == pytest.approx(0.1)
    assert flat(PROGRAMS["mlp"]()).dtype == torch.float64


def test_without_a_device_nothing_else_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def fails(job: Job, *rest: object) -> Ran:
        started.append(job.name)
        return Ran(job, 1, problem="exit status 1", output="RuntimeError: There is no CUDA device")

    monkeypatch.setattr(report, "run", fails)
    assert report.main(["--output", str(tmp_path), "--commit", "abc"]) == 2
    assert started == ["probe"]
    assert "There is no CUDA device" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_a_report_without_a_fault_ends_with_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "run", lambda job, *rest: Ran(job, 0, device={"name": "H100"}))
    assert report.main(["--output", str(tmp_path)]) == 0
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "Not complete" not in text and f"Commit {report.commit()}" in text


@pytest.mark.slow
def test_a_machine_without_a_device(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    assert report.main(["--output", str(tmp_path), "--minutes", "3"]) == 2
    assert "There is no CUDA device" in (tmp_path / "report.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_report_on_the_cpu(tmp_path: Path) -> None:
    """One file of tests, whose CUDA tests are skipped; the page has the verdicts."""
    arguments = [
        "--device",
        "cpu",
        "--output",
        str(tmp_path),
        "--minutes",
        "5",
        "--workers",
        "1",
        "--only",
        "test_device_guards",
    ]
    assert report.main(arguments) == 0, (tmp_path / "report.md").read_text(encoding="utf-8")
    data = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert data["counts"]["passed"] >= 2 and data["counts"]["skipped"] >= 5 and data["untested"] == []
    assert "CUDA only" in (tmp_path / "report.md").read_text(encoding="utf-8")
