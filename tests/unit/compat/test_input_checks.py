"""Compiled code does not check again what the guard has checked."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core._compat.torch import input_checks

CHECK = "assert_size_stride"


def checks(module: nn.Module, *inputs: torch.Tensor, backward: bool = False) -> list[int]:
    """How many calls that check inputs each module that Inductor generated for ``module`` has; the last call compiles it."""
    compiled = magpy_core.compile(module, backend="inductor", wait=True)
    for _ in range(3):
        result = compiled(*inputs)
        if backward:
            result.sum().backward()
    (capture,) = magpy_core.captures(compiled)
    bodies = [text.split("def call(self, args):")[1:] for text in "".join(capture.generated_code).split("# AOT ID:")]
    return [sum(body.split("return (")[0].count(CHECK) for body in one) for one in bodies if one]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x) + y)


def test_what_the_guard_compares_is_not_checked() -> None:
    with torch.no_grad():
        assert checks(Net(), torch.randn(2, 4), torch.randn(2, 4)) == [0]


def test_a_backward_graph_checks_what_it_gets() -> None:
    forward, backward = checks(Net(), torch.randn(2, 4), torch.randn(2, 4), backward=True)
    assert forward == 0 and backward > 0


def test_inputs_that_share_memory_are_checked() -> None:
    x = torch.randn(2, 4)
    with torch.no_grad():
        (found,) = checks(Net(), x, x.view(2, 4))
    assert found > 0  # torch 2.15 checks several inputs in one call


@pytest.mark.usefixtures("empty_compiler_cache")
def test_without_the_method_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_checks, "_WRITES", "no_such_method")
    with torch.no_grad():
        (found,) = checks(Net(), torch.randn(2, 4), torch.randn(2, 4))
    assert found > 0


def test_other_strides_are_another_capture() -> None:
    with torch.no_grad():
        net = Net()
        compiled = magpy_core.compile(net, backend="inductor", wait=True)
        for x in [
            torch.randn(2, 4),
            torch.randn(2, 4),
            torch.randn(4, 2).t(),
            torch.randn(4, 2).t(),
            torch.randn(2, 8)[:, ::2],
        ]:
            y = torch.randn(2, 4)
            torch.testing.assert_close(compiled(x, y), Net.forward(net, x, y))
