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
        0.01,
        "of the program's processor time",
        "until the share suffices for all of a compilation: it shows whether compiling takes anything, and little is lost",
    )
    compile_any: float = _limit(4.0, "processor seconds", "any compilation takes, most of them for imports and C++")
    compile_operation: float = _limit(0.04, "processor seconds", "more, for each operation that was recorded")
    compile_backward: float = _limit(
        4.0, "processor seconds", "more, where autograd calls code for a backward pass, which has twice as many operations"
    )
    compile_again: float = _limit(
        0.25,
        "of the last run's processor time",
        "taken at once, if that run ended while code was being compiled: a second run pays what a first one could not, "
        "so that all later ones start compiled; a third does not try again",
    )
    operation_seconds: float = _limit(
        5e-6,
        "seconds of each operation in eager mode",
        "Python and torch's dispatcher take at least as long: what compiled code is sure to save of a call",
    )
    payback: float = _limit(
        2.0, "times its cost", "what compiling must save before the loops' foreseen end, to be paid in advance"
    )
    most_foreseen: float = _limit(
        20.0, "times the time it has run", "as long as a program is believed to go on: it may end its loops early"
    )
    foreseen_after: float = _limit(
        0.1, "of the last run's time", "first steps are slow: until then, loops don't tell that this run takes longer"
    )
    look_ahead_interval: float = _limit(0.5, "seconds", "between two estimates of how long the program's loops go on")
    parallel_program: float = _limit(
        1.25,
        "processors that the program uses",
        "its threads wait for each other, so that a compiler that takes one stops all",
    )
    all_cores: float = _limit(
        0.75, "of all processors", "a program that uses more leaves none idle: what compiling it takes, it loses in any run"
    )
    alone_after: float = _limit(
        0.5, "processor seconds", "of compiling that show whether it takes processors from the program"
    )
    alone_from: float = _limit(
        0.25, "of the compiler's processor time", "taken from a program of several threads: from then on the program waits"
    )
    alone_most: float = _limit(1.5, "times what was expected", "for so long a program waits for a compiler")
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
    silent_compiler: float = _limit(120.0, "seconds", "without a heartbeat, after which a compiler counts as dead")
    late_heartbeat: float = _limit(5.0, "seconds", "without one, after which no program waits for a compiler any longer")
    short_compilation: float = _limit(1.0, "seconds", "too short to say how much of a core a compiler gets")

    # -- code for one length (backends/recurrent.py)
    unrolled_steps: int = _limit(
        64,
        "steps of a recurrent layer",
        "of one length are unrolled: more of them take minutes to compile",
    )

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
    many_missed: float = _limit(
        0.1, "of a region's calls", "that fit no capture: more are not only warm-up, and a report says what changed"
    )
    few_fit: float = _limit(0.1, "of the checks", "captures that fit fewer calls are not worth compiling")

    # -- exploring paths (regions/policy/path_sampling.py)
    paths: int = _limit(2, "paths", "captured whole; each that is tried runs up to the decision that differs")
    path_recordings: int = _limit(3, "recordings", "of calls that a path's guards allow, before it is compiled")
    calls_before_cut: int = _limit(8, "calls", "cutting a region's functions pays for what is called often")
    refused_branches: int = _limit(
        3, "recordings", "refused on a branch, before it is taken to be the only one: saving the best model, say"
    )
    numbers_of_rounds: int = _limit(
        2, "captures", "more, because of the rounds of one loop, before a round is a graph by itself"
    )
    unrolled_operations: int = _limit(
        200, "operations", "in captures that differ in the rounds of a loop: smaller ones compile in seconds"
    )
    misses_before_cut: int = _limit(
        4, "calls in a row", "that no capture serves: what captures of a closed region were made for is over"
    )
    captures_for_one_value: int = _limit(3, "captures", "more of a fragment, because of one value, fit few calls each")
    captures_for_one_statement: int = _limit(
        3, "captures", "more, because of one statement, fit few calls each: it is cut out"
    )
    fewest_decisions: int = _limit(2, "decisions on data", "one has two outcomes, whose graphs are both captured")
    fewest_operators: int = _limit(2, "operators", "of a fragment that is worth the check of its guards")
    wrong_paths: int = _limit(
        6, "runs of a graph on the wrong path", "after which it is dropped, unless it has served more calls"
    )

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
    cheap_guard: float = _limit(0.03, "of a call", "a guard that takes less is checked on every call while code is compared")
    warm_up_steps: int = _limit(2, "steps", "after something has changed are not timed")
    alternating_steps: int = _limit(24, "steps", "alternate between compiled and eager mode then")
    timed_cuts: int = _limit(7, "calls", "after those that alternate, in which the cuts are timed")
    few_in_step: int = _limit(8, "calls in a step", "a region that is called more often alternates by itself, not by steps")
    step_pairs: int = _limit(6, "pairs of steps", "for an interval of the speedup")
    long_alternation: float = _limit(2.0, "seconds", "of alternating steps of each kind suffice, if the verdict is certain")
    better_code_interval: int = _limit(32, "calls", "of a compiled segment between two checks whether better code is ready")

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
    costly_parts: float = _limit(
        0.05, "of a step", "a step in parts (MP406) that costs more is a warning: it shows in every run"
    )
    kept_calls: int = _limit(256, "calls", "in eager mode, whose times say what a region takes")
    most_samples: int = _limit(
        1000, "compared calls", "of one capture are kept for the report; from then on every other one"
    )
    bisect_seconds: float = _limit(180.0, "processor seconds", "in which the smallest part that differs is looked for")
    bisect_at_end: float = _limit(
        30.0, "seconds", "that the end of a run waits for what causes a difference; a small graph takes about as long"
    )
    bisected: int = _limit(2, "differences", "of a run are looked into beside the program; a third tells little more")
    reproducer_bytes: int = _limit(
        2**28, "bytes of tensors", "saved beside a file that reproduces a difference: a report takes little more"
    )
    kept_reports: int = _limit(2**26, "bytes of reports", "of the last run in each folder; the oldest are removed")
    kept_differences: int = _limit(2**30, "bytes", "of files that runs have written; the oldest are removed")
    verify_tries: int = _limit(
        8, "calls", "that take another path, before compiled code of this one is used without having been compared"
    )
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
    origin_seconds: float = _limit(
        60.0,
        "seconds",
        "that `verify` compares calls until one differs by a bit, and then as long for its operation: it explains a "
        "verdict, which is known without it",
    )
    copied_bytes: int = _limit(2**28, "bytes of a working folder", "copied for each run in about a second")
    copied_files: int = _limit(20_000, "files of a working folder", "copied for each run in some seconds")
    amplified: float = _limit(
        10.0, "times", "that an optimizer's updates differ more than its gradients are said; by less, most do at some step"
    )
    chaos: float = _limit(
        0.1, "of the norm of all parameters", "rounding noise that changes them by more leaves little to compare with"
    )

    # -- what a run leaves for the next (regions/policy/savings.py)
    saving_timings: int = _limit(6, "timings of each kind", "fewer do not say what compiled code saves, for the next run")
    unused_recordings: int = _limit(4, "recordings", "of a region whose captures were never used: it changes all the time")

    # -- what is reported (regions/timing/costs.py, regions/reports/performance.py)
    negligible_cost: float = _limit(0.005, "of a step", "a cut that costs less is no finding")
    fewest_gaps: int = _limit(3, "gaps", "for a median that one slow call does not make")
    shown_timings: int = _limit(5, "timings of each kind", "fewer prove nothing")
    slower: float = _limit(1.1, "compiled / eager", "less is noise of a machine that does other work, too")
    long_guards: float = _limit(0.3, "of a compiled call", "guards that take more are a finding")
    long_compiling: float = _limit(1.0, "seconds", "of compiling that saved less than half of it are a finding")

    # -- fast guards (capture/fast_guard.py)
    fast_guard_pays: int = _limit(16, "calls", "after which a fast guard has paid for itself")
    fast_guard_wait: int = _limit(1024, "calls", "at most, before the next attempt to make a fast guard")
    fast_guard_moved: int = _limit(64, "namespaces", "more change at once only in a switch, such as `model.eval()`")

    # -- looking for work outside of regions (runner/rest.py, runner/step_functions.py)
    discovery_window: int = _limit(64, "calls", "of modules that are watched in a row, for work outside of regions")
    discovery_cost: float = _limit(100e-6, "seconds", "for watching one call, with what it calls")
    discovery_share: float = _limit(0.005, "of the program's time", "for watching calls of modules")
    discovery_served: float = _limit(0.04, "of the program's time", "where compiled code serves: it shows whether that pays")
    longest_unwatched: int = _limit(8192, "calls", "without watching, at most, of modules that are called very often")
    discovery_pause: float = _limit(1.0, "seconds", "without watching, at most")
    timed_functions: int = _limit(8, "calls", "of a function that cannot be captured, between which its work is timed")
    fewest_functions: int = _limit(3, "calls", "for a median that one slow call does not make")
    most_functions: int = _limit(3, "function objects of one code", "more of them are made for each call again")

    # -- compiling equal parts of a graph once (backends/blocks)
    blocks_save: float = _limit(0.33, "of the operations", "that equal blocks must save, to be compiled once for all")
    block_saves: int = _limit(250, "operations", "that one kind of block must save, beside others")
    only_updates: float = _limit(0.9, "of the operations", "that are updates: what is left is not compiled with them")
    calls_of_updates: int = _limit(28, "updates", "that one call of compiled code may hold")
    updates_save: int = _limit(300, "operations", "that updates of parameters must save, to be compiled once for all shapes")
    merged_block: int = _limit(32, "operations", "shorter blocks are compiled several at a time")
    least_update: int = _limit(2, "operations", "of an update: many of them are compiled as one")
    independent_saves: int = _limit(100, "operations", "that independent blocks must save, where others save more")
    element_operations: int = _limit(
        10, "operations", "for each element that a block takes or returns, besides matrix products"
    )

    # -- CUDA graphs (backends/cuda_graphs)
    device_left: float = _limit(0.1, "of the device's memory", "left after a CUDA graph: the program may need more later")
    watched_calls: int = _limit(3, "calls", "before the first recording of a CUDA graph")
    replayed_timings: int = _limit(5, "calls of each kind", "timed, with a CUDA graph and without")
    most_recordings: int = _limit(4, "CUDA graphs", "of one graph: its inputs move all the time")
    replay_gain: float = _limit(0.97, "of the code's own time", "a replay that takes more is not worth its memory")

    def rows(self) -> Iterator[tuple[str, float, str, str]]:
        """Name, value, unit and reason of each."""
        for one in fields(self):
            yield one.name, getattr(self, one.name), one.metadata["unit"], one.metadata["why"]


LIMITS = Limits()
