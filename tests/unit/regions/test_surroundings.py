"""What is in force around a call: modes, transforms and tracers see the program's operations only, on every call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import magpy_core
from magpy_core.regions.api import region_of


class Functions(TorchFunctionMode):
    def __init__(self, seen: list[str]) -> None:
        super().__init__()
        self.seen = seen

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    def __init__(self, seen: list[str]) -> None:
        super().__init__()
        self.seen = seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def target(x: torch.Tensor) -> torch.Tensor:
    y = torch.relu(x) * x.shape[0]
    return y.sum() + x


def reported(compiled: Any) -> list[str]:
    return [f.message for f in region_of(compiled).findings.values() if f.code == "MP106"]


@pytest.mark.parametrize("mode", [Functions, Operations])
@pytest.mark.parametrize("captured_before", [False, True])
def test_a_mode_sees_what_it_would_see(mode: Callable[[list[str]], Any], captured_before: bool) -> None:
    compiled = magpy_core.compile(target, backend="eager")
    x = torch.ones(2, 3)
    if captured_before:
        compiled(x)
        compiled(x)
    expected: list[str] = []
    seen: list[str] = []
    for fn, into in ((target, expected), (compiled, seen)):
        with mode(into):
            for n in (2, 2, 3):
                fn(torch.ones(n, 3))
    assert seen == expected and any("relu" in name for name in seen)
    assert mode.__name__ in reported(compiled)[0]
    hits = region_of(compiled).hits
    compiled(x)
    compiled(x)
    assert region_of(compiled).hits > hits, "without the mode it is captured as ever"


def test_default_device_is_no_foreign_mode_but_is_guarded() -> None:
    def made(x: torch.Tensor) -> Any:
        t = torch.zeros(3)
        return t if t.device.type == "meta" else t + x

    compiled = magpy_core.compile(made, backend="eager")
    x = torch.ones(3)
    for device in ("cpu", "cpu", "meta", "cpu"):
        with torch.device(device):
            assert compiled(x).device == made(x).device
    assert region_of(compiled).hits >= 1 and not reported(compiled)


def test_one_mode_in_place_of_another_is_not_the_same() -> None:
    compiled = magpy_core.compile(target, backend="eager")
    x = torch.ones(2, 3)
    with torch.device("cpu"):
        compiled(x)
        compiled(x)
    seen: list[str] = []
    with Functions(seen):
        compiled(x)
    assert seen.count("sum") == 1 and "shape" not in seen and region_of(compiled).hits == 1


def test_transforms_of_torch_func() -> None:
    def loss(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (w * x).sin().sum()

    compiled = magpy_core.compile(loss, backend="eager")
    w, x = torch.randn(3), torch.randn(4, 3)
    for _ in range(2):
        assert torch.equal(compiled(w, x), loss(w, x))
        assert torch.equal(torch.func.grad(compiled)(w, x), torch.func.grad(loss)(w, x))
        many = torch.func.vmap(compiled, (None, 0))(w, x)
        assert torch.equal(many, torch.func.vmap(loss, (None, 0))(w, x))
        ours, theirs = (torch.func.jvp(f, (w, x), (w, x)) for f in (compiled, loss))
        assert torch.equal(ours[1], theirs[1])
    assert region_of(compiled).hits >= 1 and "torch.func" in reported(compiled)[0]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_forward_mode_tangents_are_kept(backend: str) -> None:
    from torch.autograd import forward_ad

    w = torch.randn(3)

    def scaled(x: torch.Tensor) -> torch.Tensor:
        return (x * w).exp()

    compiled = magpy_core.compile(scaled, backend=backend)
    x, tangent = torch.randn(3), torch.randn(3)
    for _ in range(3):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, tangent)
            ours, theirs = (forward_ad.unpack_dual(f(dual)).tangent for f in (compiled, scaled))
            assert ours is not None and torch.equal(ours, theirs)
        assert torch.equal(compiled(x), scaled(x))


def test_tracers_see_the_program() -> None:
    compiled = magpy_core.compile(target, backend="eager")
    x = torch.ones(2, 3)
    compiled(x)
    compiled(x)
    traced = torch.jit.trace(compiled, (x,), check_trace=False)
    assert torch.equal(traced(x * 2), target(x * 2))
    graph = torch.fx.symbolic_trace(lambda t: compiled(t) + 1)
    assert torch.equal(graph(x * 3), target(x * 3) + 1)


@contextmanager
def replaced(name: str) -> Iterator[None]:
    original = getattr(torch.Tensor, name)
    own = name in torch.Tensor.__dict__

    def twice(*args: Any, **kwargs: Any) -> Any:
        return torch.mul(original(*args, **kwargs), 2)

    setattr(torch.Tensor, name, twice)
    try:
        yield
    finally:
        setattr(torch.Tensor, name, original) if own else delattr(torch.Tensor, name)


@pytest.mark.parametrize("name", ["__mul__", "mul", "sum", "__add__", "__rsub__"])
@pytest.mark.parametrize("captured_before", [False, True])
def test_replaced_functions_of_tensors(name: str, captured_before: bool) -> None:
    def uses(x: torch.Tensor) -> torch.Tensor:
        return (1.5 - x * 2.0).sum() + x

    compiled = magpy_core.compile(uses, backend="eager")
    x = torch.ones(2, 3)
    if captured_before:
        compiled(x)
        compiled(x)
    with replaced(name):
        for _ in range(2):
            assert torch.equal(compiled(x), uses(x))
        assert f"torch.Tensor.{name}" in reported(compiled)[0]
    for _ in range(3):
        assert torch.equal(compiled(x), uses(x))
    assert region_of(compiled).hits >= 2


def test_functions_that_a_program_adds_to_tensors_are_its_own() -> None:
    def thrice(self: torch.Tensor) -> torch.Tensor:
        return self * 3

    torch.Tensor.thrice_for_a_test = thrice  # type: ignore[attr-defined]
    try:
        compiled = magpy_core.compile(lambda x: x.thrice_for_a_test(), backend="eager")
        for _ in range(3):
            assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 3.0))
        assert region_of(compiled).hits == 2
        torch.Tensor.thrice_for_a_test = lambda self: self * 4  # type: ignore[attr-defined]
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 4.0))
    finally:
        del torch.Tensor.thrice_for_a_test  # type: ignore[attr-defined]


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_region_inside_of_a_checkpoint(reentrant: bool) -> None:
    """The recomputation stops early by raising from a hook of saved tensors: the region must not run a second time."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return self.inner(x).sin()

    def steps(compiled: bool) -> tuple[list[torch.Tensor], int]:
        torch.manual_seed(0)
        block = Block()
        if compiled:
            block.forward = magpy_core.compile(block.forward, backend="eager")  # type: ignore[method-assign]
        out = []
        for i in range(4):
            x = torch.full((2, 4), 1.0 + i, requires_grad=True)
            for use in (True, False):  # the capture of a plain call must not be used under the checkpoint either
                loss = (checkpoint(block, x, use_reentrant=reentrant) if use else block(x)).sum()
                loss.backward()
                assert x.grad is not None
                out += [loss.detach(), x.grad.clone()]
        return out, block.calls

    expected, calls = steps(False)
    found, found_calls = steps(True)
    assert calls == found_calls
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.fixture
def recording_a_cuda_graph(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Says that the program records a CUDA graph, or no longer does: there is no device here."""

    def say(records: bool) -> None:
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: records)
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: records)

    return say


def test_nothing_is_recorded_while_the_program_records_a_cuda_graph(recording_a_cuda_graph: Callable[[bool], None]) -> None:
    compiled = magpy_core.compile(target, backend="eager")
    x = torch.ones(2, 3)
    recording_a_cuda_graph(True)
    torch.testing.assert_close(compiled(x), target(x))
    assert region_of(compiled).recordings == 0
    (finding,) = [f for f in region_of(compiled).findings.values() if f.code == "MP106"]
    assert "the recording of a CUDA graph" in finding.message and "a few times before" in finding.hint
    recording_a_cuda_graph(False)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), target(x))
    assert region_of(compiled).hits == 1


def test_nothing_is_compiled_while_the_program_records_a_cuda_graph(recording_a_cuda_graph: Callable[[bool], None]) -> None:
    """However often it is called meanwhile, the capture is kept, and compiled afterwards."""
    compiled = magpy_core.compile(target, backend="eager", wait=True)
    x = torch.ones(2, 3)
    compiled(x)
    (capture,) = magpy_core.captures(compiled)
    recording_a_cuda_graph(True)
    for _ in range(5):
        torch.testing.assert_close(compiled(x), target(x))
    assert not capture.is_compiled and region_of(compiled).hits == 0
    recording_a_cuda_graph(False)
    torch.testing.assert_close(compiled(x), target(x))
    assert capture.is_compiled and region_of(compiled).hits == 1


def test_compiled_code_serves_while_the_program_records_a_cuda_graph(
    recording_a_cuda_graph: Callable[[bool], None],
) -> None:
    compiled = magpy_core.compile(target, backend="eager", wait=True)
    x = torch.ones(2, 3)
    compiled(x)
    compiled(x)
    recording_a_cuda_graph(True)
    torch.testing.assert_close(compiled(x), target(x))
    assert region_of(compiled).hits == 2 and not reported(compiled)
