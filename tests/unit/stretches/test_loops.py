"""Training loops are found in the source, and their bodies become stretches."""

from __future__ import annotations

import ast
import sys
import textwrap
from types import FunctionType
from typing import Any

import pytest

from magpy_core.stretches.loops import cut_loops, may_train
from magpy_core.stretches.originals import original_of
from magpy_core.stretches.stretch import Stretch, code_of, finished


class Runs:
    """Cuts and runs a module."""

    def __init__(self, source: str) -> None:
        text = textwrap.dedent(source)
        assert may_train(text.encode())
        self.code = compile(text, "prog.py", "exec")
        self.stretches: list[Stretch] = []
        self.calls = 0
        tree, finish = cut_loops(ast.parse(text), "prog.py", self.code, self._receiver)
        self.cut = finish(compile(tree, "prog.py", "exec"))

    def _receiver(self, stretch: Stretch) -> Any:
        self.stretches.append(stretch)
        runs = self

        class Receiver:
            def __matmul__(self, function: Any) -> Any:
                runs.calls += 1
                if function is None:
                    scope = stretch.scope
                    code = finished(code_of(stretch, ()), {}, {stretch.name: scope}, scope.constants)
                    function = FunctionType(code, sys._getframe(1).f_globals)
                return function()

        return Receiver()

    def run(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The variables of the module as it is, and cut."""
        spaces: list[dict[str, Any]] = []
        for code in (self.code, self.cut):
            space: dict[str, Any] = {"Part": Part, "__name__": "prog"}
            exec(code, space)
            spaces.append({k: v for k, v in space.items() if isinstance(v, (int, str, list, tuple))})
        return spaces[0], spaces[1]


class Part:
    """A model, an optimizer and a loss."""

    def __init__(self) -> None:
        self.n = 0

    def step(self) -> None:
        self.n += 1

    def backward(self) -> Part:
        self.n += 1
        return self

    def __call__(self, x: Any) -> Part:
        self.n += 1
        return self


FUNCTION = """
    def main(n):
        model, opt, history = Part(), Part(), []
        for epoch in range(2):
            for i in range(n):
                loss = model(i)
                if i == 1:
                    continue
                loss.backward()
                opt.step()
                history.append((epoch, i))
                if i == 3:
                    break
                if i == n - 1 and epoch:
                    return history, epoch, i, loss.n
        return history, epoch, i, loss.n

    results = [main(n) for n in (1, 2, 3, 6)]
"""


def test_the_body_of_the_innermost_loop_is_one_stretch() -> None:
    runs = Runs(FUNCTION)
    assert [stretch.lines for stretch in runs.stretches] == [range(6, 16)]
    plain, cut = runs.run()
    assert plain == cut and runs.calls == 20


def test_in_a_module_the_variables_stay_global() -> None:
    runs = Runs(
        """
        model, opt, seen = Part(), Part(), []
        i = 0
        while True:
            loss = model(i)
            loss.backward()
            opt.step()
            seen.append(i)
            i += 1
            if i > 4:
                break
        """
    )
    plain, cut = runs.run()
    assert plain == cut and runs.calls == 5
    assert not any("magpy" in name for name in cut)


def test_two_kinds_of_exits_in_a_module_need_a_loop_that_ends_with_them() -> None:
    runs = Runs(
        """
        model, opt, seen = Part(), Part(), []
        for i in range(8):
            loss = model(i)
            if i == 2:
                continue
            loss.backward()
            opt.step()
            seen.append(i)
            if i == 5:
                break
        """
    )
    plain, cut = runs.run()
    assert plain == cut and runs.calls == 6


@pytest.mark.parametrize(
    "body",
    [
        "opt.step()",  # no backward pass
        "loss.backward()",
        "other.backward()\n            opt.step()",  # computed outside
        "(other / 2).mean().backward()\n            opt.step()",
        "model.scale(other).backward()\n            opt.step()",
        "sum(other).backward()\n            opt.step()",
        "loss.backward()\n            opt.step()\n            print(locals())",
    ],
)
def test_other_loops_stay_as_they_are(body: str) -> None:
    source = f"""
    def main(model, opt, other):
        for i in range(3):
            loss = model(i)
            {body}
    unused = "loss.backward() opt.step()"
    """
    assert Runs(source).stretches == []


@pytest.mark.parametrize("loss", ["model(part)", "model(model(i)).backward()", "self.model(i).backward()", "model(i)"])
def test_the_loss_may_have_no_name(loss: str) -> None:
    """And the loop around is none of its own."""
    runs = Runs(
        f"""
        class Trainer:
            def run(self, opts):
                for opt in opts:
                    self.model = model = part = Part()
                    for i in range(3):
                        {loss}.backward()
                        opt.step()
                return part.n

        result = Trainer().run([Part(), Part()])
        """
    )
    assert [stretch.lines for stretch in runs.stretches] == [range(7, 9)]
    plain, cut = runs.run()
    assert plain == cut and runs.calls == 6


def test_the_loss_may_be_an_attribute() -> None:
    runs = Runs(
        """
        class Trainer:
            def run(self, model, opt):
                for i in range(3):
                    self.loss = model(i)
                    self.loss.backward()
                    opt.step()
                return self.loss.n

        result = Trainer().run(Part(), Part())
        """
    )
    assert [stretch.lines for stretch in runs.stretches] == [range(5, 8)]
    plain, cut = runs.run()
    assert plain == cut and plain["result"] == 6 and runs.calls == 3


def test_what_yields_stays_in_the_frame() -> None:
    runs = Runs(
        """
        def main():
            model, opt = Part(), Part()
            for i in range(3):
                loss = model(i)
                loss.backward()
                opt.step()
                got = yield i
                assert got is None
        result = list(main())
        """
    )
    assert [stretch.lines for stretch in runs.stretches] == [range(5, 8)]
    plain, cut = runs.run()
    assert plain == cut and runs.calls == 3


def test_a_recording_runs_the_function_as_it_was() -> None:
    runs = Runs(FUNCTION)
    (cut,) = (const for const in runs.cut.co_consts if getattr(const, "co_name", "") == "main")
    (plain,) = (const for const in runs.code.co_consts if getattr(const, "co_name", "") == "main")
    assert original_of(cut) == plain


def test_variables_of_closures_are_marked() -> None:
    runs = Runs(
        """
        def main():
            model, opt, total = Part(), Part(), 0

            def add(n):
                nonlocal total
                total += n

            for i in range(3):
                loss = model(i)
                loss.backward()
                opt.step()
                add(i)
            return total, loss.n

        result = main()
        """
    )
    assert runs.stretches[0].scope.shared == {"total"}
    plain, cut = runs.run()
    assert plain == cut and plain["result"] == (3, 6)


def test_what_only_reports_around_the_step_is_left_out() -> None:
    runs = Runs(
        """
        def main():
            model, opt, seen = Part(), Part(), []
            for i in range(6):
                if i % 3 == 0:
                    evaluate(model)
                loss = model(i)
                if i == 1:
                    print_nothing()
                    continue
                loss.backward()
                opt.step()
                seen.append(i)
                if i % 2:
                    log(seen)
            return seen

        def evaluate(model): pass
        def print_nothing(): pass
        def log(seen): pass

        result = main()
        """
    )
    assert [stretch.lines for stretch in runs.stretches] == [range(7, 14)]
    plain, cut = runs.run()
    assert plain == cut and plain["result"] == [0, 2, 3, 4, 5]


def test_private_names_of_a_class_keep_a_loop_whole() -> None:
    runs = Runs(
        """
        class Trainer:
            def run(self, model, opt):
                self.__n = 0
                for i in range(3):
                    loss = model(i)
                    loss.backward()
                    opt.step()
                    self.__n += 1
                return self.__n

        result = Trainer().run(Part(), Part())
        """
    )
    assert runs.stretches == []


def test_annotations_are_evaluated_or_not_as_in_the_module() -> None:
    runs = Runs(
        """
        from __future__ import annotations
        model, opt = Part(), Part()
        for i in range(3):
            def f(x: unknown_name) -> also_unknown: return x
            loss = model(f(i))
            loss.backward()
            opt.step()
        n = loss.n
        """
    )
    plain, cut = runs.run()
    assert plain == cut and runs.calls == 3
