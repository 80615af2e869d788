"""Runs patterns plainly and compiled and says which are served from captures: python -m tests.programs.patterns.measure.

Key types: Measured. ``measure`` is what the tests call.
"""

from __future__ import annotations

import argparse
import inspect
import io
import os
import random
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import magpy_core
from magpy_core.findings import Finding
from magpy_core.regions.api import region_of
from tests.programs.patterns import KINDS, PATTERNS, Pattern
from tests.programs.patterns.frozen import difference, frozen
from tests.programs.patterns.pattern import arguments

CALLS, LAST = 30, 15
MOST_CAPTURES, LEAST_HITS = 4, 13


@dataclass
class Measured:
    """``hits``: of the last 15 calls. ``findings`` and ``recompiles``: a line each. ``wrong``: how the two runs differ."""

    pattern: Pattern
    captures: int = 0
    hits: int = 0
    recordings: int = 0
    is_cut: bool = False
    disabled: str = ""
    findings: list[str] = field(default_factory=list)
    reported: list[Finding] = field(default_factory=list)
    recompiles: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        return not self.wrong and self.hits >= LEAST_HITS and self.captures <= MOST_CAPTURES


@dataclass
class _Run:
    results: list[Any] = field(default_factory=list)
    end: Any = None
    output: str = ""


def measure(pattern: Pattern, backend: str = "eager") -> Measured:
    """Both runs of a pattern, compared."""
    start = time.perf_counter()
    measured = Measured(pattern)
    expected, found = _run(pattern, lambda step: step), _compiled(pattern, backend, measured)
    for call, (a, b) in enumerate(zip(expected.results, found.results, strict=True)):
        if text := difference(a, b):
            measured.wrong.append(f"call {call} returns {text}")
            break
    if text := difference(expected.end, found.end):
        measured.wrong.append(f"at the end {text}")
    if expected.output != found.output:
        measured.wrong.append(f"it printed {found.output[-200:]!r}, not {expected.output[-200:]!r}")
    measured.seconds = time.perf_counter() - start
    return measured


def _compiled(pattern: Pattern, backend: str, measured: Measured) -> _Run:
    compiled: list[Any] = []
    seen: list[weakref.ref[Any]] = []
    before_last = [0]

    def compile(step: Any) -> Any:
        compiled.append(magpy_core.compile(step, backend=backend, wait=True, same_random=True))
        return compiled[0]

    def after(call: int) -> None:
        region = region_of(compiled[0])
        for capture in region.captures:
            if all(known() is not capture for known in seen):
                seen.append(weakref.ref(capture))
        if call == CALLS - LAST - 1:
            before_last[0] = region.hits

    try:
        run = _run(pattern, compile, after)
        region = region_of(compiled[0])
        measured.captures, measured.recordings = len(seen), region.recordings
        measured.hits = region.hits - before_last[0]
        measured.is_cut, measured.disabled = region.is_cut, region.disabled
        measured.reported = list(region.findings.values())
        measured.findings = [_line(f.code, f.location, f.message) for f in region.findings.values()]
        measured.recompiles = [f"call {r.call}: `{r.name}` {r.old} -> {r.new}" for r in region.recompiles]
        return run
    finally:
        for one in compiled:
            magpy_core.uncompile(one)


def _line(code: str, location: Any, message: str) -> str:
    return f"{code} {Path(location.file).name}:{location.range.start.line + 1} {message}"


def _run(pattern: Pattern, prepare: Callable[[Any], Any], after: Callable[[int], None] = lambda call: None) -> _Run:
    _seed()
    run, out = _Run(), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    original, state = pattern.make()
    asked = inspect.signature(original).parameters.values()
    step = prepare(original)
    given = arguments(CALLS)
    with redirect_stdout(out):
        for call in range(CALLS):
            args, kwargs = _asked(asked, given[call])
            run.results.append(frozen(step(*args, **kwargs)))
            after(call)
    streams = torch.get_rng_state(), random.getstate(), np.random.get_state()
    run.end = frozen((state(), given, streams))
    out.flush()
    run.output = out.buffer.getvalue().decode()
    return run


def _seed() -> None:
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


def _asked(parameters: Iterable[inspect.Parameter], given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for p in parameters:
        if p.kind is inspect.Parameter.VAR_KEYWORD:
            kwargs |= {"x": given["x"], "y": given["y"]}
        elif p.kind is inspect.Parameter.KEYWORD_ONLY and p.default is p.empty:
            kwargs[p.name] = given[p.name]
        elif p.default is p.empty:
            args.append({"x": given["x"], "y": given["y"]} if p.name == "batch" else given[p.name])
    return args, kwargs


# -- the command ---------------------------------------------------------------------------------------------------------


def _text(m: Measured) -> str:
    verdict = "WRONG" if m.wrong else "good" if m.is_good else "not good"
    how = ", cut" if m.is_cut else ""
    lines = [f"{m.pattern.kind}/{m.pattern.name}: {verdict} ({m.captures} captures, {m.hits} hits of {LAST}{how})"]
    lines += [f"    WRONG {text}" for text in m.wrong]
    if not m.is_good:
        lines += [f"    disabled: {m.disabled}"] if m.disabled else []
        lines += [f"    {text}" for text in [*m.recompiles, *m.findings]]
    return "\n".join(lines)


def _row(m: Measured) -> str:
    why = "" if m.is_good else next(iter([*m.wrong, *m.findings, *m.recompiles]), "").replace("|", "\\|")
    good = "WRONG" if m.wrong else "yes" if m.is_good else "no"
    return f"| `{m.pattern.name}` | {m.pattern.kind} | {m.captures} | {m.hits} | {good} | {why} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", default="", help="some, separated by commas")
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--backend", default="eager", help="with another one, a difference may be rounding")
    parser.add_argument("--markdown", action="store_true", help="a table")
    options = parser.parse_args()
    os.environ.setdefault("MAGPY_COMPILE", "foreground")
    chosen = [n for n in options.names.split(",") if n] or list(PATTERNS)
    patterns = [PATTERNS[n] for n in chosen if options.kind in (None, PATTERNS[n].kind)]
    if options.markdown:
        print(f"| pattern | kind | captures | hits of {LAST} | good | why not |\n|---|---|---|---|---|---|")
    found = []
    for pattern in patterns:
        found.append(measure(pattern, options.backend))
        print((_row if options.markdown else _text)(found[-1]), flush=True)
    good, wrong = sum(m.is_good for m in found), sum(bool(m.wrong) for m in found)
    by_kind = Counter(m.pattern.kind for m in found)
    good_by_kind = Counter(m.pattern.kind for m in found if m.is_good)
    print()
    for kind, count in by_kind.items():
        print(f"{kind}: {good_by_kind[kind]} of {count}")
    seconds = sum(m.seconds for m in found)
    print(f"{good} of {len(found)} are good, {wrong} are WRONG ({seconds:.0f} s)")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
