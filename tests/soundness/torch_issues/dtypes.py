"""Types of elements: a result has another one, or a number does not fit and is taken for another."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.soundness.torch_issues.case import Made, case


@case(191308, "A batched product of int8 matrices is int64.")
def int8_batched_product() -> Made:
    return lambda a, b: torch.matmul(a, b), lambda: (
        torch.ones(1, 1, 2, dtype=torch.int8),
        torch.ones(1, 2, 2, dtype=torch.int8),
    )


@case(198081, "Whether any byte is set is a bool, not a byte: what is computed with it does not wrap around.")
def any_of_bytes() -> Made:
    return lambda x: torch.any(x) * 200 + 100, lambda: (torch.tensor([[0, 3], [0, 0]], dtype=torch.uint8),)


@case(197091, "A number times a power of two has the type of its first operand.")
def ldexp_type() -> Made:
    return lambda a, b: torch.ldexp(a, b), lambda: (torch.randn(3, 4).half(), torch.randn(3, 4))


@case(198071, "Bounds that do not fit into int8 wrap around: clamp(-1000, 1000) gives -24 everywhere.", ours="eager")
def clamp_wraps() -> Made:
    return lambda x: torch.clamp(x, -1000, 1000), lambda: (torch.tensor([-128, -3, 0, 5, 127], dtype=torch.int8),)


@case(195675, "Bounds beyond float32 are ignored where eager mode raises an error.", ours="eager")
def clamp_beyond() -> Made:
    return lambda x: torch.clamp(x, min=-3.4e39, max=3.4e39), lambda: (torch.randn(4),)


@case(197807, "A running logarithm of a sum of bytes gives a result where eager mode raises an error.", ours="eager")
def logcumsumexp_byte() -> Made:
    return lambda x: torch.logcumsumexp(x, 0), lambda: (torch.tensor(0, dtype=torch.uint8),)


@case(
    183318,
    "A sum that skips NaN, asked for in whole numbers, is given where eager mode raises an error.",
    compiled="right",
    ours="right",
)
def nansum_as_integer() -> Made:
    return lambda x: torch.nansum(x, dim=1, dtype=torch.int64), lambda: (torch.tensor([[float("nan"), 2.0], [3.0, 4.0]]),)


@case(198155, "A softmax of whole numbers is given where eager mode raises an error.", ours="eager")
def softmax_of_integers() -> Made:
    return lambda x: torch.ops.aten._softmax(x, 0, False), lambda: (torch.tensor([1, 2, 3]),)


@case(197554, "Booleans are rounded up where eager mode raises an error.", ours="eager")
def ceil_of_booleans() -> Made:
    return lambda x: torch.ceil(x), lambda: (torch.tensor([True, False]),)


@case(
    183608,
    "An embedding of a negative index is read from the end where eager mode raises an error.",
    compiled="right",
    ours="eager",
)
def negative_embedding() -> Made:
    return lambda i, w: F.embedding(i, w), lambda: (torch.tensor([2, -2, 4]), torch.arange(10.0).view(5, 2))


@case(
    135546,
    "A class that does not exist is ignored by the loss where eager mode raises an error.",
    compiled="right",
    ours="eager",
)
def class_out_of_range() -> Made:
    return lambda x, t: F.cross_entropy(x, t), lambda: (torch.randn(4, 5), torch.tensor([1, -1, 2, 0]))


@case(137213, "Results of another type than they may have are accepted where eager mode raises an error.", ours="eager")
def aminmax_out() -> Made:
    def step(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
        torch.aminmax(x, dim=-1, out=(low, high))
        return low + high

    return step, lambda: (torch.rand(10, 10), torch.empty(10).double(), torch.empty(10).double())


@case(117623, "A running sum into a tensor of whole numbers is rounded at another step.", compiled="right", ours="right")
def cumsum_out() -> Made:
    def step(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x, dim=0, out=out)

    return step, lambda: (torch.zeros(8, 4, dtype=torch.int16), torch.rand(8, 4))


@case(150993, "A layer takes numbers of another type than its weights where eager mode raises an error.", ours="eager")
def mixed_linear() -> Made:
    layer = torch.nn.Linear(1, 1)
    return lambda x: layer(x), lambda: (torch.randn(1, 1).half(),)


@case(108963, "A sum by index with a factor into a tensor of zeros, halved, is 0.", compiled="right", ours="right")
def index_add_alpha() -> Made:
    def step(source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out = torch.zeros(1).double().index_add(0, torch.tensor([0]), source, alpha=2.0) / 2
        return out, source

    return step, lambda: (torch.rand(1).double(),)
