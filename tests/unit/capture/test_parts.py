"""The parts of a capture, each alone: made from a trace written by hand, without a recording."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.fx

from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core.backends import background
from magpy_core.backends.background import Compilation, Result
from magpy_core.backends.base import CompiledGraph
from magpy_core.backends.eager import EagerBackend
from magpy_core.backends.tuning import Tuning
from magpy_core.capture.build import Capture
from magpy_core.capture.code import CodeWriter
from magpy_core.capture.conditions import evaluator
from magpy_core.capture.graphs import CompiledGraphs, first_run, shape_check
from magpy_core.capture.outcome import MISS, CaptureFailed, NotReady, NotRun
from magpy_core.capture.settings import Settings
from magpy_core.capture.structure import Structure, decided_by
from magpy_core.capture.text import Lines
from magpy_core.capture.undo import restore_history, restore_input, restore_numbers, write_undo
from magpy_core.findings import Location, Position, Range
from magpy_core.guards.codegen import GuardWriter
from magpy_core.guards.explain import TensorFacts
from magpy_core.opgraph.functions import MAY_RAISE
from magpy_core.opgraph.scalars import Sym
from magpy_core.recording.ledger import Decision, Fresh
from magpy_core.recording.places import Places
from magpy_core.recording.trace import GraphInput, GuardedTensor, Live, TensorWrites, Trace
from magpy_core.refgraph.graph import RefGraph
from magpy_core.refgraph.source_table import SourceTable
from magpy_core.replay.ir import GraphValue, Plan

X = torch.tensor([1.0, 2.0])
SETTINGS = Settings("r", 1, (), "eager")
HERE = Location(__file__, Range(Position(0, 0), Position(0, 1)))


class ByHand:
    """A trace of ``y = x + 1; [branch on y.sum() > 0;] return y * 2``, and the nodes of its graph."""

    def __init__(self, **changes: Any) -> None:
        source = SourceTable().arg(0, "x")
        graph = torch.fx.Graph()
        self.x = graph.placeholder("x")
        self.x.meta["magpy_source"] = source
        self.y = graph.call_function(torch.add, (self.x, 1))
        self.sum = graph.call_method("sum", (self.y,))
        self.positive = graph.call_function(torch.gt, (self.sum, 0))
        self.read = graph.call_method("__bool__", (self.positive,))
        self.result = graph.call_function(torch.mul, (self.y, 2))
        facts = TensorFacts.of(X)
        plan = Plan(GraphValue(self.result), False, [], [self.result])
        trace = Trace(
            RefGraph(), graph, (GraphInput(self.x, source, facts, (), False, False),), (),
            (GuardedTensor(source, facts, frozenset(), storage_key(X), 0),), (), plan, Fresh(), (),
            TensorWrites((), (), frozenset(), False), {}, {}, Places(lambda: HERE), lambda: True, (),
        )  # fmt: skip
        self.trace = replace(trace, **changes)
        self.live = Live([X])

    def decision(self, **more: Any) -> Decision:
        return Decision(Sym("node", self.read, (), True), True, self.read, None, place=HERE, **more)

    def decided(self, **more: Any) -> ByHand:
        self.trace = replace(self.trace, decisions=(self.decision(**more),))
        return self

    def capture(self, settings: Settings = SETTINGS) -> Capture:
        return Capture(self.trace, self.live, settings)


# -- structure --------------------------------------------------------------------------------------------------------


def test_without_decisions_there_is_one_segment() -> None:
    made = ByHand()
    structure = Structure.of(made.trace)
    assert len(structure.segments) == 1 and not structure.may_undo
    assert structure.placeholders == (made.x,) and structure.segments[0].outputs == [made.result]


def test_a_decision_cuts_behind_its_node() -> None:
    made = ByHand().decided()
    structure = Structure.of(made.trace)
    assert [set(s.outputs) for s in structure.segments] == [{made.y, made.read}, {made.result}]
    assert structure.may_undo and decided_by(structure.cuts[0]) == [made.read]


def test_an_assertion_is_tested_after_the_graph() -> None:
    made = ByHand().decided(asserted=True)
    structure = Structure.of(made.trace)
    assert len(structure.segments) == 1 and len(structure.assertions) == 1 and structure.may_undo


@pytest.mark.parametrize("may_raise", [True, False])
def test_on_a_gpu_it_is_tested_before_an_operation_that_might_end_the_process(may_raise: bool) -> None:
    made = ByHand().decided(asserted=True)
    (given,) = made.trace.inputs
    on_gpu = replace(given, facts=replace(given.facts, device=torch.device("cuda")))
    if may_raise:
        made.result.meta[MAY_RAISE] = True
    structure = Structure.of(replace(made.trace, inputs=(on_gpu,)))
    assert len(structure.segments) == (2 if may_raise else 1) and bool(structure.assertions) is not may_raise


def test_a_compiled_graph_that_holds_its_writes_is_not_cut() -> None:
    made = ByHand().decided(held=True)
    assert len(Structure.of(made.trace).segments) == 2
    structure = Structure.of(made.trace, compiled=True)
    assert structure.holds_writes and structure.may_undo and not structure.cuts
    (segment,) = structure.segments
    assert [expectation.reads for expectation in segment.expected] == [[made.read]]
    other = replace(made.decision(), site=None)
    made.trace = replace(made.trace, decisions=(*made.trace.decisions, other))  # another one, which it can't hold
    assert len(Structure.of(made.trace, compiled=True).segments) == 3


def test_a_condition_runs_ahead_of_the_graph() -> None:
    made = ByHand()
    made.decided(condition=(made.y, made.sum, made.positive, made.read))
    structure = Structure.of(made.trace)
    assert len(structure.segments) == 1 and len(structure.conditions) == 1
    assert structure.ahead == {made.sum, made.positive, made.read}, "the graph needs y itself"
    inputs, evaluate = evaluator(structure.conditions[0].condition or (), [made.read])
    assert inputs == [made.x] and evaluate(X) == (True,) and evaluate(-3 * X) == (False,) and evaluate("no tensor") is None


# -- text and code ----------------------------------------------------------------------------------------------------


def functions_of(draws: bool) -> dict[str, Any]:
    lines = Lines(["v0 = args[0]", "if v0 < 0: return MISS"], ["v0"], [], ["n = v0 + 1"], ["return n"], draws)
    rewound: list[Any] = []
    names: dict[str, Any] = {
        "MISS": MISS, "NotRun": NotRun, "CaptureFailed": CaptureFailed,
        "rewind_streams": rewound.append, "back": rewound,
    }  # fmt: skip
    exec(lines.functions(), names)
    return names


@pytest.mark.parametrize("draws", [False, True])
def test_the_functions_of_a_text(draws: bool) -> None:
    names = functions_of(draws)
    assert names["run"]((1,), {}) == 2 and names["gather"]((1,), {}) == (1,) and names["matches"]((1,), {})
    assert names["run"]((-1,), {}) is MISS and names["run"]((), {}) is MISS and not names["matches"](("a",), {})
    assert len(names["back"]) == (5 if draws else 0), "after each gather, and each run that does not fit"


def test_the_fast_functions_leave_what_they_cant_decide() -> None:
    lines = Lines(["v0 = args[0]", "if v0 == 9: return CHANGED"], ["v0"], [], [], ["return v0"], False)
    seen: list[str] = []
    names: dict[str, Any] = {
        "MISS": MISS, "CHANGED": "changed", "changed": lambda args, kwargs: seen.append("run"),
        "matches_full": lambda args, kwargs: seen.append("matches"),
    }  # fmt: skip
    exec(lines.fast_functions(), names)
    assert names["run"]((1,), {}) == 1 and names["matches"]((1,), {}) and not seen
    names["run"]((9,), {})
    names["matches"]((9,), {})
    assert seen == ["run", "matches"]


def test_the_code_of_a_trace() -> None:
    made = ByHand().decided()
    code = CodeWriter(made.trace, Structure.of(made.trace), SETTINGS)
    assert code.lines.guard[:2] == ["if kwargs or len(args) != 1: return MISS", "if not global_state(): return MISS"]
    assert code.lines.gather == ["return (v0,)"] and not code.lines.shapes and code.checks == 1
    assert code.lines.replay == ["return g1_0"] and any("not same(" in line for line in code.lines.graph)
    assert code.names["NotRun"] is NotRun and "graph0" not in code.names
    shape = CodeWriter(made.trace, Structure.of(made.trace), replace(SETTINGS, kwarg_names=("k",))).lines.guard[0]
    assert shape == "if len(args) != 1 or tuple(kwargs) != C0: return MISS"


# -- undo -------------------------------------------------------------------------------------------------------------


def test_nothing_is_saved_where_nothing_is_changed() -> None:
    w, made = GuardWriter(), ByHand()
    undo = write_undo(w, made.trace, {made.x: "v0"}, may_undo=True, holds_writes=False, compiled=False)
    assert (undo.statements, w.lines, undo.kept) == ("", [], frozenset())


def test_a_changed_input_is_saved_or_kept_for_the_first_run() -> None:
    w, made = GuardWriter(), ByHand()
    (given,) = made.trace.inputs
    trace = replace(made.trace, inputs=(replace(given, writes=(given.node,), shares_mutated=True, new_history=True),))
    held = write_undo(w, trace, {made.x: "v0"}, may_undo=True, holds_writes=True, compiled=True)
    assert "restore_input" not in held.statements and not held.is_complete
    w.lines = []
    undo = write_undo(w, trace, {made.x: "v0"}, may_undo=True, holds_writes=False, compiled=True)
    saved, w.lines = w.lines, []
    assert saved == ["required_v0 = v0.requires_grad", "saved_v0 = v0.detach().clone()"] and not undo.kept
    assert undo.statements == "restore_history(v0, required_v0); restore_input(v0, saved_v0); "
    made.trace.graph.erase_node(made.read)  # the only operation that may raise
    undo = write_undo(w, trace, {made.x: "v0"}, may_undo=False, holds_writes=False, compiled=True)
    assert (undo.statements, w.lines, undo.kept) == ("", [], {made.x})
    assert not write_undo(w, trace, {made.x: "v0"}, may_undo=False, holds_writes=False, compiled=False).kept


def test_single_numbers_are_saved_together() -> None:
    """An optimizer has a step count for each parameter."""
    w, made = GuardWriter(), ByHand()
    (given,) = made.trace.inputs
    counts = [made.trace.graph.placeholder(f"count{i}") for i in range(3)]
    dtypes = [torch.float32, torch.float32, torch.int64]
    inputs = [
        replace(given, node=node, writes=(node,), facts=replace(given.facts, shape=(), stride=(), dtype=dtype))
        for node, dtype in zip(counts, dtypes, strict=True)
    ]
    trace = replace(made.trace, inputs=tuple(inputs))
    names = {node: f"v{i}" for i, node in enumerate(counts)}
    undo = write_undo(w, trace, names, may_undo=True, holds_writes=False, compiled=True)
    assert w.lines == ["numbers0 = stack((v0, v1,))", "numbers1 = stack((v2,))"]
    assert undo.statements == "restore_numbers((v0, v1,), numbers0); restore_numbers((v2,), numbers1); "
    values = torch.tensor(1.0), torch.tensor(2.0)
    backup, versions = torch.stack(values), [value._version for value in values]
    for value in values:
        value.data.fill_(9.0)
    restore_numbers(values, backup)
    assert [value.item() for value in values] == [1.0, 2.0] and [value._version for value in values] == versions


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(4.0),
        lambda: torch.zeros(1, 3).expand(2, 3),
        lambda: torch.arange(5.0).as_strided((3, 3), (1, 1)),
    ],
    ids=["plain", "expanded", "overlapping"],
)
def test_an_input_gets_its_contents_and_version_back(make: Any) -> None:
    tensor = make()
    backup, version = tensor.clone(), tensor._version
    tensor.data.select(-1, 0).select(0, 0).fill_(7.0) if tensor.dim() > 1 else tensor.data.fill_(7.0)
    restore_input(tensor, backup)
    assert torch.equal(tensor, backup) and tensor._version == version


def test_an_input_becomes_a_leaf_again() -> None:
    tensor = torch.ones(2)
    tensor.mul_(torch.ones(2, requires_grad=True))
    restore_history(tensor, False)
    assert tensor.is_leaf and not tensor.requires_grad


def test_a_first_run_that_raises_leaves_its_inputs_alone() -> None:
    tensor = torch.zeros(2)

    def graph(inputs: list[torch.Tensor]) -> None:
        inputs[0].add_(1)
        raise ValueError("late")

    with pytest.raises(CaptureFailed, match=r"first run \(ValueError: late\)") as caught:
        first_run(graph, [tensor], [tensor])
    assert caught.value.code == "MP902" and torch.equal(tensor, torch.zeros(2))


# -- graphs and examples ----------------------------------------------------------------------------------------------


def graphs_of(made: ByHand) -> tuple[CompiledGraphs, dict[str, Any]]:
    names: dict[str, Any] = {}
    return CompiledGraphs(made.trace, Structure.of(made.trace), SETTINGS, names, frozenset()), names


def test_a_graph_is_compiled_at_its_first_call_only(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs, names = graphs_of(ByHand())
    stub = names["graph0"]
    assert graphs.compile_seconds is None and not graphs.is_ready
    assert torch.equal(names["graph0"]([X])[0], (X + 1) * 2)
    monkeypatch.setattr(EagerBackend, "compile", None)
    assert names["graph0"] is not stub and graphs.is_ready and len(graphs.generated_code) == 1
    assert torch.equal(stub([X])[0], (X + 1) * 2), "another thread may still hold the stub"
    assert graphs.compile_seconds and torch.equal(graphs.bare_callable(X)[0], (X + 1) * 2)


def test_a_backend_that_fails_is_a_failed_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("no compiler today")

    monkeypatch.setattr(EagerBackend, "compile", broken)
    graphs, names = graphs_of(ByHand())
    with pytest.raises(CaptureFailed, match="no compiler today"):
        names["graph0"]([X])
    assert not graphs.is_ready


class Staged:
    """A backend and a queue for it: what is compiled with each tuning, and for which modes that has ended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ended: dict[str, Result] = {}
        self.compiled: list[str] = []
        self.fails_in_use = False
        monkeypatch.setattr(background, "QUEUE", self)
        monkeypatch.setattr(EagerBackend, "compile", self.compile)

    def compile(self, gm: Any, fakes: Any, *, tuning: Tuning, **more: Any) -> CompiledGraph:
        self.compiled.append(tuning.mode)
        return CompiledGraph(lambda *inputs: self.use(tuning.mode, gm, inputs))

    def use(self, mode: str, gm: Any, inputs: Any) -> Any:
        if mode == "max" and self.fails_in_use:
            inputs[0].zero_()
            raise RuntimeError("not on this machine")
        return (mode, *gm(*inputs))

    def add(self, size: int = 1, calls: int = 0, *, improves: bool = False, learns: bool = False) -> Compilation:
        return Compilation()

    def poll(self, one: Compilation, work: Any) -> bool:
        given = list(self.compiled)
        work()
        mode, self.compiled = self.compiled[-1], given
        if mode in self.ended:
            one._result = self.ended[mode]
        return mode in self.ended


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> Staged:
    return Staged(monkeypatch)


def staged_graphs() -> tuple[CompiledGraphs, Any]:
    made = ByHand()
    structure, names = Structure.of(made.trace), dict[str, Any]()
    settings = replace(SETTINGS, background=True, tuning=Tuning("max"))
    graphs = CompiledGraphs(made.trace, structure, settings, names, frozenset(structure.segments[0].inputs))

    copied: dict[str, Any] = {}  # as the fast guard does

    def modes(calls: int) -> list[str]:
        found = []
        for n in range(calls):
            mode, result = (names if n % 2 else copied or names)["graph0"]([X])
            if not copied:
                copied.update(names)
            assert torch.equal(result, (X + 1) * 2)
            found.append(mode)
        return list(dict.fromkeys(found))

    return graphs, modes


def test_quicker_code_serves_until_better_code_is_there(staged: Staged) -> None:
    graphs, modes = staged_graphs()
    with pytest.raises(NotReady):
        modes(1)
    staged.ended["default"] = Result(1.0)
    assert modes(100) == ["default"] and (graphs.stage, graphs.last_stage) == (1, 2)
    assert graphs.is_ready and not graphs.is_compiling and graphs.progress == "waiting"
    staged.ended["max"] = Result(4.0)
    assert modes(40) == ["default", "max"] and staged.compiled == ["default", "max"]
    assert graphs.stage == 2 and graphs.background_seconds == 5.0 and graphs.progress == "ready"


def test_code_of_a_path_in_doubt_waits_and_better_code_does_not(staged: Staged) -> None:
    graphs, modes = staged_graphs()
    graphs.awaited.may_load = False
    staged.ended["default"] = Result(1.0)
    with pytest.raises(NotReady):
        modes(1)
    assert graphs.awaited.has_arrived and staged.compiled == []
    graphs.awaited.may_load = True
    assert modes(1) == ["default"]
    graphs.awaited.may_load = False  # as where that code was stored by another process, and not asked about
    staged.ended["max"] = Result(4.0)
    assert modes(100) == ["default", "max"]


@pytest.mark.parametrize("how", ["refused", "fails in use"])
def test_quicker_code_stays_where_better_code_is_not_to_be_had(staged: Staged, how: str) -> None:
    graphs, modes = staged_graphs()
    staged.fails_in_use = how == "fails in use"
    staged.ended = {"default": Result(1.0), "max": Result(4.0, "MP902" if how == "refused" else "", "too large")}
    assert modes(100) == ["default"] and graphs.stage == 2
    assert staged.compiled == (["default"] if how == "refused" else ["default", "max"])


def test_shape_checks_take_their_inputs_by_position() -> None:
    check = shape_check([(["L[0] > 1", "L[1] == 2"], [2, 0])])
    assert check((2, None, 5)) and not check((2, None, 1)) and not check((3, None, 5))


# -- tests of entries in a guard -------------------------------------------------------------------------------------


def test_dicts_with_the_same_tests_share_a_loop() -> None:
    writer = GuardWriter()
    for name in ("d0", "d1", "d2"):
        writer.entry(name, "'b' in d" if name != "d2" else "'c' in d")
    writer.write([])
    loops = ["for d in (d0, d1,):", "    if 'b' in d: return MISS", "for d in (d2,):", "    if 'c' in d: return MISS"]
    assert writer.lines == loops


# -- all together -----------------------------------------------------------------------------------------------------


def test_a_capture_of_a_trace_written_by_hand() -> None:
    capture = ByHand().capture()
    assert capture.is_complete and not capture.is_compiled and capture.title == "magpy capture of r"
    for _ in range(3):
        assert torch.equal(capture.run((X,), {}), (X + 1) * 2)
    assert capture.run((X, X), {}) is MISS and capture.run((torch.ones(3),), {}) is MISS and not capture.matches(("x",), {})
    assert capture.is_ready and torch.equal(capture.operator_graph(X)[0], (X + 1) * 2)
    assert torch.equal(capture.bare_callable(*capture.gather_inputs((X,), {}))[0], (X + 1) * 2)
    assert len(capture.guards) == 1 and "# replay" in capture.print_readable()


@pytest.mark.parametrize("how", ["cut", "assertion", "condition"])
def test_a_decision_that_goes_the_other_way_is_a_miss(how: str) -> None:
    made = ByHand()
    condition = (made.y, made.sum, made.positive, made.read) if how == "condition" else None
    capture = made.decided(asserted=how == "assertion", condition=condition).capture()
    assert len(capture.segments) == (2 if how == "cut" else 1)
    assert torch.equal(capture.run((X,), {}), (X + 1) * 2) and capture.run((-3 * X,), {}) is MISS
    if how == "cut":
        assert capture.cut_at(0) == HERE


def test_a_graph_that_raises_is_rerun_as_plain_python() -> None:
    made = ByHand()
    made.y.target = torch.linalg.inv
    made.y.args = (made.x,)
    assert made.capture().run((X,), {}) is NotRun.RAISED
