"""Several reports as one: what becomes of the training step."""

from __future__ import annotations

from lsp_server.cli.merge import merge
from magpy_core.findings import RegionSummary, Report, StepPart, StepReport

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
