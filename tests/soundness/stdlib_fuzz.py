"""Soundness of the instrumentation: CPython's own test modules must pass the same tests with every frame instrumented.

    python -m tests.soundness.stdlib_fuzz                # the interpreter's features
    python -m tests.soundness.stdlib_fuzz --all          # libraries too
    python -m tests.soundness.stdlib_fuzz test_scope ... # some

Every module runs twice, each in a child process: plainly, and under a recording whose observer takes every event and looks
at every operand. A test whose outcome differs is an error unless EXPLAINED says why it must.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

CORE = """
test_generators test_contextlib test_super test_descr test_scope test_with test_exceptions test_dataclasses test_enum
test_collections test_functools test_itertools test_fractions test_unpack_ex test_patma test_property test_class
test_generator_stop test_genexps test_listcomps test_setcomps test_dictcomps test_unpack test_extcall test_keywordonlyarg
test_positional_only_arg test_named_expressions test_fstring test_format test_augassign test_binop test_compare test_richcmp
test_contains test_iter test_raise test_except_star test_exception_group test_exception_variations test_traceback
test_decorators test_funcattrs test_global test_metaclass test_subclassinit test_typechecks test_abc test_asyncgen
test_coroutines test_contextlib_async test_yield_from test_grammar test_inspect test_types test_frame test_call test_opcodes
test_dynamic test_dynamicclassattribute test_builtin test_slice test_userlist test_isinstance test_operator test_bool
""".split()
"""What the interpreter's features are tested by: the default."""

MORE = """
test_typing test_copy test_copyreg test_dict test_list test_tuple test_set test_userdict test_ordered_dict test_defaultdict
test_deque test_heapq test_bisect test_reprlib test_pprint test_string test_textwrap test_json test_statistics test_decimal
test_random test_long test_complex test_sort test_string_literals test_struct test_pow test_contextvars test_context
test_pickle test_warnings test_logging test_re test_datetime test_argparse test_configparser test_graphlib test_ast
test_cmath test_math test_numeric_tower test_index test_int test_float test_hash test_range test_enumerate test_tokenize
test_weakref test_gc test_asyncio.test_tasks test_asyncio.test_futures test_asyncio.test_locks test_asyncio.test_queues
test_asyncio.test_taskgroups test_asyncio.test_timeouts test_unittest
""".split()
"""Libraries, for the volume of code: --all. Some take many minutes."""

EXPLAINED: dict[str, str] = {
    "*.GeneratorTest.test_name": "a generator of a renamed function has the name of the code, not of the function",
    "*test_generators.__test__.syntax": "gi_code is the clone, not the function's __code__",
    "*.test_slots": "counts all objects in the process",
    "*.test_recursion_in_except_handler": "sets the recursion limit a few levels above the current one",
    "*.test_recursive_traceback_*": "counts the levels up to the recursion limit, which a recording raises",
    "*.test_sneaky_frame_object": "compares a frame object made before the frame starts with the one that runs",
}
"""Pattern of a test id -> why its outcome must differ under instrumentation."""


class _Result(unittest.TestResult):
    """Outcomes by test id; with an observer, every test runs in a recording of its own."""

    def __init__(self, observer: Any = None) -> None:
        super().__init__()
        self.observer = observer
        self.recording: Any = None
        self.failures_of_recordings: dict[str, str] = {}
        self.outcomes: dict[str, str] = {}
        self.details: dict[str, str] = {}

    def _note(self, test: Any, outcome: str, detail: str = "") -> None:
        name = test.id()
        if self.outcomes.get(name) in (None, "ok"):
            self.outcomes[name] = outcome
        if detail:
            self.details[name] = self.details.get(name, "") + detail

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        if self.observer is not None:
            from magpy_core.monitor.record import record

            self.recording = record(self.observer)
            self.recording.__enter__()

    def stopTest(self, test: Any) -> None:
        if self.recording is not None:
            self.recording.__exit__(None, None, None)
            failure = self.recording.observer_failure
            if failure is not None:
                self.failures_of_recordings[test.id()] = repr(failure)
            self.recording = None
        super().stopTest(test)

    def addSuccess(self, test: Any) -> None:
        self._note(test, "ok")

    def addError(self, test: Any, err: Any) -> None:
        self._note(test, "error", self._exc_info_to_string(err, test))  # type: ignore[attr-defined]

    def addFailure(self, test: Any, err: Any) -> None:
        self._note(test, "failure", self._exc_info_to_string(err, test))  # type: ignore[attr-defined]

    def addSkip(self, test: Any, reason: str) -> None:
        self._note(test, "skipped")

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self._note(test, "expected failure")

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._note(test, "unexpected success")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._note(test, "failure", self._exc_info_to_string(err, test))  # type: ignore[attr-defined]


def _observer() -> Any:
    """An observer that takes every event and looks at every operand, without running any code of theirs."""
    from magpy_core.monitor.events import Observer
    from magpy_core.monitor.hooks import EVENTS

    def method(name: str) -> Any:
        def event(self: Any, site: Any, *operands: object) -> Any:
            self.count += 1
            self.kinds = tuple(map(type, operands))
            return operands[-1] if name.endswith("_result") else None

        return event

    def enter_frame(self: Any, frame: Any) -> bool:
        self.frames += 1
        self.kinds = tuple(map(type, frame.f_locals.values()))
        return True

    names = {name: method(name) for name in EVENTS}
    return type("Everything", (Observer,), {**names, "enter_frame": enter_frame, "count": 0, "frames": 0, "kinds": ()})()


def child(module: str, mode: str, out: str, only: list[str]) -> None:
    """Run one module and write its outcomes as JSON (in a process of its own)."""
    import torch  # noqa: F401  # in both modes: it changes some modules of the standard library
    from test import support

    support.use_resources = []  # nothing that needs a network, a screen or much of the machine
    suite = unittest.defaultTestLoader.loadTestsFromNames(only or [f"test.{module}"])
    observer = None if mode == "plain" else _observer()
    result = _Result(observer)
    suite.run(result)
    summary: dict[str, Any] = {"failures": result.failures_of_recordings}
    if observer is not None:
        summary |= {"events": observer.count, "frames": observer.frames}
    Path(out).write_text(json.dumps({**summary, "outcomes": result.outcomes, "details": result.details}))


def run(module: str, mode: str, timeout: float, only: list[str]) -> dict[str, Any]:
    """Run one module in a child process; what it wrote, or how it ended."""
    with tempfile.TemporaryDirectory() as scratch:
        out = str(Path(scratch) / "outcomes.json")
        command = [sys.executable, "-X", "faulthandler", "-m", "tests.soundness.stdlib_fuzz", "--child", mode, "--out", out]
        root = str(Path(__file__).parents[2])
        environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1", "TMPDIR": scratch}
        try:
            ended = subprocess.run(
                [*command, module, *only],
                cwd=scratch,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            return {"crashed": f"no end after {timeout:g} s"}
        if not Path(out).exists():
            return {"crashed": f"exit status {ended.returncode}\n{ended.stderr[-3000:]}"}
        data: dict[str, Any] = json.loads(Path(out).read_text())
        return data


def explanation(test: str) -> str:
    """Why a test's outcome must differ; empty if nothing says so."""
    return next((why for pattern, why in EXPLAINED.items() if fnmatch.fnmatch(test, pattern)), "")


def explained_failure(failure: str) -> bool:
    """A test that recurses up to the limit reaches it in a hook; the recording ends there and the test goes on."""
    return failure.startswith(("RecursionError", "RecursionTooDeep"))


def compare(module: str, timeout: float, verbose: bool, only: list[str]) -> int:
    """Run a module both ways and print the differences; how many are not explained."""
    plain = run(module, "plain", timeout, only)
    if "crashed" in plain:
        print(f"{module:<28} not runnable here: {plain['crashed'].splitlines()[-1][:90]}", flush=True)
        return 0
    ours = run(module, "instrumented", timeout, only)
    if "crashed" in ours:
        print(f"{module:<28} CRASHED: {ours['crashed']}", flush=True)
        return 1
    differences = {
        test: (outcome, ours["outcomes"].get(test, "missing"))
        for test, outcome in plain["outcomes"].items()
        if ours["outcomes"].get(test) != outcome
    }
    unexplained = {test for test in differences if not explanation(test)}
    passed = sum(outcome == "ok" for outcome in ours["outcomes"].values())
    line = f"{module:<28} {passed:>4} pass of {len(plain['outcomes']):>4}, {ours['events']:>9} events"
    print(f"{line}, {len(differences)} differ, {len(unexplained)} unexplained", flush=True)
    failures = {test: failure for test, failure in ours["failures"].items() if not explained_failure(failure)}
    for test, failure in failures.items():
        print(f"    recording of {test} failed: {failure}", flush=True)
    for test, (before, after) in differences.items():
        why = f" ({explanation(test)})" if test not in unexplained else ""
        print(f"    {'explained ' if why else ''}{test}: {before} -> {after}{why}", flush=True)
        if verbose or not why:
            print("        " + ours["details"].get(test, "")[-1500:].replace("\n", "\n        "), flush=True)
    return len(unexplained) + len(failures)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--all", action="store_true", help="the libraries' tests too")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--only", action="append", default=[], help="one test id (of the one module named)")
    parser.add_argument("--child", choices=("plain", "instrumented"))
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.child:
        child(options.modules[0], options.child, options.out, options.modules[1:])
        return 0
    wrong = sum(
        compare(name, options.timeout, options.verbose, options.only)
        for name in options.modules or (CORE + MORE if options.all else CORE)
    )
    print(f"{wrong} unexplained difference(s)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
