"""Tensors indexed by numbers that vary: one graph serves every index, and gives the views that eager mode gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import magpy_core

READS: dict[str, Callable[[Any, int], Any]] = {
    "first": lambda x, i: x[i],
    "negative": lambda x, i: x[-1 - i],
    "last": lambda x, i: x[..., i],
    "inner": lambda x, i: x[:, i],
    "two": lambda x, i: x[i, i % 3],
    "with a constant": lambda x, i: x[1, i],
    "around an ellipsis": lambda x, i: x[i, ..., 0],
    "with new dimensions": lambda x, i: x[None, i, :, None],
    "with a slice": lambda x, i: x[i, 1:3],
    "with slices of varying ends": lambda x, i: x[i : i + 2, i % 3],
    "all": lambda x, i: x[i, i % 3, 1],
    "in a tuple": lambda x, i: x[(i,)],
    "computed": lambda x, i: x[(i * 2 + 1) % 5],
    "of a view": lambda x, i: x.transpose(0, 1)[:, i],
    "with a tensor": lambda x, i: x[torch.tensor([0, 2]), i % 3],
    "with a mask": lambda x, i: x[i, torch.tensor([True, False, True, True])],
    "with a list": lambda x, i: x[[0, 2], i % 3],
}
WRITES: dict[str, Callable[[Any, int], Any]] = {
    "a tensor": lambda x, i: x.__setitem__(i, torch.ones(4, 2)),
    "a number": lambda x, i: x.__setitem__((i, 1), 2.5),
    "a number that varies": lambda x, i: x.__setitem__(i, i * 0.5),
    "an integer that varies": lambda x, i: x.__setitem__((slice(None), i % 3), i),
    "of leading dimensions": lambda x, i: x.__setitem__((i, 0), torch.ones(1, 1, 2)),
    "through a view": lambda x, i: x[i].mul_(2.0),
    "in place": lambda x, i: x.__setitem__(i, x[i] + 1),
    "an element": lambda x, i: x.__setitem__((i, i % 3, 1), x[0, 0, 0] + 1),
}


def served(step: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    return magpy_core.compile(step, backend="aot_eager", wait=True)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", READS)
def test_what_is_read(name: str) -> None:
    step = lambda x, i: READS[name](x, i) * 1.0  # noqa: E731
    compiled = served(step)
    x = torch.arange(40.0).reshape(5, 4, 2)
    for i in [0, 1, 2, 3, 0, 2, 3, 1]:
        assert torch.equal(compiled(x, i % 2 if name == "last" else i), step(x, i % 2 if name == "last" else i))
    assert len(magpy_core.captures(compiled)) <= 3


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written(name: str) -> None:
    step = WRITES[name]
    compiled = served(step)
    x, y = (torch.arange(40.0).reshape(5, 4, 2) for _ in range(2))
    for i in [0, 1, 2, 3, 0, 2, 3, 1]:
        compiled(x, i)
        step(y, i)
        assert torch.equal(x, y)
    assert len(magpy_core.captures(compiled)) <= 3


def test_results_are_views() -> None:
    compiled = served(lambda x, i: x[:, i])
    x = torch.zeros(5, 4)
    for i in [0, 1, 2, 3, 1]:
        view = compiled(x, i)
        assert view._base is x and view.storage_offset() == i and view.stride() == (4,)
        view += i
    assert x[0].tolist() == [0.0, 2.0, 2.0, 3.0]


def test_gradients() -> None:
    def step(w: Any, i: int) -> Any:
        (w[i] * w[i, 0] * (i + 1)).sum().backward()
        grad, w.grad = w.grad, None
        return grad

    compiled, w = served(step), torch.randn(5, 4, requires_grad=True)
    for i in [0, 1, 2, 3, 1]:
        torch.testing.assert_close(compiled(w, i), step(w, i))
    assert len(magpy_core.captures(compiled)) <= 3


def test_an_index_out_of_range_raises_as_in_eager_mode() -> None:
    compiled, x = served(lambda x, i: x[i] + 1), torch.zeros(3, 2)
    for i in [0, 1, 2, 1]:
        compiled(x, i)
    for i in [3, -4]:
        with pytest.raises(IndexError, match="out of"):
            compiled(x, i)
    with pytest.raises(IndexError, match="too many indices"):
        served(lambda x, i: x[i, i, i])(x, 1)


def test_a_loader_of_ones_own_in_a_training_step() -> None:
    torch.manual_seed(0)
    data, target = torch.randn(10, 8, 4), torch.randint(0, 3, (10, 8))

    def training() -> tuple[Callable[[int], Any], torch.nn.Module]:
        torch.manual_seed(1)
        model = torch.nn.Linear(4, 3)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(i: int) -> float:
            opt.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(data[i % 10]), target[i % 10])
            loss.backward()
            opt.step()
            return loss.item()

        return step, model

    (plain, expected), (step, model) = training(), training()
    compiled = magpy_core.compile(step, backend="aot_eager", wait=True)
    for i in range(25):
        assert compiled(i) == pytest.approx(plain(i), rel=1e-6)
    torch.testing.assert_close(model.weight, expected.weight)
    assert len(magpy_core.captures(compiled)) <= 3 and max(c.hits for c in magpy_core.captures(compiled)) >= 20
