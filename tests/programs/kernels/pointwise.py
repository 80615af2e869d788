"""Chains of operations on elements."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.programs.kernels.program import Case, leaf, program


@program()
def chain() -> Case:
    def region(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (torch.sin(x) * y + x.abs().sqrt()) / (1 + torch.exp(-y))

    return Case(region, lambda i: (leaf(5, 37), leaf(5, 37)))


@program()
def several_blocks() -> Case:
    def region(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        z = torch.tanh(x) + y
        return z, z.neg() * x

    return Case(region, lambda i: (leaf(3001), leaf(3001)))


@program()
def activations() -> Case:
    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.softplus(x), F.elu(x), F.mish(x), F.hardswish(x)

    return Case(region, lambda i: (leaf(4, 33),))


@program()
def clamp_and_where() -> Case:
    def region(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.clamp(-0.5, 0.7), torch.where(x > y, x * y, y), torch.maximum(x, y), F.relu6(3 * x), F.leaky_relu(y, 0.1)

    return Case(region, lambda i: (leaf(7, 19), leaf(7, 19)))


@program()
def masked_fill() -> Case:
    def region(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x.masked_fill(mask, -1e4).exp() + x.masked_fill(~mask, 0.0)

    return Case(region, lambda i: (leaf(6, 21), torch.rand(6, 21) < 0.3))


@program()
def broadcasting() -> Case:
    def region(x: torch.Tensor, row: torch.Tensor, column: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
        return (x * row + column).sigmoid() * number

    return Case(region, lambda i: (leaf(3, 5, 17), leaf(17), leaf(3, 5, 1), leaf()))


@program()
def in_place() -> Case:
    def region(x: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        total.mul_(0.9).add_(x.square(), alpha=0.1)
        x.clamp_(min=0)
        return total.sqrt() + x

    return Case(region, lambda i: (torch.randn(9, 31), torch.rand(9, 31)))


@program()
def functions_of_libdevice() -> Case:
    def region(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        u = torch.sigmoid(x) * 0.9
        return (
            torch.erf(x), torch.erfc(x), torch.erfinv(u), torch.expm1(x), torch.log1p(u), torch.log2(u), torch.log10(u),
            torch.asin(u), torch.acos(u), torch.sinh(x), torch.cosh(x), torch.tan(u),
            torch.asinh(x), torch.atanh(u), torch.acosh(1 + u), torch.pow(u, y), torch.hypot(x, y), torch.lgamma(1 + u),
            torch.rsqrt(u), torch.exp2(x), torch.copysign(x, y), torch.cos(y),
        )  # fmt: skip

    return Case(region, lambda i: (leaf(40), leaf(40)))


@program(
    unsupported=(
        "inline_asm not supported",
        "The arctangent is PTX inside the kernel, instruction by instruction as nvcc's.",
    )
)
def arctangent() -> Case:
    return Case(lambda x, y: torch.atan(x) + torch.atan2(x, y), lambda i: (torch.randn(40), torch.randn(40)))


@program()
def rounding() -> Case:
    def region(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = x * 5
        return (
            x.floor(), x.ceil(), x.trunc(), x.round(), torch.fmod(x, y), torch.remainder(x, y), x.sign(), x.isnan(),
            x.isinf(), torch.signbit(x), x.frac(), torch.nextafter(x, y), torch.div(x, y, rounding_mode="floor"),
        )  # fmt: skip

    return Case(region, lambda i: (torch.randn(41), torch.randn(41)))


@program()
def integers() -> Case:
    def region(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            a // b, a % b, torch.div(a, b, rounding_mode="trunc"), torch.fmod(a, b), a << 2, a >> 1, a & b, a ^ b, ~a,
            a.pow(2), a / b, (a > b).sum(), a.to(torch.int32) * 3, a.to(torch.uint8), a.float().to(torch.int16),
        )  # fmt: skip

    def args(i: int) -> tuple[torch.Tensor, ...]:
        return torch.randint(0, 100, (50,)) * torch.tensor([1, -1]).repeat(25), torch.randint(1, 9, (50,))

    return Case(region, args)
