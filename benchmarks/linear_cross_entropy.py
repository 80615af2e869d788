"""A linear layer and its cross entropy, forward and backward: in eager mode, compiled, and by MagPy's operator.

    python -m benchmarks.linear_cross_entropy [--memory]

Peak memory is counted on fake tensors, everywhere: what is allocated and not yet freed, beside the inputs. Times need a CUDA
device; without one it says so.
"""

from __future__ import annotations

import argparse
import statistics
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from magpy_core._compat.torch.triton_device import guard_without_device, has_triton
from magpy_core.fused import operators
from magpy_core.fused.chunks import Head, gradients_of, losses_of

_ROUNDS, _WARM = 20, 5
Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Shape:
    name: str
    rows: int
    width: int
    vocabulary: int
    dtype: torch.dtype = torch.bfloat16

    def inputs(self, device: str) -> Tensors:
        """Hidden states, weight, targets."""
        hidden = torch.randn(self.rows, self.width, dtype=self.dtype, device=device).requires_grad_()
        weight = (
            torch.randn(self.vocabulary, self.width, dtype=self.dtype, device=device) / self.width**0.5
        ).requires_grad_()
        return hidden, weight, torch.randint(0, self.vocabulary, (self.rows,), device=device)


SHAPES = (
    Shape("GPT-2 small", 8 * 1024, 768, 50_257),
    Shape("GPT-2 small, float32", 8 * 1024, 768, 50_257, torch.float32),
    Shape("Llama 3 8B", 8 * 1024, 4096, 128_256),
)


# -- the ways ------------------------------------------------------------------------------------------------------------


def eager(hidden: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> Tensors:
    """As under autocast on CUDA: products in the inputs' type, the loss in float32."""
    loss = F.cross_entropy(F.linear(hidden, weight).float(), target)
    return loss, *torch.autograd.grad(loss, (hidden, weight))


def in_one_pass(hidden: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> Tensors:
    """The operator that graphs get for a mean: the gradients are computed with the loss."""
    loss, *_ = operators.SUM(hidden, weight, None, target, -100, 0.0, True, [True, True, False])
    return loss, *torch.autograd.grad(loss, (hidden, weight))


def in_two_passes(hidden: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> Tensors:
    """The operator that graphs get for the loss of each row: the backward pass computes the logits again."""
    loss = operators.LOSSES(hidden, weight, None, target, -100, 0.0).mean()
    return loss, *torch.autograd.grad(loss, (hidden, weight))


# -- memory --------------------------------------------------------------------------------------------------------------


class Peak(TorchDispatchMode):
    """Counts the bytes of storages that operations have made and that are still alive."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = self.most = 0
        self._seen: set[int] = set()

    def watch(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        if storage._cdata in self._seen:
            return
        self._seen.add(storage._cdata)
        self.bytes += storage.nbytes()
        self.most = max(self.most, self.bytes)
        weakref.finalize(storage, self._freed, storage._cdata, storage.nbytes())

    def _freed(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self.bytes -= size

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.watch(leaf)
        return result


def peak_bytes(shape: Shape, way: Callable[..., Any]) -> int:
    """The most memory that ``way`` needs at a time beside its inputs: counted on fakes, nothing is computed. Autograd needs
    a device, so eager mode is counted on the CPU, where it runs the same operations."""
    if not torch.cuda.is_available():
        guard_without_device()
    with FakeTensorMode():
        inputs = shape.inputs("cpu" if way is eager else "cuda")
        with Peak() as peak:
            for given in inputs:
                peak.watch(given)
            before, peak.most = peak.bytes, peak.bytes
            kept = way(*inputs)  # the results count: a caller has them
            del kept
    most: int = peak.most - before
    return most


def _without_kernel(*arguments: Any) -> None:
    """In place of the kernel, which allocates nothing."""


def chunks_in_one_pass(hidden: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> Tensors:
    """What the operator allocates: a fake of the operator itself would show its results alone."""
    head = Head(hidden, weight, None, target, -100, 0.0)
    with torch.no_grad():
        scale = hidden.new_ones((), dtype=torch.float32).expand_as(target)
        return gradients_of(head, scale, (True, True, False), _without_kernel)


def chunks_in_two_passes(hidden: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> Tensors:
    head = Head(hidden, weight, None, target, -100, 0.0)
    with torch.no_grad():
        losses = losses_of(head, _without_kernel)
        return losses, *chunks_in_one_pass(hidden, weight, target)


# -- time ----------------------------------------------------------------------------------------------------------------


def milliseconds(call: Callable[[], Any]) -> float:
    """The median time of a call on the current CUDA device."""
    times: list[float] = []
    for _ in range(_WARM + _ROUNDS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times[_WARM:])


def on_device(shape: Shape) -> None:
    """Times, and the allocator's peak, of each way on the current device."""
    inputs = shape.inputs("cuda")
    compiled = torch.compile(lambda h, w, t: F.cross_entropy(F.linear(h, w).float(), t))
    ways: dict[str, Callable[..., Any]] = {
        "eager": eager,
        "torch.compile": lambda h, w, t: torch.autograd.grad(compiled(h, w, t), (h, w)),
        "one pass": in_one_pass,
        "two passes": in_two_passes,
    }
    for name, way in ways.items():
        call = partial(way, *inputs)
        took = milliseconds(call)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        torch.cuda.synchronize()
        most = torch.cuda.max_memory_allocated() - before
        print(f"  {name:14} {took:8.2f} ms  {most / 1e6:8,.0f} MB on {torch.cuda.get_device_name()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--memory", action="store_true", help="count memory on fakes only")
    memory_only = parser.parse_args().memory
    counted = {"eager": eager, "one pass": chunks_in_one_pass, "two passes": chunks_in_two_passes}
    for shape in SHAPES:
        kind = str(shape.dtype).removeprefix("torch.")
        print(f"{shape.name}: {shape.rows} x {shape.width}, vocabulary {shape.vocabulary}, {kind}")
        for name, way in counted.items():
            print(f"  {name:14} {peak_bytes(shape, way) / 1e6:8,.0f} MB beside the inputs, counted on fakes")
        if torch.cuda.is_available() and has_triton() and not memory_only:
            on_device(shape)
    if not torch.cuda.is_available():
        print("no CUDA device: nothing was timed")


if __name__ == "__main__":
    main()
