"""Tests of single entries of namespaces and tables. Dicts with the same tests share one loop: code that runs only once is
slower than the tests it makes. Key type: EntryLoop."""

from __future__ import annotations

from collections.abc import Container

from magpy_core.refgraph.graph import Read

_NONE: frozenset[int] = frozenset()


class EntryLoop:
    """Per variable of a dict, what must not hold of it: tests of ``d``, and the reads each test stands for."""

    def __init__(self) -> None:
        self._tests: dict[str, dict[str, list[Read]]] = {}
        self._start = 0

    def add(self, name: str, test: str, read: Read) -> None:
        self._tests.setdefault(name, {}).setdefault(test, []).append(read)

    def write(self, lines: list[str], miss: str) -> None:
        """Add the loops to the guard's lines."""
        self._start = len(lines)
        lines += self.lines(miss)

    @property
    def span(self) -> range:
        """Where they are among the guard's lines."""
        return range(self._start, self._start + len(self.lines("")))

    def lines(self, miss: str, covered: Container[int] = _NONE) -> list[str]:
        """The loops, without the tests that stand for ``covered`` reads (by id) alone."""
        alike: dict[tuple[str, ...], list[str]] = {}
        for name, tests in self._tests.items():
            left = tuple(test for test, reads in tests.items() if any(id(r) not in covered for r in reads))
            if left:
                alike.setdefault(left, []).append(name)
        lines: list[str] = []
        for shared, names in alike.items():
            lines += [f"for d in ({', '.join(names)},):", f"    if {' or '.join(shared)}: {miss}"]
        return lines
