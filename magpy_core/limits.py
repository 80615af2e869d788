"""Every number that decides what MagPy spends, in one table: its value, its unit, and why it is so. Key name: LIMITS.

They decide when time is spent, never what is computed. A test that needs other values replaces ``LIMITS`` in the module
that it tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any


def _limit(value: float, unit: str, why: str) -> Any:
    return field(default=value, metadata={"unit": unit, "why": why})


@dataclass(frozen=True)
class Limits:
    """What is spent on compiling, recording and checking guards. `rows` lists them with their units and reasons."""

    # -- compiling beside the program (backends/fair_share.py, backends/background.py)
    compile_at_once: float = _limit(
        4.0,
        "processor seconds taken from the program",
        "a small graph takes about as long to compile, so that even a short script on a busy machine gets its code",
    )
    compile_share: float = _limit(
        0.05, "of the program's processor time", "what a program can lose to compiling when no compiled code is ever used"
    )
    compile_probe: float = _limit(
        0.01, "of the program's processor time", "until the share suffices for all of a compilation: little is lost before"
    )
    compile_any: float = _limit(6.0, "processor seconds", "any compilation takes, most of them for imports and C++")
    compile_operation: float = _limit(0.05, "processor seconds", "more, for each operation that was recorded")
    compile_again: float = _limit(
        0.25,
        "of the last run's processor time",
        "taken at once, if that run ended while code was being compiled: a second run pays what a first one could not, "
        "so that all later ones start compiled; a third does not try again",
    )
    compile_check_interval: float = _limit(
        0.1, "seconds", "how far the compiler may exceed its share; each check costs 0.3 ms of processor time"
    )
    compile_longest: float = _limit(1800.0, "seconds", "a compiler that takes longer will not return")
    compile_held_up: float = _limit(0.25, "of one core", "a compiler that gets less waits for a core; a run then says so")
    least_compile_work: int = _limit(
        20, "operations", "take as long to compile as any compilation at least does: what pays most for its work is first"
    )
    sources_before_header: int = _limit(
        2, "C++ sources", "compiled without torch's precompiled header save about what making it takes"
    )
    compile_unasked: float = _limit(10.0, "seconds", "a graph that no call has asked for in this time delays no other")

    # -- recording and loading, which calls wait for (regions/policy/budget.py)
    record_at_once: float = _limit(0.5, "seconds", "a first recording may come before nothing is gained")
    load_at_once: float = _limit(1.0, "seconds", "loading compiled code comes before a gain")
    record_share: float = _limit(
        0.04, "of the time the program has run", "1% more goes to what is not counted, such as observed calls"
    )
    wasted_recordings: int = _limit(2, "recordings", "after so many that fit no call, the smaller share applies")
    wasted_share: float = _limit(0.02, "of the time the program has run", "each call seems to take another path")
    most_gain: float = _limit(0.5, "of a call's time", "what compiling is assumed to save at most")
    wait_per_wasted: float = _limit(
        4.0, "seconds per wasted second of compiling", "more is compiled as the program continues"
    )
    most_ahead: float = _limit(3.0, "seconds", "spent before the run has lasted long enough, as the last run did")
    untimed_share: float = _limit(
        0.02, "of the last run's time", "ahead, for a region that it did not time: compiling may take the rest"
    )
    least_left: float = _limit(10.0, "times what a recording takes", "until the end of a run that lasts as long as the last")
    least_region_share: float = _limit(0.02, "of the time since the recording", "a region that takes less is not compiled")
    region_share_after: float = _limit(0.1, "seconds", "before that, a region's share is not known")
    import_sizes: float = _limit(1.5, "seconds", "symbolic sizes import sympy and TorchDynamo once")

    # -- checking guards while compiled code is on its way (regions/policy/guard_backoff.py)
    check_patience: int = _limit(32, "calls", "checks in a row that found nothing, before any call skips the check")
    check_share: float = _limit(0.005, "of a call in eager mode", "what waiting for compiled code may cost")
    longest_unchecked: int = _limit(64, "calls", "a call with another shape is recorded a few calls later")
    few_checks: int = _limit(8, "checks", "before that, it is not known how many calls captures fit")
    few_fit: float = _limit(0.1, "of the checks", "captures that fit fewer calls are not worth compiling")

    # -- exploring paths (regions/policy/path_sampling.py)
    paths: int = _limit(2, "paths", "captured whole; each that is tried runs up to the decision that differs")
    path_recordings: int = _limit(3, "recordings", "of calls that a path's guards allow, before it is compiled")
    calls_before_cut: int = _limit(8, "calls", "cutting a region's functions pays for what is called often")
    captures_for_one_value: int = _limit(3, "captures", "more of a fragment, because of one value, fit few calls each")
    fewest_decisions: int = _limit(2, "decisions on data", "one has two outcomes, whose graphs are both captured")

    # -- comparing compiled code with eager mode (regions/timing/comparison.py, alternating_calls.py, regions/trial.py)
    confidence: float = _limit(0.95, "of the speedup's interval", "one verdict in twenty may be wrong")
    most_pairs: int = _limit(200, "pairs of timings", "the sign test's sums stay exact and quick")
    steady_calls: int = _limit(8, "calls", "nothing new was recorded or compiled in them, before calls alternate")
    latest_alternation: int = _limit(100, "calls", "from then on they alternate, whatever changes")
    most_slower: int = _limit(64, "graphs", "of one command, known to be slower; the file of its last run stays small")
    alternation_windows: int = _limit(
        4, "times", "that steps alternate: a program that keeps changing is not to run in eager mode in half of its steps"
    )
    verdict_runs: int = _limit(4, "runs", "use a verdict that code is slower, before it is compiled and measured again")
    timed_guard_checks: int = _limit(5, "checks", "their median says what a check takes")

    # -- giving up compiled code (regions/region.py)
    most_raised: int = _limit(3, "calls", "in which a capture's graph raises and eager mode does not: it always will")

    # -- verifying compiled code in its first call (verification/)
    units_in_last_place: float = _limit(
        4.0,
        "units in the last place of a tensor's largest element",
        "another order of operations changes as much",
    )
    noise_factor: float = _limit(4.0, "times what rounding noise changes", "a few noisy runs do not show the largest change")
    noise_of_sums: float = _limit(
        0.125,
        "units in the last place for each summand",
        "compiled code adds one after the other; equal summands are rounded in the same way up to four times as much",
    )
    most_summands: int = _limit(4096, "summands", "are added one after the other; compiled code adds longer sums in parts")
    noisy_runs: int = _limit(8, "runs of a graph", "a sign that rounding decides stays the same in all of them once in 256")
    verify_every: int = _limit(50, "calls", "of which one is compared, where a run is to be verified and no number is given")
    most_samples: int = _limit(
        1000, "compared calls", "of one capture are kept for the report; from then on every other one"
    )
    bisect_seconds: float = _limit(180.0, "seconds", "in which the smallest part that differs is looked for")
    verify_memory: float = _limit(0.1, "of the free memory", "that copies of what a graph writes may take")

    # -- comparing whole runs of a program (runner/recorder.py, runner/working_copy.py, verification/runs)
    noisy_programs: int = _limit(
        3,
        "eager runs with noise",
        "one may by chance be close to the run without; the last separates equal values; made only while one is needed",
    )
    kept_states: int = _limit(
        2**30,
        "bytes of states that a run saves",
        "parameters after a few steps show when a difference began; the last is kept",
    )
    copied_bytes: int = _limit(2**28, "bytes of a working folder", "copied for each run in about a second")
    copied_files: int = _limit(20_000, "files of a working folder", "copied for each run in some seconds")
    chaos: float = _limit(
        0.1, "of the norm of all parameters", "rounding noise that changes them by more leaves little to compare with"
    )

    def rows(self) -> Iterator[tuple[str, float, str, str]]:
        """Name, value, unit and reason of each."""
        for one in fields(self):
            yield one.name, getattr(self, one.name), one.metadata["unit"], one.metadata["why"]


LIMITS = Limits()
