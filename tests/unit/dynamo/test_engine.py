"""The dynamo engine: each kind of finding at its exact place, from programs with a known break, recompile or skip."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from magpy_core._compat.torch import dynamo_watch
from magpy_core.backends import UnknownBackend
from magpy_core.findings import Finding, Severity
from magpy_core.products.dynamo.session import DynamoSession
from magpy_core.products.dynamo.wording import parse_break, read_reason, value_text
from magpy_core.runner.timeline import Timeline
from tests.unit.dynamo import programs

pytestmark = pytest.mark.torch_compile

FILE = Path(programs.__file__)
LINES = FILE.read_text(encoding="utf-8").splitlines()


def line(comment: str) -> int:
    """1-based, of the only line with this comment."""
    (found,) = [n for n, text in enumerate(LINES, 1) if text.partition("  # ")[2].partition("  #")[0] == comment]
    return found


@pytest.fixture
def session() -> Iterator[DynamoSession]:
    torch._dynamo.reset()
    made = DynamoSession(backend="eager")
    yield made
    made.finish()
    torch._dynamo.reset()


def region(session: DynamoSession, target: Any, name: str = "region") -> Any:
    code = getattr(target, "__code__", None)
    return session.region(name, kind="module", name=name, file=str(FILE), line=code.co_firstlineno, target=target)


def of(session: DynamoSession, code: str) -> list[Finding]:
    return [f for f in session.findings if f.code == code]


def places(findings: list[Finding]) -> set[tuple[int, str]]:
    """Line and the text in the finding's range."""
    return {(f.location.range.start.line + 1, span(f)) for f in findings}


def span(finding: Finding) -> str:
    start, end = finding.location.range.start, finding.location.range.end
    assert start.line == end.line and Path(finding.location.file) == FILE
    return LINES[start.line][start.character : end.character]


def test_graph_breaks_at_their_expressions(session: DynamoSession, capsys: pytest.CaptureFixture[str]) -> None:
    net = programs.Broken()
    call = region(session, torch.nn.Module.__call__)
    x = torch.ones(3, 4)
    expected = net(x)
    assert torch.equal(call(net, x), expected)
    found = of(session, "MPD101")
    # columns count characters, also behind an `ü`
    assert places(found) == {
        (line("branch"), "x.sum() > 0"),
        (line("print, item"), 'print("ü", end="")'),
        (line("print, item"), "x.sum().item()"),
    }
    (branch,) = [f for f in found if span(f) == "x.sum() > 0"]
    assert branch.message.startswith("torch.compile breaks the graph at `x.sum() > 0` (GB0170, Data-dependent branching): ")
    assert branch.hint.endswith("See https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html")
    assert branch.severity is Severity.WARNING and branch.location.function.endswith("forward")
    summary = call.summary()
    assert (summary.engine, summary.graph_breaks, summary.complete, summary.calls) == ("dynamo", 3, False, 1)
    assert summary.graphs >= 3 and summary.guards > 10 and summary.guard_ms > 0 and summary.compile_s > 0
    known = len(session.findings)
    call(net, x)
    assert len(session.findings) == known and call.summary().compiled_ms > 0


def test_recompiles_name_the_value(session: DynamoSession, capsys: pytest.CaptureFixture[str]) -> None:
    net = programs.Broken()
    call = region(session, torch.nn.Module.__call__)
    call(net, torch.ones(3, 4))
    assert not of(session, "MPD201")
    call(net, torch.ones(5, 4))
    (size,) = of(session, "MPD201")  # the functions behind the breaks are compiled again for the same reason
    assert size.message == (
        "`x.shape[0]` changed from 3 to 5, so torch.compile compiled `forward` again (version 2 of at most 8)."
    )
    assert size.location.range.start.line + 1 == line("definition") and "mark_dynamic(x, 0)" in size.hint
    assert size.severity is Severity.INFORMATION
    net.scale = 2
    call(net, torch.ones(5, 4))
    (number,) = [f for f in of(session, "MPD201") if f is not size]
    assert number.message.startswith("`self.scale` changed from 1 to 2, so torch.compile compiled ")
    assert (number.location.range.start.line + 1, span(number)) == (line("scale"), "self.scale")
    assert [(r.call, r.name, r.old, r.new) for r in call.summary().recompiles] == [
        (2, "x.shape[0]", "3", "5"),
        (3, "self.scale", "1", "2"),
    ]


def test_the_recompile_limit(session: DynamoSession) -> None:
    call = region(session, programs.lengths)
    for n in range(dynamo_watch.own_code_limit() + 2):
        assert call(torch.ones(2), "a" * n).sum() == 2 * n
    (changes,) = of(session, "MPD201")
    assert changes.count == dynamo_watch.own_code_limit()
    assert (changes.location.range.start.line + 1, changes.values[0].name) == (line("length"), "text")
    (limit,) = of(session, "MPD202")
    assert (
        limit.location.range.start.line + 1 == line("limit") and "GB0039" in limit.message and "`lengths`" in limit.message
    )


@pytest.mark.parametrize(
    ("target", "name", "hint"), [(programs.loop, "loop", "loop's body"), (programs.guarded, "try", "`try`")]
)
def test_skipped_functions(session: DynamoSession, target: Any, name: str, hint: str) -> None:
    x = torch.ones(2)
    assert torch.equal(region(session, target)(x), target(x))
    (skipped,) = of(session, "MPD301")
    assert skipped.location.range.start.line + 1 == line(name)
    assert f"line {line(name + ' break')}" in skipped.message and "GB0059" in skipped.message and hint in skipped.hint
    assert places(of(session, "MPD101")) == {(line(name + " break"), 'print("", end="")')}
    assert not region(session, target).summary().complete


def test_a_failing_backend_leaves_plain_python(monkeypatch: pytest.MonkeyPatch, session: DynamoSession) -> None:
    def fails(module: Any, inputs: Any) -> Any:
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(session, "backend", fails)
    assert torch.equal(region(session, programs.plain)(torch.ones(2)), torch.full((2,), 3.0))
    (failed,) = of(session, "MPD302")
    assert failed.location.range.start.line + 1 == line("plain") and "no such kernel" in failed.message


def test_torch_breaks_in_an_optimizer_are_notes_at_the_call(session: DynamoSession) -> None:
    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    call = region(session, torch.optim.SGD.step)
    call(optimizer)
    (note,) = of(session, "MPD102")
    assert note.severity is Severity.INFORMATION and Path(note.location.file) == Path(__file__)
    assert note.path[-1].file.endswith("optimizer.py") and call.summary().graph_breaks == 0


def test_a_whole_graph_has_no_findings(session: DynamoSession) -> None:
    call = region(session, programs.plain)
    call(torch.ones(2))
    summary = call.summary()
    assert (
        session.findings == [] and summary.complete and (summary.graphs, summary.captures, summary.graph_breaks) == (1, 1, 0)
    )


def test_the_timeline_tells_compiling_calls_from_others(session: DynamoSession) -> None:
    timeline, call = Timeline(), region(session, programs.plain)
    for _ in range(2):
        timeline.call(call, (torch.ones(2),), {})
    assert [c.how for c in timeline.calls()] == ["recorded", "replayed"]


def test_a_module_that_the_program_compiled_keeps_its_backend(session: DynamoSession) -> None:
    used = []

    def backend(module: Any, inputs: Any) -> Any:
        used.append(module)
        return module.forward

    call = region(session, torch.nn.Module.__call__)
    call(torch.compile(torch.nn.Linear(2, 2), backend=backend), torch.ones(1, 2))
    assert len(used) == 1 and call.summary().graphs == 1


def test_what_the_program_compiles_itself_is_told_too(session: DynamoSession) -> None:
    torch.compile(programs.loop, backend="eager")(torch.ones(2))
    assert {f.code for f in session.findings} == {"MPD101", "MPD301"} and {f.region for f in session.findings} == {None}


@pytest.mark.parametrize("broken", ["products.dynamo.explain.graph_break", "_compat.torch.dynamo_watch._spots"])
def test_a_mistake_of_ours_is_a_finding(session: DynamoSession, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    monkeypatch.setattr(f"magpy_core.{broken}", lambda *_: 1 / 0)
    x = torch.ones(2)
    assert torch.equal(region(session, programs.loop)(x), programs.loop(x))
    assert len(of(session, "MP901")) == 1


def test_guards_that_cannot_be_timed_change_nothing(session: DynamoSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamo_watch, "_check_time", lambda *_: 1 / 0)
    call = region(session, programs.plain)
    for _ in range(2):
        assert torch.equal(call(torch.ones(2)), torch.full((2,), 3.0))
    assert len(of(session, "MP901")) == 1 and not of(session, "MPD302")


def test_after_the_end_nobody_listens(session: DynamoSession) -> None:
    session.finish()
    assert not torch._dynamo.config.suppress_errors
    torch.compile(programs.loop, backend="eager")(torch.ones(2))
    assert session.findings == []


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(UnknownBackend, match=r"inductr.*Did you mean 'inductor'"):
        DynamoSession(backend="inductr")


@pytest.mark.parametrize(
    ("reason", "name", "old", "new"),
    [
        ("0/0: tensor 'x' dtype mismatch. expected Float, actual Double", "x.dtype", "Float", "Double"),
        ("1/2: tensor 'L['b']['x']' rank mismatch. expected 2, actual 3", "b['x'].dim()", "2", "3"),
        ("0/1: self._modules['a'].training == True  # if x:  # m.py:3 in f", "self.a.training", "True", ""),
        ("0/0: len(names) == 2  # for n in names:  # m.py:3 in f", "len(names) == 2", "", ""),
        ("0/0: ___check_obj_id(L['f'], 94)  # f(x)  # m.py:3 in g", "f", "the same object", ""),
        ("0/0: ___check_type_id(m, 94), type=<class '__main__.Net'>  # m(x)  # m.py:3 in g", "m", "of type Net", ""),
        ("0/0: GLOBAL_STATE changed: grad_mode ", "torch's grad mode", "", ""),
        ("0/0: ___stack0 == 2.5  # if x:  # m.py:3 in f", "value before the break", "2.5", "3.5"),
        ("0/0: L['groups'][0]['lr'] == 0.1  # if x:  # m.py:3 in f", "groups[0]['lr']", "0.1", "0.2"),
        ("0/1: tensor 'x' requires_grad mismatch. expected requires_grad=1", "x.requires_grad", "True", "False"),
    ],
)
def test_reasons_are_read(reason: str, name: str, old: str, new: str) -> None:
    change = read_reason(reason, {"___stack0": 3.5, "groups": [{"lr": 0.2}]})
    assert (change.name, change.old, change.new) == (name, old, new)


def test_values_are_read_without_running_code() -> None:
    class Tricky:
        def __init__(self) -> None:
            self.n = 3

        @property
        def p(self) -> int:
            raise AssertionError("run")

    assert value_text("t.n", {"t": Tricky()}) == "3"
    assert value_text("t.p", {"t": Tricky()}) == "" and value_text("u.n", {"t": 1}) == ""
    assert value_text("t[0]", {"t": Tricky()}) == "" and value_text("f()", {"f": Tricky}) == ""


def test_an_unknown_break_has_no_number() -> None:
    told = parse_break(
        "Something new", "Something new\n  Explanation: It can't.\n  Hint: Don't.\n\n  Developer debug context: "
    )
    assert (told.label, told.why, told.hint) == ("Something new", "It can't.", "Don't.")
