"""Recordings: whose events they get, what ends them, and that they leave nothing behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from types import CodeType
from typing import Any

import pytest
from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list, get_eval_frame_callback

from magpy_core._compat.torch import eval_frame
from magpy_core._compat.torch.eval_frame import Frame, disable, never_intercept, restore
from magpy_core._compat.versions import UnsupportedVersion, check, check_versions
from magpy_core.monitor.events import Observer, Site
from magpy_core.monitor.positions import current_globals, site_location, user_frame
from magpy_core.monitor.record import record
from tests.unit.monitor.log import Log, run

GLOBAL = 1


class Made:
    def __init__(self) -> None:
        self.value = GLOBAL


def test_the_frames_of_classes_that_are_often_made() -> None:
    """The interpreter specialises such calls (3.13: without asking who watches frames)."""

    class Frames(Observer):
        entered = 0

        def enter_frame(self, frame: Frame) -> bool:
            self.entered += frame.f_code is Made.__init__.__code__
            return True

    def make() -> None:
        for _ in range(50):
            Made()

    for _ in range(3):
        frames = Frames()
        with record(frames):
            make()
        assert frames.entered == 50


def reads() -> int:
    return GLOBAL


def numbers(n: int) -> Iterator[int]:
    for k in range(n):
        yield k + GLOBAL


def entered(log: Log) -> list[str]:
    return [event[1] for event in log.events if event[0] == "enter"]


def test_after_a_recording_the_original_code_runs() -> None:
    log = run(reads)[1]
    count = len(log.events)
    reads()
    list(numbers(2))
    assert len(log.events) == count > 1
    assert _debug_get_cache_entry_list(reads.__code__) == []
    assert get_eval_frame_callback() is not eval_frame._CALLBACK


def test_a_frame_is_asked_for_every_time_and_can_be_left_alone() -> None:
    class Second(Log):
        def enter_frame(self, frame: Frame) -> bool:
            super().enter_frame(frame)
            self.events.append(("arguments", dict(frame.f_locals)))
            return frame.f_locals.get("n") == 2

    def f(n: int) -> int:
        return n + GLOBAL

    log = Second()
    with record(log):
        for n in (1, 2, 3, 2):
            f(n)
    assert [event[1]["n"] for event in log.events if event[0] == "arguments"] == [1, 2, 3, 2]
    assert [event[2:] for event in log.events if event[0] == "binary"] == [(2, 1), (2, 1)]


def test_the_same_code_is_instrumented_once() -> None:
    from magpy_core.monitor.record import clone_of

    assert clone_of(reads.__code__) is clone_of(reads.__code__) is not None
    assert clone_of(compile("1", "<m>", "exec")) is None
    assert clone_of(clone_of.__code__) is None


def test_nested_recordings() -> None:
    outer, inner = Log(), Log()

    def f() -> None:
        reads()
        with record(inner):
            list(numbers(1))
        reads()

    with record(outer):
        f()
    assert entered(outer) == ["f", "reads", "reads"]
    assert entered(inner) == ["numbers"]


@pytest.fixture
def collector_off() -> Iterator[None]:
    """As in every recording: the callbacks of the collector (Hypothesis has one) would be events of a random thread."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("collector_off")
def test_threads_do_not_mix() -> None:
    logs = [Log(), Log()]
    gate = threading.Barrier(3)
    stop = threading.Event()

    def work(log: Log) -> None:
        gate.wait()
        with record(log):
            for _ in range(50):
                reads()
                list(numbers(3))

    def unrecorded() -> None:
        gate.wait()
        while not stop.is_set():
            reads()

    threads = [threading.Thread(target=work, args=(log,)) for log in logs] + [threading.Thread(target=unrecorded)]
    for thread in threads:
        thread.start()
    for thread in threads[:2]:
        thread.join()
    stop.set()
    threads[2].join()
    for log in logs:
        assert entered(log) == ["reads", "numbers"] * 50
    assert _debug_get_cache_entry_list(reads.__code__) == []


def test_a_generator_that_outlives_its_recording_goes_on_silently() -> None:
    log = Log()
    with record(log):
        generator = numbers(3)
        first = next(generator)
    count = len(log.events)
    assert [first, *generator] == [1, 2, 3]
    assert len(log.events) == count


def test_a_generator_started_before_is_not_replaced() -> None:
    generator = numbers(3)
    next(generator)
    fresh = numbers(1)

    def f() -> Any:
        return list(generator), list(fresh), list(numbers(1))

    result, log = run(f)
    assert result == ([2, 3], [1], [1])
    assert entered(log) == ["f", "numbers"]


def test_many_generators_leave_few_entries() -> None:
    def f() -> int:
        most = 0
        for _ in range(200):
            list(numbers(1))
            most = max(most, len(_debug_get_cache_entry_list(numbers.__code__)))
        return most

    assert run(f)[0] <= 2 * eval_frame._MAX_GENERATOR_ENTRIES


@pytest.mark.parametrize("method", ["enter_frame", "global_read", "call", "call_result", "cell_read", "binary_result"])
def test_a_failing_observer_ends_the_recording_and_nothing_else(method: str) -> None:
    calls = []

    def fail(self: Any, *_: Any) -> Any:
        calls.append(method)
        raise ZeroDivisionError("observer")

    outer = 3

    def f() -> int:
        return reads() + outer + abs(-GLOBAL)

    observer = type("Failing", (Observer,), {method: fail})()
    with record(observer) as recording:
        assert f() == 5
        assert f() == 5
    assert calls == [method]
    assert isinstance(recording.observer_failure, ZeroDivisionError)
    assert "in fail" in recording.failure_traceback
    assert recording.observer_failure.__traceback__ is None
    assert f() == 5


def test_a_failure_does_not_keep_the_users_objects_alive() -> None:
    class Thing:
        pass

    class Failing(Observer):
        def attr_read(self, site: Site, obj: object) -> None:
            raise ValueError(site.name)

    def f() -> weakref.ref[Thing]:
        thing = Thing()
        thing.__doc__  # noqa: B018
        return weakref.ref(thing)

    with record(Failing()) as recording:
        alive = f()
    gc.collect()
    assert recording.observer_failure is not None
    assert alive() is None


def test_the_recording_ends_with_its_block_also_on_exceptions() -> None:
    def f() -> None:
        raise ValueError

    log = Log()
    with pytest.raises(ValueError), record(log):
        f()
    assert get_eval_frame_callback() is not eval_frame._CALLBACK
    count = len(log.events)
    reads()
    assert len(log.events) == count


def _interrupting(where: str) -> type[Observer]:
    def interrupt(self: Any, *_: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return True

    return type("Interrupting", (Observer,), {where: interrupt})


@pytest.mark.parametrize("where", ["enter_frame", "global_read", "call_result"])
def test_ctrl_c_in_our_code_reaches_the_program(where: str) -> None:
    def f() -> int:
        return abs(GLOBAL)

    with record(Observer()):  # so that f has an entry, and the next recording asks its guard
        f()
        with pytest.raises(KeyboardInterrupt), record(_interrupting(where)()):
            f()
    with pytest.raises(KeyboardInterrupt), record(_interrupting(where)()):
        f()
    assert get_eval_frame_callback() is not eval_frame._CALLBACK
    assert f() == 1


def test_an_exception_of_a_signal_handler_reaches_the_program() -> None:
    class Alarm(Exception):
        pass

    def handler(number: int, frame: Any) -> None:
        raise Alarm

    def f() -> int:
        return GLOBAL

    class Interrupting(Observer):
        def global_read(self, site: Site) -> None:
            signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(Alarm), record(Interrupting()):
            f()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_deep_recursion_ends_the_recording_not_the_program() -> None:
    def down(n: int) -> int:
        return 0 if n == 0 else 1 + down(n - 1)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(30_000)
    try:
        with record(Observer()) as recording:
            assert down(20_000) == 20_000
            assert down(20_000) == 20_000
    finally:
        sys.setrecursionlimit(limit)
    assert isinstance(recording.observer_failure, eval_frame.RecursionTooDeep)
    log = run(reads)[1]
    assert entered(log) == ["reads"]


def test_hooks_take_no_levels_from_the_program() -> None:
    def down(n: int) -> int:
        return 0 if n == 0 else 1 + down(n - 1)

    levels = min(sys.getrecursionlimit() - 200, eval_frame.MAX_DEPTH - 50)
    limit = sys.getrecursionlimit()
    assert run(down, levels)[0] == levels
    assert sys.getrecursionlimit() == limit


def test_a_program_that_replaces_builtins() -> None:
    import builtins

    log = Log()
    space = vars(builtins)
    names = "len dict tuple zip type isinstance next map any all list id slice frozenset range getattr vars".split()
    originals = {name: space[name] for name in names}

    def f(values: list[int]) -> Any:
        for name in names:
            space[name] = None
        try:
            return [*values], numbers(*values), {**{"k": 1}}, values[0:1], f"{values}", reads(), -values[0] + 1
        finally:
            space.update(originals)

    with record(log) as recording:
        f([1])
    assert recording.observer_failure is None, recording.failure_traceback
    assert entered(log) == ["f", "numbers", "reads"]


def test_a_forked_child_is_not_recorded() -> None:
    def f() -> list[str]:
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                before = len(log.events)
                reads()
                os.write(send, f"{len(log.events) - before} {recording.observer_failure!r}".encode())
            finally:
                os._exit(0)
        os.close(send)
        with os.fdopen(receive) as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        return text.split(" ", 1)

    log = Log()
    with record(log) as recording:
        count, failure = f()
        reads()
    assert count == "0" and "ForkedChild" in failure
    assert recording.observer_failure is None
    assert entered(log)[-1] == "reads"


def test_a_busy_thread_does_not_stall_a_recording() -> None:
    def f() -> None:
        for _ in range(300):
            reads()

    stop = threading.Event()
    busy = threading.Thread(target=lambda: [None for _ in iter(stop.is_set, True)])
    interval = sys.getswitchinterval()
    assert interval > 1e-3
    busy.start()
    try:
        began = time.perf_counter()
        run(f)
        took = time.perf_counter() - began
    finally:
        stop.set()
        busy.join()
    assert took < 300 * interval, "every frame waited for the other thread"
    assert sys.getswitchinterval() == interval


def test_endless_recursion_raises_as_usual() -> None:
    def forever() -> int:
        return forever()

    with record(Observer()):
        with pytest.raises(RecursionError):
            forever()
    assert reads() == 1


def test_interception_can_be_suspended() -> None:
    def f() -> None:
        token = disable()
        reads()
        list(numbers(1))
        restore(token)
        reads()

    assert entered(run(f)[1])[-1] == "reads"
    assert entered(run(f)[1]).count("reads") == 1
    assert "numbers" not in entered(run(f)[1])


def test_what_a_marked_function_calls_is_not_intercepted() -> None:
    def quiet() -> int:
        return reads()

    never_intercept(quiet)

    def f() -> int:
        return quiet() + reads()

    assert entered(run(f)[1]) == ["f", "reads"]


def test_globals_and_position_inside_an_event() -> None:
    seen: list[Any] = []

    class Looking(Observer):
        def global_read(self, site: Site) -> None:
            frame = user_frame()
            assert frame is not None
            seen.append((current_globals(), frame.f_code.co_name, site_location(site)))

    namespace: dict[str, Any] = {"GLOBAL": 2}
    exec(compile("def g():\n    é = '日本'; return 'ü', GLOBAL\n", "<made>", "exec"), namespace)

    def f() -> Any:
        return namespace["g"]()

    with record(Looking()) as recording:
        f()
    assert recording.observer_failure is None
    scope, name, location = seen[0]
    assert scope is namespace and name == "g"
    assert location.function == "g" and location.file == "<made>"


def test_columns_count_code_points(tmp_path: Any) -> None:
    line = "    é = '日本'; return 'ü', GLOBAL\n"
    path = tmp_path / "made.py"
    path.write_text("def g():\n" + line, encoding="utf-8")
    namespace: dict[str, Any] = {"GLOBAL": 2}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    log = run(namespace["g"])[1]
    where = site_location(log.sites[0])
    assert where.file == str(path) and where.function == "g"
    assert (where.range.start.line, where.range.start.character) == (1, line.index("GLOBAL"))
    assert where.range.end.character == line.index("GLOBAL") + len("GLOBAL")
    assert log.sites[0].col == len(line[: line.index("GLOBAL")].encode())


def test_sites_are_unique_in_their_code() -> None:
    def f(a: Any) -> Any:
        return super(Log, a).__init__, f"{a}", [*a.events], a.events[0:1]

    log = run(f, Log())[1]
    by_code: dict[CodeType, set[int]] = {}
    for site in {id(site): site for site in log.sites}.values():
        assert site.code is f.__code__ or site.code.co_filename != f.__code__.co_filename
        assert site.index not in by_code.setdefault(site.code, set())
        by_code[site.code].add(site.index)


@pytest.mark.parametrize(
    ("python", "implementation", "torch_version", "words"),
    [
        ((3, 10), "cpython", "2.12.0", "needs CPython 3.11 to 3.14, but this is cpython 3.10"),
        ((3, 15), "cpython", "2.13.0", "this is cpython 3.15"),
        ((3, 11), "pypy", "2.12.0", "this is pypy 3.11"),
        ((3, 11), "cpython", "2.10.1", "needs torch 2.11 to 2.15, but this is torch 2.10.1"),
        ((3, 12), "cpython", "2.16.0a0+git", "this is torch 2.16.0a0+git"),
        ((3, 12), "cpython", "unknown", "this is torch unknown"),
    ],
)
def test_unsupported_versions_are_refused(python: Any, implementation: str, torch_version: str, words: str) -> None:
    with pytest.raises(UnsupportedVersion) as caught:
        check(python, implementation, torch_version)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_an_unsupported_python_is_refused_before_its_bytecode_is_looked_at() -> None:
    program = """if True:
        import dis, sys, torch
        sys.version_info = (3, 15, 0, "final", 0)
        dis.opmap.clear()
        import magpy_core
        try:
            magpy_core.compile
        except magpy_core.UnsupportedVersion as error:
            print(error)
        """
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("MagPy needs CPython 3.11 to 3.14, but this is cpython 3.15: run it with")


def test_supported_versions() -> None:
    for python in ((3, 11), (3, 12), (3, 13), (3, 14)):
        for torch_version in ("2.11.0+cu130", "2.12.1", "2.13.0+cpu", "2.15.0"):
            check(python, "cpython", torch_version)
    check_versions()


def test_what_is_removed_from_a_cell_is_gone_at_once() -> None:
    """Also from the second call on, whose code is found in a cache."""

    class Enters(Observer):
        def enter_frame(self, frame: Frame) -> bool:
            return True

    def removed() -> bool:
        made = Made()
        reference = weakref.ref(made)

        def remove() -> bool:
            nonlocal made
            del made
            return reference() is None

        return remove()

    for _ in range(3):
        with record(Enters()) as recording:
            assert removed()
        assert recording.observer_failure is None
