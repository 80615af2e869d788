"""Several reports as one: what becomes of the training step, and of kernels."""

from __future__ import annotations

from dataclasses import replace

from lsp_server.cli.merge import merge
from magpy_core.findings import (
    Kernel,
    KernelLine,
    KernelWork,
    LineCost,
    RegionSummary,
    Report,
    StepPart,
    StepReport,
    TargetGraph,
    TargetProblem,
    TargetReport,
    Unfused,
)

STEP = StepReport(count=9, plain_ms=3.0, compiled_ms=2.0, parts=[StepPart("Net", "r0", 2.0), StepPart("the rest")])


def report(step: StepReport | None = STEP) -> Report:
    return Report("train.py", [RegionSummary("r0", "module", "Net", "/p/net.py", 1)], step=step)


def test_steps_of_different_programs_are_not_one_step() -> None:
    for other in (report(), report(None)):
        assert merge([("train", report()), ("eval", other)]).step is None


def test_the_step_of_a_program_that_ran_under_both_engines_names_its_region() -> None:
    programs = {"train.py [magpy]": "train.py", "train.py [dynamo]": "train.py"}
    merged = merge([("train.py [magpy]", report()), ("train.py [dynamo]", report(None))], programs)
    assert merged.step is not None and (merged.step.plain_ms, merged.step.count) == (3.0, 9)
    assert [part.region for part in merged.step.parts] == ["train.py [magpy]/r0", ""]
    assert merged.regions[0].id == "train.py [magpy]/r0"
    assert STEP.parts[0].region == "r0", "the program's own report stays as it is"


def test_kernels_of_several_programs_name_their_regions() -> None:
    at = KernelLine("/p/net.py", 3)
    kernel = Kernel("r0", "forward", "k", "triton", ("add",), (at,), 1, KernelWork(1, 1, 1, "float32"), 2.5, "launch")
    target = TargetReport(
        "cuda:sm_90", "H100 SXM", 1.0, 2.5, [kernel], [TargetProblem("r0", "no")], [TargetGraph("r0", "forward", 2)],
        [Unfused("r0", "forward", "a", "b", at, at, 1, 1, 1.0, 0.5, "", False)], [LineCost("r0", "/p/net.py", 3, 2.5, 1)],
    )  # fmt: skip
    hotter = replace(target, lines=[replace(target.lines[0], us=9.0)])
    merged = merge([("train", replace(report(), kernels=target)), ("eval", replace(report(), kernels=hotter))]).kernels
    assert merged is not None and [cost.us for cost in merged.lines] == [9.0, 2.5]
    for part in (merged.kernels, merged.problems, merged.graphs, merged.unfused, merged.lines):
        assert sorted(each.region for each in part) == ["eval/r0", "train/r0"]
