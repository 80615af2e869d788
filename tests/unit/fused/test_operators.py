"""The operators for a linear layer and its cross entropy, by ATen on the CPU: values and gradients are eager mode's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from magpy_core.fused import chunks, operators
from magpy_core.fused.chunks import Head, chunk_rows, gradients_of, losses_of, row_stride

ROWS, WIDTH, VOCABULARY, IGNORED = 300, 24, 77, -7
REDUCTIONS = ("mean", "sum", "none")


@pytest.fixture(autouse=True)
def several_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1)
    monkeypatch.setattr(chunks, "PART_BYTES", 1000)
    assert chunk_rows(ROWS, VOCABULARY, 8) == 128


def inputs(dtype: torch.dtype = torch.float64, *, bias: bool = True, rows: int = ROWS) -> tuple[Any, ...]:
    """Hidden, weight, bias, targets; every seventh row is ignored."""
    torch.manual_seed(0)
    hidden, weight = torch.randn(rows, WIDTH), torch.randn(VOCABULARY, WIDTH)
    target = torch.randint(0, VOCABULARY, (rows,))
    target[::7] = IGNORED
    made = [each.to(dtype).requires_grad_() for each in (hidden, weight, torch.randn(VOCABULARY))]
    return made[0], made[1], made[2] if bias else None, target


def expected(head: tuple[Any, ...], reduction: str, smoothing: float = 0.0) -> torch.Tensor:
    hidden, weight, bias, target = head
    return F.cross_entropy(
        F.linear(hidden, weight, bias), target, ignore_index=IGNORED, reduction=reduction, label_smoothing=smoothing
    )


def in_two_passes(head: tuple[Any, ...], reduction: str, smoothing: float = 0.0) -> torch.Tensor:
    losses: torch.Tensor = operators.LOSSES(*head, IGNORED, smoothing)
    total = losses.sum()
    return {"none": losses, "sum": total, "mean": total / (head[3] != IGNORED).sum()}[reduction]


def in_one_pass(head: tuple[Any, ...], reduction: str, smoothing: float = 0.0) -> torch.Tensor:
    wanted = [tensor is not None and tensor.requires_grad for tensor in head[:3]]
    loss: torch.Tensor = operators.SUM(*head, IGNORED, smoothing, reduction == "mean", wanted)[0]
    return loss


WAYS = [(in_two_passes, one) for one in REDUCTIONS] + [(in_one_pass, one) for one in ("mean", "sum")]
each_way = pytest.mark.parametrize(("way", "reduction"), WAYS, ids=lambda value: getattr(value, "__name__", value))


def gradients(loss: torch.Tensor, head: tuple[Any, ...]) -> list[torch.Tensor]:
    torch.manual_seed(1)
    wanted = [tensor for tensor in head[:3] if tensor is not None and tensor.requires_grad]
    return list(torch.autograd.grad(loss, wanted, torch.randn(loss.shape, dtype=torch.float64).to(loss.dtype)))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
@each_way
def test_values_and_gradients_are_eagers(way: Any, reduction: str, bias: bool, smoothing: float) -> None:
    head = inputs(bias=bias)
    want, got = expected(head, reduction, smoothing), way(head, reduction, smoothing)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(gradients(got, head), gradients(want, head))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@each_way
def test_rounding_is_no_worse_than_eagers(way: Any, reduction: str, dtype: torch.dtype) -> None:
    """Against float64 results for the same rounded inputs."""
    head = inputs(dtype)
    exact = tuple(each.detach().double().requires_grad_() for each in head[:3]) + head[3:]

    def errors(loss: torch.Tensor) -> list[float]:
        true = expected(exact, reduction)
        pairs = zip([loss, *gradients(loss, head)], [true, *gradients(true, exact)], strict=True)
        return [((a.double() - b).norm() / b.norm()).item() for a, b in pairs]

    got = way(head, reduction)
    assert got.dtype is torch.float32
    for ours, eagers in zip(errors(got), errors(expected(head, reduction)), strict=True):
        assert ours <= 1.5 * eagers + 1e-6


@each_way
def test_gradients_are_those_of_finite_differences(way: Any, reduction: str) -> None:
    torch.manual_seed(0)
    shapes = ((5, 3), (7, 3), (7,))
    given = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    head = (*given, torch.tensor([0, 6, IGNORED, 3, 3]))
    assert torch.autograd.gradcheck(lambda *given: way((*given, head[3]), reduction), head[:3])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("way", [in_one_pass, in_two_passes])
def test_if_all_rows_are_ignored(way: Any, reduction: str) -> None:
    head = inputs()
    head[3].fill_(IGNORED)
    got, want = way(head, reduction), expected(head, reduction)
    torch.testing.assert_close(got, want, equal_nan=True)
    assert bool(got.isnan()) == (reduction == "mean")
    assert all(not gradient.any() for gradient in gradients(got, head) + gradients(want, head))


@each_way
def test_without_rows(way: Any, reduction: str) -> None:
    head = inputs(rows=0)
    got, want = way(head, reduction), expected(head, reduction)
    torch.testing.assert_close(got, want, equal_nan=True)
    torch.testing.assert_close(gradients(got, head), gradients(want, head))


@each_way
def test_any_strides(way: Any, reduction: str) -> None:
    hidden, weight, bias, target = inputs()
    head = (
        hidden.detach().t().contiguous().t().requires_grad_(),
        weight.detach().repeat(1, 2)[:, ::2].requires_grad_(),
        bias.detach().repeat(2)[::2].requires_grad_(),
        target.repeat(2)[::2],
    )
    assert not any(tensor.is_contiguous() for tensor in head[:2])
    got, want = way(head, reduction), expected(head, reduction)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(gradients(got, head), gradients(want, head))


@each_way
def test_what_is_not_finite_goes_where_eagers_goes(way: Any, reduction: str) -> None:
    hidden, weight, bias, target = inputs()
    with torch.no_grad():
        bias[3] = float("-inf")
        hidden[7, 0], hidden[8, 0], hidden[9, 0] = float("nan"), float("nan"), float("inf")  # row 7 is ignored
    head = (hidden, weight, bias, target)
    got, want = way(head, reduction), expected(head, reduction)
    torch.testing.assert_close(got, want, equal_nan=True)
    torch.testing.assert_close(gradients(got, head), gradients(want, head), equal_nan=True)


def test_an_infinite_gradient_leaves_ignored_rows_alone() -> None:
    head = inputs()
    (of_hidden,) = torch.autograd.grad(in_one_pass(head, "mean"), head[:1], torch.tensor(float("inf"), dtype=torch.float64))
    assert not of_hidden[::7].any() and not of_hidden[1].isfinite().all()


@pytest.mark.parametrize("way", [in_one_pass, in_two_passes])
def test_only_gradients_that_are_wanted_are_computed(way: Any) -> None:
    hidden, weight, _, target = inputs()
    for head in ((hidden, weight.detach(), None, target), (hidden.detach(), weight, None, target)):
        torch.testing.assert_close(gradients(way(head, "mean"), head), gradients(expected(head, "mean"), head))
    made = operators.SUM(hidden, weight, None, target, IGNORED, 0.0, True, [True, False, False])
    assert [tuple(each.shape) for each in made] == [(), (ROWS, WIDTH), (0,), (0,)]


@pytest.mark.parametrize("wrong", [VOCABULARY, -1])
@each_way
def test_a_target_that_is_no_class_raises(way: Any, reduction: str, wrong: int) -> None:
    head = inputs()
    head[3][5] = wrong
    with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
        way(head, reduction)


@each_way
def test_a_second_derivative_raises(way: Any, reduction: str) -> None:
    head = inputs()
    with pytest.raises(RuntimeError, match="can't be differentiated"):
        torch.autograd.grad(way(head, reduction).sum(), head[:1], create_graph=True)


def test_autocast_around_the_operators_changes_nothing() -> None:
    head = inputs(torch.float32)
    want = [in_one_pass(head, "mean"), *gradients(in_two_passes(head, "none"), head)]
    with torch.autocast("cpu", torch.bfloat16):
        got = [in_one_pass(head, "mean"), *gradients(in_two_passes(head, "none"), head)]
    torch.testing.assert_close(got, want, rtol=0, atol=0)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
def test_the_registrations_are_consistent(bias: bool) -> None:
    """Schemas, fakes and autograd, by torch's own checks."""
    head = (*inputs(torch.float32, bias=bias, rows=9), IGNORED, 0.1)
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(operators.LOSSES, head, test_utils=checks)
    torch.library.opcheck(operators.SUM, (*head, True, [True, True, bias]), test_utils=checks)
    plain = tuple(each.detach() if isinstance(each, torch.Tensor) else each for each in head)
    torch.library.opcheck(operators.GRADIENTS, (*plain, torch.rand(9), [True, False, bias]), test_utils=checks)


# -- memory --------------------------------------------------------------------------------------------------------------


class _Largest(TorchDispatchMode):
    """The number of elements of the largest storage that an operation makes."""

    elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.elements = max(self.elements, leaf.untyped_storage().nbytes() // leaf.element_size())
        return result


def test_no_buffer_has_all_rows_and_the_vocabulary() -> None:
    head = Head(*(each if each is None else each.detach() for each in inputs(torch.float32)), IGNORED, 0.1)
    with _Largest() as seen:
        losses_of(head)
        gradients_of(head, torch.ones(ROWS), (True, True, True))
    assert seen.elements == 128 * row_stride(VOCABULARY) < ROWS * VOCABULARY


@pytest.mark.parametrize(
    ("rows", "vocabulary", "itemsize"), [(8192, 50_257, 2), (8192, 50_257, 4), (1, 7, 4), (3000, 256_000, 2)]
)
def test_chunks_are_as_large_as_memory_allows(
    rows: int, vocabulary: int, itemsize: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 256 << 20)
    size = chunk_rows(rows, vocabulary, itemsize)
    assert size % 128 == 0 and 128 <= size and size * row_stride(vocabulary) * itemsize <= 256 << 20
    assert rows <= size or size * row_stride(vocabulary) * itemsize > 128 << 20
    assert row_stride(vocabulary) % 16 == 0 and row_stride(vocabulary) >= vocabulary
