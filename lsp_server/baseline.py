"""The findings a project lives with: only what is not among them is new. Key types: Baseline, Entry, BaselineError.

An entry is what a fingerprint is made of (code, file, function, text of the line) and how often it is there, so that the
file can be read and reviewed. Files are relative to the folder of the baseline. Each run (mode and entrypoint) has its own
part, for what one entrypoint does not come to may well be found by another.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from lsp_server.fingerprint import identity
from lsp_server.sources import Sources
from magpy_core.findings import Finding, Severity

_VERSION = 1
_ABOUT = "Findings that are known; `--update-baseline` writes this file anew, and a run drops what is gone."
_MEND = "mend it, or make it anew with --update-baseline."
# They say that the run did not happen as it should: never something to live with.
_NEVER = ("MP903", "MP905", "MP906", "MP907", "MP908", "MP910")


class BaselineError(Exception):
    """The file can't be used; one sentence says why and what to do."""


class Entry(NamedTuple):
    """What makes two findings the same one, in two runs."""

    code: str
    file: str
    function: str
    line: str


@dataclass
class Part:
    """What is known of one run, and how many steps it was asked for when that was written (0: to the end)."""

    steps: int = 0
    counts: Counter[Entry] = field(default_factory=Counter)


@dataclass
class Judged:
    """What a baseline makes of a run: ``new`` findings, how many were ``known``, and what was not found any more."""

    new: list[Finding]
    known: int
    gone: Counter[Entry]


@dataclass
class Baseline:
    file: Path
    parts: dict[str, Part] = field(default_factory=dict)

    @staticmethod
    def load(file: Path) -> Baseline:
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise BaselineError(f"There is no baseline {file}: make it with --update-baseline.") from None
        except OSError as error:
            raise BaselineError(f"The baseline {file} can't be read: {error.strerror or error}.") from None
        except ValueError:
            raise BaselineError(
                f"The baseline {file} is not JSON: mend it, or make it anew with --update-baseline."
            ) from None
        try:
            if data["version"] != _VERSION:
                raise BaselineError(f"The baseline {file} has version {data['version']!r}, this is {_VERSION}: {_MEND}")
            return Baseline(file, {name: _part(part) for name, part in data["runs"].items()})
        except (KeyError, TypeError, AttributeError, ValueError):
            raise BaselineError(f"{file} has not the form of a baseline: {_MEND}") from None

    def judge(self, run: str, findings: Iterable[Finding], sources: Sources) -> Judged:
        """Splits the findings of ``run``. Where more are found than are known, the later ones count as new."""
        left = Counter(self.parts[run].counts) if run in self.parts else Counter[Entry]()
        new, known = [], 0
        for finding in findings:
            entry = self._entry(finding, sources)
            if left[entry] > 0 and finding.code not in _NEVER:
                left[entry] -= 1
                known += 1
            else:
                new.append(finding)
        return Judged(new, known, +left)

    def shrink(self, run: str, steps: int, gone: Counter[Entry], enabled: Callable[[str], bool]) -> int:
        """Drops what was not found any more; returns how many.

        Only of what the run could have found: as many steps as the part was written with, and codes that are selected.
        """
        part = self.parts.get(run)
        if part is None or (steps != 0 and (part.steps == 0 or steps < part.steps)):
            return 0
        dropped = Counter({entry: n for entry, n in gone.items() if enabled(entry.code)})
        part.counts -= dropped
        return dropped.total()

    def replace(self, run: str, steps: int, findings: Iterable[Finding], least: Severity, sources: Sources) -> int:
        """Makes the part of ``run`` anew from ``findings`` at least as severe as ``least``; returns how many it has."""
        entries = [self._entry(f, sources) for f in findings if f.severity.rank <= least.rank and f.code not in _NEVER]
        self.parts[run] = Part(steps, Counter(entries))
        return len(entries)

    def write(self) -> None:
        """All of it or nothing: a reader never sees half a file."""
        runs = {
            name: {"steps": part.steps, "findings": [{**e._asdict(), "count": n} for e, n in sorted(part.counts.items())]}
            for name, part in sorted(self.parts.items())
        }
        text = json.dumps({"about": _ABOUT, "version": _VERSION, "runs": runs}, indent=1, ensure_ascii=False) + "\n"
        temporary = None
        try:
            with tempfile.NamedTemporaryFile(
                "w", encoding="utf-8", errors="replace", dir=self.file.parent, prefix=self.file.name, delete=False
            ) as stream:
                temporary = stream.name
                stream.write(text)
            mode = self.file.stat().st_mode if self.file.exists() else 0o666 & ~_umask()
            os.chmod(temporary, mode)
            os.replace(temporary, self.file)
        except OSError as error:
            if temporary is not None and os.path.exists(temporary):
                os.unlink(temporary)
            raise BaselineError(f"The baseline {self.file} can't be written: {error.strerror or error}.") from None

    def _entry(self, finding: Finding, sources: Sources) -> Entry:
        return Entry(*identity(finding, self.file.parent, sources))


def _part(data: dict[str, Any]) -> Part:
    counts: Counter[Entry] = Counter()
    for found in data["findings"]:
        entry = Entry(*(str(found[name]) for name in Entry._fields))
        counts[entry] += int(found["count"])
    return Part(int(data["steps"]), counts)


def _umask() -> int:
    now = os.umask(0o022)
    os.umask(now)
    return now
