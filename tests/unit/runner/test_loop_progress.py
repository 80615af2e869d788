"""How far a program's training loops have come, on a fake clock."""

from __future__ import annotations

import ast
import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest
from tqdm import tqdm

from magpy_core.regions import provider
from magpy_core.runner.loop_progress import LoopProgress, known_length
from magpy_core.runner.monitoring import Monitoring
from magpy_core.runner.request import SESSIONS
from magpy_core.runner.steps import StepClock
from magpy_core.stretches.loops import cut_loops
from magpy_core.stretches.stretch import Stretch, code_of, finished


class Program:
    """A module whose loops are marked. Each step takes a second, at whose end ``left`` is asked."""

    def __init__(self, source: str) -> None:
        self.time = 0.0
        self.errors: list[Exception] = []
        self.progress = LoopProgress(lambda what, error: self.errors.append(error), lambda: self.time)
        self.left: list[float] = []
        text = textwrap.dedent(source)
        code = compile(text, "prog.py", "exec")
        tree, finish = cut_loops(ast.parse(text), "prog.py", code, self._receiver, self.progress.watch)
        self.code = finish(compile(tree, "prog.py", "exec"))

    def _receiver(self, stretch: Stretch) -> Any:
        class Receiver:
            def __matmul__(self, function: Callable[[], Any] | None) -> Any:
                if function is None:
                    scope = stretch.scope
                    code = finished(code_of(stretch, ()), {}, {stretch.name: scope}, scope.constants)
                    function = FunctionType(code, sys._getframe(1).f_globals)
                return function()

        return Receiver()

    def steps(self) -> None:
        self.time += 1.0
        self.left.append(self.progress.left())

    def run(self, **names: Any) -> list[float]:
        part = SimpleNamespace(step=self.steps, backward=lambda: None)
        exec(self.code, {"__name__": "prog", "opt": part, "model": lambda x: part, **names})
        assert not self.errors
        return self.left


def test_one_loop_of_known_length() -> None:
    program = Program("""
        for i in range(6):
            loss = model(i)
            loss.backward()
            opt.step()
    """)
    left = program.run()
    assert left[0] == 5.0, "of the first iteration it is only known how long it has taken"
    assert left[1:] == [4.0, 3.0, 2.0, 1.0, 0.0]


def test_epochs_over_a_loader_of_unknown_length() -> None:
    source = """
        def train(loader):
            for x in loader:
                loss = model(x)
                loss.backward()
                opt.step()

        def main(loader):
            for epoch in range(10):
                train(loader)

        main(loader)
    """

    class Loader:
        def __iter__(self) -> Iterator[int]:
            return iter([1, 2, 3, 4])

        def __len__(self) -> int:
            raise AssertionError("the program's own code")

    left = Program(source).run(loader=Loader())
    assert left[0] == 9.0 and left[1] == 18.0, "nine more epochs, which take at least as long as this one has"
    assert left[4] > left[3] - 4.0, "the second one is taken to be as long as the first"
    assert left[12] == pytest.approx(40 - 13)
    assert left[-1] == 0.0


def test_a_loop_that_ends_early_foresees_no_more() -> None:
    source = """
        def fit(steps_of_phase):
            for i in range(steps_of_phase):
                loss = model(i)
                loss.backward()
                opt.step()
                if i == 1:
                    break

        fit(1000)
        for phase in range(2):
            fit(3)
    """
    left = Program(source).run()
    assert left[0] == 999.0 and left[2] < 10.0, "the first call has ended"


def test_two_loops_of_one_function_are_not_inside_of_each_other() -> None:
    source = """
        for i in range(1000):
            loss = model(i)
            loss.backward()
            opt.step()
            if i == 3:
                break
        for j in range(3):
            loss = model(j)
            loss.backward()
            opt.step()
    """
    left = Program(source).run()
    assert left[3] == 996.0 and left[4:] == [2.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("make", "length"),
    [
        (lambda: range(7), 7),
        (lambda: [1, 2], 2),
        (lambda: enumerate([1, 2, 3]), 3),
        (lambda: enumerate(zip(range(5), "abc")), 3),  # noqa: B905
        (lambda: iter(range(4)), 4),
        (lambda: tqdm(range(9), disable=True), 9),
        (lambda: (i for i in range(3)), None),
        (itertools.count, None),
    ],
)
def test_lengths_that_are_known_without_running_the_programs_code(make: Callable[[], Any], length: int | None) -> None:
    thing = make()
    assert known_length(thing) == length
    if length is not None:
        assert sum(1 for _ in thing) == length, "nothing of it was used"


def test_a_sequence_of_the_programs_own_class_is_not_asked() -> None:
    class Mine(list):  # type: ignore[type-arg]
        def __len__(self) -> int:
            raise AssertionError

    assert known_length(Mine()) is None and known_length(enumerate(Mine())) == 0


def test_what_the_loops_go_over_is_what_the_program_gave() -> None:
    source = """
        class Odd:
            def __iter__(self):
                return iter((NotImplemented, None))

        seen = []
        for x in Odd():
            seen.append(x)
            steps()
            loss = 1
            other(loss)
    """
    program = Program(source.replace("other(loss)", "[o.step() for o in ()]; [l.backward() for l in ()]"))
    names: dict[str, Any] = {"__name__": "prog", "steps": program.steps}
    exec(program.code, names)
    assert names["seen"] == [NotImplemented, None]


@pytest.mark.parametrize(("engine", "told"), [("magpy", [7.0]), ("dynamo", [])])
def test_only_a_session_that_compiles_in_its_time_is_told(
    engine: str, told: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "_provider", None)  # the session is its until the end of the test
    given: list[float] = []
    session = SimpleNamespace(in_region=lambda: False)
    if engine == "magpy":
        session.expect = given.append
    request = {"session_factory": SESSIONS[engine], "mode": "run", "file": "prog.py", "entrypoint": "prog.py"}
    monitoring = Monitoring(request, SimpleNamespace(send=lambda message: None), StepClock(0))  # type: ignore[arg-type]
    monitoring.use(session)
    monitoring.expect(7.0)
    assert monitoring.active and given == told
