"""Training loops that stand in a function or in the script: their bodies are regions, cut where they must be."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from magpy_core.findings.report import report_schema
from magpy_core.runner.request import SESSIONS, Record
from tests.programs import inline
from tests.programs.runner_help import Ran, environment, plainly, under_magpy, write
from tests.programs.spare import printed

FOLDER = Path(inline.__file__).parent

#: Scripts as users write them. Of their late steps (of an optimizer's closure: its calls), at least this share is served by
#: a graph, where no clock decides. Of 60 steps, each path is recorded first; the others are counted.
MOST = 0.8
SCRIPTS = {
    "accumulate": MOST,
    "amp": MOST,
    "closure_loop": MOST,
    "dcgan": MOST,
    "early_stop": MOST,
    "ema_teacher": MOST,
    "evaluate_every": MOST,
    "lbfgs": MOST,
    "log_every": MOST,
    "metrics": MOST,
    "mingpt_trainer": MOST,
    "mnist": MOST,
    "moco": MOST,
    "module_level": MOST,
    "nanogpt_train": 0.0,  # batches are fetched between the forward and the backward pass
    "one_cycle": MOST,
    "packed_rnn": MOST,
    "rnn_sequence": MOST,
    "tqdm_loop": MOST,
    "vae": MOST,
    "word_language_model": MOST,
}
STEPS = 60
QUICK, SLOW = ("mnist",), ("accumulate", "amp", "mingpt_trainer", "word_language_model")


def run(folder: Path, script: str = "prog.py", **options: Any) -> Ran:
    """In the foreground no clock decides what is recorded, and what serves."""
    options = {
        "session_factory": SESSIONS["magpy"],
        "mode": "run",
        "backend": "eager",
        "steps": 0,
        "compile": "foreground",
        **options,
    }
    ran = under_magpy(folder, script=script, **options)
    assert ran.outcome.kind == "ok", ran.stderr.decode()
    return ran


def of_steps(ran: Ran) -> list[Any]:
    return [region for region in ran.outcome.report.regions if region.kind == "step"]


def test_there_is_a_share_for_each_script() -> None:
    assert set(SCRIPTS) == {file.stem for file in FOLDER.glob("*.py")} - {"__init__"}


def tier(name: str) -> list[pytest.MarkDecorator]:
    return [] if name in QUICK else [pytest.mark.slow, *([] if name in SLOW else [pytest.mark.exhaustive])]


@pytest.mark.parametrize("name", [pytest.param(n, marks=tier(n)) for n in SCRIPTS])
def test_scripts_print_what_they_print_in_plain_python(tmp_path: Path, name: str) -> None:
    shutil.copy(FOLDER / f"{name}.py", tmp_path / "prog.py")
    ran = run(tmp_path, record=unmeasured(tmp_path))
    assert ran.stdout == printed(tmp_path)
    assert "MP901" not in ran.codes
    steps = of_steps(ran)
    hits, calls = sum(region.hits for region in steps), sum(region.calls for region in steps)
    assert hits >= SCRIPTS[name] * calls and (calls >= STEPS / 3 or not SCRIPTS[name]), (hits, calls)
    assert all(region.complete or region.hits for region in steps)


@pytest.mark.slow
def test_a_step_is_cut_where_what_serves_it_is_over(tmp_path: Path) -> None:
    """An evaluation can't be captured, and is rare. When it lowers the learning rate, no capture serves any more."""
    shutil.copy(FOLDER / "evaluate_every.py", tmp_path / "prog.py")
    ran = run(tmp_path, args=["--steps", "120"], record=unmeasured(tmp_path))
    (step,) = of_steps(ran)  # without the evaluation
    lines = (tmp_path / "prog.py").read_text().splitlines()
    assert "running += loss.item()" in lines[step.last_line - 1]
    assert step.calls >= 25 and step.hits >= 0.8 * step.calls


def unmeasured(folder: Path) -> Record:
    """A run that is to be compared with another one uses compiled code wherever it can: it is not timed."""
    saved = folder / "saved"
    saved.mkdir()
    return Record(str(saved), [10**9])


SETUP = """
import time
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batches = [torch.full((2, 4), i / 10) for i in range(12)]
"""


def program(folder: Path, source: str, **options: Any) -> Ran:
    write(folder, SETUP + textwrap.dedent(source))
    ran = run(folder, **options)
    assert ran.stdout == printed(folder)
    assert "MP901" not in ran.codes
    return ran


@pytest.mark.slow
def test_what_cannot_be_captured_stays_outside(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        def main():
            took = []
            for x in batches:
                start = time.localtime()
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
                took.append(time.localtime() >= start)
            print(len(took), f"{loss.item():.6f}")

        main()
        """,
    )
    (step,) = of_steps(ran)
    assert (step.name, step.line, step.last_line, step.complete) == ("training loop of main", 15, 18, True)
    jsonschema.validate(ran.outcome.report.to_json(), report_schema(), cls=jsonschema.Draft202012Validator)
    assert step.hits >= 5 and not {"MP406", "MP901"} & set(ran.codes)
    clocks = [finding for finding in ran.outcome.report.findings if finding.code == "MP103"]
    assert [finding.location.range.start.line + 1 for finding in clocks] == [14, 19]
    assert all(finding.cost_ms is not None and not finding.is_actionable for finding in clocks)
    assert all("outside the training step's graph" in finding.message for finding in clocks)


@pytest.mark.slow
def test_a_loop_that_can_not_be_captured_says_why_and_its_parts_are_regions(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        def main():
            for x in batches:
                optimizer.zero_grad()
                loss = model(x).square().mean()
                now = time.time()
                loss.backward()
                optimizer.step()
            print(f"{loss.item():.6f}", now > 0)

        main()
        """,
    )
    assert of_steps(ran) == []
    assert {region.kind for region in ran.outcome.report.regions} == {"module", "optimizer"}
    found = ran.finding("MP406")
    assert "time.time()" in found.message and found.location.range.start.line + 1 == 15


@pytest.mark.slow
def test_what_could_stay_outside_is_no_reason(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        import os

        def fetch(i):
            os.stat(".")
            return batches[i + 1]

        def main():
            x = batches[0]
            for i in range(11):
                optimizer.zero_grad()
                loss = model(x).square().mean()
                x = fetch(i)
                loss.backward()
                optimizer.step()
                now = time.time()
            print(f"{loss.item():.6f}", now > 0)

        main()
        """,
    )
    found = ran.finding("MP406")  # not the clock, which is read behind the step
    assert "os.stat" in found.message and "`x = fetch(i)` (line 22)" in found.hint, (found.message, found.hint)


@pytest.mark.slow
def test_what_varies_at_each_call_stays_outside(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        step = 0
        for epoch in range(8):
            for x in batches:
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
                if step % 12 == 5:
                    print(f"step {step}: {loss.item():.6f}")
                step += 1
        """,
    )
    (step,) = of_steps(ran)
    assert step.name == "training loop" and step.hits >= 25 and step.captures <= 2


@pytest.mark.slow
def test_a_traceback_is_that_of_plain_python(tmp_path: Path) -> None:
    source = """
    def main():
        for i, x in enumerate(batches):
            optimizer.zero_grad()
            loss = model(x if i < 6 else x[:, :3]).square().mean()
            loss.backward()
            optimizer.step()

    main()
    """
    write(tmp_path, SETUP + textwrap.dedent(source))
    plain = plainly(tmp_path, "prog.py")
    ran = under_magpy(tmp_path, script="prog.py", session_factory=SESSIONS["magpy"], mode="run", backend="eager", steps=0)
    assert plain.returncode == 1 and ran.stderr == plain.stderr


@pytest.mark.slow
def test_a_loop_in_a_recorded_function_is_part_of_it(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        import magpy_core

        def inner(xs):
            for x in xs:
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
            return loss

        @magpy_core.compile
        def outer(a, b):
            return inner([a, b])

        for a, b in zip(batches, batches[1:]):
            print(f"{outer(a, b).item():.6f}")
        """,
    )
    (outer,) = [region for region in ran.outcome.report.regions if region.name == "outer"]
    assert outer.complete and outer.hits >= 6 and of_steps(ran) == []


@pytest.mark.slow
def test_imported_modules_are_cut_too_and_nothing_is_written_beside_them(tmp_path: Path) -> None:
    write(
        tmp_path,
        textwrap.dedent(
            """
            def train(model, optimizer, batches):
                for x in batches:
                    optimizer.zero_grad()
                    loss = model(x).square().mean()
                    loss.backward()
                    optimizer.step()
                return loss
            """
        ),
        "trainer.py",
    )
    ran = program(
        tmp_path,
        """
        from trainer import train

        for epoch in range(3):
            print(f"{train(model, optimizer, batches).item():.6f}")
        """,
    )
    (step,) = of_steps(ran)
    assert (step.name, Path(step.file).name) == ("training loop of train", "trainer.py")
    assert step.hits >= 15 and step.captures <= 2, "one capture serves all calls of the function"


@pytest.mark.slow
def test_threads_train_side_by_side(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import sys, threading

        sys.setswitchinterval(1e-6)

        def main(name, results):
            torch_model = nn.Linear(4, 1)
            with torch.no_grad():
                torch_model.weight.fill_(0.1)
                torch_model.bias.fill_(0.0)
            opt = torch.optim.SGD(torch_model.parameters(), lr=0.01)
            for epoch in range(6):
                for x in batches:
                    opt.zero_grad()
                    loss = torch_model(x).square().mean()
                    loss.backward()
                    opt.step()
            results[name] = f"{loss.item():.6f}"

        results = {}
        threads = [threading.Thread(target=main, args=(i, results)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(sorted(results.items()))
        """,
    )


def test_a_progress_bar_in_the_variables_of_a_script_is_no_obstacle(tmp_path: Path) -> None:
    """It has a finalizer, and the loop writes the script's variables, which it is one of."""
    program = """
    import torch

    class Bar(list):
        def __del__(self):
            print("bar", len(self), "is gone")

        def show(self, **values):
            self.shown = values

    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        bar = Bar(torch.randn(20, 2, 4))
        for x in bar:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            bar.show(loss=loss.item())
        print(epoch, f"{loss.item():.5f}", bar.shown)
    """
    write(tmp_path, textwrap.dedent(program))
    ran = run(tmp_path)
    assert ran.stdout == printed(tmp_path)
    (found,) = of_steps(ran)
    assert found.complete and found.captures <= 2 and found.hits >= 15
    assert {"MP406", "MP110", "MP901"}.isdisjoint(ran.codes)


def test_counters_of_the_loop_are_no_reason_to_capture_again(tmp_path: Path) -> None:
    ran = program(
        tmp_path,
        """
        def main():
            seen = epochs = 0
            for step, x in enumerate(batches):
                for group in optimizer.param_groups:
                    group["lr"] = 0.01 / (1 + step)
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
                seen += len(x)
                print(step, seen, loss.item())

        main()
        """,
    )
    (region,) = of_steps(ran)
    assert not region.recompiles and region.hits >= 7


@pytest.mark.slow
def test_source_too_deep_to_look_for_loops_runs_as_it_is(tmp_path: Path) -> None:
    chain = "\n".join(f"    elif k == {i}: return {i}" for i in range(1, 500))
    source = f"""
import torch

def pick(k):
    if k == 0: return 0
{chain}

def train():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(4):
        optimizer.zero_grad()
        model(torch.ones(2, 2)).square().mean().backward()
        optimizer.step()
    return i

total = {" + ".join(["1"] * 600)}
print(__name__, pick(499), total, train())
"""
    (tmp_path / "deep.py").write_text(source)
    (tmp_path / "prog.py").write_text("import deep\n" + source)
    env = environment()
    del env["MAGPY_COMPILE"]
    ran = run(tmp_path, compile="background", env=env)
    assert ran.stdout == plainly(tmp_path, "prog.py").stdout and ran.codes.count("MP406") == 2


@pytest.mark.slow
def test_an_optimizers_closure_is_a_region(tmp_path: Path) -> None:
    """LBFGS calls it many times in a step, and computes with numbers that it reads: it can't be one graph with it."""
    source = """
    import inspect, traceback
    y = batches[3].sum(1, keepdim=True)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=3)

    def main():
        calls = 0
        for i, x in enumerate(batches * 2):

            def closure(scale=2.0):
                "What the loss is."
                nonlocal calls
                calls += 1
                optimizer.zero_grad()
                loss = scale * (model(x) - y).square().mean()
                if i == 20 and calls % 2:
                    raise ValueError(f"call {calls}")
                loss.backward()
                return loss

            try:
                loss = optimizer.step(closure)
                print(i, calls, f"{loss.item():.6f}")
            except ValueError as error:
                print(error, [frame.line for frame in traceback.extract_tb(error.__traceback__)][-1])
        print(closure.__name__, closure.__doc__, inspect.signature(closure), closure.__code__.co_firstlineno)

    main()
    """
    ran = program(tmp_path, source)
    (closure,) = of_steps(ran)
    assert closure.name == "closure of main" and closure.complete
    assert closure.captures <= 3 and closure.hits >= 15, closure


OF_RANDOM_PLACES = """
def get_batch():
    places = torch.randint(9, (2,))
    return torch.stack([data[i : i + 3] for i in places])

data = torch.arange(48.0).reshape(12, 4) / 48

for step in range(12):
    x = get_batch()
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
print(loss.item(), model[0].weight.sum().item())
"""


@pytest.mark.slow
def test_what_the_backend_refuses_stays_outside(tmp_path: Path) -> None:
    """Places in data that are drawn as a tensor are no sizes that a compiler knows: the batch is fetched in eager mode."""
    ran = program(tmp_path, OF_RANDOM_PLACES, backend="aot_eager")
    (step,) = [region for region in of_steps(ran) if region.hits]
    assert step.hits >= 6 and step.complete
    line = (SETUP + textwrap.dedent(OF_RANDOM_PLACES)).splitlines().index("    x = get_batch()")
    assert any(place.range.start.line == line for finding in outside(ran) for place in finding.path)


def outside(ran: Ran) -> list[Any]:
    """What keeps statements out of a step's graph."""
    return [f for f in ran.outcome.report.findings if f.message.startswith("This runs outside the training step's graph")]
