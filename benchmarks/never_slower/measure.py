"""The wall time of `magpy-lsp run` against the plain script: whole processes, for programs of about 10, 30 and 120 seconds.

Goal: at most 5% and two seconds more than eager mode, whether or not the compiled code is ready before the program ends,
and no slower than eager mode in the last tenth of the run. `MAGPY_BENCHMARK_SECONDS=10,30` chooses other lengths.

`never_slower_second_runs`: real scripts of the first of these lengths (40 s unless chosen) in their second run, three times,
each from what the same first run has stored. Goal: 0.95x of eager mode in the geometric mean, and none above 1.03x.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import geometric_mean, mean, median

from benchmarks.never_slower.programs import PROGRAMS, Program, findings_corpus
from benchmarks.result import Result, Row
from benchmarks.timing import Samples, ratio_of, run_command

_LENGTHS = tuple(int(n) for n in os.environ.get("MAGPY_BENCHMARK_SECONDS", "10,30,120").split(","))
_RUNS = ("first run", "second run")  # which finds what the first one has compiled
_ENOUGH_S = 1.0
_SHORT = 30  # so short ones are run in eager mode behind the last run, too
_NOISE = 1.05  # of medians of single steps
_REAL_S = int(os.environ.get("MAGPY_BENCHMARK_SECONDS", "40").split(",")[0])
_REPEATS = 3
_REAL_MEAN, _REAL_MOST = 0.95, 1.03  # of eager mode


class _Timer:
    """Runs one program in ``folder``, which does not exist yet. Its own folder of caches is empty at first."""

    def __init__(self, program: Program, folder: str) -> None:
        self._program, self._folder = program, folder
        program.prepare(Path(folder))
        self._environment = ["env", *(["-u", "OMP_NUM_THREADS"] if program.threads == "default" else [])]
        self.start = min(self.plain(1)[0] for _ in range(2))
        self.unit = self._measured_unit(program.probe)

    def _measured_unit(self, n: int) -> float:
        """Seconds of one unit, of enough of them to be told from the start."""
        while (seconds := self.plain(n)[0] - self.start) < _ENOUGH_S:
            n *= 4
        return seconds / (n - 1)

    def units(self, seconds: int) -> int:
        return max(self._program.probe, round((seconds - self.start) / self.unit))

    def plain(self, n: int) -> tuple[float, float]:
        command = [sys.executable, *self._program.command(n, self._folder)]
        return run_command([*self._environment, *command], cwd=self._folder)

    def run(self, n: int, cache: str) -> tuple[float, float]:
        script, *rest = self._program.command(n, self._folder)
        report = ["--format", "json", "--output", self.report]
        command = [sys.executable, "-m", "lsp_server.cli", "run", *report, script, "--", *rest]
        ours = ["-u", "TORCHINDUCTOR_CACHE_DIR", f"XDG_CACHE_HOME={cache}"]
        return run_command([*self._environment, *ours, *command], cwd=self._folder)

    @property
    def report(self) -> str:
        return str(Path(self._folder) / "report.json")


def _compare(timer: _Timer, name: str, seconds: int) -> Result:
    """Each run is compared with the plain ones right before and after it: the machine is not always equally fast."""
    n = timer.units(seconds)
    plain, runs, rows = Samples(), Samples(), []
    plain.add(*timer.plain(n))
    with tempfile.TemporaryDirectory() as cache:
        for which in _RUNS:
            runs.add(*timer.run(n, cache))
            last = _last_tenth(json.loads(Path(timer.report).read_text(encoding="utf-8")))
            if seconds <= _SHORT or which != _RUNS[-1]:
                plain.add(*timer.plain(n))
            beside, after = mean(plain.wall[len(runs.wall) - 1 :]), runs.wall[-1]
            detail = f"{n} steps: plain {beside:.1f} s, {which} {after:.1f} s ({after / beside:.2f}x)"
            rows.append(Row(f"{name}, {seconds} s, {which}: beyond 1.05x of plain", after - 1.05 * beside, "s", 2.0, detail))
            if last is not None:
                rows.append(Row(f"{name}, {seconds} s, {which}: last tenth against plain steps", last, "x", _NOISE))
    return Result(rows, {f"{name}, {seconds} s: plain": plain.to_json(), f"{name}, {seconds} s: runs": runs.to_json()})


def _last_tenth(report: dict[str, object]) -> float | None:
    """Steps of the last tenth against plain ones of the same run, by their medians; None if it did not time them."""
    step = report.get("step")
    if not isinstance(step, dict) or step["plain_ms"] is None:
        return None
    last = [s["ms"] for s in step["timeline"] if s["step"] > 0.9 * step["count"]]
    return float(median(last) / step["plain_ms"]) if last else None


def _second_runs(program: Program) -> tuple[Row, Samples, Samples]:
    """The median of second runs against the eager ones right before them."""
    print(f"  {program.name}", file=sys.stderr, flush=True)
    plain, runs = Samples(), Samples()
    with tempfile.TemporaryDirectory() as folder:
        timer = _Timer(program, str(Path(folder) / program.name))
        n, stored = timer.units(_REAL_S), Path(folder) / "stored"
        stored.mkdir()
        first = timer.run(n, str(stored))[0]
        for i in range(_REPEATS):
            copy = shutil.copytree(stored, Path(folder) / f"copy{i}", symlinks=True)
            plain.add(*timer.plain(n))
            runs.add(*timer.run(n, str(copy)))
    eager, second = median(plain.wall), median(runs.wall)
    detail = f"{n} rounds: eager {eager:.1f} s, first run {first:.1f} s ({first / eager:.2f}x), second {second:.1f} s"
    print(f"    {detail}: {plain.wall}, {runs.wall}", file=sys.stderr, flush=True)
    row = Row(f"{program.name}: second run against eager mode", ratio_of(runs, plain).wall_median, "x", _REAL_MOST, detail)
    return row, plain, runs


def never_slower_second_runs() -> Result:
    """Real scripts with torch's default threads, as people start them."""
    result = Result()
    for program in PROGRAMS.values():
        if program.name.startswith("real_"):
            row, plain, runs = _second_runs(program)
            result.rows.append(row)
            result.samples |= {f"{program.name}: plain": plain.to_json(), f"{program.name}: runs": runs.to_json()}
    average = geometric_mean(row.value for row in result.rows)
    result.rows.append(Row("second runs, geometric mean", average, "x", _REAL_MEAN))
    return result


def _measure(program: Program, lengths: tuple[int, ...]) -> Result:
    print(f"  {program.name}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        timer = _Timer(program, str(Path(folder) / program.name))
        results = [_compare(timer, program.name, seconds) for seconds in lengths]
    return _together(results)


def _together(results: list[Result]) -> Result:
    rows = [row for result in results for row in result.rows]
    return Result(rows, {name: samples for result in results for name, samples in result.samples.items()})


def never_slower_findings() -> Result:
    """The training programs of the findings corpus, each repeated for about ten seconds."""
    return _together([_measure(program, _LENGTHS[:1]) for program in findings_corpus()])


for _name, _program in PROGRAMS.items():
    globals()[f"never_slower_{_name}"] = functools.partial(_measure, _program, _LENGTHS)
