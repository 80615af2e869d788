"""The smallest part of a graph that differs, and the file that shows it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import fx

from magpy_core._compat.torch.inductor_extensions import hoist
from magpy_core.verification import bisect as bisection
from magpy_core.verification import reproducer
from magpy_core.verification.reproducer import write
from magpy_core.verification.smallest import Part, explained, smallest_part
from tests.unit.verification.test_difference import traced

aten = torch.ops.aten


def with_bug(*targets: Any) -> Callable[[fx.GraphModule, Sequence[Any]], Callable[[list[Any]], Any]]:
    """A compiler that gives twice the result of these operations."""

    class Doubles(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            result = super().run_node(n)
            return result * 2 if n.target in targets else result

    return lambda gm, inputs: lambda given: Doubles(gm).run(*given)


def mixed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (torch.sigmoid(x @ w) + x.sum(0)).exp().tanh() * 3


@pytest.mark.parametrize("target", [aten.mm.default, aten.sigmoid.default, aten.exp.default, aten.sum.dim_IntList])
def test_one_operation_is_found(target: Any) -> None:
    inputs = (torch.randn(4, 4), torch.randn(4, 4))
    part = smallest_part(traced(mixed), inputs, with_bug(target))
    assert part is not None and part.operations == [str(target)] and part.of >= 7
    assert part.written == () and len(part.inputs) == (2 if target is aten.mm.default else 1)


def test_an_operation_of_the_backward_pass_is_found() -> None:
    inputs = (torch.randn(4, 4), torch.randn(4, 4, requires_grad=True))
    part = smallest_part(traced(mixed), inputs, with_bug(aten.sigmoid_backward.default))
    assert part is not None and part.operations == [str(aten.sigmoid_backward.default)]
    assert inputs[1].grad is None and inputs[1].grad_fn is None


def test_operations_that_differ_only_together_are_found_together() -> None:
    def compile_it(gm: fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        names = [str(node.target) for node in gm.graph.nodes]
        fused = "aten.exp.default" in names and "aten.tanh.default" in names
        return with_bug(aten.tanh.default if fused else None)(gm, inputs)

    part = smallest_part(traced(mixed), (torch.randn(4, 4), torch.randn(4, 4)), compile_it)
    assert part is not None and part.operations == ["aten.exp.default", "aten.tanh.default"]


def test_where_nothing_differs_there_is_no_part() -> None:
    inputs = (torch.randn(4, 4), torch.randn(4, 4))
    assert smallest_part(traced(mixed), inputs, with_bug()) is None

    def refuses(gm: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        raise RuntimeError("no code")

    assert smallest_part(traced(mixed), inputs, refuses) is None


def test_an_operation_that_only_the_recorded_graph_has_is_found() -> None:
    """As torch traces it here, it has other parts, which are compiled rightly."""
    inputs = (torch.randn(4, 4), torch.randn(4, 4, requires_grad=True))
    part = smallest_part(traced(lambda x, w: torch.exp(x @ w) + 1), inputs, with_bug(torch.exp))
    assert part is not None and part.operations == ["exp"] and part.of == 3
    assert inputs[1].grad is None and not part.inputs[0].requires_grad


def test_what_is_written_stays_as_it_is() -> None:
    def writes(x: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        total.add_(x.abs())
        return total.neg()

    total = torch.ones(3)
    part = smallest_part(traced(writes), (torch.randn(3), total), with_bug(aten.abs.default))
    assert part is not None and part.operations == ["aten.abs.default"] and torch.equal(total, torch.ones(3))


def test_a_number_that_is_read_is_a_constant() -> None:
    def reads(x: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        return torch.exp(x * step.item())

    part = smallest_part(traced(reads), (torch.randn(3), torch.tensor(2.0)), with_bug(aten.exp.default))
    assert part is not None and part.operations == ["aten.exp.default"]


def loses_history(*targets: Any) -> Callable[[fx.GraphModule, Sequence[Any]], Callable[[list[Any]], Any]]:
    """A compiler that detaches all results of a graph that has these operations, and returns that of the last."""

    def compile_it(gm: fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        lost = set(targets) <= {node.target for node in gm.graph.nodes if node.op == "call_method"}
        lost &= any(node.target == targets[-1] for node in gm.graph.output_node().args[0])  # type: ignore[union-attr]
        return lambda given: [one.detach() if lost else one for one in gm(*given)]

    return compile_it


def shared(x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, ...]:
    h = (x * scale).exp()
    return h[0], h[1], h.detach(), (h * 3).tanh()


def test_a_gradient_that_is_lost_is_located_in_the_recorded_graph() -> None:
    """No stretch of its ATen operations has a gradient that could be lost."""
    gm, inputs = traced(shared), (torch.randn(2, 3, requires_grad=True), torch.tensor(2.0))
    part = smallest_part(gm, inputs, loses_history("exp", "detach"))
    assert part is not None and part.operations == ["exp", "getitem", "detach"], part
    assert part.difference is not None and part.difference.what == "gradient of input 0"
    assert [value.requires_grad for value in part.inputs] == [True] and part.inputs[0].is_leaf
    assert inputs[0].grad is None and inputs[0].is_leaf
    assert smallest_part(gm, tuple(one.detach() for one in inputs), loses_history("exp", "detach")) is None


def test_results_that_the_difference_does_not_need_are_left_out() -> None:
    def compile_it(gm: fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        names = [str(node.target) for node in gm.graph.nodes]
        fused = "aten.exp.default" in names and "aten.tanh.default" in names
        return with_bug(aten.tanh.default if fused else None)(gm, inputs)

    def layers(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first = x.exp()
        other = x.cos()
        return first, other, first.tanh()

    sizes: list[int] = []
    part = smallest_part(traced(layers), (torch.randn(4),), compile_it, lambda one: sizes.append(len(one.operations)))
    assert part is not None and part.operations == ["aten.exp.default", "aten.tanh.default"] and sizes == [6, 3, 2]
    assert len(part.graph.graph.output_node().args[0]) == 1  # type: ignore[arg-type]


def test_writes_that_the_difference_does_not_need_are_left_out() -> None:
    """They are between the operations that differ together, and nothing takes what they give."""

    def compile_it(gm: fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        names = [str(node.target) for node in gm.graph.nodes]
        fused = "aten.exp.default" in names and "aten.tanh.default" in names
        return with_bug(aten.tanh.default if fused else None)(gm, inputs)

    def writes(x: torch.Tensor, total: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        first = x.exp()
        total.sub_(x.sum() * 0.5)
        other[1:].copy_(other[:-1].clone())
        return first.tanh()

    total = torch.ones(4)
    part = smallest_part(traced(writes), (torch.randn(4), total, torch.randn(5)), compile_it)
    assert part is not None and part.operations == ["aten.exp.default", "aten.tanh.default"] and len(part.inputs) == 1
    assert torch.equal(total, torch.ones(4))


def test_numbers_among_the_inputs_are_constants() -> None:
    """Also where the recorded graph is searched."""
    part = smallest_part(traced(lambda x, n: torch.exp(x * n)), (torch.randn(3), 2.0), with_bug(torch.exp))
    assert part is not None and part.operations == ["exp"]
    part = smallest_part(traced(lambda x, n: torch.add(x, n) * 3), (torch.randn(3), 2.0), with_bug(torch.add))
    assert part is not None and part.operations == ["add"] and len(part.inputs) == 1


def _part(function: Callable[..., Any], *inputs: Any) -> Part:
    part = smallest_part(traced(function), inputs, with_bug(aten.exp.default))
    assert part is not None
    return part


def test_what_rounding_explains_is_measured() -> None:
    part = _part(lambda x: x.exp().sum(), torch.randn(100))
    result, given = explained(part.graph, part.inputs)
    assert 0 < result < 1e-2 and 0 < given < 1e-2


@pytest.mark.parametrize("differs", [True, False], ids=["random", "data"])
def test_the_file_has_the_graph_and_what_it_takes(tmp_path: Path, differs: bool) -> None:
    part = _part(lambda x: x.exp() + 1, torch.randn(4, 3).t())
    first, second = (write(part, tmp_path / "new", lambda inputs: differs) for _ in range(2))
    assert (first.path.name, second.path.name) == ("difference-1.py", "difference-2.py")
    assert first.has_data is not differs and first.path.with_suffix(".pt").exists() is not differs
    text = first.path.read_text()
    assert "torch.ops.aten.exp.default" in text and "small as possible: 1 of" in text
    assert ("as_strided((3, 4), (1, 3))" in text) is differs
    compile(text, str(first.path), "exec")


@pytest.mark.parametrize("differs", [True, False], ids=["random", "data"])
def test_the_file_compares_gradients(tmp_path: Path, differs: bool) -> None:
    inputs = (torch.randn(2, 3, requires_grad=True), torch.tensor(2.0))
    part = smallest_part(traced(shared), inputs, loses_history("exp", "detach"))
    assert part is not None and len(explained(part.graph, part.inputs)) == 2 + 1 + 1
    text = write(part, tmp_path, lambda inputs: differs).path.read_text()
    assert "gradient of input 0" in text and (".requires_grad_()" in text) is differs
    path = tmp_path / "difference-1.py"
    for compiled, code in (("graph", 0), ("lambda x: [one.detach() for one in graph(x)]", 1)):
        path.write_text(text.replace("torch.compile(graph, fullgraph=True, dynamic=False, options=options)", compiled))
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300)
        assert done.returncode == code, done.stderr
    assert "gradient of input 0: none by compiled code" in done.stdout and reproducer._is_confirmed(path)


@pytest.mark.slow
def test_the_file_says_that_a_result_has_another_type(tmp_path: Path) -> None:
    written = write(_part(lambda x: x.exp() + 1, torch.randn(8)), tmp_path, lambda inputs: True)
    text = written.path.read_text()
    assert "torch.compile(graph, fullgraph=True, dynamic=False, options=options)" in text
    wrong = text.replace(
        "torch.compile(graph, fullgraph=True, dynamic=False, options=options)", "lambda x: [graph(x)[0].double()]"
    )
    written.path.write_text(wrong)
    assert reproducer._is_confirmed(written.path)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_the_file_says_whether_torch_alone_differs(tmp_path: Path, dtype: torch.dtype) -> None:
    part = _part(lambda x: x.exp() + 1, torch.randn(64, dtype=dtype))
    written = write(part, tmp_path, lambda inputs: True)
    assert not written.is_confirmed(), "torch is right"
    done = subprocess.run([sys.executable, str(written.path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "they do not differ" in done.stdout and "result 0: largest difference" in done.stdout
    wrong = written.path.read_text().replace(
        "compiled = run(torch.compile(graph", "compiled = run(lambda x: (x, )) or (run(graph"
    )
    written.path.write_text(wrong)
    assert reproducer._is_confirmed(written.path), wrong


def test_an_operator_of_magpy_is_not_blamed_on_inductor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    x = torch.randn(4)
    graph = fx.symbolic_trace(lambda x: hoist(x).exp())
    found = smallest_part(graph, (x,), with_bug(hoist))
    assert found is not None and found.operations == ["magpy.hoist.default"]
    monkeypatch.setattr(bisection, "smallest_part", lambda *given: found)
    monkeypatch.setattr(bisection, "_written", lambda part, folder: (None, "No file."))
    cause = bisection.bisect(found.graph, found.inputs, tmp_path)
    assert cause.fault == "MagPy" and "report it to MagPy" in cause.text and "Inductor" not in cause.text
