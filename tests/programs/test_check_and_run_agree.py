"""`check` warns of what `run` will not have: both look at the same regions, whole steps of training loops included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from magpy_core.findings import Severity
from magpy_core.runner.request import SESSIONS
from tests.programs.runner_help import ROOT, Ran, environment, under_magpy, write

MODEL = """
    import time
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
        def forward(self, x):
            y = self.layer(x)
            if {test}:
                y = y.clamp(-9.0, 9.0)
            return y

    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    for n in range(12):
        optimizer.zero_grad()
        loss = model(torch.randn(3, 4)).square().mean()
        loss.backward()
        optimizer.step()
"""
CACHED = """
    import torch
    from torch import nn

    class Graph(nn.Module):
        edges = None
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
        def forward(self, x):
            y = self.layer(x)
            if self.edges is None:  # the size depends on data, and Python reads it
                self.edges = torch.ones(y[y > 0].shape[0], 4)
            return y.sum(0) + self.edges.sum(0)

    graph = Graph()
    with torch.no_grad():
        for n in range(6):
            graph(torch.randn(3, 4))
"""


def ran(folder: Path, source: str, **options: Any) -> Ran:
    write(folder, source)
    found = under_magpy(folder, script="prog.py", session_factory=SESSIONS["magpy"], **options)
    assert found.outcome.kind == "ok", found.stderr.decode()
    return found


def warnings(one: Ran) -> list[str]:
    return [f.code for f in one.outcome.report.findings if f.severity.rank <= Severity.WARNING.rank]


def test_a_branch_that_the_graph_of_the_whole_step_checks_is_no_warning_in_either(tmp_path: Path) -> None:
    source = MODEL.replace("{test}", "y.abs().max() > 9.0")
    checked = ran(tmp_path, source, mode="check", steps=3)
    (step,) = checked.outcome.report.regions
    assert (step.kind, step.complete) == ("step", True)
    found = ran(tmp_path, source, mode="run", backend="eager", steps=0, compile="foreground")
    assert [region.kind for region in found.outcome.report.regions] == ["step"]
    assert warnings(checked) == [code for code in warnings(found) if code != "MP401"] == []


def test_what_keeps_the_step_from_being_one_graph_is_a_warning_and_its_parts_are_shown(tmp_path: Path) -> None:
    checked = ran(tmp_path, MODEL.replace("{test}", "id(y) < 0"), mode="check", steps=3)
    assert warnings(checked) == ["MP103"] and "MP406" in checked.codes
    assert sorted(region.kind for region in checked.outcome.report.regions) == ["module", "optimizer"]


def test_what_only_the_first_call_does_is_a_fact(tmp_path: Path) -> None:
    checked = ran(tmp_path, CACHED, mode="check", steps=4)
    (region,) = checked.outcome.report.regions
    assert region.captures and region.complete, "`run` doesn't record the first call either"
    (found,) = [f for f in checked.outcome.report.findings if f.code == "MP109"]
    assert found.severity is Severity.INFORMATION and "only the first call does this" in found.hint and found.count == 1


LIBRARY = """
    import time
    from torch import nn

    class Clock(nn.Module):
        def forward(self, x):
            self.at = time.time()
            if x.sum() > 1e9:
                x = x * 2
            self.later = time.perf_counter()
            return x * 2
"""


def test_lines_of_a_library_are_shown_at_the_call_once_and_fail_no_check(tmp_path: Path) -> None:
    write(tmp_path, LIBRARY, "site-packages/clocks/__init__.py")
    source = """
        import torch
        from clocks import Clock

        one, two = Clock(), Clock()
        for n in range(4):
            for clock in (one, two):
                clock(torch.ones(3))
    """
    paths = f"{tmp_path / 'site-packages'}:{ROOT}"
    checked = ran(tmp_path, source, mode="check", steps=8, env={**environment(), "PYTHONPATH": paths})
    found = [f for f in checked.outcome.report.findings if f.code == "MP103"]
    assert {Path(f.location.file).name for f in found} == {"prog.py"} and {f.location.range.start.line for f in found} == {7}
    assert len({f.region for f in found}) == len(found) == 2, "each region once; reports show them as one"
    assert warnings(checked) == []


def test_calls_inside_a_region_that_is_cut_are_no_steps(tmp_path: Path) -> None:
    source = """
        import time
        import torch
        from torch import nn

        class Blocks(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList(nn.Linear(8, 8) for n in range(3))
            def forward(self, x):
                for block in self.blocks:
                    started = time.perf_counter()
                    x = block(x).relu() + x
                    self.seconds = time.perf_counter() - started
                return x

        model = Blocks()
        with torch.no_grad():
            for n in range(60):
                model(torch.randn(3, 8))
    """
    found = ran(tmp_path, source, mode="run", backend="eager", steps=0, compile="foreground")
    assert found.outcome.report.step is not None and found.outcome.report.step.count == 60
    assert found.outcome.report.steps == 60
