"""The kinds of cases that the search tries: what runs one batch of each. Key names: KINDS; the search is in ``search.py``.

Families draw entries of their products; world changes and third-party programs draw schedules of changes; the tables of
some tests get random numbers, changes and lengths; module handles and threads are random sequences of their generators.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

import magpy_core
from tests.soundness import test_library_code, test_overrides, test_process_state, test_special_methods
from tests.soundness.fuzz import Changes, deterministic, possible_changes, random_schedule
from tests.soundness.generators import modules, operators, threads, writes
from tests.soundness.generators.random_programs.writer import program as random_program
from tests.soundness.harness.batch import Batch, Kind, shortest
from tests.soundness.harness.families import Case, Family, first_difference
from tests.soundness.harness.run import Report, Step, run
from tests.soundness.harness.world import Program, programs, sections

THIRD_PARTY = Path(__file__).parent / "third_party"
_FAMILIES = (
    "aliases", "attribute_dicts", "bound", "callers", "exceptions", "gained", "introspection", "keys", "modes", "natives",
    "numbers", "numbers_of_data", "products", "shapes", "sizes", "tensor_state", "training", "ways",
)  # fmt: skip
_TABLES = {"modes": ("ENTERED", "LEFT"), "products": ("CONSUMED", "REACHED")}  # of the others: FAMILY


def quiet(batch: Callable[..., None]) -> Callable[..., None]:
    """A batch whose programs' warnings are not shown."""

    @functools.wraps(batch)
    def wrapped(*args: Any) -> None:
        torch.set_num_threads(1)
        with warnings.catch_warnings(action="ignore"):
            batch(*args)

    return wrapped


# -- programs under random changes ---------------------------------------------------------------------------------------


def shown(program: Program, report: Report, repeat: str) -> str:
    """A program and its calls, as they differ."""
    lines = [*report.trail, *report.differences[:5], f"hits {report.hits_by_call}"]
    return "\n".join([repeat, "", program.prelude, program.source, "", *(f"# {line[:400]}" for line in lines)])


def scheduled(batch: Batch, program: Program, steps: list[Step], repeat: str) -> None:
    """One case: a program under a schedule."""
    batch.case(f"{repeat}\n{program.source}")
    report = run(program, steps)
    if report.differences and deterministic(program, steps):

        def shorter() -> str:
            short = shortest(steps, lambda s: bool(run(program, s).differences))
            return shown(program, run(program, short), repeat)

        batch.differs(shown(program, report, repeat), shorter)


@quiet
def world_changes(rng: random.Random, batch: Batch) -> None:
    corpus = [p for p in programs() if "alone" not in p.options]
    known: dict[str, Changes] = {}
    while not batch.over:
        program, number = rng.choice(corpus), rng.getrandbits(32)
        if program.name not in known:
            known[program.name] = possible_changes(program)
        steps = random_schedule(program, random.Random(number), known[program.name])
        scheduled(batch, program, steps, f"python -m tests.soundness.fuzz --repeat {program.name}:{number}")


@quiet
def random_programs(rng: random.Random, batch: Batch) -> None:
    while not batch.over:
        seed = rng.getrandbits(32)
        program = random_program(seed)
        try:
            changes = possible_changes(program)
        except Exception:  # its world, written at random, does not run
            continue
        repeat = f"python -m tests.soundness.generators.random_programs.run --seed {seed} --programs 1"
        own = random.Random(seed)  # the schedules that the command draws
        for number in range(3):
            steps = [Step()] * 4 if number == 0 else random_schedule(program, own, changes)
            scheduled(batch, program, steps, repeat)


@quiet
def third_party(library: str, rng: random.Random, batch: Batch) -> None:
    written = list(sections(THIRD_PARTY / f"{library}.py"))
    while not batch.over:
        program, number = rng.choice(written), rng.getrandbits(32)
        steps = random_schedule(program, random.Random(number), possible_changes(program))
        scheduled(batch, program, steps, f"# third_party/{library}.py, {program.name}, schedule {number}")


# -- families ------------------------------------------------------------------------------------------------------------


@quiet
def family(generator: str, rng: random.Random, batch: Batch) -> None:
    """Random cases of a generator's families."""
    module = importlib.import_module(f"tests.soundness.generators.{generator}")
    families: list[Family] = [getattr(module, table) for table in _TABLES.get(generator, ("FAMILY",))]
    while not batch.over:
        one = rng.choice(families)
        case: Case = rng.choice(one.cases)
        values = " ".join(f"--{name} {entry!r}" for name, entry in zip(one.names, case, strict=True))
        command = f"python -m tests.soundness.generators.{generator} {values}"
        batch.case(command)
        if line := one.check(*case):
            batch.differs(f"{command}\n\n{line}")


@quiet
def operator_samples(rng: random.Random, batch: Batch) -> None:
    """Random operators of torch, with all samples of one kind."""
    known = operators.operators()
    while not batch.over:
        op, kind = rng.choice(known), rng.choice(list(operators.KINDS))
        command = f"python -m tests.soundness.generators.operators --kind {kind} --only {operators.name_of(op)}"
        batch.case(command)
        if lines := [line for line in operators.differing(op, kind) if line]:
            batch.differs("\n".join([command, "", *lines]))


# -- tables of tests, with random numbers --------------------------------------------------------------------------------

Numbers = Sequence[tuple[int, bool]]  # of each call, and whether something is changed before it
Life = Callable[[str, Numbers, bool], list[Any]]


def _numbers(rng: random.Random) -> Numbers:
    return [(rng.choice((1, 1, 1, 2, 3, 4)), n > 1 and rng.random() < 0.4) for n in range(rng.randint(4, 10))]


@quiet
def lives(table: str, rng: random.Random, batch: Batch) -> None:
    """Random numbers and changes for random entries of a table: a compiled life and a plain one."""
    entries, life = _LIVES[table]
    names = list(entries)
    while not batch.over:
        entry, numbers = rng.choice(names), _numbers(rng)

        def differs(some: Numbers, entry: str = entry) -> str | None:
            return first_difference([entry], life(entry, some, False), life(entry, some, True))

        def text(some: Numbers, entry: str = entry) -> str:
            return f"kinds.py, table {table!r}, entry {entry!r}, (number, changed) of the calls: {list(some)}"

        batch.case(text(numbers))
        if line := differs(numbers):

            def shorter(numbers: Numbers = numbers, line: str = line) -> str:
                short = shortest(numbers, lambda some: differs(some) is not None)
                return f"{text(short)}\n\n{differs(short) or line}"

            batch.differs(f"{text(numbers)}\n\n{line}", shorter)


def _tried(do: Callable[[], Any]) -> str:
    try:
        return repr(do())
    except Exception as error:  # the program's own: it must be the same
        return repr(error)


def _target(region: Callable[..., Any], compiled: bool) -> Callable[..., Any]:
    return magpy_core.compile(region, backend="eager") if compiled else region


def special_methods(use: str, numbers: Numbers, compiled: bool) -> list[Any]:
    function = _target(test_special_methods.USES[use], compiled)
    test_special_methods.RUNS.clear()
    thing, seen = test_special_methods.Thing(), []
    for call, (number, changed) in enumerate(numbers):
        if changed:
            thing.__dict__["k"] = call
        result = _tried(lambda: function(thing, torch.ones(2), number))  # noqa: B023
        seen.append((result, repr(thing.__dict__), list(test_special_methods.RUNS)))
    return seen


def overrides(pair: str, numbers: Numbers, compiled: bool) -> list[Any]:
    index, _, use = pair.partition(" ")
    base, method = test_overrides.PAIRS[int(index)]
    o = test_overrides.answering(base, method)(test_overrides.FILLED[base])
    do = test_overrides.USES[use]
    function = _target(lambda x: (x * 2, do(o)), compiled)
    return [test_overrides.outcome(function) for _ in numbers]


def process_state(what: str, numbers: Numbers, compiled: bool) -> list[Any]:
    ask, change = test_process_state.ASKED[what]
    function = _target(lambda x: (x * 2, ask()), compiled)
    seen = []
    with test_process_state.kept():
        for call, (number, changed) in enumerate(numbers):
            if changed:
                change(call * number)
            seen.append(_tried(lambda: function(torch.ones(2))[1]))
    return seen


def hidden_state(what: str, numbers: Numbers, compiled: bool) -> list[Any]:
    make, ask, change = test_process_state.OBJECTS[what]
    thing = make()
    function = _target(lambda x, o: (x * 2, ask(o)), compiled)
    seen = []
    for call, (_, changed) in enumerate(numbers):
        if changed:
            change(thing, call)
        seen.append(_tried(lambda: function(torch.ones(2), thing)[1]))
    return seen


def library_code(case: str, numbers: Numbers, compiled: bool) -> list[Any]:
    make, region, change = test_library_code.CASES[case]
    thing, function = make(), _target(region, compiled)
    seen = []
    for call, (number, changed) in enumerate(numbers):
        if changed:
            _tried(lambda: change(thing, call))  # noqa: B023
        result = _tried(lambda: function(thing, torch.ones(2), number))  # noqa: B023
        seen.append((result, test_library_code.shown(thing)))
    return seen


_PAIRS = [f"{i} {use}" for i in range(len(test_overrides.PAIRS)) for use in test_overrides.USES]
_LIVES: dict[str, tuple[Any, Life]] = {
    "special methods": (test_special_methods.USES, special_methods), "overrides": (_PAIRS, overrides),
    "process state": (test_process_state.ASKED, process_state), "hidden state": (test_process_state.OBJECTS, hidden_state),
    "library code": (test_library_code.CASES, library_code),
}  # fmt: skip


# -- sequences -----------------------------------------------------------------------------------------------------------


@quiet
def module_handles(rng: random.Random, batch: Batch) -> None:
    while not batch.over:
        steps = modules.drawn(rng)
        batch.case(modules.command(steps))
        if line := modules.handled(steps):
            batch.differs(
                f"{modules.command(steps)}\n\n{line}", lambda steps=steps, line=line: modules.shortened(steps, line)
            )  # type: ignore[misc]


@quiet
def thread_sequences(rng: random.Random, batch: Batch) -> None:
    while not batch.over:
        plan = threads.drawn(rng)
        batch.case(threads.command(plan))
        if line := threads.together(plan):
            batch.differs(f"{threads.command(plan)}\n\n{line}", lambda plan=plan, line=line: threads.shortened(plan, line))  # type: ignore[misc]


@quiet
def writes_in_place(rng: random.Random, batch: Batch) -> None:
    """Programs that write tensors, several in one region: compiling takes most of the time."""
    while not batch.over:
        programs = writes.batch_of(rng, 8)
        batch.case("\n".join(program.source(f"f{i}") for i, program in enumerate(programs)))
        for i, line in writes.differing(programs)[1].items():
            text, program = f"{programs[i].source('f')}\n\n{line}", programs[i]
            batch.differs(text, lambda program=program, line=line: f"{writes.shortened(program).source('f')}\n\n{line}")  # type: ignore[misc]


def _kinds() -> Iterator[Kind]:
    yield Kind("world changes", world_changes)
    yield Kind("random programs", random_programs)
    yield Kind("module handles", module_handles)
    yield Kind("threads", thread_sequences)
    yield Kind("writes under Inductor", writes_in_place, seconds=15, limit=240)
    for table in _LIVES:
        yield Kind(table, functools.partial(lives, table))
    for name in _FAMILIES:
        yield Kind(name, functools.partial(family, name))
    yield Kind("operators", operator_samples, seconds=15)  # importing torch's samples takes most of five
    for path in sorted(THIRD_PARTY.glob("*.py")):
        found = importlib.util.find_spec(path.stem) is not None
        missing = "" if found else f"{path.stem} is not installed"
        yield Kind(f"third party: {path.stem}", functools.partial(third_party, path.stem), missing, seconds=15)


KINDS = list(_kinds())
