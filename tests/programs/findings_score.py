"""Precision and recall of the findings over the corpus: ``python -m tests.programs.findings_score [--messages] [NAME...]``.

Expected and reported findings are compared by code, file and exact range. What is reported at warning level or above and
not expected, or more often than expected, is a surplus; what is expected and not reported there is missing. Exit status 1
below 99 % of either. ``--messages`` prints what each finding says, to be read. Key functions: ``reports``, ``compare``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from magpy_core.findings import Finding, Report, Severity, lookup
from tests.programs.findings_help import FOLDER, Expected, Program, corpus, shown
from tests.programs.runner_help import ROOT

TARGET = 0.99


@dataclass
class Reported:
    """What one program got; ``error``: why it did not run to its end."""

    findings: list[Finding] = field(default_factory=list)
    error: str = ""


@dataclass
class Score:
    """Of one program or of several."""

    right: Counter[str] = field(default_factory=Counter)
    missing: list[tuple[Expected, str]] = field(default_factory=list)
    surplus: list[Finding] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def add(self, other: Score) -> None:
        self.right += other.right
        self.missing += other.missing
        self.surplus += other.surplus
        self.errors += other.errors

    def shares(self, code: str | None = None) -> tuple[float, float]:
        """Precision and recall, of one code or of all."""
        right = sum(self.right.values()) if code is None else self.right[code]
        missing = sum(1 for want, _ in self.missing if code in (None, want.code))
        surplus = sum(1 for f in self.surplus if code in (None, f.code))
        return right / ((right + surplus) or 1), right / ((right + missing) or 1)

    @property
    def problems(self) -> list[str]:
        """One line for each thing that is not as expected."""
        return [
            *self.errors,
            *(f"missing {shown(want)}: {want.code}{near}" for want, near in self.missing),
            *(f"surplus {shown(f.location)}: {f.code} {f.message}" for f in self.surplus),
        ]


def compare(program: Program, reported: Reported) -> Score:
    """Every expected finding at its range, as often as expected, and no other warning or error."""
    score = Score(errors=[f"{program.path.name} did not run:\n{reported.error}"] if reported.error else [])
    left = list(reported.findings)
    for want in program.expected:
        here = [f for f in left if (f.code, f.location.file, f.location.range) == (want.code, want.file, want.range)]
        # the same line in two regions is one finding to the reader, shown once for each region
        times = max(Counter(f.region for f in here).values(), default=0)
        warnings = [f for f in here if f.severity.rank <= Severity.WARNING.rank]
        doubled = max(Counter(f.region for f in warnings).values(), default=0) - want.times
        left = [f for f in left if f not in here]
        score.right[want.code] += min(times, want.times)
        score.missing += [(want, _near(want, reported.findings))] * (want.times - times)
        score.surplus += warnings[: max(doubled, 0)]
    score.surplus += [f for f in left if f.severity.rank <= Severity.WARNING.rank]
    return score


def _near(want: Expected, findings: list[Finding]) -> str:
    places = [shown(f.location) for f in findings if f.code == want.code]
    return f" (it is at {', '.join(sorted(set(places)))})" if places else ""


def reports(programs: dict[str, Program]) -> dict[str, Reported]:
    """Run them all: most in one process, the others by ``magpy-lsp check``."""
    together = [name for name, program in programs.items() if not program.in_child]
    found = _run_together(together) if together else {}
    return {name: found[name] if name in found else _check(program) for name, program in programs.items()}


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MAGPY_VERIFY": "1"}


def _run_together(names: list[str]) -> dict[str, Reported]:
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch) / "answer.jsonl"
        command = [sys.executable, "-W", "ignore", "-m", "tests.programs.findings_run", str(answer), *names]
        done = subprocess.run(
            command, cwd=ROOT, env=_environment(), capture_output=True, text=True, timeout=280, check=False
        )
        lines = [json.loads(line) for line in answer.read_text(encoding="utf-8").splitlines()] if answer.exists() else []
    found = {line["name"]: Reported([Finding.from_json(f) for f in line["findings"]], line["error"]) for line in lines}
    for name in names:  # the first that is not there took the process down
        found.setdefault(name, Reported(error=f"the process ended with status {done.returncode}: {done.stderr[-1500:]}"))
    return found


def _check(program: Program) -> Reported:
    """The report of ``magpy-lsp check``, as a user runs it."""
    command = [sys.executable, "-m", "lsp_server.cli", "check", "--format", "json", str(program.path)]
    done = subprocess.run(command, cwd=FOLDER, env=_environment(), capture_output=True, text=True, timeout=120, check=False)
    if done.returncode not in (0, 1, 3):
        return Reported(error=done.stderr[-1500:])
    return Reported(Report.from_json(json.loads(done.stdout)).findings)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.programs.findings_score", description=__doc__)
    parser.add_argument("names", nargs="*", help="programs of tests/programs/findings, without .py (all of them)")
    parser.add_argument("--messages", action="store_true", help="print what every finding says (hints left out)")
    arguments = parser.parse_args()
    programs = corpus()
    if unknown := set(arguments.names) - set(programs):
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    programs = {name: p for name, p in programs.items() if not arguments.names or name in arguments.names}
    total = Score()
    for name, reported in reports(programs).items():
        total.add(compare(programs[name], reported))
        if arguments.messages:
            _print_messages(reported.findings)
    print(*total.problems, sep="\n")
    quiet = sum(1 for p in programs.values() if not any(lookup(e.code).severity is Severity.WARNING for e in p.expected))
    print(f"{len(programs)} programs, {quiet} of them without a warning; {sum(total.right.values())} findings as expected")
    codes = sorted({*total.right, *(w.code for w, _ in total.missing), *(f.code for f in total.surplus)})
    print(f"{'code':8}{'right':>7}{'missing':>9}{'surplus':>9}{'precision':>11}{'recall':>9}")
    for code in [*codes, None]:
        precision, recall = total.shares(code)
        counts = [
            sum(total.right.values()) if code is None else total.right[code],
            sum(1 for w, _ in total.missing if code in (None, w.code)),
            sum(1 for f in total.surplus if code in (None, f.code)),
        ]
        print(f"{code or 'all':8}{counts[0]:7}{counts[1]:9}{counts[2]:9}{precision:11.2%}{recall:9.2%}")
    return 0 if min(total.shares()) >= TARGET and not total.errors else 1


def _print_messages(findings: list[Finding]) -> None:
    for f in sorted(findings, key=lambda f: f.location):
        if f.severity is not Severity.HINT:
            print(f"{shown(f.location)}: {f.severity.value} {f.code} {f.message}\n    -> {f.hint}")


if __name__ == "__main__":
    sys.exit(main())
