"""Many seeds of random changes: ``python -m tests.soundness.campaign --seed S --seeds K --calls N --results FILE``.

Every seed runs ``tests.soundness.fuzz`` in a process of its own, so a crash is one seed's result and nothing is carried from
one to the next. A seed's result is one JSON line appended to FILE; a seed that is in it for this engine, backend and N isn't
run again, so a campaign can be stopped and gone on with at any time, or be split among machines by seeds.
``--total`` adds the lines up, by engine: a call counts for the engine it was made on, which is told by a hash of its source.
Key types: Job; key functions: run_seed, campaign, totals.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import magpy_core

Result = dict[str, Any]
_ADDED = ("changed calls", "changed calls where guards held", "changed calls where guards failed", "calls", "schedules")
_lock = threading.Lock()


@dataclass(frozen=True)
class Job:
    """One seed's share of a campaign."""

    seed: int
    calls: int
    backend: str
    limit: float  # seconds

    def key(self, engine: str) -> tuple[Any, ...]:
        return self.seed, self.calls, self.backend, engine


def engine_hash() -> str:
    """Tells one state of the engine's source from another."""
    root = Path(next(iter(magpy_core.__path__)))
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def run_seed(job: Job) -> Result:
    """One seed in a process of its own; what it prints goes on to our output, shown with its seed. To repeat one call of an
    odd seed, set ``MAGPY_DICT_TAGS=always``."""
    command = [
        sys.executable, "-W", "ignore", "-m", "tests.soundness.fuzz", "--calls", str(job.calls), "--seed", str(job.seed),
        "--backend", job.backend, "--seconds", str(job.limit), "--json",
    ]  # fmt: skip
    # every other seed with the first level of every guard (guards/first_level.py) from the first call on
    env = {**os.environ, **({"MAGPY_DICT_TAGS": "always"} if job.seed % 2 else {})}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=job.limit + 600, env=env)
    *said, last = ended.stdout.splitlines() or [""]
    if ended.returncode not in (0, 1) or not last.startswith("{"):
        what = f"the process ended with {ended.returncode}"
        return {"differences": [what], "said": [*said[-20:], last, *ended.stderr.splitlines()[-20:]], "total": {}}
    result: Result = json.loads(last)
    return {**result, "said": said}


def known_results(path: Path) -> list[Result]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def line_of(result: Result) -> str:
    total = result["total"]
    counts = ", ".join(f"{total.get(name, 0)} {name}" for name in (*_ADDED, "programs", "kinds of change"))
    return f"seed {result['seed']} ({result['backend']}): {len(result['differences'])} differences, {counts}"


def campaign(jobs: list[Job], path: Path, workers: int, seconds: float) -> list[Result]:
    """Run what is not in the results yet; the results that were made."""
    engine = engine_hash()
    done = {Job(r["seed"], r["calls"], r["backend"], 0).key(r["engine"]) for r in known_results(path)}
    start = time.monotonic()
    made: list[Result] = []

    def one(job: Job) -> None:
        if seconds and time.monotonic() - start > seconds:
            return
        result = {
            **run_seed(job), "seed": job.seed, "calls": job.calls, "backend": job.backend, "engine": engine,
        }  # fmt: skip
        with _lock:
            said = result.pop("said")
            with path.open("a") as file:
                file.write(json.dumps(result) + "\n")
            made.append(result)
            print("\n".join([*said, line_of(result)]), flush=True)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(one, [job for job in jobs if job.key(engine) not in done]))
    return made


def totals(results: list[Result]) -> Iterator[str]:
    """The sums of each engine and backend, in the order they were first run, and of all."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result["engine"], result["backend"]), []).append(result)
    for (engine, backend), members in [*groups.items(), (("all engines", "all backends"), results)]:
        total: Counter[str] = Counter()
        for member in members:
            total.update({name: member["total"].get(name, 0) for name in _ADDED})
        found = sum(len(member["differences"]) for member in members)
        counts = ", ".join(f"{total[name]} {name}" for name in _ADDED)
        yield f"engine {engine}, {backend}: {len(members)} seeds, {counts}, {found} differences"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, help="a file of JSON lines, added to")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--calls", type=int, default=2000, help="changed calls of each seed")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=0.0, help="start no seed after this time")
    parser.add_argument("--total", action="store_true", help="only add up what is in the results")
    options = parser.parse_args()
    if options.total:
        print("\n".join(totals(known_results(options.results))))
        return 0
    jobs = [Job(options.seed + n, options.calls, options.backend, 3600.0) for n in range(options.seeds)]
    made = campaign(jobs, options.results, options.jobs, options.seconds)
    print("\n".join(totals(made)))
    return 1 if any(result["differences"] for result in made) else 0


if __name__ == "__main__":
    sys.exit(main())
