"""Finds repeated blocks of an operator graph: the same sequence of operations several times, directly one after another.

Operations are compared by their target, their constants and the graph inputs that they take. Which of each other's results
they take is compared later, when the blocks have been cut out (`units.py`).
Key type: Run; key functions: `find_runs`, `independent_runs`.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch.fx

from magpy_core.backends.blocks.printing import printed
from magpy_core.backends.sharing import viewed, written
from magpy_core.limits import LIMITS

#: Fewer repeats, or shorter blocks, save less than cutting costs.
LEAST_REPEATS, LEAST_LENGTH = 3, 10
_SEVERAL, _FORBIDDEN = 4, 1000
_BACK, _PERIODS = 8, 64  # how many earlier occurrences count as candidate periods, and how many candidates are tried


@dataclass(frozen=True)
class Run:
    """``count`` blocks of ``length`` operations each; the first begins at ``start``. ``chained``: a block uses results of an
    earlier one."""

    start: int
    length: int
    count: int
    chained: bool = True

    def merged(self, least: int) -> Run | None:
        """The run with at least ``least`` neighboring blocks merged into each; None if too few blocks would be left."""
        options = range(least, self.count // LEAST_REPEATS + 1)
        if not options:
            return None
        together = min(options, key=lambda together: together + self.count % together)
        return replace(self, length=self.length * together, count=self.count // together)

    @property
    def saved(self) -> int:
        """How many operations need not be compiled."""
        return (self.count - 1) * self.length

    @property
    def cuts(self) -> list[int]:
        """Where the blocks begin, and where the last one ends."""
        return [self.start + i * self.length for i in range(self.count + 1)]


def find_runs(nodes: Sequence[torch.fx.Node], names: Mapping[torch.fx.Node, str], known: Sequence[Run] = ()) -> list[Run]:
    """The runs of repeated blocks among the operations of a graph, in order; they do not overlap. ``names``: equal for
    inputs of the graph that compilers can't tell apart; ``known``: runs that have been found otherwise."""
    ends = [0, *(at for run in known for at in (run.start, run.cuts[-1])), len(nodes)]
    parts = list(zip(ends[::2], ends[1::2], strict=True))
    found = _runs(nodes, names, parts, lambda run: _merged_updates(run) if is_independent(run, nodes) else run)
    worthwhile = [run for run in found if run.chained or not known or run.saved >= LIMITS.independent_saves]
    return sorted([*worthwhile, *known], key=lambda run: run.start)


def independent_runs(nodes: Sequence[torch.fx.Node], names: Mapping[torch.fx.Node, str]) -> list[Run]:
    """Those of which no block uses results of another one, in order; none of their blocks are merged."""
    found = _runs(nodes, names, [(0, len(nodes))], lambda run: run, LIMITS.least_update)
    independent = [replace(run, chained=False) for run in found if is_independent(run, nodes)]
    return sorted(independent, key=lambda run: run.start)


def _runs(
    nodes: Sequence[torch.fx.Node],
    names: Mapping[torch.fx.Node, str],
    parts: list[tuple[int, int]],
    adapted: Callable[[Run], Run],
    least: int = LEAST_LENGTH,
) -> list[Run]:
    """Those in these ``parts``, which it empties."""
    numbers: dict[Any, int] = {}
    tokens = [numbers.setdefault(printed(node, names), len(numbers)) for node in nodes]
    crossing = _crossing(nodes)
    found: list[Run] = []
    while parts:
        start, stop = parts.pop()
        run = _longest(tokens, start, stop, crossing, least)
        if run is not None:
            found.append(adapted(run))
            parts += [(start, run.start), (found[-1].cuts[-1], stop)]
    return found


def _crossing(nodes: Sequence[torch.fx.Node]) -> list[int]:
    """How many values computed before each position are used at or after it; inputs of the graph don't count. A value that
    may be a tuple counts more, and one that is written at or after a position forbids a cut there."""
    place = {node: i for i, node in enumerate(nodes)}
    steps = [0] * (len(nodes) + 2)
    for i, node in enumerate(nodes):
        if node.users:
            weight = _SEVERAL if any(user.target is operator.getitem for user in node.users) else 1
            steps[i + 1] += weight
            steps[1 + max(place.get(user, len(nodes)) for user in node.users)] -= weight
        for target in written(node):
            root = [target, *viewed(target)][-1]
            if root in place:
                steps[place[root] + 1] += _FORBIDDEN
                steps[i + 1] -= _FORBIDDEN
    total, counts = 0, []
    for step in steps:
        total += step
        counts.append(total)
    return counts


def _longest(tokens: Sequence[int], start: int, stop: int, crossing: Sequence[int], least: int) -> Run | None:
    """The run within these bounds, of blocks of at least ``least`` operations, that saves most; among equals the one with
    the shortest blocks."""
    best: Run | None = None
    for period in _periods(tokens, start, stop, least):
        for begin, end in _stretches(tokens, start, stop, period):
            run = _placed(begin, end, period, crossing)
            if run.count >= LEAST_REPEATS and (best is None or (run.saved, -run.length) > (best.saved, -best.length)):
                best = run
    return best


def _periods(tokens: Sequence[int], start: int, stop: int, least: int) -> list[int]:
    seen: defaultdict[int, list[int]] = defaultdict(list)
    votes: Counter[int] = Counter()
    for i in range(start, stop):
        before = seen[tokens[i]]
        votes.update(i - earlier for earlier in islice(reversed(before), _BACK))
        before.append(i)
    most = (stop - start) // LEAST_REPEATS
    return [period for period, _ in votes.most_common() if least <= period <= most][:_PERIODS]


def _stretches(tokens: Sequence[int], start: int, stop: int, period: int) -> Iterator[tuple[int, int]]:
    """Where ``tokens[i] == tokens[i + period]`` for long enough: begin and end of the repeated part."""
    begin = start
    for i in range(start, stop - period + 1):
        if i == stop - period or tokens[i] != tokens[i + period]:
            if i - begin >= (LEAST_REPEATS - 1) * period:
                yield begin, i + period
            begin = i + 1


def _placed(begin: int, end: int, period: int, crossing: Sequence[int]) -> Run:
    """The blocks of a stretch, cut where the fewest values cross; among equals, with the most blocks. There are enough of
    them if that is possible: three layers repeat exactly twice."""

    def cost(start: int) -> tuple[int, int]:
        count = (end - start) // period
        return sum(crossing[start : start + count * period + 1 : period]) // (count + 1), -count

    last = max(begin, end - LEAST_REPEATS * period)
    start = min(range(begin, min(begin + period, last + 1)), key=cost)
    return Run(start, period, (end - start) // period)


def is_independent(run: Run, nodes: Sequence[torch.fx.Node]) -> bool:
    """Whether no block uses results of another one."""
    home = {nodes[run.start + i]: i // run.length for i in range(run.count * run.length)}
    return all(home.get(user, number) == number for node, number in home.items() for user in node.users)


def _merged_updates(run: Run) -> Run:
    together = max(1, min(-(-LIMITS.merged_block // run.length), run.count // LEAST_REPEATS))
    return replace(run.merged(together) or run, chained=False)
