"""Applies severities, select, ignore and suppression comments to a report. Key types: Selection, Selected."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from lsp_server.sources import Sources
from lsp_server.suppress import Directive, Entry, directives, unused_finding
from magpy_core.findings import Finding, Severity

# The user can't clean up comments in installed packages.
_LIBRARY_FOLDERS = {"site-packages", "dist-packages"}


@dataclass(frozen=True)
class Selection:
    """Which codes are enabled, and their severity. Empty ``select``: every code. The longer prefix wins, then ``ignore``."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict)

    def enabled(self, code: str) -> bool:
        wanted = max((len(p) for p in self.select or ("",) if code.startswith(p)), default=-1)
        unwanted = max((len(p) for p in self.ignore if code.startswith(p)), default=-1)
        return wanted > unwanted

    def names(self, code: str) -> bool:
        """Whether ``select`` or ``severity`` names the code or its family."""
        return any(code.startswith(prefix) for prefix in (*self.select, *self.severity))

    def shows(self, finding: Finding) -> bool:
        """Whether a finding is shown by default: a person would act on it, or has asked for its code."""
        return finding.is_actionable or self.names(finding.code)


@dataclass
class Selected:
    """The enabled findings, sorted, and how many were suppressed by comments."""

    findings: list[Finding]
    suppressed: int = 0


def apply(
    findings: Iterable[Finding],
    selection: Selection,
    sources: Sources,
    *,
    files: Iterable[str] = (),
    flag_unused: bool = True,
    engines: Collection[str] = ("magpy",),
) -> Selected:
    """Applies ``selection`` and the comments in the sources.

    ``files`` are further files whose comments are checked for use. ``flag_unused`` is False for incomplete runs, in which
    a comment may look unused. ``engines`` are those that ran: comments for another engine can't be checked.
    """
    rated = [_with_severity(f, selection) for f in findings]
    by_file: dict[str, list[Directive]] = {}
    for name in {f.location.file for f in rated} | set(files):
        text = sources.text(name)
        by_file[name] = directives(text) if text is not None else []

    kept: list[Finding] = []
    suppressed = 0
    used: set[tuple[str, Directive, Entry]] = set()
    for finding in rated:
        file = finding.location.file
        hits = [(file, d, e) for d in by_file[file] for e in d.matches(finding)]
        used.update(hits)
        if not selection.enabled(finding.code):
            continue
        if hits:
            suppressed += 1
        else:
            kept.append(finding)

    if flag_unused and selection.enabled("MP912"):
        kept += [_with_severity(f, selection) for f in _unused(by_file, used, engines)]
    return Selected(sorted(kept, key=sort_key), suppressed)


def unused(
    findings: Iterable[Finding],
    selection: Selection,
    sources: Sources,
    files: Iterable[str],
    engines: Collection[str] = ("magpy",),
) -> list[Finding]:
    """The MP912 findings: comments that suppress none of ``findings``, which ``engines`` found."""
    everything = apply(findings, selection, sources, files=files, engines=engines).findings
    return [f for f in everything if f.code == "MP912"]


def _with_severity(finding: Finding, selection: Selection) -> Finding:
    override = selection.severity.get(finding.code)
    return finding if override is None else replace(finding, severity_override=override)


def _unused(
    by_file: dict[str, list[Directive]], used: set[tuple[str, Directive, Entry]], engines: Collection[str]
) -> list[Finding]:
    return [
        unused_finding(file, directive, entry)
        for file, found in by_file.items()
        if not _LIBRARY_FOLDERS & set(PurePath(file).parts)
        for directive in found
        for entry in directive.entries
        # The user wants to keep the unused comments on a line that suppresses MP912 itself.
        if (file, directive, entry) not in used
        and ("dynamo" if entry.prefix.startswith("MPD") else "magpy") in engines
        and not any(e.prefix == "MP912" for e in directive.entries)
    ]


def sort_key(finding: Finding) -> tuple[str, int, int, int, str]:
    start = finding.location.range.start
    return (finding.location.file, start.line, start.character, finding.severity.rank, finding.code)
