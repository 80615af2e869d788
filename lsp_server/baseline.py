"""Known findings of a project, which are not reported as new. Key types: Baseline, Entry, BaselineError.

An entry consists of the parts of a fingerprint (code, file, function, text of the line) and a count, so that people can
read and review the file. Files are relative to the folder of the baseline. Each run (mode and entrypoint) has its own
part, because different entrypoints reach different code.
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
_ABOUT = "Known findings; `--update-baseline` rewrites this file, and a run removes findings that no longer occur."
_HOW_TO_FIX = "fix it, or recreate it with --update-baseline."
# They report that the run itself failed, so a baseline must not hide them.
_NEVER_KNOWN = ("MP903", "MP905", "MP906", "MP907", "MP908", "MP910")


class BaselineError(Exception):
    """The file can't be used; the message says why and what to do."""


class Entry(NamedTuple):
    """Identifies the same finding across runs."""

    code: str
    file: str
    function: str
    line: str


@dataclass
class Part:
    """The known findings of one run, and the ``--steps`` it was written with (0: to the end)."""

    steps: int = 0
    counts: Counter[Entry] = field(default_factory=Counter)


@dataclass
class BaselineResult:
    """The findings of a run compared with the baseline: ``new``, how many ``known``, and entries that were not found."""

    new: list[Finding]
    known: int
    not_found: Counter[Entry]


@dataclass
class Baseline:
    file: Path
    parts: dict[str, Part] = field(default_factory=dict)

    @staticmethod
    def load(file: Path) -> Baseline:
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise BaselineError(f"The baseline {file} does not exist: create it with --update-baseline.") from None
        except OSError as error:
            raise BaselineError(f"The baseline {file} can't be read: {error.strerror or error}.") from None
        except ValueError:
            raise BaselineError(f"The baseline {file} is not valid JSON: {_HOW_TO_FIX}") from None
        try:
            if data["version"] != _VERSION:
                version = data["version"]
                raise BaselineError(f"The baseline {file} has version {version!r}, not {_VERSION}: {_HOW_TO_FIX}")
            return Baseline(file, {name: _part(part) for name, part in data["runs"].items()})
        except (KeyError, TypeError, AttributeError, ValueError):
            raise BaselineError(f"{file} is not a baseline: {_HOW_TO_FIX}") from None

    def compare(self, run: str, findings: Iterable[Finding], sources: Sources) -> BaselineResult:
        """Splits the findings of ``run``. If an entry is found more often than it is known, the later ones are new."""
        left = Counter(self.parts[run].counts) if run in self.parts else Counter[Entry]()
        new, known = [], 0
        for finding in findings:
            entry = self._entry(finding, sources)
            if left[entry] > 0 and finding.code not in _NEVER_KNOWN:
                left[entry] -= 1
                known += 1
            else:
                new.append(finding)
        return BaselineResult(new, known, +left)

    def counts(self, run: str) -> Counter[Entry]:
        return Counter(self.parts[run].counts) if run in self.parts else Counter()

    def knows(self, run: str, finding: Finding, sources: Sources) -> bool:
        """Whether the part of ``run`` has the finding, however often it is found."""
        part = self.parts.get(run)
        return part is not None and finding.code not in _NEVER_KNOWN and part.counts[self._entry(finding, sources)] > 0

    def shrink(self, run: str, steps: int, not_found: Counter[Entry], enabled: Callable[[str], bool]) -> int:
        """Removes entries that no longer occur; returns how many.

        Only entries that the run could have found: it did as many steps as the part was written with, and selects the
        code.
        """
        part = self.parts.get(run)
        if part is None or (steps != 0 and (part.steps == 0 or steps < part.steps)):
            return 0
        dropped = Counter({entry: n for entry, n in not_found.items() if enabled(entry.code)})
        part.counts -= dropped
        return dropped.total()

    def replace(self, run: str, steps: int, findings: Iterable[Finding], least: Severity, sources: Sources) -> int:
        """Replaces the part of ``run`` with the ``findings`` at least as severe as ``least``; returns how many."""
        entries = [self._entry(f, sources) for f in findings if f.severity.rank <= least.rank and f.code not in _NEVER_KNOWN]
        self.parts[run] = Part(steps, Counter(entries))
        return len(entries)

    def write(self) -> None:
        """Writes atomically: a reader never sees half a file."""
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
