"""Inline suppression: ``# magpy: ignore[MP102,MP2]`` on a line, ``# magpy: ignore-file[MP3]`` for a whole file.

Comments are found with ``tokenize``, so the same text in a string has no effect. Key type: Directive.
"""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass

from magpy_core.findings import Finding, Location, Position, Range
from magpy_core.findings.registry import matching

_COMMENT = re.compile(r"#\s*magpy:\s*ignore(?P<file>-file)?(?![\w-])\s*(?:\[(?P<codes>[^\]]*)\])?")


@dataclass(frozen=True)
class Entry:
    """One code prefix in a comment and its range. An empty prefix (no brackets) means every code."""

    prefix: str
    range: Range


@dataclass(frozen=True)
class Directive:
    """One suppression comment."""

    line: int  # 0-based
    whole_file: bool
    entries: tuple[Entry, ...]

    def matches(self, finding: Finding) -> list[Entry]:
        """The entries that suppress ``finding``, a finding in the same file."""
        lines = (finding.location.range.start.line, finding.location.range.end.line)
        if not self.whole_file and self.line not in lines:
            return []
        return [e for e in self.entries if finding.code.startswith(e.prefix)]


def directives(source: str) -> list[Directive]:
    """Every suppression comment of ``source``, up to its first syntax error."""
    if "magpy:" not in source:
        return []
    found: list[Directive] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                found += _in_comment(token.string, token.start[0] - 1, token.start[1])
    except (tokenize.TokenError, SyntaxError, ValueError):  # ValueError: a character that no UTF-8 has, since 3.12
        # Not Python from here on: the file can't have run, so it has no findings to suppress.
        pass
    return found


def _in_comment(comment: str, line: int, column: int) -> list[Directive]:
    return [
        Directive(line, match["file"] is not None, tuple(_entries(match, line, column)))
        for match in _COMMENT.finditer(comment)
    ]


def _entries(match: re.Match[str], line: int, column: int) -> list[Entry]:
    def span(start: int, end: int) -> Range:
        return Range(Position(line, column + start), Position(line, column + end))

    if match["codes"] is None:
        return [Entry("", span(match.start(), match.end()))]
    return [
        Entry(part[0].upper(), span(match.start("codes") + part.start(), match.start("codes") + part.end()))
        for part in re.finditer(r"[^\s,]+", match["codes"])
    ]


def unused_finding(file: str, directive: Directive, entry: Entry) -> Finding:
    """The MP912 finding for an entry that suppressed nothing."""
    where = "in this file" if directive.whole_file else "on this line"
    if not entry.prefix:
        message = f"This comment suppresses nothing: there is no finding {where}."
    elif not matching(entry.prefix):
        message = f"`{entry.prefix}` is not a finding code or a prefix of one."
    else:
        message = f"This suppression is unused: there is no {entry.prefix} finding {where}."
    return Finding("MP912", message, Location(file, entry.range))
