"""What the last run of the same command has shown: how long it took, and what compiled code saved. Key types: LastRun, Kept.

It only decides when time is spent on recording, and on loading compiled code, never what is computed: in a run that is known
to be long enough, both may come at once, where in an unknown one they have to wait.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from magpy_core._compat.code_cache import CodeCache, runs_folder
from magpy_core._compat.torch.inductor_cache import seems_to_have_own_folder
from magpy_core.limits import LIMITS

_MOST_BYTES = 1 << 20  # of all files together


@dataclass(frozen=True)
class LastRun:
    """``seconds``: how long it took. ``saves``: by region, what its compiled code saves in each second of a run, in
    seconds; 0 if it has not saved anything. ``ahead``: the seconds that recording took when the command was compiled ahead
    of time; None: it was not. ``slower``: graphs whose compiled code was slower than eager mode, by the key it is stored
    as, and how many runs ago that was measured. ``processor``: the processor seconds of all its threads. ``unfinished``:
    how many runs in a row have ended while code was being compiled for them. ``futile``: how many runs in a row would have
    lost more by compiling than they had gained, with the one that has shown it."""

    seconds: float = 0.0
    saves: Mapping[str, float] = field(default_factory=dict)
    ahead: float | None = None
    slower: Mapping[str, int] = field(default_factory=dict)
    processor: float = 0.0
    unfinished: int = 0
    futile: int = 0

    def is_too_short(self, elapsed: float, foreseen: float) -> bool:
        """Whether compiling will not pay in a run, now ``elapsed``, unless it takes much longer, or is ``foreseen`` to.
        First steps are slow, so at first its loops tell too much. After some runs, that is measured again."""
        known, longer = 0 < self.futile <= LIMITS.verdict_runs and self.ahead is None, LIMITS.payback * self.seconds
        is_foreseen = foreseen >= longer and elapsed >= LIMITS.foreseen_after * self.seconds
        return known and elapsed < longer and not is_foreseen

    @property
    def granted(self) -> float:
        """Processor seconds that the compiler may take in this run besides its usual share."""
        return LIMITS.compile_again * self.processor if self.unfinished == 1 else 0.0

    def is_slower(self, graph: str) -> bool:
        """Whether its code is known to be slower, and that was not measured too long ago."""
        return graph in self.slower and self.slower[graph] < LIMITS.verdict_runs

    def may_save(self, region: str) -> bool:
        """Whether it has saved something, or was not timed."""
        return self.saves.get(region, 1.0) > 0.0

    def still_saved(self, region: str, elapsed: float) -> float:
        """The seconds that compiled code of ``region`` will save, if this run, now ``elapsed``, takes as long."""
        return self.saves.get(region, 0.0) * max(self.seconds - elapsed, 0.0)


class Kept:
    """The file for one command, in the user's caches. Without a folder that only the user can write, nothing is kept."""

    def __init__(self, command: str) -> None:
        about = [command, torch.__version__, sys.version, os.environ.get("OMP_NUM_THREADS"), torch.get_num_threads()]
        self._name = hashlib.sha256(json.dumps(about).encode()).hexdigest() + ".json"
        self._is_elsewhere = seems_to_have_own_folder()

    @property
    def path(self) -> Path:
        return runs_folder() / self._name

    def read(self) -> LastRun:
        """Nothing is known if the file is missing or not as we write it, or compiled code is kept elsewhere."""
        if self._is_elsewhere:
            return LastRun()
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            found = json.loads(self.path.read_text(encoding="utf-8"))
            saves, ahead = {str(name): float(rate) for name, rate in found["saves"].items()}, found.get("ahead")
            slower = {str(graph): int(runs) for graph, runs in found.get("slower", {}).items()}
            processor, unfinished = float(found.get("processor", 0.0)), int(found.get("unfinished", 0))
            ahead, futile = None if ahead is None else float(ahead), int(found.get("futile", 0))
            return LastRun(float(found["seconds"]), saves, ahead, slower, processor, unfinished, futile)
        return LastRun()

    def write(self, run: LastRun) -> None:
        """If it can't be written, the next run decides as the first one."""
        cache = CodeCache(runs_folder())
        if self._is_elsewhere or cache.refusal():
            return
        beside = self.path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            beside.write_text(json.dumps(asdict(run)), encoding="utf-8")
            os.replace(beside, self.path)
            cache.prune(_MOST_BYTES)
