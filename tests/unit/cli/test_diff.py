"""magpy-lsp diff: what appeared, went, got slower, and the exit status that says so."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lsp_server.cli.main import cli
from lsp_server.formats import as_json
from lsp_server.formats.view import View
from lsp_server.sources import Sources
from magpy_core.findings import Finding, Location, Position, Range, RegionSummary, Report, StepReport

FILE = "/project/train.py"
LINES = "def step():\n    loss.item()\n    x.tolist()\n    print(x)\n"
NET = RegionSummary(
    "r0",
    "module",
    "Net",
    FILE,
    1,
    calls=9,
    captures=1,
    complete=True,
    guards=40,
    eager_ms=9.0,
    compiled_ms=5.0,
    guard_ms=0.1,
)


def finding(line: int, code: str = "MP102", message: str = "") -> Finding:
    at = Range(Position(line - 1, 4), Position(line - 1, 15))
    return Finding(code, message or f"line {line} is read", Location(FILE, at, "step"))


def report(*findings: Finding, regions: tuple[RegionSummary, ...] = (NET,)) -> Report:
    return Report("train.py", list(regions), list(findings), {"total": 1.0})


class Diff:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, one: Report, lines: str = LINES, *, plain: bool = False) -> str:
        view = View(base=Path("/project"), root=Path("/project"), sources=Sources({FILE: lines}))
        data = json.loads(as_json.text(one, view))
        if plain:
            for found in data["findings"]:
                del found["fingerprint"]
        (self.folder / name).write_text(json.dumps(data))
        return str(self.folder / name)

    def __call__(self, old: Report, new: Report, *options: str, **more: Any) -> Result:
        files = self.write("old.json", old, **more), self.write("new.json", new, **more)
        return CliRunner().invoke(cli, ["diff", *files, *options])


@pytest.fixture
def diff(tmp_path: Path) -> Diff:
    return Diff(tmp_path)


@pytest.mark.parametrize("plain", [False, True])
def test_what_appeared_and_what_is_gone(diff: Diff, plain: bool) -> None:
    result = diff(report(finding(2), finding(3)), report(finding(3), finding(4, "MP101")), plain=plain)
    assert result.exit_code == 1
    assert result.stdout == (
        "Appeared:\n  /project/train.py:4:5: MP101 [warning] line 4 is read\n\n"
        "Disappeared:\n  /project/train.py:2:5: MP102 [warning] line 2 is read\n\n"
        "1 finding appeared, 1 disappeared, 1 unchanged; no region got worse.\n"
    )


def test_the_same_is_clean(diff: Diff) -> None:
    result = diff(report(finding(2)), report(finding(2)))
    assert (result.exit_code, result.stdout) == (
        0,
        "0 findings appeared, 0 disappeared, 1 unchanged; no region got worse.\n",
    )


def test_moved_lines_and_other_values_are_no_change(diff: Diff) -> None:
    old = diff.write("old.json", report(finding(2, message="was 1")))
    new = diff.write("new.json", report(finding(4, message="was 2")), "import a\nimport b\n" + LINES)
    result = CliRunner().invoke(cli, ["diff", old, new])
    assert result.exit_code == 0 and "0 disappeared, 1 unchanged" in result.stdout


def test_only_findings_that_count_fail_and_going_never_does(diff: Diff) -> None:
    hint = report(finding(4, "MP204"))
    assert diff(report(), hint).exit_code == 0
    assert diff(report(), hint, "--fail-on", "hint").exit_code == 1
    assert diff(report(), hint, "--fail-on", "hint", "--exit-zero").exit_code == 0
    assert diff(report(finding(2)), report()).exit_code == 0


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"compiled_ms": 7.5}, 1, "compiled:                5 -> 7.5 ms (+50%) slower"),
        ({"compiled_ms": 5.9}, 0, None),  # within the threshold
        ({"compiled_ms": 2.5}, 0, "compiled:                5 -> 2.5 ms (-50%)"),
        ({"guard_ms": 0.3}, 1, "guard check:             0.1 -> 0.3 ms (+200%) slower"),
        ({"eager_ms": 90.0}, 0, "eager:                   9 -> 90 ms (+900%)"),
        ({"graph_breaks": 1, "complete": False}, 1, "the graph is no longer complete"),
        ({"captures_after_step_3": 1}, 1, "recompiles after step 3: 0 -> 1 worse"),
        ({"guards": 400}, 0, "guards:                  40 -> 400"),
        ({"compiled_ms": None}, 0, None),  # not measured
    ],
)
def test_regions(diff: Diff, change: dict[str, Any], status: int, said: str | None) -> None:
    result = diff(report(), report(regions=(replace(NET, **change),)))
    assert result.exit_code == status
    if said is None:
        assert "Regions:" not in result.stdout
    else:
        assert f"    {said}\n" in result.stdout and "  Net (module) at /project/train.py:1\n" in result.stdout


def test_a_tiny_time_is_noise_and_the_threshold_can_be_set(diff: Diff) -> None:
    fast = replace(NET, compiled_ms=0.01)
    assert diff(report(regions=(fast,)), report(regions=(replace(fast, compiled_ms=0.02),))).exit_code == 0
    slower = report(regions=(replace(NET, compiled_ms=5.5),))
    assert diff(report(), slower).exit_code == 0
    assert diff(report(), slower, "--threshold", "5").exit_code == 1


def test_regions_that_came_and_went(diff: Diff) -> None:
    other = replace(NET, name="Other")
    result = diff(report(), report(regions=(other,)))
    assert result.exit_code == 0
    assert "Other (module) at /project/train.py:1: new\n" in result.stdout
    assert "Net (module) at /project/train.py:1: removed\n" in result.stdout


STEP = StepReport(count=300, plain_ms=60.0, compiled_ms=40.0, wait_s=3.0)


@pytest.mark.parametrize(
    ("now", "status", "shown"),
    [
        ({"compiled_ms": 52.0}, 1, "    compiled:                40 -> 52 ms (+30%) slower\n"),
        ({"compiled_ms": 30.0}, 0, "    compiled:                40 -> 30 ms (-25%)\n"),
        ({"plain_ms": 90.0}, 0, "    plain:                   60 -> 90 ms (+50%)\n"),
        ({"wait_s": 9.0}, 0, "    waiting:                 3 -> 9 s (+200%)\n"),
    ],
)
def test_a_step_that_got_slower_is_worse(diff: Diff, now: dict[str, float], status: int, shown: str) -> None:
    result = diff(replace(report(), step=STEP), replace(report(), step=replace(STEP, **now)))
    assert result.exit_code == status and f"Step:\n{shown}\n" in result.stdout
    assert result.stdout.endswith("no region got worse; the step got slower.\n" if status else "no region got worse.\n")


@pytest.mark.parametrize("other", [None, StepReport(count=3), replace(STEP, compiled_ms=44.0)])
def test_a_step_that_one_report_lacks_or_that_hardly_differs_is_no_change(diff: Diff, other: StepReport | None) -> None:
    for old, new in ((STEP, other), (other, STEP)):
        result = diff(replace(report(), step=old), replace(report(), step=new))
        assert (result.exit_code, "Step:\n    compiled" in result.stdout) == (0, False)


def test_json(diff: Diff) -> None:
    slow = replace(NET, compiled_ms=10.0)
    old = replace(report(finding(2)), step=STEP)
    new = replace(report(finding(3), regions=(slow,)), step=replace(STEP, compiled_ms=80.0))
    data = json.loads(diff(old, new, "--format", "json").stdout)
    assert data["worse"] is True
    assert [f["code"] for f in data["findings"]["appeared"]] == ["MP102"] and data["findings"]["unchanged"] == 0
    (changed,) = data["regions"]["changed"]
    assert changed["name"] == "Net" and changed["worse"]
    assert changed["changes"] == [{"what": "compiled", "unit": "ms", "old": 5.0, "new": 10.0, "ratio": 2.0, "worse": True}]
    assert data["step"] == [{"what": "compiled", "unit": "ms", "old": 40.0, "new": 80.0, "ratio": 2.0, "worse": True}]


@pytest.mark.parametrize("content", [None, b"{", b"[]", b"{}", b"\xff", b'{"findings": [{"code": "MP999"}]}'])
def test_what_is_no_report_is_status_2(diff: Diff, tmp_path: Path, content: bytes | None) -> None:
    good, bad = diff.write("good.json", report()), tmp_path / "bad.json"
    if content is not None:
        bad.write_bytes(content)
    for pair in ([good, str(bad)], [str(bad), good]):
        result = CliRunner().invoke(cli, ["diff", *pair])
        assert result.exit_code == 2 and str(bad) in result.stderr and result.stdout == ""


def test_one_may_come_from_stdin(diff: Diff) -> None:
    file = diff.write("good.json", report(finding(2)))
    result = CliRunner().invoke(cli, ["diff", "-", file], input=Path(file).read_text())
    assert result.exit_code == 0 and "1 unchanged" in result.stdout


def test_a_page_goes_to_stdout_or_to_a_file(diff: Diff, tmp_path: Path) -> None:
    result = diff(report(finding(2)), report(finding(4, "MP101")), "--format", "html")
    assert result.exit_code == 1 and result.stdout.startswith("<!DOCTYPE html>") and result.stdout.endswith("</html>\n")
    file = tmp_path / "diff.html"
    written = diff(report(finding(2)), report(finding(4, "MP101")), "--format", "html", "--output", str(file))
    assert written.exit_code == 1 and written.stdout == "" and file.read_text() == result.stdout
    assert f"the comparison is in {file}" in written.stderr
    assert "<b>old.json</b> train.py" in result.stdout


def test_any_format_can_go_to_a_file(diff: Diff, tmp_path: Path) -> None:
    file = tmp_path / "diff.txt"
    plain = diff(report(finding(2)), report(finding(2)))
    assert diff(report(finding(2)), report(finding(2)), "--output", str(file)).stdout == ""
    assert file.read_text() == plain.stdout
    refused = diff(report(), report(), "--output", str(tmp_path / "no" / "diff.txt"))
    assert refused.exit_code == 2 and "can't be written" in refused.stderr


WRONG = [None, "x", 7, -1, 1.5, True, [], {}, [None], {"a": None}]
GOLDEN = Path(__file__).parents[2] / "golden" / "formats" / "report.json"


def _places(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    items = data.items() if isinstance(data, dict) else enumerate(data[:2]) if isinstance(data, list) else ()
    for key, value in items:
        yield from _places(value, (*at, key))


def _with(data: Any, at: tuple[Any, ...], value: Any) -> Any:
    if not at:
        return value
    changed = copy.copy(data)
    changed[at[0]] = _with(data[at[0]], at[1:], value)
    return changed


@pytest.mark.parametrize("share", [1, pytest.param(len(WRONG), marks=pytest.mark.slow)])
def test_a_wrongly_typed_report_is_a_clear_error_or_compared(tmp_path: Path, share: int) -> None:
    report = json.loads(GOLDEN.read_text())
    wrong, good = tmp_path / "wrong.json", tmp_path / "good.json"
    good.write_text(json.dumps(report))
    forms, statuses = itertools.cycle(["text", "markdown", "json", "html"]), set()
    for number, at in enumerate(_places(report)):
        for value in (WRONG[number % len(WRONG)],) if share == 1 else WRONG:
            wrong.write_text(json.dumps(_with(report, at, value)))
            pair = [str(wrong), str(good)][:: 1 if number % 2 else -1]
            result = CliRunner().invoke(cli, ["diff", "--format", next(forms), *pair])
            assert result.exception is None or isinstance(result.exception, SystemExit), (at, value, result.exc_info)
            statuses.add(result.exit_code)
            if result.exit_code == 2:
                assert f"{wrong} is not a report of this MagPy" in result.stderr
    assert {0, 2} <= statuses
    wrong.write_text("[" * 100_000)
    assert CliRunner().invoke(cli, ["diff", str(wrong), str(good)]).exit_code == 2
