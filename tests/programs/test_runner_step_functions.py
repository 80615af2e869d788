"""The runner finds functions that run a whole training step, and what it does with those that can't be one graph."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from magpy_core.runner.request import SESSIONS
from tests.programs.runner_help import Ran, plainly, under_magpy, write
from tests.programs.spare import printed

SETUP = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
batches = [torch.full((2, 4), i / 10) for i in range(12)]
"""


def run(folder: Path, source: str, **options: Any) -> Ran:
    write(folder, SETUP + textwrap.dedent(source))
    options = {"session_factory": SESSIONS["magpy"], "mode": "run", "backend": "eager", "steps": 0, **options}
    ran = under_magpy(folder, script="prog.py", **options)
    assert ran.outcome.kind == "ok", ran.stderr.decode()
    assert ran.stdout == printed(folder)
    return ran


def region(ran: Ran, name: str) -> Any:
    (found,) = [r for r in ran.outcome.report.regions if r.name == name]
    return found


def test_a_step_function_is_one_region_in_place_of_its_parts(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        def train_step(x, *, scale=1.0):
            optimizer.zero_grad()
            loss = model(x).square().mean() * scale
            loss.backward()
            optimizer.step()
            return loss.item()

        for x in batches:
            print(f"{train_step(x):.6f}")
        """,
    )
    assert ran.regions() == {"train_step": 11}
    found = region(ran, "train_step")
    assert found.complete and found.captures == 1 and found.hits >= 6 and found.kind == "function"
    assert (Path(found.file).name, found.line) == ("prog.py", 10)
    assert ran.outcome.report.step.count == 12
    assert {"MP406", "MP106", "MP901"}.isdisjoint(ran.codes)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["check", "run"])
def test_what_keeps_a_step_from_being_one_graph(tmp_path: Path, mode: str) -> None:
    ran = run(
        tmp_path,
        """
        import time

        def train_step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            took = time.time()
            optimizer.step()
            return loss.item()

        for x in batches:
            print(f"{train_step(x):.6f}")
        """,
        mode=mode,
    )
    finding = ran.finding("MP406")
    assert "time.time()" in finding.message and "`train_step`" in finding.message
    assert finding.location.range.start.line + 1 == 16 and 0 < finding.cost_ms < 1000
    share = finding.cost_ms / finding.step_ms if finding.step_ms else 0.0
    # a check doesn't fail because of what was timed
    assert finding.severity == ("warning" if mode == "run" and share >= 0.05 else "information")
    # 12 calls, but for the one that was on trial
    assert ran.regions() == {"model: Sequential": 11, "optimizer: Adam": 11}
    assert all(r.complete and r.hits >= 2 for r in ran.outcome.report.regions)
    assert "MP103" not in ran.codes


@pytest.mark.slow
def test_a_cause_that_a_region_reports_is_one_finding_to_act_on(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import time

        class Timed(torch.nn.Sequential):
            def forward(self, x):
                return super().forward(x) + time.time() * 0

        model = Timed(model)

        def train_step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.item()

        for x in batches:
            print(f"{train_step(x):.6f}")
        """,
    )
    assert ran.finding("MP103").location == ran.finding("MP406").location
    assert ran.finding("MP103").is_actionable and not ran.finding("MP406").is_actionable


@pytest.mark.slow
def test_functions_that_are_no_steps(tmp_path: Path) -> None:
    """A loop of steps and a generator of steps, whose loops' bodies are regions, and the closure of a step."""
    ran = run(
        tmp_path,
        """
        def epoch(batches):
            for x in batches:
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
            return loss.item()

        code = epoch.__code__
        for i in range(3):
            print(f"{epoch(batches[4 * i : 4 * i + 4]):.6f}", epoch.__code__ is code)

        def steps():
            for x in batches[:6]:
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
                yield loss.item()

        for loss in steps():
            print(f"{loss:.6f}")

        def closed(x):
            def closure():
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                return loss
            return optimizer.step(closure).item()

        for x in batches[6:]:
            print(f"{closed(x):.6f}")
        """,
        compile="foreground",  # no clock decides what is recorded
    )
    # in the closure, the model is called by the optimizer's step, a region
    calls = ran.regions()
    assert (calls.pop("training loop of epoch"), calls.pop("training loop of steps")) == (12, 6)
    assert calls == {"optimizer: Adam": 6}


@pytest.mark.slow
def test_methods_closures_two_optimizers_and_one_that_the_program_defines(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        class Trainer:
            def __init__(self, model):
                self.model, self.seen = model, 0
                self.optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in model if list(m.parameters())]

            def backward(self, loss):
                loss.backward()

            def train_step(self, x):
                for one in self.optimizers:
                    one.zero_grad()
                loss = self.model(x).square().mean()
                self.backward(loss)
                for one in self.optimizers:
                    one.step()
                self.seen += len(x)
                return loss.detach()

        def main():
            rate = 0.5

            def closure_step(x):
                optimizer.zero_grad()
                loss = model(x).mean() * rate
                loss.backward()
                optimizer.step()
                return loss

            trainer = Trainer(model)
            train_step = trainer.train_step
            for x in batches:
                print(f"{train_step(x):.6f} {closure_step(x):.6f} {trainer.seen}")

        main()

        class Signs(torch.optim.Optimizer):
            def __init__(self, parameters):
                super().__init__(parameters, {"lr": 0.01})

            @torch.no_grad()
            def step(self, closure=None):
                for group in self.param_groups:
                    for p in group["params"]:
                        p.add_(p.grad.sign(), alpha=-group["lr"])

        other = nn.Linear(4, 1)
        signs = Signs(other.parameters())

        def signs_step(x):
            signs.zero_grad()
            loss = other(x).square().mean()
            loss.backward()
            signs.step()
            return loss.item()

        for x in batches:
            print(f"{signs_step(x):.6f}")
        """,
    )
    assert ran.regions() == {"Trainer.train_step": 11, "closure_step": 11, "signs_step": 11}
    assert all(r.complete and r.hits >= 2 for r in ran.outcome.report.regions)


@pytest.mark.slow
def test_a_model_that_is_called_elsewhere_too(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        def train_step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.item()

        for x in batches:
            print(f"{train_step(x):.6f}")
            with torch.no_grad():
                print(f"{model(x).mean().item():.6f}")
        """,
    )
    assert ran.regions() == {"model: Sequential": 13, "train_step": 11}


@pytest.mark.slow
def test_an_exception_in_a_step_looks_as_in_plain_python(tmp_path: Path) -> None:
    source = """
        def train_step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()

        for x in [*batches, torch.ones(2, 5)]:
            train_step(x)
        """
    write(tmp_path, SETUP + textwrap.dedent(source))
    ran = under_magpy(tmp_path, script="prog.py", session_factory=SESSIONS["magpy"], mode="run", backend="eager", steps=0)
    assert ran.stderr == plainly(tmp_path, "prog.py").stderr
    assert ran.regions() == {"train_step": 12}


@pytest.mark.slow
def test_a_function_made_anew_for_each_epoch(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        def epoch(batches):
            def train_step(x):
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
                return loss.item()
            return [train_step(x) for x in batches]

        for i in range(3):
            print(epoch(batches[4 * i : 4 * i + 4]))
        """,
    )
    parts = {"model: Sequential": 3, "optimizer: Adam": 3}
    assert ran.regions() == {"train_step": 3, "train_step #2": 3, "train_step #3": 3} | parts


@pytest.mark.slow
def test_what_a_refused_optimizer_wraps(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import time

        class Wrapped(torch.optim.Optimizer):
            def __init__(self, optimizer):
                self.optimizer = optimizer
                self.param_groups, self.state = optimizer.param_groups, optimizer.state

            def step(self, closure=None):
                time.localtime()
                return self.optimizer.step(closure)

        wrapped = Wrapped(optimizer)
        for x in batches:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            wrapped.step()
            print(f"{loss.item():.6f}")
        """,
        mode="check",
    )
    assert ran.regions() == {"model: Sequential": 11, "wrapped: Wrapped": 11, "optimizer: Adam": 9}
    assert not ran.finding("MP103").is_actionable and "the optimizer inside is a region" in ran.finding("MP103").hint
    assert [m["n"] for m in ran.messages if m["type"] == "step"][-1] == 12


@pytest.mark.slow
def test_what_follows_from_another_obstacle_is_none(tmp_path: Path) -> None:
    """Gradients of a backward pass that was refused come from no recorded operation."""
    ran = run(
        tmp_path,
        """
        outputs = []

        def act(x):
            outputs.append(model(x))

        def learn():
            optimizer.zero_grad()
            loss = torch.cat(outputs).square().mean()
            loss.backward()
            optimizer.step()
            del outputs[:]
            return loss.item()

        for x in batches:
            act(x)
            print(f"{learn():.6f}")
        """,
    )
    finding = ran.finding("MP406")
    assert "loss.backward()" in finding.message and finding.is_actionable
    assert finding.hint == "Run the forward pass in `learn` as well."


@pytest.mark.slow
def test_no_function_can_hold_the_forward_passes_of_an_episode(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        from collections import deque

        values = []

        def learn():
            weights = deque()
            for i in range(len(values)):
                weights.appendleft(float(i))
            loss = (torch.cat(values).squeeze(1) * torch.tensor(weights)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            del values[:]
            return loss.item()

        for i, x in enumerate(batches):
            for _ in range(2 + i % 3):
                values.append(model(x[:1]))
            print(f"{learn():.6f}")
        """,
    )
    findings = [finding for finding in ran.outcome.report.findings if finding.code == "MP406"]
    assert len(findings) == 2 and not any(finding.is_actionable for finding in findings)
    assert all("many forward passes, outside of `learn`" in finding.hint for finding in findings)
    assert all(r.complete and r.hits for r in ran.outcome.report.regions)


@pytest.mark.slow
@pytest.mark.parametrize(("call", "is_users"), [("uuid.uuid4()", False), ("time.localtime()", True)])
def test_what_a_library_does_in_a_closure(tmp_path: Path, call: str, is_users: bool) -> None:
    """The optimizer gives way to the model in its closure. What is the user's own can be moved, as it can be anywhere."""
    ran = run(
        tmp_path,
        f"""
        import time, uuid

        def closure(x):
            optimizer.zero_grad()
            {call}
            loss = model(x).square().mean()
            loss.backward()
            return loss

        for x in batches:
            print(f"{{optimizer.step(lambda: closure(x)).item():.6f}}")
        """,
        mode="check",
    )
    assert ran.regions() == {"model: Sequential": 10, "optimizer: Adam": 12, "optimizer: Adam (update)": 10}
    assert ran.finding("MP103").is_actionable == is_users
    assert is_users or "the model inside is a separate region" in ran.finding("MP103").hint


@pytest.mark.slow
def test_a_module_without_tensors_has_nothing_to_compile(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import bz2

        class Packed(nn.Module):
            def forward(self, text):
                return len(bz2.compress(text))

        class Scaled(nn.Module):
            def forward(self, x):
                return x * len(bz2.compress(b"three"))

        packed, scaled = Packed(), Scaled()
        for x in batches:
            print(packed(b"one, two"), scaled(x).sum().item())
        """,
        mode="check",
    )
    found = {finding.region: finding.is_actionable for finding in ran.outcome.report.findings if finding.code == "MP104"}
    assert found == {"packed: Packed": False, "scaled: Scaled": True}


def test_a_clock_around_a_step_is_left_out_of_its_graph(tmp_path: Path) -> None:
    """The function is cut where it was refused, again and again; what it returns is what it returned."""
    ran = run(
        tmp_path,
        """
        import time

        def evaluate():
            with torch.no_grad():
                return model(batches[0]).mean()

        def train_step(number, x, *, scale=1.0):
            start = time.localtime()
            model.train()
            optimizer.zero_grad()
            loss = model(x).square().mean() * scale
            loss.backward()
            optimizer.step()
            value = evaluate()
            if number % 2 == 0:
                assert time.localtime() >= start
                return f"{number} {value:.6f}"
            return f"{loss:.6f}"

        for number, x in enumerate(batches):
            print(train_step(number, x, scale=2.0))
        """,
    )
    found = region(ran, "train_step")
    assert found.complete and found.hits >= 4 and found.kind == "step"
    assert (Path(found.file).name, found.line) == ("prog.py", 18)
    assert {"MP406", "MP901"}.isdisjoint(ran.codes)
    assert "optimizer: Adam" not in ran.regions()
    clocks = [finding for finding in ran.outcome.report.findings if finding.code == "MP103"]
    assert clocks and all(clock.cost_ms is not None and not clock.is_actionable for clock in clocks)


def test_a_step_function_that_prints_its_number_is_not_captured_for_each(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        def train_step(number, x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            if number % 2 == 0:
                print(f"step {number}: {loss:.6f}")

        for number in range(3):
            for x in batches:
                train_step(number * len(batches) + int(x[0, 0] * 10), x)
        """,
    )
    found = region(ran, "train_step")
    # Both paths have a graph of the whole function, and the text varies: it needs no cut before the print.
    assert found.complete and found.captures <= 3 and found.kind == "function"
    assert found.hits >= 16 and sum(capture.hits > 0 for capture in found.per_capture) == 2
    assert {"MP203", "MP406", "MP901"}.isdisjoint(ran.codes)


def test_a_method_with_private_names_is_cut_once(tmp_path: Path) -> None:
    """What is compiled without its class would not find them: it is cut no further."""
    ran = run(
        tmp_path,
        """
        import time

        class Trainer:
            def __init__(self):
                self.__calls = 0

            def train_step(self, x):
                start = time.time()
                self.__calls += 1
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
                if self.__calls % 2:
                    print(f"step {self.__calls}: {loss:.6f}")

        trainer = Trainer()
        for epoch in range(3):
            for x in batches:
                trainer.train_step(x)
        """,
    )
    assert "MP901" not in ran.codes
