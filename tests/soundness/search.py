"""The search with a bound: ``python -m tests.soundness.search --minutes M [--seed S] [--jobs N] [--kind NAME]``.

Every kind of case (``kinds.py``) has its turn, a batch of a few seconds, until the time is over. A batch runs in a process
of its own: a case that crashes or hangs is a difference, and the search goes on. At the end it prints the cases, calls and
differences of each kind; each difference, shortened, is kept in a file (``--results DIR``), to be added to the corpus.
Exit status: 0 nothing differs, 1 something does, 2 the tool broke. Key types: Worker, Count; key functions: search, main.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.soundness.harness.batch import Batch, Kind, count_calls, counted_calls

#: Imported once, and not in each batch: the kinds, and what the first capture of a process imports, which takes seconds.
_PRELOADED = [
    "tests.soundness.kinds",
    "torch.fx.experimental.symbolic_shapes",
    "torch._functorch.aot_autograd",
    "torch._dynamo",
]
_GRACE = 8.0  # seconds that batches have to finish when the time is over
_TAIL = 4000  # characters of what a dead process has printed


@dataclass
class Count:
    """What was done of a kind."""

    cases: int = 0
    calls: int = 0
    differences: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return 10_000 * len(self.differences) / self.calls if self.calls else 0.0


# -- in the process of a batch -------------------------------------------------------------------------------------------


def work(kind: Kind, seed: str, seconds: float, to: Connection, printed: str) -> None:
    """Run one batch, and tell of it."""
    begun = ""

    def tell(what: str, value: Any) -> None:
        nonlocal begun
        begun = value[2] if what == "case" else begun
        to.send((what, value))

    with open(printed, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        faulthandler.enable()
        batch = Batch(tell, seconds)
        if int(seed.rpartition(":")[2]) % 2:  # every other round with the first level of every guard (guards/first_level.py)
            os.environ["MAGPY_DICT_TAGS"] = "always"
        try:
            count_calls()
            kind.run(random.Random(seed), batch)
        except Exception:
            text = traceback.format_exc()
            if begun:
                batch.differs(f"{begun}\n\nraises what the case does not expect:\n{text}")
            else:
                tell("broken", text)
        tell("done", (batch.cases, counted_calls()))
        to.close()
        os._exit(0)  # threads that a case has left don't hold up the search


# -- in the process of the search ----------------------------------------------------------------------------------------


class Worker:
    """A batch that runs. ``read`` takes what it has told; ``end`` is called once, when it is over."""

    def __init__(self, context: Any, kind: Kind, seed: str, seconds: float) -> None:
        self.kind, self.seed = kind, seed
        file, self.printed = tempfile.mkstemp(prefix="search-", suffix=".txt")
        os.close(file)
        self.source, to = context.Pipe(duplex=False)
        self.process: BaseProcess = context.Process(target=work, args=(kind, seed, seconds, to, self.printed), daemon=True)
        self.process.start()
        to.close()
        self.heard = time.monotonic()
        self.cases = self.calls = 0
        self.case, self.done = "", False
        self.found: dict[int, str] = {}
        self.broken = ""

    def read(self) -> bool:
        """Whether more may come."""
        self.heard = time.monotonic()
        try:
            while self.source.poll():
                what, value = self.source.recv()
                if what == "case":
                    self.cases, self.calls, self.case = value
                elif what == "difference":
                    self.found[value[0]] = value[1]
                elif what == "broken":
                    self.broken = value
                else:
                    self.cases, self.calls = value
                    self.done = True
        except (EOFError, OSError):
            return False
        return not self.done

    @property
    def hangs(self) -> bool:
        return time.monotonic() - self.heard > self.kind.limit

    def end(self, count: Count, stopped: bool) -> None:
        """Add what it did to the count. ``stopped``: it did not end by itself, as the search was over."""
        hangs = self.process.is_alive() and not self.done and not stopped and self.hangs
        if hangs or stopped:
            self.process.kill()
        self.process.join()
        count.cases += self.cases
        count.calls += self.calls
        count.differences += [text for text in self.found.values() if text not in count.differences]
        if self.broken:
            count.broken.append(self.broken)
        elif not self.done and not stopped:
            code = self.process.exitcode
            text = Path(self.printed).read_text(errors="replace")[-_TAIL:]
            how = f"did not end in {self.kind.limit:.0f} s" if hangs else f"ended with {code}"
            if self.case:
                count.differences.append(f"{self.case}\n\nthe process of the case {how}:\n{text}")
            else:
                count.broken.append(f"the process of a batch {how} before its first case:\n{text}")
        os.unlink(self.printed)
        self.source.close()


def search(kinds: Sequence[Kind], minutes: float, seed: int, jobs: int = 1) -> dict[str, Count]:
    """Batches of all kinds in turn until the time is over: what was done of each."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    counts = {kind.name: Count() for kind in kinds}
    end = time.monotonic() + 60 * minutes
    running: list[Worker] = []
    turn = 0
    while kinds:
        left = end - time.monotonic()
        while left > 1 and len(running) < jobs:
            kind = kinds[turn % len(kinds)]
            batch = f"{seed}:{kind.name}:{turn // len(kinds)}"
            running.append(Worker(context, kind, batch, min(kind.seconds, left)))
            turn += 1
        if not running or left < -_GRACE:
            break
        ready = wait([worker.source for worker in running], timeout=0.5)
        for worker in list(running):
            over = worker.source in ready and not worker.read()
            if over or worker.hangs:
                worker.end(counts[worker.kind.name], stopped=False)
                running.remove(worker)
    for worker in running:
        worker.end(counts[worker.kind.name], stopped=True)
    return counts


# -- what is printed and kept --------------------------------------------------------------------------------------------


def table(counts: dict[str, Count]) -> str:
    total = Count(sum(c.cases for c in counts.values()), sum(c.calls for c in counts.values()))
    total.differences = [text for c in counts.values() for text in c.differences]
    lines = [f"{'kind':<24}{'cases':>8}{'calls':>10}{'differences':>13}{'per 10,000 calls':>18}"]
    for name, c in [*counts.items(), ("all", total)]:
        lines.append(f"{name:<24}{c.cases:>8}{c.calls:>10}{len(c.differences):>13}{c.rate:>18.2f}")
    return "\n".join(lines)


def keep(counts: dict[str, Count], folder: Path, seed: int) -> list[Path]:
    """A file for each difference."""
    paths = []
    for name, count in counts.items():
        for n, text in enumerate(count.differences, 1):
            folder.mkdir(parents=True, exist_ok=True)
            paths.append(folder / f"{name.replace(' ', '_')}-{seed}-{n}.txt")
            paths[-1].write_text(text + "\n")
    return paths


def chosen(kinds: Iterable[Kind], names: list[str] | None) -> list[Kind]:
    """The kinds of these names that can run; those that can't are told."""
    out = []
    for kind in kinds:
        if names and kind.name not in names:
            continue
        if kind.missing:
            print(f"skipped: {kind.name} ({kind.missing})")
        else:
            out.append(kind)
    return out


def main(argv: Sequence[str] | None = None, kinds: Sequence[Kind] | None = None) -> int:
    if kinds is None:
        from tests.soundness.kinds import KINDS

        kinds = KINDS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, help="a fresh one if none is given")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--kind", action="append", choices=[kind.name for kind in kinds], metavar="NAME", help="only these")
    parser.add_argument("--results", type=Path, default=Path("artifacts/soundness"), help="a folder for what differs")
    options = parser.parse_args(argv)
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    print(f"seed {seed}, {options.minutes:g} minutes, {options.jobs} processes", flush=True)
    counts = search(chosen(kinds, options.kind), options.minutes, seed, options.jobs)
    for path in keep(counts, options.results, seed):
        print(f"\n==== {path}\n{path.read_text()}")
    broken = [f"{name}: {text}" for name, count in counts.items() for text in count.broken]
    for text in broken:
        print(f"\n==== the tool broke, {text}")
    print(f"\n{table(counts)}")
    if broken or not counts:
        return 2
    return 1 if any(count.differences for count in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
