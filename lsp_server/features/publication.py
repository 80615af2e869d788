"""Findings as JSON diagnostics, fast enough for every keystroke.

Key types: Entry, Publication; key functions: entries_of, rendered.
When lines move, only line numbers change. Everything else of a diagnostic is rendered once per finding, and a publication
inserts the numbers. (A thousand diagnostics built with lsprotocol's classes take a tenth of a second.)
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lsprotocol import types

from lsp_server.features.documents import key_of
from lsp_server.features.positions import to_units
from lsp_server.features.related import Place, call_path, value_changes
from lsp_server.features.run_findings import RunFindings, shown_location
from lsp_server.features.tracking import TrackedFile, Tracker
from lsp_server.links import in_editor
from lsp_server.repeats import pattern
from magpy_core.findings import Finding, Location, Severity, lookup

_SEVERITIES = {Severity.ERROR: 1, Severity.WARNING: 2, Severity.INFORMATION: 3, Severity.HINT: 4}
# Shown faded.
_TAGS = {"MP912": (types.DiagnosticTag.Unnecessary,)}
# At most this many diagnostics of one code on one range; a hover lists more.
_ALIKE = 3


@dataclass(frozen=True, slots=True)
class Publication:
    """The diagnostics of one file, each as JSON."""

    uri: str
    items: list[str]
    version: int | None = None

    def params(self) -> str:
        """The params of the notification as ASCII JSON."""
        version = "" if self.version is None else f'"version":{self.version},'
        return f'{{"uri":{json.dumps(self.uri)},{version}"diagnostics":[{",".join(self.items)}]}}'


@dataclass(frozen=True, slots=True)
class Anchor:
    """A range in the text that ran: its lines there, and its columns in the client's units."""

    tracked: TrackedFile
    first: int
    last: int
    start: int
    end: int

    def now(self) -> int | None:
        """The current first line; None if its text was changed."""
        return self.tracked.place(self.first, self.last)

    def json(self, line: int) -> str:
        last = line + self.last - self.first
        return f'{{"start":{{"line":{line},"character":{self.start}}},"end":{{"line":{last},"character":{self.end}}}}}'


@lru_cache(maxsize=256)
def _text(text: str) -> str:
    return json.dumps(text)


def anchor(tracker: Tracker, location: Location, encoding: str) -> Anchor | None:
    """The anchor of a location; None if it is not in a file or outside its text."""
    tracked = tracker.file(location.file)
    start, end = location.range.start, location.range.end
    if tracked is None or not 0 <= start.line <= end.line < len(tracked.lines):
        return None
    columns = [to_units(tracked.lines[p.line], p.character, encoding) for p in (start, end)]
    return Anchor(tracked, start.line, end.line, *columns)


@dataclass(frozen=True, slots=True)
class Related:
    """A related location; ``uri(line)`` returns its current URI and line (in a notebook: of the cell)."""

    anchor: Anchor
    uri: Callable[[int], tuple[str, int] | None]
    message: str

    def json(self) -> str | None:
        now = self.anchor.now()
        there = None if now is None else self.uri(now)
        if there is None:
            return None
        location = f'{{"uri":{_text(there[0])},"range":{self.anchor.json(there[1])}}}'
        return f'{{"location":{location},"message":{self.message}}}'


@dataclass(frozen=True, slots=True)
class Entry:
    """A finding that is shown, with the constant parts of its diagnostic."""

    finding: Finding
    anchor: Anchor
    shown_at_call_site: bool
    call_path: tuple[Location, ...]
    message: str
    text: str  # the message as JSON
    pattern: str  # what repeats of the finding have in common
    fields: str
    calls: tuple[Related, ...]
    changes: tuple[Related, ...]

    def json(self, line: int, *, with_path: bool, more: int = 0) -> str:
        """The diagnostic with its first line at ``line``; ``more`` similar ones are not shown."""
        places = (*(self.calls if with_path else ()), *self.changes)
        related = ",".join(text for place in places if (text := place.json()) is not None)
        extra = f',"relatedInformation":[{related}]' if related else ""
        message = json.dumps(f"{self.message} (and {more} similar finding{'s' if more > 1 else ''})") if more else self.text
        return f'{{"range":{self.anchor.json(line)},"message":{message},{self.fields}{extra}}}'


Known = tuple[Finding, Severity, str, str, Entry]
"""A finding, the severity and repetitions that its entry depends on, the key of its file, and the entry."""


def entries_of(
    run: RunFindings,
    encoding: str,
    tags: frozenset[types.DiagnosticTag],
    uri_of: Callable[[str], Callable[[int], tuple[str, int] | None]] | None,
    known: dict[Any, Known],
) -> dict[str, list[Entry]]:
    """The diagnosed findings of a run, by the key of their file. ``uri_of`` is None for clients without related locations.

    ``known`` caches entries by the findings' keys; new entries are added.
    """
    found: dict[str, list[Entry]] = {}
    for finding, severity in run.diagnosed():
        times = run.times(finding)
        before = known.get(finding.key)
        if before is not None and before[0] is finding and before[1:3] == (severity, times):
            found.setdefault(before[3], []).append(before[4])
            continue
        place = shown_location(finding)
        at = anchor(run.tracker, place, encoding)
        if at is None:
            continue

        def related(places: Iterable[Place]) -> tuple[Related, ...]:
            if uri_of is None:
                return ()
            ends = ((p, anchor(run.tracker, p.location, encoding)) for p in places)
            return tuple(Related(a, uri_of(p.location.file), json.dumps(p.text)) for p, a in ends if a is not None)

        message = f"{finding.message} ({times})" if times else finding.message
        entry = Entry(
            finding,
            at,
            place != finding.location,
            finding.path,
            message,
            json.dumps(message),
            pattern(finding.message),
            _fields(finding, severity, tags, run.docs_url),
            related(call_path(finding)),
            # Looked up after the run has ended, since its other findings may contain the location.
            related(value_changes(finding, run)) if run.complete else (),
        )
        key = key_of(place.file)
        known[finding.key] = (finding, severity, times, key, entry)
        found.setdefault(key, []).append(entry)
    return found


def _fields(finding: Finding, severity: Severity, tags: frozenset[types.DiagnosticTag], docs_url: str | None) -> str:
    code = lookup(finding.code)
    fields: dict[str, Any] = {
        "severity": _SEVERITIES[severity],
        "code": finding.code,
        "codeDescription": {"href": in_editor(code, docs_url)},
        "source": "magpy",
        "data": {
            "name": code.name,
            "hint": finding.advice,
            "region": finding.region,
            "count": finding.count,
            "steps": finding.steps or None,
            "cost_ms": finding.cost_ms,
            "at_most_ms": finding.at_most_ms,
            "step_ms": finding.step_ms,
            "values": [vars(value) for value in finding.values],
        },
    }
    if faded := [tag.value for tag in _TAGS.get(finding.code, ()) if tag in tags]:
        fields["tags"] = faded
    return json.dumps(fields)[1:-1]


def rendered(entries: Iterable[Entry]) -> list[str]:
    """The diagnostics of one file, without duplicates."""
    seen: set[tuple[Any, ...]] = set()
    paths: set[tuple[Any, ...]] = set()
    alike: dict[tuple[Any, ...], list[tuple[Entry, int, bool]]] = {}
    more: Counter[tuple[Any, ...]] = Counter()
    for entry in entries:
        line = entry.anchor.now()
        if line is None:
            continue
        finding, at = entry.finding, entry.anchor
        ends = (line, at.start, at.last - at.first, at.end)
        if (finding.code, finding.message, *ends) in seen:
            continue  # two entrypoints have the same finding
        seen.add((finding.code, finding.message, *ends))
        # Dozens of one code on one range (from a loop, or from a library below one call) would bury the others.
        same = (finding.code, entry.shown_at_call_site, *ends)
        shown = alike.setdefault(same, [])
        repeats = any(known.pattern == entry.pattern for known, _, _ in shown)
        if repeats or len(shown) >= (1 if entry.shown_at_call_site else _ALIKE):
            more[same] += 1
            continue
        # Findings of one range mostly share their call path, and an editor shows them together: once is enough.
        path = (*ends, entry.call_path)
        shown.append((entry, line, path not in paths))
        paths.add(path)
    out: list[str] = []
    for same, shown in alike.items():
        number = more[same]
        out += [e.json(line, with_path=first) for e, line, first in shown[:-1]]
        last, line, first = shown[-1]
        out.append(last.json(line, with_path=first, more=number))
    return out


def written(found: Sequence[types.Diagnostic], unstructure: Callable[[Any], Any]) -> list[str]:
    """Other diagnostics, as JSON."""
    return [json.dumps(unstructure(diagnostic)) for diagnostic in found]
