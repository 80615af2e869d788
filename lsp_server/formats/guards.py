"""Guard findings (MP204), combined into one line per source line. Key functions: split, grouped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.text import Text

from lsp_server.formats.view import View, clean, count, first_line, shorten
from magpy_core.findings import Finding

GUARD = "MP204"


def split(findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """(other findings, guards): a real model has hundreds of guards, which must not hide the other findings.

    A guard whose severity the user changed stays with the other findings.
    """
    guards = [f for f in findings if f.code == GUARD and f.severity_override is None]
    return [f for f in findings if f.code != GUARD or f.severity_override is not None], guards


def grouped(guards: Sequence[Finding], view: View) -> Iterator[Text]:
    """One line per source line: ``train.py:12:8: MP204 [hint] 3 guards: self.training = False, ...``."""
    lines: dict[tuple[str, int], list[Finding]] = {}
    for guard in guards:
        lines.setdefault((guard.location.file, guard.location.range.start.line), []).append(guard)
    for together in lines.values():
        first = replace(together[0], count=1)
        if len(together) == 1:
            yield view.header(first)
            continue
        what = dict.fromkeys(_what(g) for g in together)
        header = view.header(first, f"{count(len(together), 'guard')}: ")
        header.append(shorten(", ".join(what), max(view.width - len(header.plain), 40)))
        yield header


def _what(guard: Finding) -> str:
    """What is guarded, as briefly as the finding allows."""
    if not guard.values:
        return first_line(guard.message)
    return ", ".join(f"{clean(v.name)} = {shorten(first_line(v.repr), 30)}" for v in guard.values)
