"""Sizes of what opaque calls give (custom functions, scripts, checkpoints), for inputs of varying length."""

from __future__ import annotations

import contextvars
import decimal
import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import magpy_core
from magpy_core.regions.api import region_of


class Positive(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x[x > 2] * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (x,) = ctx.saved_tensors
        out = torch.zeros_like(x)
        out[x > 2] = grads[0] * 2
        return out


class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> Any:
        return x * 2, x[x > 2]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0]


class Shorter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x[1:] * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return torch.cat([torch.zeros(1), grads[0] * 2])


class Chosen(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[x > 2] * 2


CALLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "function": lambda x: Positive.apply(x),  # type: ignore[no-any-return, no-untyped-call]
    "one result of a function": lambda x: Both.apply(x)[1],  # type: ignore[no-any-return, no-untyped-call]
    "function of sizes alone": lambda x: Shorter.apply(x),  # type: ignore[no-any-return, no-untyped-call]
    "script": torch.jit.script(Chosen()),
    "checkpoint": lambda x: checkpoint(lambda v: v[v > 2] * 2, x, use_reentrant=False),  # type: ignore[no-any-return]
    "mask": lambda x: x[x > 2],
}


@pytest.mark.parametrize("learning", [True, False])
@pytest.mark.parametrize("name", CALLS)
def test_sizes_that_follow_from_data(name: str, learning: bool) -> None:
    """A capture for any length took the size that was recorded for that of every call."""

    def region(x: torch.Tensor) -> Any:
        y = CALLS[name](x)
        return y * 2, y.shape[0], len(y), y.numel()

    compiled = magpy_core.compile(region, backend="eager")
    for k, length in enumerate((6, 12, 12, 12, 6, 9, 9, 30)):
        torch.manual_seed(k)
        x = (torch.rand(length) * 4).requires_grad_(learning)
        expected, got = region(x), compiled(x)
        assert got[1:] == expected[1:] and torch.equal(got[0], expected[0])
    codes = {f.code for f in region_of(compiled).findings.values()}
    if name == "script":
        assert not region_of(compiled).hits and "MP112" in codes
    elif name in ("mask", "checkpoint"):
        assert region_of(compiled).captures and "MP109" in codes
    else:
        assert region_of(compiled).hits or "MP109" in codes


def test_each_size_has_its_own_capture_and_no_compiler_takes_them() -> None:
    def region(x: torch.Tensor) -> torch.Tensor:
        kept = x.sin()[x > 0]
        return kept.view(len(kept), 1) @ kept.new_ones(1, 2) * kept.shape[0]

    inputs = [torch.tensor([1.0, 2.0, -1.0]), torch.tensor([3.0, 4.0, -2.0]), torch.tensor([1.0, -1.0, -1.0])]
    for fullgraph in (False, True):
        compiled = magpy_core.compile(region, backend="eager", fullgraph=fullgraph)
        for x in [*inputs, *inputs]:
            assert torch.equal(compiled(x), region(x))
        # one graph is compared after it has run: of another size it raises, and the call runs in eager mode
        assert (len(magpy_core.captures(compiled)), region_of(compiled).hits) == ((1, 3) if fullgraph else (2, 4))
        assert all(capture.is_complete is fullgraph for capture in magpy_core.captures(compiled))
    compiled = magpy_core.compile(region, backend="aot_eager")
    for x in inputs:
        assert torch.equal(compiled(x), region(x))
    assert magpy_core.captures(compiled) == []
    assert [f.code for f in region_of(compiled).findings.values()] == ["MP109"]


STATE = torch.zeros(())


class Counted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        STATE.add_(1)
        return x * STATE

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * 2


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(1)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        torch._foreach_add_([self.count], 2)
        return self.norm(x[:, None])[:, 0] * self.count


def _old_style() -> torch.nn.Module:
    class Old(torch.jit.ScriptModule):
        def __init__(self) -> None:
            super().__init__()
            self.count = torch.zeros(())

        @torch.jit.script_method
        def inside(self, x):  # type: ignore[no-untyped-def]
            self.count.add_(1)
            return x * 2

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inside(x) + self.count  # type: ignore[no-any-return]

    return Old()


def _writers() -> dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[], list[torch.Tensor]]]]:
    script, old, traced = torch.jit.script(Counting()), _old_style(), torch.jit.trace(Counting(), torch.arange(4.0))
    return {
        "function": (lambda x: Counted.apply(x), lambda: [STATE]),  # type: ignore[no-any-return, no-untyped-call]
        "script": (script, lambda: [*script.buffers()]),
        "script, old style": (old, lambda: [old.count]),
        "trace": (traced, lambda: [*traced.buffers()]),
    }


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("name", ["function", "script", "script, old style", "trace"])
def test_what_opaque_calls_write_is_written_once(name: str, read: bool) -> None:
    """Where lengths vary, each operation is repeated on fake tensors. A call of the program's own code was too, with what it
    changes of its own: a count went up twice in the call that was recorded."""
    STATE.zero_()
    torch.manual_seed(0)
    (region, state), (plain, expected_state) = _writers()[name], _writers()[name]

    def sized(x: torch.Tensor) -> Any:
        y = region(x)
        return (y, y.shape[0]) if read else (y * 2, None)

    compiled = magpy_core.compile(sized, backend="eager")
    wanted: list[torch.Tensor] = []
    for k, length in enumerate((6, 12, 12, 9, 6, 30)):
        torch.manual_seed(k)
        x = torch.rand(length)
        before = [t.clone() for t in state()]
        expected = plain(x)
        wanted = [t.clone() for t in expected_state()]
        if name == "function":
            STATE.copy_(before[0])
        got = compiled(x)
        assert torch.equal(got[0], expected if read else expected * 2) and got[1] in (length, None)
        assert all(torch.equal(a, b) for a, b in zip(state(), wanted, strict=True)), (length, state(), wanted)
    codes = {f.code for f in region_of(compiled).findings.values()}
    assert not magpy_core.captures(compiled) and ("MP107" if name == "function" else "MP112") in codes


GENERATOR = torch.Generator()
COUNT = contextvars.ContextVar("COUNT", default=0)
CONTEXT = decimal.Context(prec=10)


def _precision(state: torch.Tensor) -> None:
    CONTEXT.prec += 1


def _numpy(state: torch.Tensor) -> None:
    state.detach().numpy()[...] += 1


def _storage(state: torch.Tensor) -> None:
    state.untyped_storage().copy_((state.detach() + 1).untyped_storage())


def _data(state: torch.Tensor) -> None:
    state.data = state.data + 1


def _grad(state: torch.Tensor) -> None:
    state.grad = torch.ones(()) if state.grad is None else state.grad + 1


WRITES: dict[str, Callable[[torch.Tensor], Any]] = {
    "operator": lambda state: state.detach().add_(1),
    "list": lambda state: torch._foreach_add_([state.detach()], 1),
    "out": lambda state: torch.add(state.detach(), 1, out=state.detach()),
    "item": lambda state: state.detach().__setitem__(..., state + 1),
    "set": lambda state: state.detach_().set_((state + 1).detach()),
    "numpy": _numpy,
    "storage": _storage,
    "data": _data,
    "grad": _grad,
    "flag": lambda state: state.requires_grad_(not state.requires_grad),
    "hook": lambda state: state.requires_grad_().register_hook(lambda g: g),
    "generator": lambda state: GENERATOR.manual_seed(GENERATOR.initial_seed() + 1),
    "context variable": lambda state: COUNT.set(COUNT.get() + 1),
    "decimal context": _precision,
}


@pytest.mark.parametrize("name", WRITES)
def test_every_way_to_change_a_tensor_of_ones_own(name: str) -> None:
    def world() -> tuple[Callable[[torch.Tensor], Any], Callable[[], Any]]:
        state = torch.zeros(())
        GENERATOR.manual_seed(3)
        COUNT.set(0)
        CONTEXT.prec = 10

        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                WRITES[name](state)
                return x * state.detach()

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return grads[0] * 2

        def region(x: torch.Tensor) -> Any:
            y = Own.apply(x)  # type: ignore[no-untyped-call]
            return y, y.shape[0]

        def left() -> Any:
            hooks = len(state._backward_hooks or ())  # type: ignore[attr-defined]
            grad = None if state.grad is None else state.grad.item()
            others = GENERATOR.initial_seed(), COUNT.get(), CONTEXT.prec
            return type(state), state.item(), state.requires_grad, grad, hooks, others

        return region, left

    lengths = (6, 12, 12, 9, 6, 30)
    plain, expected = world()
    wanted = [(plain(torch.arange(n * 1.0))[0].tolist(), expected()) for n in lengths]
    region, left = world()
    compiled = magpy_core.compile(region, backend="eager")
    assert [(compiled(torch.arange(n * 1.0))[0].tolist(), left()) for n in lengths] == wanted


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("by", ["tensor", "size"])
def test_a_cache_is_asked_once(by: str, inside: bool) -> None:
    """It kept the fake tensor, and had made room for it."""

    def world() -> tuple[Callable[[torch.Tensor], Any], Callable[[], Any]]:
        mask = torch.ones(4)

        @functools.lru_cache(maxsize=1)
        def weights(shape: torch.Size | None, tensor: torch.Tensor | None, factor: int = 1) -> torch.Tensor:
            return (mask if tensor is None else tensor).cumsum(0) * factor

        def asked(x: torch.Tensor) -> Any:
            shape = None if by == "tensor" else x.shape
            kept = weights(shape, mask if by == "tensor" else None)
            again = weights(shape, mask if by == "tensor" else None)
            weights(shape, mask * 2 if by == "tensor" else None, factor=2)
            return x * kept.sum() + again.sum(), kept is again

        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                return asked(x)[0]  # type: ignore[no-any-return]

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return grads[0] * 2

        def region(x: torch.Tensor) -> Any:
            y, same = (Own.apply(x), None) if inside else asked(x)  # type: ignore[no-untyped-call]
            return y, y.shape[0], same

        def left() -> Any:
            return weights.cache_info(), type(weights(torch.Size([30]), mask if by == "tensor" else None, factor=2))

        return region, left

    lengths = (6, 12, 12, 9, 6, 30)
    plain, expected = world()
    wanted = [[v.tolist() if isinstance(v, torch.Tensor) else v for v in plain(torch.arange(n * 1.0))] for n in lengths]
    region, left = world()
    compiled = magpy_core.compile(region, backend="eager")
    got = [[v.tolist() if isinstance(v, torch.Tensor) else v for v in compiled(torch.arange(n * 1.0))] for n in lengths]
    assert got == wanted and left() == expected()


def test_code_that_goes_on_without_what_it_was_about_to_change() -> None:
    """What stops it there is an error like others, which it may catch: it gives something else then than in the program."""
    state = torch.zeros(())

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            try:
                state.add_(1)
            except RuntimeError:
                return torch.ones(12) * 2
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * 2

    def region(x: torch.Tensor) -> Any:
        y = Own.apply(x)  # type: ignore[no-untyped-call]
        return y * y.shape[0], y.shape[0]

    compiled = magpy_core.compile(region, backend="eager")
    for calls, length in enumerate((6, 12, 12, 9, 6, 30), start=1):
        y, size = compiled(torch.ones(length))
        assert size == length and y.tolist() == [2.0 * length] * length and state.item() == calls
