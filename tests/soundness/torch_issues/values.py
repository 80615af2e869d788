"""Numbers: operators whose lowering or decomposition computes something else."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.soundness.torch_issues.case import Made, case

INF, NAN = float("inf"), float("nan")


@case(198201, "Nearest interpolation resamples a dimension although its size stays the same.")
def nearest_unchanged_size() -> Made:
    return lambda x: F.interpolate(x, scale_factor=(1.3, 1.5), mode="nearest"), lambda: (
        torch.arange(12.0).view(1, 1, 3, 4),
    )


@case(175154, "Nearest interpolation of two columns by a factor of 1.3 repeats the first one.")
def nearest_rounded() -> Made:
    return lambda x: F.interpolate(x, scale_factor=1.3, mode="nearest"), lambda: (torch.tensor([[[[1.0, 2.0]]]]).double(),)


@case(197895, "Division with floor is one too large if the quotient is rounded up: 1.0 // 0.1 is 10.", ours="right")
def floor_division() -> Made:
    def arguments() -> tuple[torch.Tensor, ...]:
        return torch.tensor([1.0, 0.5, 6.0, 1.0]), torch.tensor([0.1, 0.1, 0.2, 1 / 3])

    return lambda a, b: a // b, arguments


@case(
    196596,
    "A product of matrices with beta=0 takes over the NaN of what it should not read.",
    compiled="right",
    ours="right",
)
def addmm_without_input() -> Made:
    def arguments() -> tuple[torch.Tensor, ...]:
        return torch.full((4,), NAN), torch.randn(1, 4), torch.randn(4, 4)

    return lambda x, a, b: torch.addmm(x, a, b, beta=0), arguments


@case(174891, "The sum of complex tensors of two shapes has another imaginary part.", compiled="right", ours="right")
def complex_broadcast() -> Made:
    return lambda x: x + torch.ones(2, 1, dtype=torch.complex64), lambda: (torch.full((2, 2), 1.0, dtype=torch.complex64),)


@case(189799, "Adding zeros is left out, so that a negative zero stays negative and its reciprocal too.", ours="right")
def negative_zero_plus_zero() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        rounded = torch.ceil(x)
        return torch.reciprocal(rounded + torch.zeros_like(rounded))

    return step, lambda: (torch.tensor([-0.5, -0.1, -0.9]),)


@case(194347, "The minimum of a negative and a positive zero is the positive one.")
def minimum_of_zeros() -> Made:
    return lambda a, b: torch.minimum(a, b).reciprocal(), lambda: (torch.tensor([-0.0]), torch.tensor([0.0]))


@case(187336, "The logarithm of the normal distribution loses the sign of its zero.", compiled="right", ours="right")
def log_ndtr_sign() -> Made:
    return lambda x: torch.copysign(torch.ones_like(x), torch.special.log_ndtr(x)), lambda: (torch.tensor([100.0, 200.0]),)


@case(174172, "The sign of a number that is a negative zero is taken for positive.", compiled="right", ours="right")
def copysign_number() -> Made:
    return lambda x: torch.copysign(x, -0.0), lambda: (torch.randn(6),)


@case(187935, "The sign bit of a negative zero in float64 is not seen.", compiled="right", ours="right")
def signbit_double() -> Made:
    return lambda x: torch.signbit(x), lambda: (torch.tensor([[1.0, -0.0, 0.0], [-1.0, -0.0, 2.5]]).double(),)


@case(185696, "The angle of a zero and its negative is 0, not pi.", compiled="right", ours="right")
def atan2_of_zeros() -> Made:
    return lambda x: torch.atan2(x, -x), lambda: (torch.tensor([0.0, 6e-8, -6e-8]).half(),)


@case(148241, "The angle of a result of tanhshrink, taken twice, is half a turn away.", compiled="right", ours="right")
def tanhshrink_angle() -> Made:
    return lambda x: torch.atan2(F.tanhshrink(x), F.tanhshrink(x)), lambda: (torch.randn(1, 3, 64, 64),)


@case(108520, "A sum of int32 that overflows is kept in 64 bits.", compiled="right", ours="right")
def int32_overflow() -> Made:
    return lambda x: (x + x).to(torch.int64), lambda: (torch.tensor(2**31 - 1, dtype=torch.int32),)


@case(
    190764, "Products of int32 matrices that overflow are added up without wrapping around.", compiled="right", ours="right"
)
def int32_products() -> Made:
    def arguments() -> tuple[torch.Tensor, ...]:
        edge = torch.tensor([[2**31 - 1, -(2**31)], [65536, -65537]], dtype=torch.int32)
        return edge, edge.t().contiguous(), edge.flip(0), edge, edge.flip(1), edge.neg()

    return lambda x, y, z, p, q, r: ((x @ y + x @ z) + (p @ q + p @ r)).sum(dim=1), arguments


@case(143566, "A shift to the left by 64 bits leaves the number as it is.", compiled="right", ours="right")
def shift_left() -> Made:
    return lambda x, by: torch.bitwise_left_shift(x, by), lambda: (torch.tensor(1000), torch.tensor(64))


@case(143555, "A shift to the right by 64 bits leaves the number as it is.", compiled="right", ours="right")
def shift_right() -> Made:
    return lambda x, by: torch.bitwise_right_shift(x, by), lambda: (torch.tensor(1000), torch.tensor(64))


@case(131910, "Negative numbers converted to uint8 become 0 instead of wrapping around.", compiled="right", ours="right")
def negative_to_byte() -> Made:
    return lambda x: x.byte(), lambda: (torch.linspace(-3.5, 3.5, 20),)


@case(126848, "A number that is smaller than the smallest normal one becomes 0.", compiled="right", ours="right")
def subnormal() -> Made:
    return lambda x: x * 2.0**-124, lambda: (torch.tensor(0.1875),)


@case(
    183082,
    "The place of the largest element of a transposed tensor is counted in its memory.",
    compiled="right",
    ours="right",
)
def argmax_transposed() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        x.sin_()
        return x.t().argmax()

    return step, lambda: (torch.randn(5, 7),)


@case(
    183894, "The place of the smallest element after a write and a transposition is another.", compiled="right", ours="right"
)
def argmin_transposed() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        y = (x + 0).sin_()
        return y.transpose(0, 1).argmin()

    return step, lambda: (torch.randn(4, 6),)


@case(
    184893, "The place of the smallest element of a boolean tensor is that of the largest.", compiled="right", ours="right"
)
def argmin_of_booleans() -> Made:
    return lambda x: x.min(0).indices, lambda: (torch.rand(5, 32) > 0.5,)


@case(191499, "The smallest of 16 or more positive bytes is 0, as unused lanes of a vector are read.", ours="right")
def smallest_byte() -> Made:
    def arguments() -> tuple[torch.Tensor, ...]:
        return (torch.tensor([5, 1, 100, 3, 7, 8, 9, 13, 100, 120, 127, 2, 6, 4, 11, 12, 90, 80], dtype=torch.uint8),)

    return lambda x: (torch.min(x), torch.argmin(x)), arguments


@case(185702, "A slice, special functions and a stack: some elements are far off.", compiled="right", ours="right")
def slice_and_stack() -> Made:
    def step(table: torch.Tensor, y: torch.Tensor, alpha: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
        x = table[..., 16]
        positive, rates = F.softplus(x) + 1e-4, F.softplus(y) + 1e-4
        first = torch.special.gammaln(positive + alpha.view(1, -1))
        second = torch.special.erf(x * beta.view(1, -1))
        third = torch.special.xlogy(positive, rates)
        return torch.stack([first, second, third], dim=-1)

    return step, lambda: (torch.randn(4, 8, 20), torch.randn(4, 8), torch.rand(8), torch.rand(8))


@case(186018, "The sine of the arc tangent of NaN is 1.", compiled="right", ours="right")
def sine_of_arc_tangent() -> Made:
    return lambda x: torch.sin(torch.atan(x)), lambda: (torch.tensor([NAN]),)


@case(183605, "A normalization in float16 gives zeros where eager mode gives NaN.")
def half_variance() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.var(dim=-1, keepdim=True) + 1e-9)

    return step, lambda: (torch.full((3, 5), 1e-10, dtype=torch.float16),)


@case(185337, "A conversion to float16 and back is left out.")
def half_and_back() -> Made:
    return lambda x: x.half().float() - x, lambda: (torch.arange(20.0).view(5, 4).t() / 7,)


@case(176565, "A conversion to bfloat16 and back is left out.")
def bfloat16_and_back() -> Made:
    return lambda x: x.to(torch.bfloat16).float() - x, lambda: (torch.randn(4, 4),)


@case(181568, "A product of matrices is not rounded to bfloat16 before a float32 bias is added.")
def product_to_bfloat16() -> Made:
    def step(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (x @ w).to(torch.bfloat16) + b

    return step, lambda: (torch.randn(2, 15, 32), torch.randn(32, 17), torch.randn(17))


@case(183761, "A mask filled in float16, converted and added: the intermediate rounding is left out.", ours="rounding")
def half_mask() -> Made:
    def step(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        y = torch.where(mask, x, torch.full_like(x, 0.1)).half()
        return (y + 1.001).float() - x

    return step, lambda: (torch.randn(64), torch.rand(64) > 0.5)


@case(145466, "The cosine of float16 numbers is rounded down before it is rounded to float16.", ours="rounding")
def floor_of_cosine() -> Made:
    return lambda x: torch.floor(torch.cos(x)), lambda: ((torch.randn(32, 32) * 0.02).half(),)


@case(183763, "The hyperbolic sine of 89 overflows, although it fits into float32.", ours="right")
def sinh_near_overflow() -> Made:
    return lambda x: torch.sinh(x), lambda: (torch.tensor([88.85, 89.2, 88.95, -89.0]),)


@case(183765, "The hyperbolic cosine of 89 overflows, although it fits into float32.", ours="right")
def cosh_near_overflow() -> Made:
    return lambda x: torch.cosh(x), lambda: (torch.tensor([88.85, 88.9, 89.1, -89.2]),)


@case(183767, "The inverse hyperbolic sine of large numbers is infinite.", compiled="right", ours="right")
def asinh_of_large() -> Made:
    return lambda x: torch.asinh(x), lambda: (torch.tensor([3e22, 7e25, -8e23, 1e10]),)


@case(143648, "The polygamma function of order 0 is minus infinity.", compiled="right", ours="right")
def polygamma_zero() -> Made:
    return lambda x: torch.special.polygamma(0, x), lambda: (torch.tensor([2.0, 3.5]),)


@case(143790, "The exponent of an infinity is the smallest whole number, not 0.", compiled="right", ours="right")
def frexp_of_infinity() -> Made:
    return lambda x: torch.frexp(x)[1], lambda: (torch.tensor([INF, 1.0]),)


@case(184408, "Division rounded towards zero is one off next to whole quotients.", compiled="right", ours="right")
def truncated_division() -> Made:
    def arguments() -> tuple[torch.Tensor, ...]:
        return torch.tensor([14.999999, 26.999999, 148.0, 1073.0]), torch.tensor([3.0, 3.0, 37.0, 37.0])

    return lambda a, b: torch.div(a, b, rounding_mode="trunc"), arguments


@case(194345, "The remainder of numbers that are very far apart is wrong.", compiled="right", ours="right")
def remainder_far_apart() -> Made:
    return lambda a, b: torch.remainder(a, b), lambda: (torch.tensor([1e10, 65504.0]), torch.tensor([1e-20, 6e-8]))


@case(197089, "The variance is added up in float32: that of tiny numbers is 0, that of huge ones infinite.")
def variance_of_tiny() -> Made:
    return lambda x: x.std(), lambda: (torch.randn(64) * 1e-30,)


@case(197108, "The mean of no elements is 0, not NaN, if the variance is asked for as well.")
def mean_of_nothing() -> Made:
    return lambda x: torch.var_mean(x), lambda: (torch.empty(0),)


@case(183121, "A norm along a dimension of size 1 keeps that dimension.", compiled="right", ours="right")
def norm_of_one() -> Made:
    return lambda x: x.norm(dim=-1), lambda: (torch.rand(5, 7, 1),)


@case(189895, "A padded sum has the sum in place of the padding.", compiled="right", ours="right")
def padded_sum() -> Made:
    return lambda mask: F.pad(mask.sum(-1, dtype=torch.int32), (1, 0)), lambda: (torch.ones(1, 16384, dtype=torch.bool),)


@case(144462, "A tensor of one element is padded with that element.", compiled="right", ours="right")
def padded_element() -> Made:
    return lambda x: F.pad(x, [10, 10], "constant", 0), lambda: (torch.randn(1, 1, 1),)


@case(195582, "A negative padding after a batch normalization reads memory that was never written.", ours="right")
def shrinking_pad() -> Made:
    net = nn.Sequential(nn.Conv2d(1, 50, (2, 2)), nn.BatchNorm2d(50)).eval()
    last = nn.Linear(50, 10)

    def step(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            y = net(x).flatten(1)
            return last(F.pad(y, (0, 50 - y.shape[-1])))

    return step, lambda: (torch.randn(3, 1, 4, 4),)


@case(173793, "The layer normalization of numbers near the largest float is NaN.", compiled="right", ours="right")
def layer_norm_of_huge() -> Made:
    return lambda x: F.layer_norm(x, (64,)), lambda: (torch.rand(2, 64) * 1e36 + 8e37,)


@case(173885, "The layer normalization in float16 of an infinity is NaN elsewhere, too.", compiled="right", ours="right")
def layer_norm_with_infinity() -> Made:
    def arguments() -> tuple[torch.Tensor, ...]:
        x = torch.randn(2, 16).half()
        x[0, 3] = INF
        return (x,)

    return lambda x: F.layer_norm(x, (16,)), arguments


@case(181696, "Two normalizations of equal numbers and a logarithm: rounding is taken for a result.", ours="rounding")
def norms_of_ones() -> Made:
    first, second = nn.BatchNorm1d(10).eval(), nn.GroupNorm(10, 10).eval()

    def step(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return torch.log(second(F.elu(first(x))).abs().clamp(min=1e-8))

    return step, lambda: (torch.ones(6, 10, 12),)


@case(186577, "A reciprocal of a layer normalization is far off where the norm is nearly 0.", ours="rounding")
def reciprocal_of_norm() -> Made:
    return lambda x: torch.reciprocal(F.layer_norm(x, [128]).abs() + 1e-6), lambda: (torch.randn(64, 128),)


@case(175966, "A range of whole numbers times a large one is computed in 32 bits.")
def arange_times_large() -> Made:
    return lambda x: torch.arange(0, 11) * torch.tensor([10**9]) + x.long(), lambda: (torch.zeros(1),)


@case(195320, "Attention with a key whose batch is permuted is taken for plain attention.", compiled="right", ours="right")
def attention_permuted_key() -> Made:
    def step(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.matmul(q, k.permute(1, 0, 3, 2)) / 2.0, dim=-1).matmul(v)

    return step, lambda: tuple(torch.randn(4, 4, 4, 4) for _ in range(3))


@case(174049, "Attention whose scale is not the usual one is computed with the usual one.", compiled="right", ours="right")
def attention_own_scale() -> Made:
    def step(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.matmul(q, k.transpose(-2, -1)).div(3.0), dim=-1).matmul(v)

    return step, lambda: tuple(torch.randn(2, 4, 8, 16) for _ in range(3))


@case(186281, "Numbers times 0 become 0, infinity and NaN included.", ours="right")
def times_zero() -> Made:
    return lambda x: x * 0, lambda: (torch.tensor([1.0, INF, NAN, -INF]),)


@case(150114, "The inverse of a matrix that is nearly singular is far off.", ours="rounding")
def inverse_of_tiny() -> Made:
    return lambda x: torch.linalg.inv(torch.atan(x)), lambda: (torch.ones(2, 2) + torch.eye(2) * 1e-6,)


@case(160730, "A tangent in float16 that a branch on its mean follows: the sine of the result is off.", ours="right")
def tangent_and_branch() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        t = torch.tan(x).expand(31, 51, 1)
        out = t - t * 0.5 if t.mean().item() > 0.5 else t + t * 0.5
        return torch.sin(out)

    return step, lambda: ((torch.rand(31, 51, 1) * 10).half(),)


@case(168186, "A product of two layers in bfloat16, split and added, is rounded differently.", ours="rounding")
def product_split() -> Made:
    p, g = nn.Linear(128, 256, bias=False), nn.Linear(128, 256, bias=False)

    def step(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            a, b = torch.chunk(p(x) * g(x), 2, dim=-1)
            return a + b

    return step, lambda: (torch.randn(4, 128),)


@case(172062, "The gradient of a running product, called as an operator, is far off.")
def cumprod_gradient() -> Made:
    def step(grad: torch.Tensor, x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.cumprod_backward(grad, x, 1, out)

    return step, lambda: tuple(torch.randn(1, 5).double() * 0.1 for _ in range(3))


@case(173985, "Fractional pooling takes other windows than eager mode.", compiled="right", ours="right")
def fractional_pooling() -> Made:
    def step(x: torch.Tensor, samples: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.fractional_max_pool2d(x, [3, 3], [5, 5], samples)[0]

    return step, lambda: (torch.randn(2, 4, 10, 10), torch.rand(2, 4, 2))


@case(171493, "A sum by index is read before it is complete.", compiled="right", ours="right")
def sum_read_early() -> Made:
    def step(f: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        squares = f**2 + 0.01
        total = torch.zeros(1, f.shape[1]).index_add_(0, batch, squares)
        return squares / (total[batch] + 1e-6)

    return step, lambda: (torch.rand(64, 1), torch.zeros(64, dtype=torch.long))


@case(191571, "A sum scattered into one row is read before it is there.", compiled="right", ours="right")
def scatter_read_early() -> Made:
    def step(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(1, x.shape[1])
        total.scatter_add_(0, index.unsqueeze(-1).expand(-1, x.shape[1]), x)
        return torch.index_select(total, 0, index)

    return step, lambda: (torch.randn(8, 4), torch.zeros(8, dtype=torch.long))


@case(173133, "NaN is put into the first bucket, not into the last.", compiled="right", ours="right")
def bucket_of_nan() -> Made:
    return lambda x, b: torch.bucketize(x, b), lambda: (torch.tensor([NAN, 0.5, 2.5]), torch.tensor([1.0, 2.0, 3.0]))


@case(145929, "Bytes are put into buckets as if negative bounds were large ones.", compiled="right", ours="right")
def bucket_of_bytes() -> Made:
    def arguments() -> tuple[torch.Tensor, ...]:
        return torch.tensor([2, 5], dtype=torch.uint8), torch.tensor([-10, -7, -7, -3], dtype=torch.int8)

    return lambda x, b: torch.bucketize(x, b), arguments


@case(152423, "A quantile of data with NaN is a number.", compiled="right", ours="right")
def quantile_of_nan() -> Made:
    return lambda x: torch.quantile(x, 0.5), lambda: (torch.tensor([0.7, NAN, 0.3, -0.7, 1.0, NAN]),)


@case(
    159154,
    "A weighted softmax in steps has a buffer that is too small and is written beyond its end.",
    compiled="right",
    ours="right",
)
def buffer_too_small() -> Made:
    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        e = torch.exp(-torch.einsum("i...,i->i...", x, w))
        return torch.einsum("i,i...->i...", 1 / torch.einsum("i...->i", e), e)

    return step, lambda: (torch.rand(5, 1, 32, 32), torch.rand(5))


@case(
    172747,
    "Bytes seen as whole numbers, shifted and seen as floats are read at another place.",
    compiled="right",
    ours="right",
)
def bytes_as_numbers() -> Made:
    def step(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values = (x[:, :2].contiguous().view(torch.int16).to(torch.int32) << 16).view(torch.float32)
        return values, x[:, 208:210].view(torch.float16).float() * x[:, 192:208].view(torch.int8).float()

    return step, lambda: (torch.randint(0, 60, (7, 210), dtype=torch.uint8),)


@case(185464, "The multi-label margin loss counts the padding of its targets.", ours="eager")
def margin_loss_padding() -> Made:
    def arguments() -> tuple[torch.Tensor, ...]:
        return torch.tensor([[1.0, -1.0, 0.5, 0.3, -0.2]], requires_grad=True), torch.tensor([[0, 1, -1, -1, -1]])

    return lambda x, t: F.multilabel_margin_loss(x, t), arguments


@case(179575, "A transformer's projections by einsum differ after several layers.", compiled="right", ours="right")
def einsum_layers() -> Made:
    weights = [torch.randn(4, 16, 4) * 0.3 for _ in range(3)]

    def step(x: torch.Tensor) -> torch.Tensor:
        q, k, v = (torch.einsum("bsd,hde->bhse", x, w) for w in weights)
        scores = torch.softmax(torch.einsum("bhse,bhte->bhst", q, k) / 2, -1)
        return torch.einsum("bhst,bhte->bshe", scores, v).flatten(2)

    return step, lambda: (torch.randn(2, 9, 16),)
