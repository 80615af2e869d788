"""magpy-lsp diff of reports with kernels: what is new, gone, larger or no longer fused, whatever the kernels are called."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lsp_server.cli.main import cli
from lsp_server.formats import kernels_json
from lsp_server.formats.view import View
from lsp_server.kernel_comparison import KernelComparison, compare_kernels
from lsp_server.sources import Sources
from magpy_core.findings import Kernel, KernelCode, KernelLine, KernelWork, RegionSummary, Report, TargetReport
from tests.unit.cli.test_diff import Diff, diff

__all__ = ["diff"]

FILE = "/project/train.py"
TEXT = {3: "h = up(x)", 4: "h = gelu(h)", 5: "return norm(h)", 9: "loss = cost(y)"}
CODE = KernelCode("@triton.jit", "", 40, 0, 0, 4, (8, 1, 1))


def kernel(*operators: str, lines: tuple[int, ...] = (4,), moved: int = 8_000_000, us: float = 8.0, **more: Any) -> Kernel:
    at = tuple(KernelLine(FILE, line, TEXT[line]) for line in lines)
    work = KernelWork(moved // 2, moved // 2, moved, "float32")
    fields: dict[str, Any] = {"region": "r0", "graph": "forward", "name": "k0", "kind": "triton", "code": CODE, **more}
    return Kernel(operators=operators, lines=at, launches=1, work=work, us=us, bound="memory", **fields)


def target(*kernels: Kernel, device: str = "cuda:sm_90") -> TargetReport:
    return TargetReport(device, {"cuda:sm_90": "H100 SXM", "cuda:sm_80": "A100 SXM"}[device], 1e12, 2.5, list(kernels))


def compared(old: list[Kernel], new: list[Kernel], **more: Any) -> KernelComparison:
    return compare_kernels(target(*old), target(*new), {}, 0.2, **more)


PRODUCT = kernel("addmm", lines=(3,), kind="extern", code=None, name="extern_kernels.addmm")
FUSED = kernel("gelu", "native_layer_norm", lines=(4, 5))
GELU, NORM = kernel("gelu"), kernel("native_layer_norm", lines=(5,))


def test_names_and_moved_lines_are_no_change() -> None:
    moved = replace(FUSED, name="k7", lines=tuple(replace(at, line=at.line + 30) for at in FUSED.lines))
    assert not compared([PRODUCT, FUSED], [moved, PRODUCT]).graphs


def test_a_kernel_that_became_two_is_no_longer_fused() -> None:
    found = compared([PRODUCT, FUSED], [PRODUCT, GELU, NORM])
    (graph,) = found.graphs
    (one,) = graph.parted
    assert (one.before, one.now) == ((FUSED,), (GELU, NORM)) and found.worse
    assert not graph.appeared and not graph.disappeared and not graph.changed
    assert {change.label: (change.old, change.new) for change in graph.totals} == {
        "launches": (2, 3), "moves": (16e6, 24e6), "takes at least": (16.0, 24.0),
    }  # fmt: skip


def test_two_kernels_that_became_one_are_fused() -> None:
    found = compared([PRODUCT, GELU, NORM], [PRODUCT, FUSED])
    (graph,) = found.graphs
    (one,) = graph.joined
    assert (one.before, one.now) == ((GELU, NORM), (FUSED,)) and not found.worse


def test_what_splits_off_a_kernel_that_stays_is_no_longer_fused() -> None:
    less = replace(FUSED, work=replace(FUSED.work, flops=10))
    (graph,) = compared([FUSED], [less, NORM]).graphs
    assert [(one.before, one.now) for one in graph.parted] == [((FUSED,), (less, NORM))] and not graph.appeared


def test_one_kernel_for_another_is_no_split() -> None:
    (graph,) = compared([GELU], [kernel("sort", "mul", lines=(9,)), kernel("cumsum", lines=(9,))]).graphs
    assert len(graph.appeared) == 2 and graph.disappeared == [GELU] and not graph.parted


def test_an_edited_line_is_the_same_kernel() -> None:
    edited = replace(
        FUSED, lines=(FUSED.lines[0], KernelLine(FILE, 5, "return norm(2 * h)")), operators=(*FUSED.operators, "mul")
    )
    assert not compared([FUSED], [edited]).graphs


@pytest.mark.parametrize(
    ("grow", "label", "worse"),
    [
        (lambda one: replace(one, work=replace(one.work, bytes_read=16_000_000)), "moves", True),
        (lambda one: replace(one, us=16.0), "takes at least", True),
        (lambda one: replace(one, code=replace(CODE, spill_bytes=52)), "spills", True),
        (lambda one: replace(one, code=replace(CODE, registers=128)), "registers", False),
        (lambda one: replace(one, us=8.5), None, False),
    ],
    ids=["bytes", "time", "spills", "registers", "a little"],
)
def test_a_kernel_that_grew(grow: Callable[[Kernel], Kernel], label: str | None, worse: bool) -> None:
    found = compared([FUSED], [grow(FUSED)])
    assert [change.label for graph in found.graphs for one in graph.changed for change in one.changes] == (
        [label] if label else []
    )
    assert found.worse is worse


def test_of_equal_kernels_each_has_one_counterpart() -> None:
    more = replace(GELU, work=replace(GELU.work, bytes_read=90_000_000))
    (graph,) = compared([GELU, more, GELU], [GELU, GELU, GELU, more]).graphs
    assert graph.appeared == [GELU] and not graph.changed


def test_two_targets_are_compared_but_not_judged() -> None:
    slower = [replace(one, us=2 * one.us) for one in (GELU, NORM)]
    found = compare_kernels(target(FUSED, device="cuda:sm_90"), target(*slower, device="cuda:sm_80"), {}, 0.2)
    (graph,) = found.graphs
    assert graph.parted and not found.worse and not any(change.worse for change in graph.totals)
    times = compare_kernels(target(FUSED), target(replace(FUSED, us=20.0), device="cuda:sm_80"), {}, 0.2)
    assert [change.label for change in times.graphs[0].totals] == ["takes at least"] and not times.graphs[0].changed


def test_regions_match_as_those_of_the_report_do() -> None:
    other = replace(FUSED, region="r9")
    assert not compare_kernels(target(FUSED), target(other), {"r0": "r9"}, 0.2).graphs
    assert len(compare_kernels(target(FUSED), target(other), {}, 0.2).graphs) == 2


# -- the command -----------------------------------------------------------------------------------------------------------


def report(*kernels: Kernel) -> Report:
    return Report("train.py", [RegionSummary("r0", "module", "Net", FILE, 1)], kernels=target(*kernels))


LINES = "\n".join(TEXT.get(number, "") for number in range(1, 10))


def run(diff: Diff, *options: str) -> Result:
    return diff(report(PRODUCT, FUSED), report(PRODUCT, GELU, NORM), *options, lines=LINES)


def test_as_text(diff: Diff) -> None:
    result = run(diff, "--color", "never")
    assert result.exit_code == 1
    assert result.stdout == (
        "Kernels on H100 SXM:\n"
        "  r0, forward\n"
        "    launches: 2 -> 3\n"
        "    moves: 16.0 MB -> 24.0 MB (+50%)\n"
        "    takes at least: 16.0 µs -> 24.0 µs (+50%)\n"
        "    no longer fused: gelu, layer_norm at train.py:4-5: 1 -> 2 kernels, 8.0 MB -> 16.0 MB, 8.0 µs -> 16.0 µs\n"
        "      of gelu at train.py:4\n"
        "      of layer_norm at train.py:5\n"
        "\n"
        "0 findings appeared, 0 disappeared, 0 unchanged; no region got worse; the kernels of 1 graph got worse.\n"
    )


def test_as_markdown(diff: Diff) -> None:
    shown = run(diff, "--format", "markdown").stdout
    assert shown.startswith("## MagPy: comparison\n\n❌ 0 findings appeared")
    assert "### Kernels on H100 SXM\n\n**r0**, forward ❌\n\n- launches: 2 -&#62; 3\n" in shown
    assert "\n- no longer fused: gelu, layer&#95;norm at train.py:4-5" in shown and "\n  - of gelu at" in shown


def test_as_json(diff: Diff) -> None:
    found = json.loads(run(diff, "--format", "json").stdout)["kernels"]
    assert found["worse"] and found["old_target"] == found["new_target"] == "cuda:sm_90"
    (graph,) = found["graphs"]
    ((before, now),) = [(one["before"], one["now"]) for one in graph["no_longer_fused"]]
    assert [each["operators"] for each in (*before, *now)] == [
        ["gelu", "native_layer_norm"],
        ["gelu"],
        ["native_layer_norm"],
    ]


def test_what_kernels_writes_can_be_compared(tmp_path: Path) -> None:
    view = View(sources=Sources({FILE: LINES}))
    for name, kernels in (("old.json", (PRODUCT, FUSED)), ("new.json", (PRODUCT, GELU, NORM))):
        (tmp_path / name).write_text(json.dumps(kernels_json.data(target(*kernels), view, ptx=True)))
    result = CliRunner().invoke(cli, ["diff", str(tmp_path / "old.json"), str(tmp_path / "new.json")])
    assert result.exit_code == 1 and "no longer fused: gelu, layer_norm" in result.stdout


def test_a_report_without_a_target_has_no_kernels_to_compare(diff: Diff) -> None:
    result = diff(replace(report(), kernels=None), report(FUSED))
    assert result.exit_code == 0 and "kernel" not in result.stdout.lower()


def test_no_difference_is_said(diff: Diff) -> None:
    result = diff(report(FUSED), report(replace(FUSED, name="k9")), "--color", "never")
    assert result.exit_code == 0 and result.stdout.startswith("Kernels on H100 SXM: no difference\n\n0 findings")
    assert result.stdout.endswith("no region got worse; no kernels got worse.\n")
    assert "### Kernels on H100 SXM\n\nNo difference.\n" in diff(report(FUSED), report(FUSED), "--format", "markdown").stdout
