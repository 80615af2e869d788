"""Writes in place: what is written is lost, comes too early or too late, or goes to other memory."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.soundness.torch_issues.case import Made, case


@case(198102, "A write through windows with gaps sets all that no window covers to 0.")
def gapped_windows() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        windows = x.unfold(1, 1, 5)
        windows.add_(windows)
        return x

    return step, lambda: (torch.arange(1, 25).view(4, 6),)


@case(195422, "A write through the result of a dropout that drops nothing does not reach the argument.", ours="right")
def dropout_identity() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        y = F.dropout(x, 0.5, False)
        y += y
        return y

    return step, lambda: (torch.ones(2, 2),)


@case(197829, "Rows shifted by one in place: the first row ends up in all rows.", ours="right")
def shifted_rows() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        x[1:] = x[:-1].clone()
        return x

    return step, lambda: (torch.rand(3, 16, 16),)


@case(198270, "After a write by index, adding a tensor's mirror image to it reads what was just written.", ours="right")
def mirrored_after_index() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        x.index_put_((torch.arange(x.size(0)),), x * 2.0)
        x.add_(x.flip(0))
        return x

    return step, lambda: (torch.rand(4, 8),)


@case(198033, "Adding its mirror image to a tensor of a list reads what was just written.", ours="right")
def mirrored_foreach() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        torch._foreach_add_([x], [x.flip(0)])
        return x

    return step, lambda: (torch.rand(8, 8),)


@case(198280, "A transposition in place reads what was just written.", compiled="right", ours="right")
def transposed_in_place() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        x.copy_(x.transpose(-1, -2) * 1.0)
        return x

    return step, lambda: (torch.rand(64, 5, 5),)


@case(
    198095,
    "A view of an argument that shares memory with a written one starts at another place.",
    compiled="raises",
    ours="eager",
)
def view_of_shared() -> Made:
    def step(whole: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        whole.add_(100)
        return part[0]

    def arguments() -> tuple[torch.Tensor, ...]:
        base = torch.arange(24.0).view(4, 6)
        return base, base[1:]

    return step, arguments


@case(139789, "Code compiled for separate arguments is used for those that overlap.", ours="right")
def overlapping_later() -> Made:
    calls = iter(range(100))

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return x + y

    def arguments() -> tuple[torch.Tensor, ...]:
        base = torch.ones(8)
        return (base[:4], base[2:6]) if next(calls) >= 2 else (torch.ones(4), torch.ones(4))

    return step, arguments


@case(133512, "After a write, a copy by strides is taken from memory that is laid out in another way.", ours="eager")
def strided_copy() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return torch.as_strided_copy(x, (3,), (2,))

    return step, lambda: (torch.arange(10)[::2],)


@case(
    174371,
    "A write to a view that overlaps itself is made once for each element, not in turn.",
    compiled="right",
    ours="eager",
)
def overlapping_view() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        x.as_strided((3, 3), (1, 1)).mul_(2)
        return x

    return step, lambda: (torch.ones(5),)


@case(174074, "Rows named twice by a list are doubled twice.", compiled="right", ours="right")
def doubled_twice() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        x[[0, 0]] += x[[0, 0]]
        return x

    return step, lambda: (torch.tensor([[-0.8716, 0.1114]]).double(),)


@case(138908, "Rows named twice by a tensor of indices are doubled twice.", compiled="right", ours="right")
def doubled_twice_by_tensor() -> Made:
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        i = x + 10
        y[i] += y[i]
        return y

    return step, lambda: (torch.full((1, 2), -10), torch.randn(2, 32))


@case(
    183986,
    "A sum by index onto an expanded tensor is made in the one row that it consists of.",
    compiled="right",
    ours="right",
)
def index_add_expanded() -> Made:
    def step(x: torch.Tensor, i: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return torch.index_add(x.expand(4, 8), 0, i, s)

    return step, lambda: (torch.zeros(1, 8), torch.tensor([0, 1, 3]), torch.ones(3, 8))


@case(
    136662,
    "A sum of a function's results, written into columns, is differentiated with what was there.",
    compiled="right",
    ours="eager",
)
def gradient_of_written() -> Made:
    def loss(x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros_like(x)
        y[:, 0] += x[:, 2].abs()
        return y.sum()

    return lambda x: torch.func.grad(loss)(x), lambda: (torch.randn(2, 3),)


@case(
    93363,
    "A write to an argument that is a view, and part of a graph of gradients, is lost.",
    compiled="right",
    ours="right",
)
def view_with_history() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        part = x.add(0.0)[0::2]
        part.add_(1.0)
        return part.sum()

    return step, lambda: (torch.ones(4, requires_grad=True),)


@case(94773, "A view of an argument shows the memory that the argument is given later.", compiled="raises", ours="eager")
def memory_replaced() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        y = x[:]
        x.data = torch.ones(3, 4)
        return y

    return step, lambda: (torch.randn(2, 3),)


@case(193760, "Bytes copied by way of bool become ones.", compiled="right", ours="right")
def copied_as_bool() -> Made:
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.view(torch.bool).copy_(y.view(torch.bool)).view(torch.float32)

    return step, lambda: (torch.zeros(2, 4), torch.randn(2, 4))


@case(151156, "A copy by way of another type of the same width is converted.", compiled="right", ours="right")
def copied_as_uint16() -> Made:
    def step(target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        target.view(torch.int16).copy_(source)
        return target.float()

    return step, lambda: (torch.ones(16, dtype=torch.bfloat16), torch.full((16,), 16256, dtype=torch.int16))


@case(
    111133,
    "A sum by index into a transposed argument changes how it is laid out, or its values.",
    compiled="right",
    ours="eager",
)
def index_add_transposed() -> Made:
    def step(x: torch.Tensor, a: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        y = x.permute(1, 0)
        y.index_add_(0, i, a)
        return y

    return step, lambda: (torch.ones(3, 5), torch.arange(1.0, 10).view(3, 3), torch.tensor([0, 4, 2]))


@case(97117, "A padding by nothing gives the tensor itself, and a later write shows in it.", compiled="right", ours="right")
def padded_by_nothing() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        a = x * 2
        b = F.pad(a, (0, 0))
        a[0] = 1
        return b

    return step, lambda: (torch.ones(1),)


@case(122436, "A write through a view of an argument, made without gradients, is lost.", compiled="right", ours="right")
def write_without_gradient() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        alias = y.view(-1)
        with torch.no_grad():
            alias.mul_(2)
        return y + 1

    return step, lambda: (torch.ones(4, requires_grad=True),)


@case(191844, "Resizing a view that is returned changes the tensor that it views.", ours="eager")
def resized_view() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        base = x + 1
        alias = base.detach()
        alias.resize_(12)
        return base + 1

    return step, lambda: (torch.ones(1),)


@case(
    183575,
    "An average of gradients that is only read later is overwritten by another value.",
    compiled="right",
    ours="right",
)
def lerp_overwritten() -> Made:
    def step(p1, p2, x, m1, m2):  # type: ignore[no-untyped-def]
        y = x.bfloat16() @ p1.bfloat16()
        g1 = (x.bfloat16().t() @ y).float()
        g2 = (y.t() @ (y @ p2.bfloat16())).float()
        m1.lerp_(g1, 0.05)
        m2.lerp_(g2, 0.05)
        p1.add_(m1, alpha=-0.01)
        p2.add_(m2, alpha=-0.01)
        return y.float().mean()

    return step, lambda: tuple(torch.randn(16, 16) * 0.1 for _ in range(5))
