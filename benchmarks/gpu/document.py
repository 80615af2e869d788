"""The report as JSON and Markdown, written anew after every part. Key type: Document. Imports only the standard library."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.gpu.child import Ran, Verdict
from benchmarks.gpu.table import Table

_SHOWN = 1200  # characters of a failure, in Markdown
_BAD = ("failed", "crashed", "too slow")


@dataclass
class Document:
    """``commit``: of the repository. ``begun``: date and time. ``parts``: seconds and problem of each child process."""

    commit: str
    begun: str
    minutes: float
    device: dict[str, Any] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    tests: list[str] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    parts: list[dict[str, Any]] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    is_over: bool = False

    def add(self, ran: Ran) -> None:
        self.device = self.device or ran.device
        self.tests += [test for test in ran.tests if test not in self.tests]
        self.verdicts |= ran.verdicts
        for data in ran.tables:
            table = Table.from_json(data)
            if (known := self.tables.get(table.title)) is None:
                self.tables[table.title] = table
            else:
                known.add(table)
        last = {"output": ran.output} if ran.problem else {}
        self.parts.append({"name": ran.job.name, "seconds": ran.seconds, "problem": ran.problem, **last})

    @property
    def untested(self) -> list[str]:
        """Tests that are there but have no verdict."""
        return [test for test in self.tests if test not in self.verdicts]

    @property
    def bad(self) -> dict[str, Verdict]:
        return {test: verdict for test, verdict in self.verdicts.items() if verdict.outcome in _BAD}

    @property
    def problems(self) -> list[str]:
        """Of the parts whose tests don't tell it."""
        told = {test.split("::")[0].rpartition("/")[2].removesuffix(".py") for test in self.verdicts}
        return [
            f"{part['name']}: {part['problem']}{': ' if part['output'] else ''}{part['output']}"
            for part in self.parts
            if part["problem"] and part["name"] not in told
        ]

    def to_json(self) -> dict[str, Any]:
        counts = Counter(verdict.outcome for verdict in self.verdicts.values())
        return {
            "commit": self.commit, "begun": self.begun, "minutes": self.minutes, "is_over": self.is_over,
            "device": self.device, "counts": dict(counts), "verdicts": {k: asdict(v) for k, v in self.verdicts.items()},
            "untested": self.untested, "tables": [table.to_json() for table in self.tables.values()],
            "parts": self.parts, "not_run": self.not_run,
        }  # fmt: skip

    def write(self, folder: Path) -> None:
        """``report.json`` and ``report.md``; a file is replaced as a whole."""
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / "report.json", json.dumps(self.to_json(), indent=1) + "\n")
        _replace(folder / "report.md", self.markdown())

    def markdown(self) -> str:
        lines = [f"# Report for {self.device.get('name', 'an unknown device')}", ""]
        if not self.is_over:
            lines += ["**Not complete: written while it was running.**", ""]
        lines += [f"Commit {self.commit}, {self.begun}, at most {self.minutes:g} minutes.", ""]
        lines += [f"- {key}: {value}" for key, value in self.device.items() if key != "name"] + [""]
        lines += ["## Verdicts", "", self._summary(), ""]
        lines += self._failures()
        if self.tables:
            lines += ["## Measurements", ""]
        for table in self.tables.values():
            lines += table.markdown()
        if self.problems:
            lines += ["## Parts that are not complete", "", *(f"- {problem}" for problem in self.problems), ""]
        if self.not_run:
            lines += ["## Not run: the time was over", "", *(f"- {name}" for name in self.not_run), ""]
        lines += self._all_tests()
        return "\n".join(lines).rstrip() + "\n"

    def _summary(self) -> str:
        counts = Counter(verdict.outcome for verdict in self.verdicts.values())
        told = [f"{counts[outcome]} {outcome}" for outcome in ("passed", *_BAD, "skipped") if counts[outcome]]
        if self.untested:
            told.append(f"{len(self.untested)} without a verdict")
        return (", ".join(told) or "No test has run") + "."

    def _failures(self) -> list[str]:
        lines = []
        for test, verdict in self.bad.items():
            text = verdict.message[-_SHOWN:].strip()
            lines += [f"**{_short(test)}** {verdict.outcome} after {verdict.seconds:g} s", "", "```text", text, "```", ""]
        return lines

    def _all_tests(self) -> list[str]:
        lines = ["## All tests", "", "| test | verdict | s |", "|---|---|---:|"]
        for test in [*self.verdicts, *self.untested]:
            verdict = self.verdicts.get(test, Verdict("not run"))
            why = f": {_line(verdict.message)}" if verdict.outcome == "skipped" else ""
            lines.append(f"| {_short(test)} | {verdict.outcome}{why} | {verdict.seconds:.1f} |")
        return lines if len(lines) > 4 else []


def _short(test: str) -> str:
    return test.removeprefix("tests/gpu/").replace("|", "\\|")


def _line(message: str) -> str:
    return (message.strip().splitlines() or [""])[0].replace("|", "\\|")


def _replace(path: Path, text: str) -> None:
    new = path.with_suffix(path.suffix + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
