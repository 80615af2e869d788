"""Source files annotated with findings. Key type: Sheets.

Shows the lines around findings, regions and costs; guards appear as a count next to the line, costs as bars, other
findings as a note below it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from html import escape
from pathlib import PurePath

from lsp_server.formats.guards import GUARD
from lsp_server.formats.html.costs import LineCosts
from lsp_server.formats.view import View, clean, cost, count
from lsp_server.links import web
from magpy_core.findings import Code, Finding, Report, lookup

_AROUND = 4
_SHORT_FILE = 160  # files of at most this many lines are shown completely
_LIBRARIES = {"site-packages", "dist-packages"}


class Sheets:
    """The files that the page shows, and the anchors of their lines."""

    def __init__(self, report: Report, view: View) -> None:
        self._view = view
        self._notes: dict[str, dict[int, list[Finding]]] = defaultdict(lambda: defaultdict(list))
        self._guards: dict[str, dict[int, list[Finding]]] = defaultdict(lambda: defaultdict(list))
        self._starts: dict[str, set[int]] = defaultdict(set)
        for finding in report.findings:
            is_guard = finding.code == GUARD and finding.severity_override is None
            kept = self._guards if is_guard else self._notes
            kept[finding.location.file][finding.location.range.start.line].append(finding)
        for region in report.regions:
            if region.file and region.line:
                self._starts[region.file].add(region.line - 1)
        self._costs = LineCosts(report)
        named = set(self._notes) | set(self._guards) | set(self._starts) | self._costs.files
        self.files = sorted(f for f in named if self._shown(f))
        self._lines = {f: (self._view.sources.text(f) or "").split("\n") for f in self.files}
        self._visible = {f: self._choose(f) for f in self.files}

    def _shown(self, file: str) -> bool:
        return not _LIBRARIES & set(PurePath(file).parts) and bool(self._view.sources.text(file))

    def anchor(self, file: str, line: int) -> str | None:
        """The id of a 1-based line, if the page shows it."""
        return _id(file, line) if line - 1 in self._visible.get(file, ()) else None

    def place(self, file: str, line: int) -> str:
        """``file:line``, as a link if the page shows the line."""
        path = escape(self._view.path(file)).replace("/", "/<wbr>")
        text = f"{path}:{line}" if line else path
        at = self.anchor(file, line)
        return f"<a class='mono' href='#{at}'>{text}</a>" if at else f"<span class='mono soft'>{text}</span>"

    def _choose(self, file: str) -> set[int]:
        number = len(self._lines[file])
        if number <= _SHORT_FILE:
            return set(range(number))
        marked = {*self._notes[file], *self._guards[file], *self._starts[file], *self._costs.lines(file)}
        return {i for at in marked for i in range(at - _AROUND, at + _AROUND + 1) if 0 <= i < number}

    def html(self) -> str:
        files = "".join(self._file(file) for file in self.files)
        return f"{self._costs.legend()}{files}" if files else "<p class='soft'>No source files of the project.</p>"

    def _file(self, file: str) -> str:
        notes = [finding for found in self._notes[file].values() for finding in found]
        guards = sum(len(found) for found in self._guards[file].values())
        shown = len(self._view.shown(notes))
        kinds = ((shown, "finding"), (len(notes) - shown, "fact"), (guards, "guard"))
        counts = ", ".join(count(number, noun) for number, noun in kinds if number)
        body: list[str] = []
        last = -1
        for i in sorted(self._visible[file]):
            if i != last + 1:
                body.append(f"<div class='gap'>… {count(i - last - 1, 'line')}</div>")
            body.append(self._row(file, i))
            body += [self._note(f) for f in sorted(self._notes[file].get(i, ()), key=lambda f: f.severity.rank)]
            last = i
        name = escape(self._view.path(file))
        summary = f"<summary class='mono'>{name} <span class='soft'>{counts}</span></summary>"
        return f"<details class='file' open>{summary}<div class='lines mono'>{''.join(body)}</div></details>"

    def _row(self, file: str, i: int) -> str:
        notes, guards = self._notes[file].get(i, []), self._guards[file].get(i, [])
        badge = ""
        if guards:
            names = "\n".join(dict.fromkeys(clean(f.message) for f in guards))
            badge = f"<span title='{escape(names, quote=True)}'>{count(len(guards), 'guard')}</span>"
        shown = self._view.shown(notes)
        marked, style = (" marked", "") if shown else ("", "fact")
        text = _underlined(self._lines[file][i], i, shown or notes, style)
        return (
            f"<div class='row{marked}' id='{_id(file, i + 1)}'><span class='no'>{i + 1}</span>"
            f"<span class='guards'>{badge}</span>{self._costs.cells(file, i)}<span class='text'>{text}</span></div>"
        )

    def _note(self, finding: Finding) -> str:
        """Below its line: a finding in full, a fact closed."""
        code, style = lookup(finding.code), finding.severity.value
        times = f" <span class='soft'>({finding.count:,} times)</span>" if finding.count > 1 else ""
        head = f"{linked(code, self._view.docs_url, style)} {marked_up(finding.message)}{times}"
        more = [f"<p class='soft'>{marked_up(code.reason)}</p>"]
        if finding.values:
            shown = ", ".join(f"{clean(v.name)} = {clean(v.repr)}" for v in finding.values)
            more.append(f"<p><span class='soft'>with</span> <code>{escape(shown)}</code></p>")
        if spent := cost([finding]):
            more.append(f"<p><span class='soft'>cost</span> {spent}</p>")
        hint = " ".join(clean(finding.advice).split())
        more.append(f"<p><span class='soft'>hint</span> {marked_up(hint)}</p>")
        if self._view.shown([finding]):
            return f"<div class='note {style}'><p><b>{head}</b></p>{''.join(more)}</div>"
        return f"<details class='note fact {style}'><summary>{head}</summary>{''.join(more)}</details>"


def _id(file: str, line: int) -> str:
    return f"L{hashlib.sha256(file.encode('utf-8', 'replace')).hexdigest()[:8]}-{line}"


def _underlined(text: str, line: int, findings: list[Finding], style: str) -> str:
    """The line with the range of its most severe finding underlined. ``style``: other than its severity's."""
    text = clean(text)
    if not findings:
        return escape(text) or " "
    span = min(findings, key=lambda f: f.severity.rank).location.range
    start, end = span.start.character, span.end.character if span.end.line == line else len(text)
    if not 0 <= start < end <= len(text):
        start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    severity = min((f.severity for f in findings), key=lambda s: s.rank)
    return f"{escape(text[:start])}<u class='{style or severity.value}'>{escape(text[start:end])}</u>{escape(text[end:])}"


def linked(code: Code, docs_url: str | None, style: str = "") -> str:
    """A code with its title, as a link to its page if that is published."""
    address, attributes = (
        web(code, docs_url),
        f"title='{escape(code.title, quote=True)}'" + (f" class='{style}'" if style else ""),
    )
    if address is None:
        return f"<span {attributes}>{code.code}</span>"
    return f"<a {attributes} href='{escape(address, quote=True)}'>{code.code}</a>"


def marked_up(text: str) -> str:
    """Text with `code` marked up."""
    text = clean(text, lines=True)
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return "".join(f"<code>{escape(p)}</code>" if i % 2 else escape(p) for i, p in enumerate(parts)).replace("\n", "<br>")
