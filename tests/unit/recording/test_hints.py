"""What a finding says to do is possible: the hint names the edit, and the program with it has no finding any more."""

from __future__ import annotations

import ast
import csv
import re
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.findings import Finding, Severity
from magpy_core.knowledge import policy
from magpy_core.regions.session import Session

LAYERS = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), 1, enable_nested_tensor=False
).eval()
NUMBER = 5.0
LINEAR = nn.Linear(4, 4)
MASK = torch.triu(torch.full((3, 3), float("-inf")), 1)


def _warnings(target: Callable[[torch.Tensor], torch.Tensor]) -> tuple[list[Finding], torch.Tensor]:
    session = Session(mode="observe", backend="eager")
    region = session.region(1, kind="function", name="r", file=__file__, line=1, target=target)
    for _ in range(3):
        result = region(torch.linspace(0, 1, 12).reshape(3, 4).clone())
    return [finding for finding in session.findings if finding.severity is Severity.WARNING], result


def _layers(x: torch.Tensor) -> torch.Tensor:
    return LAYERS(x[None], mask=MASK)  # type: ignore[no-any-return]


def _layers_told(x: torch.Tensor) -> torch.Tensor:
    return LAYERS(x[None], mask=MASK, is_causal=True)  # type: ignore[no-any-return]


def _grad(x: torch.Tensor) -> torch.Tensor:
    x.requires_grad_(True)
    return torch.autograd.grad((x * x).sum(), x)[0]


def _grad_of_copy(x: torch.Tensor) -> torch.Tensor:
    x = x.detach().requires_grad_()
    return torch.autograd.grad((x * x).sum(), x)[0]


def _identical(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if float(x.shape[0]) is NUMBER else x


def _equal(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if float(x.shape[0]) == NUMBER else x


def _stops(x: torch.Tensor) -> torch.Tensor:
    y = LINEAR(x).detach()
    if y.sum() < 0:
        y = y - 1
    return y


def _where(x: torch.Tensor) -> torch.Tensor:
    y = LINEAR(x).detach()
    return torch.where(y.sum() < 0, y - 1, y)


def _fills(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(x.t()).masked_fill_(x.t() > 0.5, 1.0)


def _fills_contiguous(x: torch.Tensor) -> torch.Tensor:
    mask = x.t().contiguous()
    return torch.zeros_like(mask).masked_fill_(mask > 0.5, 1.0)


def _of_deque(x: torch.Tensor) -> torch.Tensor:
    return x * torch.tensor(deque([1.0, 2.0, 3.0, 4.0]))


def _of_list(x: torch.Tensor) -> torch.Tensor:
    return x * torch.tensor(list(deque([1.0, 2.0, 3.0, 4.0])))


class Rows(nn.Module):
    def __init__(self, *, as_list: bool) -> None:
        super().__init__()
        self.as_list, self.rows = as_list, None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.rows = [row * 2 for row in x] if self.as_list else (row * 2 for row in x)  # type: ignore[assignment]
        return x + 1


def _named(x: torch.Tensor) -> torch.Tensor:
    return x * len([name for name in dir(LAYERS) if name == "layers"])


def _asked(x: torch.Tensor) -> torch.Tensor:
    return x * len([name for name in ("layers",) if hasattr(LAYERS, name)])


@pytest.mark.parametrize(
    ("found", "code", "hint", "mended"),
    [
        (_of_deque, "MP106", "`list(values)`", _of_list),
        (Rows(as_list=False), "MP110", "`[f(x) for x in values]`", Rows(as_list=True)),
        (_named, "MP111", "`getattr(settings, name)`", _asked),
        (_fills, "MP916", "`mask = mask.contiguous()`", _fills_contiguous),
        (_layers, "MP101", "`is_causal=True`", _layers_told),
        (_grad, "MP118", "`x.detach().requires_grad_()`", _grad_of_copy),
        (_identical, "MP103", "with `==`", _equal),
        (_stops, "MP101", "`torch.where(condition, a, b)`", _where),
    ],
)
def test_the_edit_ends_the_finding(
    found: Callable[[torch.Tensor], torch.Tensor], code: str, hint: str, mended: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    before, result = _warnings(found)
    assert [finding.code for finding in before] == [code]
    assert hint in before[0].hint
    after, same = _warnings(mended)
    assert after == [] and torch.equal(result, same)


def test_calls_of_the_outside_world_move_to_the_call_of_the_region() -> None:
    (clock,) = _warnings(lambda x: (x + 1) * time.perf_counter())[0]
    (identity,) = _warnings(lambda x: x * len(str(uuid.uuid4())))[0]
    called = "test_hints.py:"
    assert clock.hint.startswith(f"Read the clock outside the region: before and after {called}")
    assert identity.hint.startswith(f"Move the call before or after {called}") and "pass it in" in identity.hint


@pytest.mark.parametrize("is_after", [False, True])
def test_data_of_a_parameter_is_a_fact_after_the_backward_pass(is_after: bool) -> None:
    layer = nn.Linear(4, 1)

    def step(x: torch.Tensor) -> torch.Tensor:
        loss = layer(x).sum()
        if is_after:
            loss.backward()
        norm = layer.weight.data.norm()
        return loss.detach() + norm

    session = Session(mode="observe", backend="eager")
    region = session.region(1, kind="function", name="r", file=__file__, line=1, target=step)
    region(torch.ones(2, 4))
    (found,) = [finding for finding in session.findings if finding.code == "MP308"]
    assert found.is_actionable is not is_after and "under `torch.no_grad()`, without `.data`" in found.hint


def test_a_native_function_is_declared_by_the_line_that_the_hint_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    def target(x: torch.Tensor) -> torch.Tensor:
        return x * csv.field_size_limit()

    ((unknown,), _) = _warnings(target)
    assert unknown.code == "MP104"
    (name,) = re.findall(r'`"([\w.]+)" = "pure"`', unknown.hint)
    monkeypatch.setattr(policy, "_extra", {})
    policy.extend({name: "pure"})
    assert _warnings(target)[0] == []


def test_a_branch_in_a_library_cannot_be_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("magpy_core._compat.torch.value_tests._AVOIDED_BY", {})
    ((found,), _) = _warnings(_layers)
    assert found.hint.startswith("The test is in a library") and "torch.where" not in found.hint


#: Their pages can only be general.
_GENERAL = {"MP106", "MP110", "MP111", "MP116", "MP117", "MP118", "MP119", "MP120"}


def _without_hint(folder: Path) -> Iterator[str]:
    """The places that refuse with one of the codes whose page can only be general, and say nothing of their own to do."""
    at_most = {"abort": 3, "MadeInside": 2, "Unsupported": 2, "refuse": 2, "refuse_call": 2}  # arguments, without a hint
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            codes = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            general = name == "abort" or not _GENERAL.isdisjoint(codes)
            if name in at_most and general and len(node.args) <= at_most[name]:
                if not any(keyword.arg == "hint" for keyword in node.keywords):
                    yield f"{path.name}:{node.lineno}"


def test_each_refusal_says_what_to_do_instead(tmp_path: Path) -> None:
    assert list(_without_hint(Path(magpy_core.__file__).parent)) == []
    (tmp_path / "rules.py").write_text('journal.refuse("MP111", text, site=site)\njournal.abort(text, site)\n')
    assert list(_without_hint(tmp_path)) == ["rules.py:1", "rules.py:2"]
