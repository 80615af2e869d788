"""[tool.magpy.budgets]: which figure breaks which limit, patterns of regions, mistakes with their line, exit statuses."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.budgets import Budgets, Limits, check_budgets, location, unmeasured
from lsp_server.config import load
from magpy_core.findings import Finding, Location, Position, Range, RegionSummary, Report, Severity, StepReport
from magpy_core.regions.reports.summary import speedup_interval
from tests.unit.cli.test_config import problems, table
from tests.unit.cli.test_program import Tool, tool

__all__ = ["tool"]

NET = "module: Net"


def region(name: str = NET, **figures: Any) -> RegionSummary:
    return RegionSummary(name, "module", name, "/p/net.py", 7, **{"calls": 10, "captures": 1, "hits": 9, **figures})


def read(line: int, code: str = "MP102", of: str = NET) -> Finding:
    at = Location("/p/net.py", Range(Position(line - 1, 4), Position(line - 1, 9)))
    return Finding(code, "m", at, region=of, count=4)


def broken(limits: Limits, one: RegionSummary, *findings: Finding, steps: int = 5, compiled: bool = True) -> list[Finding]:
    return check_budgets(Report("t.py", [one], list(findings), steps=steps), Budgets(limits), compiled=compiled)


@pytest.mark.parametrize(
    ("limits", "figures", "code", "message"),
    [
        (Limits(graph_breaks=0), {"graph_breaks": 2}, "MP501", "module: Net has 2 graph breaks; its budget is 0."),
        (Limits(recompiles=1), {"captures_after_step_3": 2}, "MP502", "has 2 recompiles after step 3; its budget is 1."),
        (Limits(guards=1000), {"guards": 1001}, "MP503", "has 1,001 guards; its budget is 1,000."),
        (Limits(side_effects=0), {"side_effects": 1}, "MP504", "has 1 side effect; its budget is 0."),
        (Limits(min_speedup=1.5), {"speedup_low": 1.2, "speedup_high": 1.4}, "MP506",
         "The speedup of module: Net is 1.20x to 1.40x (95% confidence); its minimum is 1.5x."),
        (Limits(min_speedup=1.5), {}, "MP507", "it has too few steady calls in this run"),
        (Limits(min_speedup=1.5), {"hits": 0}, "MP507", "it was never compiled in this run"),
    ],
)  # fmt: skip
def test_a_broken_limit_is_a_finding_at_the_definition(
    limits: Limits, figures: dict[str, Any], code: str, message: str
) -> None:
    (found,) = broken(limits, region(**figures))
    assert found.code == code and message in found.message
    assert (found.location.file, found.location.range.start.line) == ("/p/net.py", 6)
    assert found.region == NET


@pytest.mark.parametrize(
    ("limits", "figures"),
    [
        (Limits(), {"graph_breaks": 9, "guards": 9999}),
        (Limits(graph_breaks=2), {"graph_breaks": 2}),
        (Limits(guards=False), {"guards": 9999}),
        (Limits(min_speedup=1.5), {"speedup_low": 1.4, "speedup_high": 1.6}),  # within the noise
        (Limits(min_speedup=1.5), {"speedup_low": 2.0, "speedup_high": 2.5}),
        (Limits(min_speedup=False), {}),
    ],
)
def test_a_kept_limit_is_none(limits: Limits, figures: dict[str, Any]) -> None:
    assert broken(limits, region(**figures)) == []


def judged(budgets: Budgets, step: StepReport | None, one: RegionSummary, *, compiled: bool = True) -> list[tuple[str, str]]:
    found = check_budgets(Report("t.py", [one], steps=50, step=step), budgets, compiled=compiled)
    return [(f.code, f.message) for f in found]


def test_the_minimum_for_all_is_the_steps_where_it_was_measured() -> None:
    slow = region(speedup_low=0.8, speedup_high=0.9)
    of_regions = [("MP506", "The speedup of module: Net is 0.80x to 0.90x (95% confidence); its minimum is 1.5x.")]
    of_step = [("MP506", "The speedup of the step is 1.20x to 1.40x (95% confidence); its minimum is 1.5x.")]
    every = Budgets(Limits(min_speedup=1.5))
    low = StepReport(count=50, plain_ms=13.0, compiled_ms=10.0, speedup_low=1.2, speedup_high=1.4)
    assert judged(every, low, slow) == of_step
    assert judged(every, replace(low, speedup_high=1.6), slow) == [], "within the noise"
    assert judged(every, replace(low, plain_ms=None), slow) == judged(every, None, slow) == of_regions
    assert judged(every, low, slow, compiled=False) == []
    assert judged(Budgets(Limits(min_speedup=False)), low, slow) == judged(Budgets(), low, slow) == []


def test_the_minimum_of_a_region_stays_that_regions_beside_the_steps() -> None:
    step = StepReport(count=50, plain_ms=20.0, compiled_ms=10.0, speedup_low=1.9, speedup_high=2.1)
    budgets = Budgets(Limits(min_speedup=1.5, guards=3), {NET: Limits(min_speedup=1.2)})
    found = judged(budgets, step, region(guards=4, speedup_low=0.8, speedup_high=0.9))
    assert found == [
        ("MP503", "module: Net has 4 guards; its budget is 3."),
        ("MP506", "The speedup of module: Net is 0.80x to 0.90x (95% confidence); its minimum is 1.2x."),
    ]


def test_a_step_without_an_interval_was_not_judged() -> None:
    step = StepReport(count=9, plain_ms=20.0, compiled_ms=10.0)
    (found,) = check_budgets(Report("t.py", [region()], step=step), Budgets(Limits(min_speedup=1.5)), compiled=True)
    assert (found.code, found.severity, found.region) == ("MP507", Severity.WARNING, None)
    assert "of the step (minimum 1.5x) was not measured: too few steps" in found.message
    assert found.location == location(region(), Report("")), "a step has no definition"


def test_a_check_names_the_step_whose_minimum_it_can_not_measure() -> None:
    (found,) = unmeasured(Report("", regions=[region()]), Budgets(Limits(min_speedup=9.0)))
    assert found.message.startswith("`min-speedup` of the step was not measured: ")
    (found,) = unmeasured(Report("", regions=[region(), region("x")]), Budgets(Limits(), {"module": Limits(min_speedup=2)}))
    assert found.message.startswith("`min-speedup` of module: Net and 1 more was not measured: ")
    budgets = Budgets(Limits(min_speedup=9.0), {"module": Limits(min_speedup=False)})
    assert len(unmeasured(Report("", regions=[region()]), budgets)) == 1 and unmeasured(Report(""), budgets) == []


def test_a_check_does_not_judge_what_it_can_not_measure() -> None:
    assert broken(Limits(min_speedup=9.0), region(), compiled=False) == []
    (found,) = unmeasured(Report("", regions=[region(), region("module: Other")]), Budgets(Limits(min_speedup=9.0)))
    assert (found.code, found.severity, found.region) == ("MP507", Severity.INFORMATION, NET)
    assert found.location == location(region(), Report("")) and "was not measured: a check compiles nothing" in found.message
    assert unmeasured(Report("", regions=[region()]), Budgets(Limits(min_speedup=False))) == []


def test_host_syncs_are_values_times_calls_per_step() -> None:
    findings = [read(3), read(4, "MP101"), read(4, "MP101"), read(5, "MP204"), read(6, of="module: Other")]
    one = region(host_reads=2)
    assert broken(Limits(host_syncs=4), one, *findings) == [], "2 values, 10 calls in 5 steps: 4 a step"
    (found,) = broken(Limits(host_syncs=3.5), one, *findings)
    assert found.code == "MP505" and "waits for tensor values 4 times per step; its budget is 3.5." in found.message
    assert [v.repr for v in found.values] == ["net.py:3", "net.py:4"]


def test_the_limits_of_a_region_go_over_those_of_all_and_the_later_pattern_wins() -> None:
    budgets = Budgets(
        Limits(guards=10, graph_breaks=0), {"module: *": Limits(guards=20), NET: Limits(guards=30, side_effects=False)}
    )
    assert budgets.of(region()) == Limits(guards=30, graph_breaks=0, side_effects=False)
    assert budgets.of(region("module: Other")) == Limits(guards=20, graph_breaks=0)
    assert budgets.of(region("opt: SGD")) == Limits(guards=10, graph_breaks=0)
    assert Budgets(Limits(), {"module": Limits(guards=1)}).of(region("x: Y")) == Limits(guards=1), "a kind is a pattern"


# ---------------------------------------------------------------- the table


def test_every_key_of_the_table(tmp_path: Path) -> None:
    file = table(
        tmp_path,
        "[tool.magpy.budgets]\ngraph-breaks = 0\nrecompiles = 1\nguards = 2\nside-effects = 3\nhost-syncs = 0.5\n"
        "min-speedup = 1.25\nkernels = 9\nspills = 64\nestimated-us = 12.5\n"
        '[tool.magpy.budgets.regions."optimizer: *"]\nside-effects = false\n',
    )
    loaded = load(file)
    every = Limits(0, 1, 2, 3, 0.5, 1.25, 9, 64, 12.5)
    assert loaded.settings.budgets == Budgets(every, {"optimizer: *": Limits(side_effects=False)})
    assert loaded.region_lines == {"optimizer: *": 12}


@pytest.mark.parametrize(
    ("body", "line", "key", "message"),
    [
        ("budgets = 3", 2, "budgets", "must be a table, not an integer."),
        ("[tool.magpy.budgets]\ngraph-break = 0", 3, "budgets.graph-break", "is not a budget; did you mean `graph-breaks`?"),
        ("[tool.magpy.budgets]\n\nguards = 1.5", 4, "budgets.guards",
         "must be an integer, 0 or more, or false for no limit, not a float."),
        ("[tool.magpy.budgets]\nguards = true", 3, "budgets.guards",
         "must be an integer, 0 or more, or false for no limit, not a boolean."),
        ("[tool.magpy.budgets]\nhost-syncs = -1", 3, "budgets.host-syncs",
         "must be a number, 0 or more, or false for no limit, not -1."),
        ("[tool.magpy.budgets]\nmin-speedup = nan", 3, "budgets.min-speedup",
         "must be a number, 0 or more, or false for no limit, not nan."),
        ("[tool.magpy.budgets]\nmin-speedup = 'fast'", 3, "budgets.min-speedup",
         "must be a number, 0 or more, or false for no limit, not the string 'fast'."),
        ("[tool.magpy.budgets]\nregions = ['a']", 3, "budgets.regions",
         "must be a table of tables by region name, not a list."),
        ("[tool.magpy.budgets.regions]\nNet = 3", 3, "budgets.regions.Net", "must be a table, not an integer."),
        ('[tool.magpy.budgets.regions."m: N"]\nguard = 1', 3, "budgets.regions.m: N.guard",
         "is not a budget; did you mean `guards`?"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_key_and_line(tmp_path: Path, body: str, line: int, key: str, message: str) -> None:
    assert problems(tmp_path, body) == [(line, f"tool.magpy.{key}", message)]


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    body = "steps = 'x'\n[tool.magpy.budgets]\na = 1\nguards = 'x'\n[tool.magpy.budgets.regions.N]\nb = 1"
    assert [line for line, _, _ in problems(tmp_path, body)] == [2, 4, 5, 7]


# ---------------------------------------------------------------- the command line


def test_a_broken_budget_fails_check_and_run_and_can_be_silenced_where_it_stands(tool: Tool) -> None:
    tool.pyproject("[tool.magpy.budgets]\nguards = 5\n")
    tool.regions.append(RegionSummary("r", "module", NET, str(tool.script), 2, calls=3, captures=1, guards=6))
    result = tool("check", "--format", "concise", "train.py")
    assert result.exit_code == 1
    assert result.stdout.startswith("train.py:2:1: MP503 [error] module: Net has 6 guards; its budget is 5.\n")
    assert tool("run", "train.py").exit_code == 1, "a run fails on errors, and this is one"
    assert tool("check", "--ignore", "MP5", "train.py").exit_code == 0
    tool.script.write_text("loss.item()\nx = 1  # magpy: ignore[MP503]\n")
    assert tool("check", "train.py").exit_code == 0
    assert '"guards": 5' in tool("check", "--show-settings", "train.py").stdout


def test_a_budget_of_an_unknown_region_is_told_in_the_toml(tool: Tool) -> None:
    file = tool.pyproject('[tool.magpy.budgets.regions."module: Nett"]\nguards = 5\n')
    tool.regions.append(RegionSummary("r", "module", NET, str(tool.script), 2, calls=3))
    result = tool("check", "--format", "concise", "train.py")
    assert result.exit_code == 0, "another program may have it"
    said = "The budget `module: Nett` matches no region of this run; its regions: `module: Net`."
    assert f"{file.name}:2:1: MP507 [information] {said}\n" in result.stdout
    tool.kind = "failed"
    assert "MP507" not in tool("check", "train.py").stdout, "a run that failed may not have come to it"


# ---------------------------------------------------------------- the interval


def test_the_interval_needs_six_pairs_and_holds_the_ratio() -> None:
    assert speedup_interval([2.0] * 5, [1.0] * 9) is None
    assert speedup_interval([2.0] * 6, [1.0] * 9) == (2.0, 2.0)
    low, high = speedup_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0], [1.0] * 10) or (0, 0)
    assert (low, high) == (2.0, 9.0), "ten pairs: one may be left out on either side (97.9%)"
    assert speedup_interval([1.0] * 10, [0.0] * 10) is None


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    source = random.Random(5)
    missed = 0
    for _ in range(400):
        eager = [2.0 * source.lognormvariate(0, 0.3) for _ in range(11)]
        compiled = [source.lognormvariate(0, 0.3) for _ in range(11)]
        low, high = speedup_interval(eager, compiled) or (0, 0)
        missed += not low <= 2.0 <= high
    assert missed <= 400 * 0.05


@given(st.lists(st.floats(0.001, 1000.0), min_size=6, max_size=300))
def test_the_interval_is_ordered_and_within_what_was_seen(times: list[float]) -> None:
    low, high = speedup_interval(times, [1.0] * len(times)) or (0, 0)
    assert min(times) <= low <= high <= max(times)
