"""Operators that compute a linear layer and its cross entropy without their logits, for graphs that a compiler arranges.

``linear_cross_entropy``: a loss for each row; its backward pass computes the logits again.
``linear_cross_entropy_gradients``: also the gradients, for given factors of the rows. ``linear_cross_entropy_sum``: the sum
or the mean, with its gradients computed in the same pass, which the backward pass only multiplies by a number. Compilers see
them as opaque. Importing the module registers them. Key names: LOSSES, SUM, ALL, chunk_bytes.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch

from magpy_core.fused.chunks import Head, chunk_rows, gradients_of, losses_of, precision_of, row_stride

Wanted = tuple[bool, bool, bool]

_NAME = "linear_cross_entropy"
_HEAD = "Tensor hidden, Tensor weight, Tensor? bias, Tensor target, int ignore_index, float smoothing"
_LIBRARY = torch.library.Library("magpy", "FRAGMENT")
_LIBRARY.define(f"{_NAME}({_HEAD}) -> Tensor")
_LIBRARY.define(f"{_NAME}_gradients({_HEAD}, Tensor scale, bool[3] wanted) -> (Tensor, Tensor, Tensor, Tensor)")
_LIBRARY.define(f"{_NAME}_sum({_HEAD}, bool mean, bool[3] wanted) -> (Tensor, Tensor, Tensor, Tensor)")
LOSSES: Any = torch.ops.magpy.linear_cross_entropy.default
GRADIENTS: Any = torch.ops.magpy.linear_cross_entropy_gradients.default
SUM: Any = torch.ops.magpy.linear_cross_entropy_sum.default
ALL = frozenset({LOSSES, GRADIENTS, SUM})


def _losses(
    hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, target: torch.Tensor, ignore_index: int,
    smoothing: float,
) -> torch.Tensor:  # fmt: skip
    return losses_of(Head(hidden, weight, bias, target, ignore_index, smoothing))


def _gradients(
    hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, target: torch.Tensor, ignore_index: int,
    smoothing: float, scale: torch.Tensor, wanted: Wanted,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    return gradients_of(Head(hidden, weight, bias, target, ignore_index, smoothing), scale, wanted)


def _sum(
    hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, target: torch.Tensor, ignore_index: int,
    smoothing: float, mean: bool, wanted: Wanted,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    head = Head(hidden, weight, bias, target, ignore_index, smoothing)
    number = (target != ignore_index).sum() if mean else target.new_ones(())
    scale = (1.0 / number.to(head.precision)).expand_as(target)
    losses, *gradients = gradients_of(head, scale, wanted)
    return losses.sum() / number, *gradients


def _fake_losses(hidden: torch.Tensor, *others: Any) -> torch.Tensor:
    return hidden.new_empty(hidden.size(0), dtype=precision_of(hidden.dtype))


def _fake_gradients(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    bias: Any,
    target: Any,
    ignored: Any,
    smoothing: Any,
    scale: Any,
    wanted: Wanted,
) -> tuple[torch.Tensor, ...]:
    shapes = (hidden.shape, weight.shape, weight.shape[:1])
    made = [hidden.new_empty(shape if one else (0,)) for shape, one in zip(shapes, wanted, strict=True)]
    return hidden.new_empty(hidden.size(0), dtype=precision_of(hidden.dtype)), *made


def _fake_sum(hidden: torch.Tensor, *others: Any) -> tuple[torch.Tensor, ...]:
    losses, *gradients = _fake_gradients(hidden, *others)
    return losses.new_empty(()), *gradients


def _keep_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    hidden, weight, bias, target, ctx.ignore_index, ctx.smoothing = inputs
    ctx.save_for_backward(hidden, weight, bias, target)


def _losses_backward(ctx: Any, scale: torch.Tensor) -> tuple[Any, ...]:
    _refuse_a_second_time()
    wanted = list(ctx.needs_input_grad[:3])
    _, *gradients = GRADIENTS(*ctx.saved_tensors, ctx.ignore_index, ctx.smoothing, scale, wanted)
    return *_only(gradients, wanted), None, None, None


def _keep_gradients(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    _, *gradients = output
    ctx.wanted, ctx.ignore_index = inputs[-1], inputs[4]
    ctx.mark_non_differentiable(*gradients)
    ctx.save_for_backward(inputs[3], *gradients)


def _sum_backward(ctx: Any, factor: torch.Tensor, *unused: Any) -> tuple[Any, ...]:
    _refuse_a_second_time()
    target, *kept = ctx.saved_tensors
    gradients = [(gradient * factor).to(gradient.dtype) for gradient in kept]
    if ctx.wanted[0]:  # 0 as in eager mode, also if the factor is infinite
        unchanged = (target == ctx.ignore_index)[:, None] & (kept[0] == 0)
        gradients[0] = torch.where(unchanged, 0, gradients[0])
    return *_only(gradients, ctx.wanted), *[None] * 5


def _only(gradients: list[torch.Tensor], wanted: Any) -> list[torch.Tensor | None]:
    return [gradient if one else None for gradient, one in zip(gradients, wanted, strict=True)]


def _refuse_a_second_time() -> None:
    if torch.is_grad_enabled():  # in a backward pass: its own gradient is wanted (create_graph)
        raise RuntimeError("the gradient of linear_cross_entropy can't be differentiated")


for _name, _run, _fake in (
    (_NAME, _losses, _fake_losses),
    (f"{_NAME}_gradients", _gradients, _fake_gradients),
    (f"{_NAME}_sum", _sum, _fake_sum),
):
    _LIBRARY.impl(_name, _run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"magpy::{_name}", _fake, lib=_LIBRARY)
torch.library.register_autograd(f"magpy::{_NAME}", _losses_backward, setup_context=_keep_inputs, lib=_LIBRARY)
torch.library.register_autograd(f"magpy::{_NAME}_sum", _sum_backward, setup_context=_keep_gradients, lib=_LIBRARY)


# -- what they cost ------------------------------------------------------------------------------------------------------


def chunk_of(rows: int, vocabulary: int, itemsize: int) -> int:
    """How many rows of logits exist at a time."""
    return min(chunk_rows(rows, vocabulary, itemsize), rows)


def chunk_bytes(rows: int, vocabulary: int, itemsize: int) -> int:
    """The memory of the logits that exist at a time."""
    return chunk_of(rows, vocabulary, itemsize) * row_stride(vocabulary) * itemsize


def _products(hidden: Any, weight: Any, wanted: Any) -> int:
    """Floating-point operations: a product for the logits, and one for each of the two larger gradients."""
    of_one: int = 2 * math.prod(hidden) * int(weight[0])
    return of_one * (1 + sum(map(bool, wanted[:2])))


def _flops_of_losses(hidden: Any, weight: Any, *others: Any, **kwargs: Any) -> int:
    return _products(hidden, weight, (False, False))


def _flops_with_gradients(hidden: Any, weight: Any, *others: Any, **kwargs: Any) -> int:
    return _products(hidden, weight, others[-1])


@cache
def register_flops() -> None:
    """Makes torch's counter of operations know these operators. Importing the counter imports Triton, where it is
    installed: whoever counts calls this first."""
    from torch.utils.flop_counter import register_flop_formula

    packets = torch.ops.magpy
    register_flop_formula(packets.linear_cross_entropy)(_flops_of_losses)
    register_flop_formula([packets.linear_cross_entropy_gradients, packets.linear_cross_entropy_sum])(_flops_with_gradients)
