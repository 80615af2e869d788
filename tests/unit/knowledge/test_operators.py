"""What is known of operators is written once, and every stage that needs a fact takes it from there."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.backends.lowering import _READS, needs_lowering
from magpy_core.knowledge import operators
from magpy_core.knowledge.operators import OPERATORS, Fact, named
from magpy_core.opgraph import raising, scalars
from magpy_core.opgraph.functions import reads_value
from magpy_core.opgraph.scalars import ScalarTable
from magpy_core.recording.callees import number_read_from
from magpy_core.refgraph.source_table import SourceTable
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import code_of

ENGINE = Path(magpy_core.__file__).parent
STAGES = ("opgraph", "recording/callees.py", "recording/operator_host.py", "regions", "capture", "backends")
#: How a backend rewrites operators with numbers, by their spellings without underscores.
REWRITES = {"backends/scalar_ops.py", "backends/checks.py", "backends/cuda_graphs/numbers.py"}


def tables(path: Path) -> Iterator[set[str]]:
    """The names in each set, tuple and list that a module defines; a mapping to functions is a rule, not a fact."""
    for statement in ast.parse(path.read_text()).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            for node in ast.walk(statement.value):
                if isinstance(node, ast.Set | ast.Tuple | ast.List):
                    yield {n.value for n in node.elts if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def test_no_stage_has_a_table_of_its_own() -> None:
    found = []
    for stage in STAGES:
        root = ENGINE / stage
        for path in [root] if root.is_file() else sorted(root.rglob("*.py")):
            name = path.relative_to(ENGINE).as_posix()
            known = [names & OPERATORS.keys() for names in tables(path)] if name not in REWRITES else []
            # settings of torch (``get_device``) are told by parts of names, which operators have too
            found += [(name, sorted(names)) for names in known if len(names) > 1 and "stack" not in names]
    assert not found


def test_a_second_entry_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "_ROWS", (("add", Fact.SAFE), ("mul add", Fact.EARLY)))
    with pytest.raises(ValueError, match="add has two entries"):
        operators._entries()


def test_every_fact_is_known_of_some_operator() -> None:
    assert all(named(fact) for fact in Fact)


# -- reads of a tensor's values --------------------------------------------------------------------------------------

READS: dict[str, Callable[[torch.Tensor], Any]] = {
    "item": lambda x: x.sum().item(),
    "__int__": lambda x: int(x.sum()),
    "__float__": lambda x: float(x.sum()),
    "__index__": lambda x: operator.index(x.long().sum()),
    "__complex__": lambda x: complex(x.sum()),
    "__bool__": lambda x: bool(x.sum() > 0),
    "is_nonzero": lambda x: torch.is_nonzero(x.sum()),
    "equal": lambda x: torch.equal(x, x + 1),
    "allclose": lambda x: torch.allclose(x, x + 1),
    "__contains__": lambda x: 7.0 in x,
}
X = torch.ones(3)


def test_each_host_read_has_a_program() -> None:
    assert named(Fact.HOST_READ) == READS.keys()


@pytest.mark.parametrize("name", READS)
def test_python_waits_for_every_host_read(name: str) -> None:
    """In the summary of a region and in its details alike, by whichever kind of node."""

    def program(x: torch.Tensor) -> tuple[Any, torch.Tensor]:
        value = READS[name](x)
        return (value, x * 2) if isinstance(value, int | float) else (str(value), x * 2)

    compiled = magpy_core.compile(program, backend="eager")
    for _ in range(3):
        assert torch.equal(compiled(X)[1], X * 2)
    if region_of(compiled).captures:
        assert [n for n in code_of(compiled).nodes if reads_value(n)]
        assert region_of(compiled).summary().host_reads == 1


def test_a_compiled_graph_reads_every_real_number_of_one_tensor() -> None:
    """No 0-d tensor stands for a complex number; what takes several tensors is not the number of one."""
    one = named(Fact.READS_ITEM | Fact.READS_FLOAT | Fact.READS_INT | Fact.READS_BOOL)
    assert (
        _READS.keys() - {float, int, bool} == one == {"item", "__float__", "__int__", "__index__", "__bool__", "is_nonzero"}
    )
    assert _READS["item"] is None and _READS["__index__"] is int and _READS["is_nonzero"] is bool


@pytest.mark.parametrize("name", ["__index__", "is_nonzero"])
def test_a_lowered_read_gives_what_eager_gives(name: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x.cos() * 2
        flag = torch.is_nonzero(y.long().sum()) if name == "is_nonzero" else operator.index(y.long().sum()) > 3
        return y + 1 if flag else y - 1

    compiled = magpy_core.compile(program, backend="aot_eager")
    for value in (1.0, 1.0, 0.0, 0.0, 3.0, 3.0):
        assert torch.equal(compiled(X * value), program(X * value))
    assert region_of(compiled).hits, [f.message for f in region_of(compiled).findings.values()]
    assert any(needs_lowering(s.module()) for c in region_of(compiled).captures for s in c.segments)


@pytest.mark.parametrize(("name", "given"), [
    ("item", True), ("tolist", True), ("__int__", True), ("__float__", True),
    ("__index__", False), ("__complex__", False), ("__bool__", False), ("numpy", False),
])  # fmt: skip
def test_which_reads_give_numbers_to_the_program_itself(name: str, given: bool) -> None:
    assert (number_read_from(getattr(torch.Tensor, name), (X,)) is X) is given


# -- bias correction of optimizers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("beta", "is_safe"), [(0.9, True), (1.0, False), (1.5, False), (0.0, False), (-0.5, False)])
def test_only_a_decay_makes_a_safe_divisor(beta: float, is_safe: bool) -> None:
    """``1 - 1.0 ** step`` is 0. Numbers that the host computes and those of the graph are judged alike."""
    table = ScalarTable()
    step = table.source(SourceTable().arg(0, "step"), 3)
    power = table.call(operator.pow, (beta, step), beta**3)
    divisor = table.call(operator.sub, (1, power), 1 - beta**3)
    assert scalars.is_bias_correction(operator.truediv, (0.1, divisor)) is is_safe
    assert scalars.may_raise_in_graph(operator.truediv, (0.1, divisor)) is not is_safe


@pytest.mark.parametrize(("beta", "is_safe"), [(0.9, True), (1.0, True), (1.5, False), (0.0, False)])
def test_a_power_of_at_most_one_can_not_overflow(beta: float, is_safe: bool) -> None:
    table = ScalarTable()
    step = table.source(SourceTable().arg(0, "step"), 3)
    assert scalars.is_bias_correction(operator.pow, (beta, step)) is is_safe
    graph = torch.fx.Graph()
    number = graph.call_method("item", (graph.placeholder("step"),))
    assert raising.can_raise(graph.call_function(operator.pow, (beta, number))) is not is_safe
