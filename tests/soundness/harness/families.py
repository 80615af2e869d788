"""Families of regions: every combination of the entries of some tables is a case, and a check says how a case differs.

A generator holds the tables, a function that lives through a case once compiled and once plain, and a ``Family``. All of a
family runs by its command (``python -m tests.soundness.generators.keys [--kind VALUE ...] [--slice START:STOP:STEP]``), a
part of it as tests (``test_families.py``). Key type: Family; key functions: difference, main.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import operator
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Case = tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """``check(*case)`` returns a sentence that says how the case differs from eager mode, and nothing where it doesn't."""

    check: Callable[..., str | None]
    names: tuple[str, ...]
    cases: Sequence[Case]

    @classmethod
    def product(cls, check: Callable[..., str | None], **tables: Iterable[str]) -> Family:
        """One case for every combination of the tables' entries."""
        return cls(check, tuple(tables), list(itertools.product(*tables.values())))

    def differing(self, cases: Iterable[Case]) -> list[str]:
        """What differs in these cases."""
        return [line for case in cases if (line := self.check(*case))]

    def chosen(self, options: dict[str, list[str] | None]) -> list[Case]:
        """The cases that have one of the given values for every option; none if an option is not of this family."""
        if any(values and name not in self.names for name, values in options.items()):
            return []
        wanted = [options.get(name) for name in self.names]
        return [c for c in self.cases if all(w is None or entry in w for entry, w in zip(c, wanted, strict=True))]


def difference(life: Callable[..., Sequence[Any]], *case: str, same: Callable[[Any, Any], bool] = operator.eq) -> str | None:
    """The first call in which ``life(*case, compiled)`` differs between eager mode (False) and compiled (True)."""
    return first_difference(case, life(*case, False), life(*case, True), same)


def first_difference(
    case: Sequence[str], expected: Sequence[Any], got: Sequence[Any], same: Callable[[Any, Any], bool] = operator.eq
) -> str | None:
    """The first place in which two lists of outcomes differ, said of the case."""
    for number, (e, g) in enumerate(itertools.zip_longest(expected, got, fillvalue="no outcome")):
        if not same(e, g):
            return f"{', '.join(case)}, call {number}: {e} expected, {g} found"
    return None


def main(*families: Family) -> int:
    """The command of a generator: print what differs; the exit status."""
    parser = argparse.ArgumentParser()
    names = list(dict.fromkeys(name for family in families for name in family.names))
    for name in names:
        parser.add_argument(f"--{name}", action="append", metavar="VALUE")
    parser.add_argument("--slice", default="::", metavar="START:STOP:STEP", help="of the cases that are left")
    args = parser.parse_args()
    options = {name: getattr(args, name) for name in names}
    part = slice(*(int(n) if n else None for n in args.slice.split(":")))
    chosen = [(family, case) for family in families for case in family.chosen(options)][part]
    warnings.simplefilter("ignore")
    differing = 0
    for family, case in chosen:
        if line := family.check(*case):
            differing += 1
            print(line, flush=True)
    print(f"{len(chosen)} regions, {differing} differ")
    return 1 if differing or not chosen else 0


@contextlib.contextmanager
def short_stacks(most: int = 16) -> Iterator[None]:
    """Stacks that torch writes down for its operators (anomaly mode, symbolic sizes) end after so many frames.

    Under pytest the stack is fifty frames deep, and writing it down takes longer than all else."""
    sys.tracebacklimit = most
    try:
        yield
    finally:
        del sys.tracebacklimit
