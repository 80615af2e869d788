"""Regions that can't be captured whole: their functions are cut, and the stretches serve."""

from __future__ import annotations

import copy
import inspect
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.limits import LIMITS
from magpy_core.opgraph.functions import operator_name
from magpy_core.regions import trial as trials
from magpy_core.regions.api import region_of
from magpy_core.regions.fragments import fragments as stretches
from magpy_core.regions.policy.policy import Policy
from magpy_core.regions.region import Region
from magpy_core.regions.timing.alternating_calls import AlternatingCalls
from magpy_core.regions.timing.region_times import RegionTimes
from magpy_core.stretches import seam_clock
from tests.soundness.harness.cuts import without_trials


@pytest.fixture(autouse=True)
def no_stretch_is_slower(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """So that no clock decides what a test sees."""
    monkeypatch.setattr(RegionTimes, "is_slower", lambda times: False)
    with without_trials():
        yield


class Gated(nn.Module):
    """Each block runs if its gate says so: 2 ** 6 paths."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)) for _ in range(6))
        self.gates = nn.ModuleList(nn.Linear(8, 1) for _ in range(6))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        taken = 0
        for block, gate in zip(self.blocks, self.gates, strict=True):
            score = torch.tanh(gate(x)).mean() * 10
            if score > 0:
                x = torch.relu(block(x)) + x
                taken += 1
        return x, taken


class Clocked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.times = nn.Linear(8, 8), nn.Linear(8, 8), []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x)) * 2
        self.times.append(time.perf_counter())
        return torch.relu(self.second(x)) - 1


def served(region: Region) -> int:
    assert isinstance(region.policy.fragments, stretches.Stretches)
    return sum(entry.region.hits for one in region.policy.fragments.served.values() for entry in one.entries)


def pair(cls: type[nn.Module]) -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    plain = cls()
    return plain, magpy_core.compile(copy.deepcopy(plain), backend="eager", wait=True)


def test_a_region_of_many_paths_is_cut_and_every_block_shares_a_capture() -> None:
    plain, compiled = pair(Gated)
    counts = set()
    for i in range(40):
        x = torch.randn(4, 8, generator=torch.Generator().manual_seed(i))
        (expected, n), (found, m) = plain(x), compiled(x)
        assert torch.equal(expected, found) and n == m
        if n:
            expected.sum().backward()
            found.sum().backward()
        for p, q in zip(plain.parameters(), compiled.parameters(), strict=True):
            assert (p.grad is None) == (q.grad is None) and (p.grad is None or torch.equal(p.grad, q.grad))
        counts.add(n)
    region = region_of(compiled)
    assert len(counts) > 2 and served(region) > 100
    recorded = sum(part.recordings for part in region.policy.fragments.regions)  # type: ignore[union-attr]
    assert region.recordings + recorded <= 12, "captures do not grow with the paths"


def test_a_stretch_computes_the_test_of_the_branch_after_it() -> None:
    plain, compiled = pair(Gated)
    for i in range(20):
        x = torch.randn(4, 8, generator=torch.Generator().manual_seed(i))
        assert torch.equal(plain(x)[0], compiled(x)[0])
    parts = region_of(compiled).policy.fragments.regions  # type: ignore[union-attr]
    operators = {operator_name(node) for part in parts for capture in part.captures for node in capture.nodes}
    assert "gt" in operators, operators


class Evaluated(nn.Module):
    """Now and then it reads a clock. Later, another word is in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.calls, self.mode, self.read = nn.Linear(8, 8), 0, "warm", []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        is_far = x.max() > 999
        x = torch.relu(self.linear(x)) * (2 if self.mode == "warm" else 3)
        if is_far:
            self.read.append(time.perf_counter() > 0)
        return x - 1


def test_what_is_refused_on_a_branch_does_not_end_recording() -> None:
    """A call in twelve can't be captured. The others are, and once more when another word is in the attribute."""
    plain, compiled = pair(Evaluated)
    region = region_of(compiled)
    for i in range(60):
        for one in (plain, compiled):
            one.mode = "warm" if i < 40 else "cold"
        x = torch.full((4, 8), 1000.0 if i % 12 == 11 else float(i))
        assert torch.equal(plain(x), compiled(x)) and plain.read == compiled.read
    assert not region.is_cut and not region.disabled
    assert len(region.captures) == 2 and region.hits >= 45


def test_what_is_refused_on_a_branch_each_time_is_cut() -> None:
    plain, compiled = pair(Evaluated)
    for i in range(20):
        x = torch.full((4, 8), 1000.0 + i)
        assert torch.equal(plain(x), compiled(x)) and plain.read == compiled.read
    region = region_of(compiled)
    assert region.is_cut and region.recordings == LIMITS.refused_branches and served(region) >= 4


class Unrolled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(6)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            hidden = self.layers(hidden + x[:, t])
        return hidden * 2


@pytest.mark.parametrize(("lengths", "is_cut"), [((7, 8, 9, 10, 11, 12), True), ((7, 8), False), ((1, 2, 3, 4), False)])
def test_a_large_loop_of_ever_other_rounds_is_cut(lengths: tuple[int, ...], is_cut: bool) -> None:
    """Two numbers of rounds have a graph each, and so have loops with few operations."""
    plain, compiled = pair(Unrolled)
    for i in range(24):
        x = torch.randn(3, lengths[i % len(lengths)], 4)
        assert torch.equal(plain(x), compiled(x))
    region = region_of(compiled)
    assert region.is_cut == is_cut
    if is_cut:
        assert len(region.captures) <= 3 and served(region) > 40
    else:
        assert len(region.captures) == len(lengths) and region.hits >= 18


class Counted(nn.Module):
    """Its branches depend on numbers that Python reads."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(6):
            x = torch.relu(self.layer(x)) - 0.1
            taken = int((x > 0.05).sum())
            if taken % 3 == 0:
                x = x + 0.3
        return x


def test_a_test_of_numbers_is_left_to_the_frame() -> None:
    plain, compiled = pair(Counted)
    for i in range(40):
        x = torch.randn(4, 8, generator=torch.Generator().manual_seed(i))
        assert torch.equal(plain(x), compiled(x))
    region = region_of(compiled)
    assert served(region) > 100
    parts = region.policy.fragments.regions  # type: ignore[union-attr]
    served_ones = [capture for part in parts for capture in part.captures if capture.hits > 20]
    assert served_ones and not any(capture.trace.decisions for capture in served_ones), "no decision ends a graph"


def test_what_can_not_be_captured_stays_between_stretches() -> None:
    plain, compiled = pair(Clocked)
    for i in range(30):
        x = torch.randn(4, 8, generator=torch.Generator().manual_seed(i))
        assert torch.equal(plain(x), compiled(x))
        assert len(compiled.times) == i + 1, "neither lost nor doubled"  # type: ignore[arg-type]
    assert served(region_of(compiled)) > 20


class Slow(Clocked):
    """What is between its stretches takes 0.25 s of ``NOW``, which the clock of seams shows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x)) * 2
        if len(self.times) % 2 == 0:
            x = torch.relu(x - 1) * 3
        self.times.append(time.perf_counter() + wait())
        return torch.relu(self.second(x)) - 1


NOW = [0.0]


def wait() -> float:
    NOW[0] += 0.25
    return 0.0


def test_a_seams_finding_says_what_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam_clock, "perf_counter", lambda: NOW[0])
    _, compiled = pair(Slow)
    for _ in range(30):
        compiled(torch.ones(4, 8))
    region = region_of(compiled)
    region.finish()
    (found,) = (one for one in region.findings.values() if one.code == "MP103")
    assert found.cost_ms == 250.0
    monkeypatch.setattr(type(region.policy.fragments), "pays", False)
    found.cost_ms = None
    region.finish()
    assert found.cost_ms is None, "it keeps the region in eager mode, and what that costs is not known"
    assert found.location.range.start.line == Slow.forward.__code__.co_firstlineno + 3


class Detector(nn.Module):
    """Its tensors are computed in statements that also leave the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head, self.times = nn.Linear(8, 8), nn.Linear(8, 3), []

    def scores(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.head(torch.relu(x)))

    def forward(self, x: torch.Tensor) -> tuple[list[float], float, Any]:
        x = torch.tanh(self.body(x)) * 2
        kept = []
        for row in self.scores(x).tolist():
            if row[0] > 0.5:
                kept.append(row[1])
        self.times.append((time.perf_counter(), torch.relu(self.body(x) - 1).sum(0)))
        largest = float((self.scores(x) * 2).amax())
        return kept, largest, self.scores(x + 1).numpy()


def test_what_a_statement_computes_before_it_leaves_the_graph_is_compiled() -> None:
    plain, compiled = pair(Detector)
    with torch.no_grad():
        for i in range(40):
            x = torch.randn(4, 8, generator=torch.Generator().manual_seed(i))
            (expected, largest, array), (found, n, other) = plain(x), compiled(x)
            assert expected == found and largest == n and (array == other).all()
            assert torch.equal(plain.times[-1][1], compiled.times[-1][1]) and len(compiled.times) == i + 1  # type: ignore[arg-type, index]
    parts = region_of(compiled).policy.fragments.regions  # type: ignore[union-attr]
    found = {part.name: {operator_name(node) for node in part.captures[0].nodes} for part in parts if part.hits > 10}
    lines, first = inspect.getsourcelines(Detector.forward)
    (append,) = (number for number, line in enumerate(lines) if ".append((" in line)
    name = f"Detector.forward:{first + append}:{lines[append].index('torch.relu') + 1}"
    expected = [{"tanh", "sigmoid"}, {"relu", "sum"}, {"amax"}, {"add", "sigmoid"}]
    assert len(found) == 4 and all(some <= names for some, names in zip(expected, found.values(), strict=True)), found
    assert list(found)[1] == name


class Rows(nn.Module):
    """The loop's body has no tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> list[float]:
        kept = []
        for row in torch.sigmoid(self.head(x)).mul(2).tolist():
            largest = max(row)
            if largest > 1:
                kept.append(largest + row[0])
        return kept


def test_statements_without_tensors_are_no_stretch_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    given = stretches._Receiver.__matmul__

    def counted(receiver: Any, function: Any) -> Any:
        calls[receiver._stretch.where] += 1
        return given(receiver, function)

    monkeypatch.setattr(stretches._Receiver, "__matmul__", counted)
    plain, compiled = pair(Rows)
    with torch.no_grad():
        for i in range(30):
            x = torch.randn(16, 8, generator=torch.Generator().manual_seed(i))
            assert plain(x) == compiled(x)
    assert served(region_of(compiled)) > 10
    assert max(calls.values()) <= 40, f"not for each row: {calls}"
    assert len(region_of(compiled).policy.fragments.regions) == 1  # type: ignore[union-attr]


def test_the_next_region_of_the_same_functions_is_cut_too() -> None:
    for _ in range(2):
        _, compiled = pair(Clocked)
        for _ in range(14):
            compiled(torch.ones(1, 8))
        assert served(region_of(compiled)) > 4


def test_functions_have_their_own_code_outside_of_the_region() -> None:
    code = Clocked.forward.__code__
    _, compiled = pair(Clocked)
    for _ in range(14):
        compiled(torch.ones(1, 8))
    assert served(region_of(compiled)) and Clocked.forward.__code__ is code


def helper(x: torch.Tensor) -> torch.Tensor:
    y = torch.tanh(x) * 2
    time.perf_counter()
    return torch.relu(y) + 1


def test_the_programs_own_torch_compile_sees_no_cut_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is called for the first time inside the region, for a function that is cut."""
    monkeypatch.setattr(stretches, "torch_has_compiled", lambda: False)  # other tests have compiled
    restored = []
    monkeypatch.setattr(stretches, "before_first_frame", restored.append)
    stretches._watch_dynamo.cache_clear()
    import torch._dynamo.convert_frame

    def target(x: torch.Tensor) -> Any:
        if restored:
            restored[0]()  # as before Dynamo's first frame
            assert helper.__code__ is code
        return helper(x)

    code = helper.__code__
    compiled = magpy_core.compile(target, backend="eager", wait=True)
    for i in range(16):
        assert torch.equal(compiled(torch.full((2,), float(i))), helper(torch.full((2,), float(i))))
    assert restored == [stretches.restore]
    stretches._watch_dynamo.cache_clear()


def test_where_the_program_has_used_torch_compile_nothing_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "torch_has_compiled", lambda: True)
    plain, compiled = pair(Clocked)
    for _ in range(14):
        assert torch.equal(plain(torch.ones(1, 8)), compiled(torch.ones(1, 8)))
    assert region_of(compiled).policy.fragments is None


def test_an_error_of_ours_leaves_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(stretches, "_cut_at", fails)
    plain, compiled = pair(Clocked)
    for _ in range(14):
        assert torch.equal(plain(torch.ones(1, 8)), compiled(torch.ones(1, 8)))
    assert "MP901" in {finding.code for finding in region_of(compiled).findings.values()}


def test_a_stretch_that_was_measured_to_be_slower_is_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RegionTimes, "is_slower", lambda times: True)
    _, compiled = pair(Clocked)
    for _ in range(60):
        compiled(torch.ones(1, 8))
    before = served(region_of(compiled))
    for _ in range(10):
        compiled(torch.ones(1, 8))
    assert served(region_of(compiled)) == before


@pytest.mark.parametrize("pays", [True, False])
def test_a_region_whose_stretches_do_not_pay_is_plain_python(pays: bool) -> None:
    def begin(trial: AlternatingCalls, now: float, state: Any) -> bool:
        trial.compared.pays = pays if state is not None and state[0] >= 2 else None
        trial.compared.eager, trial.compared.compiled = [0.001], [0.002]
        return True

    with mock.patch.object(AlternatingCalls, "begin", begin):
        plain, compiled = pair(Clocked)
        for _ in range(14):
            assert torch.equal(plain(torch.ones(1, 8)), compiled(torch.ones(1, 8)))
        region = region_of(compiled)
        before = served(region)
        for _ in range(4):
            assert torch.equal(plain(torch.ones(1, 8)), compiled(torch.ones(1, 8)))
        assert (served(region) > before) is pays
    messages = [finding.message for finding in region.findings.values() if finding.code == "MP401"]
    assert messages == ([] if pays else [f"{region.name}, cut into stretches, is 2x slower than eager mode "
                                         "(2 ms instead of 1 ms). MagPy runs it in eager mode again."])  # fmt: skip


def test_a_trial_waits_until_no_stretch_takes_turns() -> None:
    """Half of the calls are plain meanwhile, after a check of guards."""
    seen: list[tuple[Any, bool]] = []

    def begin(trial: AlternatingCalls, now: float, state: Any) -> bool:
        seen.append((state, any(part.takes_turns for part in region_of(compiled).policy.fragments.regions)))  # type: ignore[union-attr]
        return True

    with mock.patch.object(AlternatingCalls, "begin", begin):
        _, compiled = pair(Clocked)
        for _ in range(60):
            compiled(torch.ones(1, 8))
    turning = [state for state, takes_turns in seen if takes_turns]
    assert 20 < len(turning) < 30 and len(set(turning)) == len(turning), "each is new"
    assert len({state for state, _ in seen[-20:]}) == 1


class Recursive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin, self.times = nn.Linear(8, 8), []

    def forward(self, x: torch.Tensor, depth: int = 3) -> torch.Tensor:
        y = torch.relu(self.lin(x)) * 2
        self.times.append(time.perf_counter())
        return self(y, depth - 1) + 1 if depth else y


def test_calls_inside_of_a_call_that_is_on_trial_are_a_part_of_it() -> None:
    begun = []

    def begin(trial: AlternatingCalls, now: float, state: Any) -> bool:
        begun.append(now)
        return len(begun) % 2 == 0

    with mock.patch.object(AlternatingCalls, "begin", begin):
        plain, compiled = pair(Recursive)
        for _ in range(14):
            assert torch.equal(plain(torch.ones(1, 8)), compiled(torch.ones(1, 8)))
        region = region_of(compiled)
        before, calls = len(begun), region.calls
        compiled(torch.ones(1, 8))
    assert isinstance(region.policy.fragments, stretches.Stretches)
    assert len(begun) == before + 1 and region.calls == calls + 4


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Policy, "_cut"),
        (AlternatingCalls, "begin"),
        (AlternatingCalls, "returned"),
        (trials, "_state"),
        (trials, "has_history"),
        (stretches, "slower_on_trial"),
    ],
)
def test_an_error_of_ours_in_a_trial_leaves_plain_python(owner: Any, name: str) -> None:
    """Calls that raise are among them: what the program sees is its own exception."""

    def begin(trial: AlternatingCalls, now: float, state: Any) -> bool:
        trial.compared.pays = None if name in ("returned", "has_history") else False
        trial.compared.eager, trial.compared.compiled = [0.001], [0.002]
        return True

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("ours")

    with mock.patch.object(AlternatingCalls, "begin", begin), mock.patch.object(owner, name, fails):
        plain, compiled = pair(Clocked)
        for i in range(14):
            x = torch.ones(1, 7 if i in (9, 12) else 8)
            if x.shape[1] == 8:
                assert torch.equal(plain(x), compiled(x))
                continue
            raised = []
            for module in (plain, compiled):
                with pytest.raises(RuntimeError) as info:
                    module(x)
                raised.append((str(info.value), info.value.__context__))
            assert raised[0] == raised[1] and "ours" not in raised[0][0]
        assert len(compiled.times) == len(plain.times)
        assert "MP901" in {finding.code for finding in region_of(compiled).findings.values()}
