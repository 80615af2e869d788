"""Where compilers compute something else than the program: MagPy compiles around it, guards it, or leaves the call alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import magpy_core
from magpy_core.regions.api import region_of

COMPILERS = pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])


def views(x: torch.Tensor, i: int) -> Any:
    return x[i], x[:i].clone(), x[i : i + 1], x.narrow(0, i, 1), x.view(3, 2)[i // 2]


def joined(x: torch.Tensor, i: int) -> Any:
    return x[i] + x[:i].sum() * x.select(0, i)


@COMPILERS
@pytest.mark.parametrize("region", [views, joined])
def test_a_number_that_varies_is_an_index(region: Callable[..., Any], backend: str) -> None:
    """Only sizes that varied were looked at when a compiler had taken a number for fixed."""
    compiled = magpy_core.compile(region, backend=backend)
    x = torch.arange(6.0)
    for i in (1, 1, 2, 3, 4, 5, 2):
        expected, got = region(x, i), compiled(x, i)
        for a, b in zip(expected, got, strict=True) if region is views else [(expected, got)]:
            assert torch.equal(a, b) and a.storage_offset() == b.storage_offset(), i


def unchanged(x: torch.Tensor) -> Any:
    return x + torch.zeros(3), (x * torch.ones(2, 3)).view(6), x.sin() + torch.zeros(3)


@pytest.mark.parametrize("learning", [False, True])
def test_results_have_memory_of_their_own(learning: bool) -> None:
    """Inductor's folding of constants makes `x` of `x + 0`."""
    compiled = magpy_core.compile(unchanged, backend="inductor")
    for _ in range(3):
        x = torch.randn(2, 3, requires_grad=learning)
        results = compiled(x)
        before = x.detach().clone()
        with torch.no_grad():
            for n, result in enumerate(results):
                result.fill_(n)
        assert torch.equal(x, before) and [r.unique().tolist() for r in results] == [[0.0], [1.0], [2.0]]
    assert magpy_core.captures(compiled)


def test_inference_mode_inside_is_refused() -> None:
    @torch.inference_mode()
    def region(x: torch.Tensor) -> Any:
        return x + 1 if x.sum() > 2 else x - 1

    compiled = magpy_core.compile(region, backend="aot_eager")
    for n in (3, 3, 1, 3):
        expected, got = region(torch.ones(n)), compiled(torch.ones(n))
        assert torch.equal(expected, got) and got.is_inference()
    assert not magpy_core.captures(compiled)
    assert not torch.is_inference_mode_enabled() and not torch.ones(1).is_inference()


def test_a_checkpointed_part_that_writes_does_so_again() -> None:
    norm = torch.nn.BatchNorm1d(3)

    def region(x: torch.Tensor) -> Any:
        return checkpoint(lambda v: norm(v).relu(), x, use_reentrant=False)

    counts = []
    for function in (region, magpy_core.compile(region, backend="aot_eager")):
        norm.reset_running_stats()
        for _ in range(3):
            function(torch.randn(4, 3, requires_grad=True)).sum().backward()
        with torch.no_grad():
            function(torch.randn(4, 3))
        assert norm.num_batches_tracked is not None
        counts.append(int(norm.num_batches_tracked))
    assert counts == [7, 7]


def test_negative_and_conjugate_views_are_not_read_as_they_lie_in_memory() -> None:
    compiled = magpy_core.compile(lambda x: x.sin() * 2, backend="inductor")
    number = torch.complex(torch.ones(4), torch.arange(4.0))
    for x in (-number.imag, -number.imag, *[number.conj().imag] * 3):
        assert torch.allclose(compiled(x), x.sin() * 2)
    assert magpy_core.captures(compiled)


def test_gradients_of_complex_results() -> None:
    compiled = magpy_core.compile(lambda x: (torch.fft.fft(x), torch.complex(x, x).conj()), backend="aot_eager")
    for _ in range(3):
        x = torch.randn(4, requires_grad=True)
        sum(y.abs().sum() for y in compiled(x)).backward()
        assert x.grad is not None


def test_a_write_that_autograd_takes_note_of() -> None:
    """Inductor's partition saves what the input was before as the input itself, which has been written by then."""
    weight = torch.full((3,), 2.0, requires_grad=True)

    def region(x: torch.Tensor) -> Any:
        x.mul_(weight)
        return x * 3

    grads = []
    for function in (
        region,
        magpy_core.compile(region, backend="inductor"),
        magpy_core.compile(region, backend="aot_eager"),
    ):
        weight.grad = None
        for n in range(1, 5):
            function(torch.full((3,), float(n))).pow(2).sum().backward()
        grads.append(weight.grad)
    assert torch.equal(grads[0], grads[1]) and torch.equal(grads[0], grads[2])


@pytest.mark.slow
@pytest.mark.usefixtures("empty_compiler_cache")
def test_inputs_in_one_memory_and_apart() -> None:
    """AOTAutograd's cache on disk takes a graph compiled for one memory for the same graph with inputs apart."""

    def region(a: torch.Tensor, b: torch.Tensor) -> Any:
        a.add_(1)
        return a * b

    compiled = magpy_core.compile(region, backend="inductor")
    for n in (0, 1, 2, 0, 1, 2, 1):
        t = torch.ones(3)
        assert compiled(t, (t.view(3), torch.ones(3), t)[n]).tolist() == [2.0 if n == 1 else 4.0] * 3


@pytest.mark.slow
@pytest.mark.usefixtures("empty_compiler_cache")
def test_dtypes_that_a_cached_graph_was_made_for() -> None:
    """Before torch 2.12, that cache looks neither at the default dtype nor at autocast's."""
    compiled = magpy_core.compile(lambda x: (x @ x, torch.zeros(2)), backend="inductor")
    x = torch.ones(2, 2)
    found = []
    for default, low in ((torch.float32, torch.bfloat16), (torch.float64, torch.float16)):
        torch.set_default_dtype(default)
        try:
            for _ in range(2):
                with torch.autocast("cpu", dtype=low):
                    product, zeros = compiled(x)
                assert (product.dtype, zeros.dtype) == (low, default)
                assert compiled(x)[1].dtype is default
        finally:
            torch.set_default_dtype(torch.float32)
        found.append(len(magpy_core.captures(compiled)))
    assert found == [2, 4]


def test_the_programs_tensors_are_not_asked_by_the_backend() -> None:
    """A subclass answers everything it is asked; a recording's end and a compilation ask nothing."""
    asked: list[str] = []

    class Tagged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append(getattr(func, "__name__", str(func)))
            return super().__torch_function__(func, types, args, kwargs or {})

    def region(x: torch.Tensor) -> torch.Tensor:
        return x * 2 + 1

    outcomes = []
    for function in (region, magpy_core.compile(region, backend="aot_eager")):
        asked.clear()
        for _ in range(3):
            function(torch.ones(3).as_subclass(Tagged))
        outcomes.append(list(asked))
    assert outcomes[0] == outcomes[1]


@COMPILERS
def test_hooks_of_what_gets_no_gradient_are_not_called(backend: str) -> None:
    """AOTAutograd's backward gives None for such an input, and autograd calls its hooks with it."""

    def region(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x * w.detach() + (w > 0)

    compiled = magpy_core.compile(region, backend=backend)
    for k in range(5):
        x, w = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
        called: list[Any] = []
        if k > 1:
            w.register_hook(called.append)
        compiled(x, w).sum().backward()
        assert not called and w.grad is None and x.grad is not None and x.grad.tolist() == [2.0] * 3
    assert region_of(compiled).hits == 1


@COMPILERS
def test_the_calls_autocast_is_not_the_backwards(backend: str) -> None:
    def region(layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", enabled=False):
            return torch.as_tensor(layer(x)).square()

    layer = torch.nn.Linear(3, 3)
    compiled = magpy_core.compile(region, backend=backend)
    for k in range(3):
        gradients = []
        for function in (region, compiled):
            x = (torch.arange(6.0).reshape(2, 3).sin() + k).requires_grad_()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                result = function(layer, x)
            result.sum().backward()
            gradients.append(x.grad)
        torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-5, atol=1e-6)
    assert region_of(compiled).hits


def test_a_view_made_in_inference_mode_is_a_view() -> None:
    def region(x: torch.Tensor) -> Any:
        return x.view(3, 2), x[0]

    compiled = magpy_core.compile(region, backend="aot_eager")
    for _ in range(3):
        x = torch.ones(2, 3, requires_grad=True)
        with torch.inference_mode():
            results = compiled(x)
        assert all(t.requires_grad and t._base is x and not t.is_inference() for t in results)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "operation", [torch.add, torch.sub, torch.rsub, torch.mul, torch.div, torch.pow, torch.remainder, torch.fmod]
)
def test_a_number_that_varies_is_rounded_as_eager_rounds_it(operation: Any, dtype: torch.dtype) -> None:
    """Some kernels for the CPU round the number to the half type first, others take it as it is."""

    def region(x: torch.Tensor, number: float) -> torch.Tensor:
        return torch.as_tensor(operation(x, number))

    compiled = magpy_core.compile(region, backend="aot_eager")
    for k in range(60):
        x = torch.full((4,), 6.0 + k / 50, dtype=dtype)
        assert torch.equal(compiled(x, 0.3 + k / 37), region(x, 0.3 + k / 37)), k
    assert region_of(compiled).hits


@COMPILERS
def test_hooks_of_a_gradient_taken_inside(backend: str) -> None:
    def region(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad((x * w).square().sum(), w)[0] * 2

    w = torch.ones(3, requires_grad=True)
    compiled = magpy_core.compile(region, backend=backend)
    for k in range(5):
        if k == 3:
            w.register_hook(lambda g: g * 3)
        x = torch.arange(3.0) + k
        assert torch.equal(compiled(x, w), region(x, w))
    assert region_of(compiled).hits == 2
