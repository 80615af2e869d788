"""Every program of the corpus, compiled and eager side by side: steady calls, each of its own changes, random changes.

"Never wrong" is asserted for all of them; that most of them are captured at all is asserted at the end (a refusal is sound, but
a loss). ``python -m tests.soundness.fuzz`` runs many more random changes.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterator

import pytest
import torch

from tests.soundness.fuzz import random_schedule
from tests.soundness.harness import Report, run, standard_schedules
from tests.soundness.world import Program, programs

PROGRAMS = programs()
# What cannot be beside others in one process: it uses torch.compile.
PARAMETERS = [pytest.param(p, id=str(p), marks=[pytest.mark.torch_compile] * ("alone" in p.options)) for p in PROGRAMS]
# Programs whose graphs AOTAutograd must lower too: autograd, state, aliasing, numbers, branches.
SAMPLE = (
    "linear_net",
    "batchnorm",
    "dropout_train",
    "inplace_views",
    "autocast_inside",
    "custom_function",
    "aliasing_input_output",
    "mutate_buffers",
    "counter_used",
    "lr_in_group",
    "early_exit_net",
    "varying_batch",
    "item_accumulate",
    "attr_write_tensor",
    "embedding_tied",
    "conv_net",
)
_total: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    print("\nsoundness corpus: " + ", ".join(f"{v} {k}" for k, v in _total.items()))


def text_of(report: Report) -> str:
    lines = [*report.trail, f"hits {report.hits_by_call}", *report.differences]
    return f"{report.program.name} differs from eager:\n  " + "\n  ".join(lines)


def count(report: Report) -> None:
    _total.update(calls=report.calls, changed=report.changed, hits=report.hits, recordings=report.recordings)


@pytest.mark.parametrize("program", PARAMETERS)
def test_indistinguishable(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    if program.name.startswith("watched_"):
        monkeypatch.setenv("MAGPY_DICT_TAGS", "always")
    captured = False
    for _, schedule in standard_schedules(program):
        report = run(program, schedule)
        count(report)
        captured |= report.captured
        assert not report.differences, text_of(report)
    if program.refused:
        assert not captured, f"{program.name} was captured, though nothing could guard what it reads"


@pytest.mark.parametrize("program", [p for p in PROGRAMS if "alone" not in p.options], ids=str)
def test_random_changes(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGPY_DICT_TAGS", "always")  # the first level of every guard, from the first call on
    report = run(program, random_schedule(program, random.Random(f"corpus {program.name}")))
    count(report)
    assert not report.differences, text_of(report)


_CUT = [
    p
    for p in PROGRAMS
    if p.file.removesuffix(".py").endswith(("data_shapes", "scalars", "draws", "numpy_data"))
    and not p.options & {"alone", "refused"}
]


@pytest.mark.parametrize("program", _CUT, ids=str)
def test_decisions_looked_at_after_the_graph(program: Program) -> None:
    for schedule in (
        standard_schedules(program)[-1][1],
        random_schedule(program, random.Random(f"whole {program.name}")),
    ):
        report = run(program, schedule, whole=True)
        count(report)
        assert not report.differences, text_of(report)


@pytest.mark.parametrize("name", SAMPLE)
def test_aot_eager(name: str) -> None:
    program = next(p for p in PROGRAMS if p.name == name)
    for _, schedule in standard_schedules(program):
        report = run(program, schedule, backend="aot_eager")
        count(report)
        assert not report.differences, text_of(report)


COMPILED = [p for p in PROGRAMS if not p.options & {"alone", "refused", "plain"}]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
def test_aot_eager_of_all(part: int) -> None:
    for program in COMPILED[part::6]:
        report = run(program, standard_schedules(program)[0][1], backend="aot_eager")
        count(report)
        assert not report.differences, text_of(report)


@pytest.mark.slow
def test_inductor_of_some(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("filelock", "torch", "asyncio", "concurrent.futures"):  # what compiling logs is not the program's
        monkeypatch.setattr(logging.getLogger(library), "propagate", False)
    for program in [p for p in COMPILED if "autocast" not in p.name][20::60]:  # kernels round half precision elsewhere
        report = run(program, standard_schedules(program)[0][1], backend="inductor")
        count(report)
        assert not report.differences, text_of(report)


def test_most_programs_are_captured() -> None:
    """Refusing is always sound; this keeps it from becoming the answer to everything."""
    ran = [p for p in PROGRAMS if not p.options & {"refused", "plain", "alone"}]
    lost = [p.name for p in ran if not any(run(p, schedule).captured for _, schedule in standard_schedules(p)[:2])]
    share = 1 - len(lost) / len(ran)
    print(f"\n{share:.0%} of {len(ran)} programs are captured; not: {', '.join(lost)}")
    assert share > 0.85, f"only {share:.0%} of {len(ran)} programs are captured: {lost}"


def test_the_harness_sees_no_difference_between_two_eager_worlds() -> None:
    for program in [p for p in PROGRAMS if "alone" not in p.options][::9]:
        for _, schedule in standard_schedules(program):
            report = run(program, schedule, compiler=lambda target: target)
            assert not report.differences, text_of(report)


def test_the_harness_sees_a_lost_effect() -> None:
    program = next(p for p in PROGRAMS if p.name == "lost_mutators")
    from tests.soundness.harness import Step

    report = run(program, [Step(), Step()], compiler=lambda target: lambda x: x + 1)
    assert any("world" in d for d in report.differences) and any("text" in d for d in report.differences)
