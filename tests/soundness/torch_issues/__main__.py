"""``python -m tests.soundness.torch_issues [WORD...] [--compiled] [--ours]``: tries all cases, or those whose name has a
word of these, by MagPy and by torch.compile, and prints what they give. ``--markdown``: prints the tables of the page."""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("MAGPY_VERIFY", "1")
os.environ.setdefault("MAGPY_COMPILE", "foreground")

from tests.soundness.torch_issues import cases
from tests.soundness.torch_issues.measure import by_magpy, by_torch_compile
from tests.soundness.torch_issues.page import counts, tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--compiled", action="store_true", help="by torch.compile only")
    parser.add_argument("--ours", action="store_true", help="by MagPy only")
    parser.add_argument("--markdown", action="store_true", help="print the tables of the page, and run nothing")
    asked = parser.parse_args()
    if asked.markdown:
        print(*tables(cases()), dict(counts(cases())), sep="\n\n")
        return
    chosen = [case for case in cases() if not asked.words or any(word in case.name for word in asked.words)]
    both = asked.compiled == asked.ours
    for case in chosen if both or asked.ours else []:
        start = time.perf_counter()
        ours, text = by_magpy(case)
        _print("MagPy", case.name, ours or "WRONG", case.ours, start, text)
    for case in chosen if both or asked.compiled else []:  # last: recording is slower after it
        start = time.perf_counter()
        compiled, text = by_torch_compile(case)
        _print("torch.compile", case.name, compiled, case.compiled, start, text)


def _print(which: str, name: str, found: str, noted: str, start: float, text: str) -> None:
    mark = "" if found == noted else f" (noted: {noted})"
    seconds = time.perf_counter() - start
    print(f"{which:13} {name:32} {found}{mark} {seconds:.1f} s  {' '.join(text.split())[:240]}", flush=True)


main()
