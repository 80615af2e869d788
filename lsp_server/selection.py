"""What is left of a report after settings and comments: severities, select, ignore. Key types: Selection, Selected."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from lsp_server.sources import Sources
from lsp_server.suppress import Directive, Entry, directives, unused_finding
from magpy_core.findings import Finding, Severity

# Comments in other people's packages are not the user's to clean up.
_LIBRARY_FOLDERS = {"site-packages", "dist-packages"}


@dataclass(frozen=True)
class Selection:
    """Which codes count, and how much. Empty ``select`` means every code; the longer prefix wins, then ``ignore``."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict)

    def enabled(self, code: str) -> bool:
        wanted = max((len(p) for p in self.select or ("",) if code.startswith(p)), default=-1)
        unwanted = max((len(p) for p in self.ignore if code.startswith(p)), default=-1)
        return wanted > unwanted


@dataclass
class Selected:
    """The findings that are left, sorted, and how many comments took away."""

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

    ``files`` are further files whose comments should be checked for use. ``flag_unused`` is off for runs that did
    not come to their end, where nothing can be said about unused comments. ``engines`` are those that ran: of what another
    one would find nothing can be said either.
    """
    rated = [_rated(f, selection) for f in findings]
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
        kept += [_rated(f, selection) for f in _unused(by_file, used, engines)]
    return Selected(sorted(kept, key=order), suppressed)


def unused(
    findings: Iterable[Finding],
    selection: Selection,
    sources: Sources,
    files: Iterable[str],
    engines: Collection[str] = ("magpy",),
) -> list[Finding]:
    """Only the findings of comments that suppress none of ``findings``, which ``engines`` found."""
    everything = apply(findings, selection, sources, files=files, engines=engines).findings
    return [f for f in everything if f.code == "MP912"]


def _rated(finding: Finding, selection: Selection) -> Finding:
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
        # A comment that silences MP912 itself is the user's wish to keep unused ones.
        if (file, directive, entry) not in used
        and ("dynamo" if entry.prefix.startswith("MPD") else "magpy") in engines
        and not any(e.prefix == "MP912" for e in directive.entries)
    ]


def order(finding: Finding) -> tuple[str, int, int, int, str]:
    start = finding.location.range.start
    return (finding.location.file, start.line, start.character, finding.severity.rank, finding.code)
