"""Runs the jobs within a time limit: tests and compilations side by side, then measurements alone, then the remaining tests.

Key type: Schedule. It is told what each job was; when the time is over, what has not run is named.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from benchmarks.gpu.child import Ran
from benchmarks.gpu.jobs import Job

_SHARE_BESIDE = 0.4  # of the time, for tests and compilations before the measurements
_LEAST_S = 15.0  # with less time left, nothing is started

RunJob = Callable[[Job, float], Ran]
"""Runs a job for at most so many seconds."""


@dataclass
class Schedule:
    """``run_job`` is called in several threads at once, ``ended`` in one at a time. ``clock``: seconds."""

    run_job: RunJob
    ended: Callable[[Ran], None]
    seconds: float
    workers: int
    clock: Callable[[], float] = time.monotonic
    not_run: list[Job] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._start = self.clock()

    def _left(self, share: float = 1.0) -> float:
        return self._start + share * self.seconds - self.clock()

    def run(self, beside: Iterable[Job], alone: Iterable[Job]) -> None:
        waiting = self._side_by_side(deque(beside), _SHARE_BESIDE)
        missed = [job for job in alone if not self._one(job, 1.0)]
        waiting = self._side_by_side(deque(job for job in waiting if job.are_tests), 1.0)
        self.not_run = [*waiting, *missed]

    def _side_by_side(self, jobs: deque[Job], share: float) -> list[Job]:
        """Those that have not run when ``share`` of the time is over."""

        def work() -> None:
            while self._left(share) > _LEAST_S:
                with self._lock:
                    if not jobs:
                        return
                    job = jobs.popleft()
                again = self._rest(job, share)
                if again is not None:
                    with self._lock:
                        jobs.appendleft(again)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(self.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return list(jobs)

    def _rest(self, job: Job, share: float) -> Job | None:
        """Runs a job; what is left of it: tests after one that ended the process, or for which the time was over."""
        ran = self.run_job(job, self._left(share))
        with self._lock:
            self.ended(ran)
        if ran.is_cut and not ran.remaining:
            return job
        has_progressed = bool(ran.verdicts) or ran.is_cut
        return job.only(ran.remaining) if ran.remaining and has_progressed else None

    def _one(self, job: Job, share: float) -> bool:
        """Whether there was time for it."""
        if self._left(share) <= _LEAST_S:
            return False
        self._rest(job, share)
        return True
