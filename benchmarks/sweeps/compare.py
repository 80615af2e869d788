"""Records everything observable of a module's calls and compares it exactly. Key functions: observe, difference."""

from __future__ import annotations

import copy
import logging
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch
from torch import nn

TOLERANCE = 1e-4
_DEPTH = 12


@dataclass
class Call:
    """What one call changes: its output, its arguments afterwards, its backward gradients, the random state."""

    output: Any = None
    arguments: Any = None
    gradients: dict[str, Any] = field(default_factory=dict)
    random_state: Any = None
    seconds: float = 0.0  # CPU time of the call without its backward pass; not compared


@dataclass
class Observed:
    """Several calls of one module, and its state afterwards."""

    calls: list[Call]
    state: dict[str, Any]


def seed(number: int) -> None:
    torch.manual_seed(number)
    random.seed(number)
    numpy.random.seed(number)


def observe(
    build: Callable[[], nn.Module],
    inputs: Callable[[], Any],
    wrap: Callable[[nn.Module], Any],
    calls: int = 3,
    train: bool = False,
) -> Observed:
    """Builds the module, wraps it (compiled or not), and calls it with new seeded inputs, each with a backward pass."""
    seed(1)
    module = build()
    module.train(train)
    target = wrap(module)
    seen = []
    for number in range(calls):
        seed(100 + number)
        args, kwargs = inputs()
        seed(200 + number)
        start = time.process_time()
        output = target(*args, **kwargs)
        seconds = time.process_time() - start
        call = Call(_frozen(output), _frozen([args, kwargs]), seconds=seconds)
        call.random_state = [torch.get_rng_state(), random.getstate(), [str(part) for part in numpy.random.get_state()]]
        module.zero_grad()
        call.gradients = _gradients(module, output)
        seen.append(call)
    return Observed(seen, _state(module))


def _gradients(module: nn.Module, output: Any) -> dict[str, Any]:
    total: Any = 0
    for tensor in _tensors(output, _DEPTH, set()):
        if tensor.requires_grad and tensor.grad_fn is not None and not tensor.is_sparse:
            real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
            total = total + (real * torch.linspace(0.5, 1.5, real.numel(), dtype=real.dtype).reshape(real.shape)).sum()
    if not isinstance(total, torch.Tensor):
        return {}
    try:
        total.backward()
    except Exception as error:  # also an error of the program: a Reformer in eval mode asserts that it is in training
        return {"raised": type(error).__name__}
    return {name: _frozen(parameter.grad) for name, parameter in module.named_parameters()}


def _tensors(value: Any, depth: int, seen: set[int]) -> Iterator[torch.Tensor]:
    if depth == 0 or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item, depth - 1, seen)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item, depth - 1, seen)
    elif isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, (type, nn.Module)):
        yield from _tensors(vars(value), depth - 1, seen)


def _state(module: nn.Module) -> dict[str, Any]:
    """Parameters, buffers and plain attributes of every submodule."""
    # the last two are what torch.compile and we leave in a module
    hidden = {"_modules", "_parameters", "_buffers", "_is_torch_compile", "_compiled_call_impl"}
    state: dict[str, Any] = {"state_dict": _frozen(dict(module.state_dict()))}
    for name, part in module.named_modules():
        for key, value in vars(part).items():
            if key not in hidden and not key.endswith("_hooks"):
                state[f"{name}.{key}"] = _frozen(value)
    return state


def _frozen(value: Any, depth: int = _DEPTH) -> Any:
    """A copy of data that is safe from later writes; for other objects, their type."""
    if depth == 0:
        return "..."
    if isinstance(value, torch.Tensor):
        return _FrozenTensor(type(value), value.requires_grad, value.detach().clone())
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)):
        return value
    if isinstance(value, (list, tuple)):
        return (type(value), [_frozen(item, depth - 1) for item in value])
    if isinstance(value, dict):
        return (type(value), [(_frozen(k, depth - 1), _frozen(v, depth - 1)) for k, v in value.items()])
    if isinstance(value, (set, frozenset)):
        return (type(value), sorted(map(repr, value)))
    if isinstance(value, numpy.ndarray):
        return (
            numpy.ndarray,
            _FrozenTensor(torch.Tensor, False, torch.from_numpy(copy.copy(value)))
            if value.dtype.kind in "fiub"
            else repr(value),
        )
    if (
        isinstance(getattr(value, "__dict__", None), dict)
        and not isinstance(value, (type, nn.Module, logging.Logger))  # a logger leads to all loggers of the process
        and not callable(value)
    ):
        return (type(value), _frozen(vars(value), depth - 1))
    return type(value)


@dataclass
class _FrozenTensor:
    kind: type
    requires_grad: bool
    value: torch.Tensor


def difference(expected: Any, got: Any, path: str = "") -> str | None:
    """The first difference between two observations, as a path and two values; None if there is none."""
    if type(expected) is not type(got):
        return f"{path}: {type(expected).__name__} expected, {type(got).__name__} found"
    if isinstance(expected, Observed):
        for number, (one, other) in enumerate(zip(expected.calls, got.calls, strict=True)):
            for name in ("output", "arguments", "gradients", "random_state"):
                found = difference(getattr(one, name), getattr(other, name), f"call {number + 1} {name}")
                if found is not None:
                    return found
        return difference(expected.state, got.state, "state")
    if isinstance(expected, _FrozenTensor):
        return _tensor_difference(expected, got, path)
    if isinstance(expected, torch.Tensor):
        return None if torch.equal(expected, got) else f"{path}: tensors differ"
    if isinstance(expected, dict):
        if list(expected) != list(got):
            return f"{path}: keys differ: {sorted(map(str, expected.keys() ^ got.keys()))[:4]}"
        pairs = ((f"{path}[{key}]", value, got[key]) for key, value in expected.items())
    elif isinstance(expected, (list, tuple)):
        if len(expected) != len(got):
            return f"{path}: {len(expected)} items expected, {len(got)} found"
        pairs = ((f"{path}.{n}", one, other) for n, (one, other) in enumerate(zip(expected, got, strict=True)))
    elif isinstance(expected, (float, complex)):
        close = expected == got or abs(expected - got) <= TOLERANCE * max(1.0, abs(expected)) or expected != expected
        return None if close else f"{path}: {expected} expected, {got} found"
    else:
        return None if expected == got else f"{path}: {expected!r} expected, {got!r} found"[:300]
    return next((found for where, one, other in pairs if (found := difference(one, other, where)) is not None), None)


def _tensor_difference(expected: _FrozenTensor, got: _FrozenTensor, path: str) -> str | None:
    for name, one, other in (
        ("type", expected.kind, got.kind),
        ("requires_grad", expected.requires_grad, got.requires_grad),
        ("dtype", expected.value.dtype, got.value.dtype),
        ("shape", expected.value.shape, got.value.shape),
        ("layout", expected.value.layout, got.value.layout),
    ):
        if one != other:
            return f"{path}: {name} {one} expected, {other} found"
    left, right = (v.to_dense() if v.layout is not torch.strided else v for v in (expected.value, got.value))
    if left.is_quantized:
        left, right = left.dequantize(), right.dequantize()
    if not (left.is_floating_point() or left.is_complex()):
        return None if torch.equal(left, right) else f"{path}: values differ"
    if torch.allclose(left, right, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
        return None
    return f"{path}: values differ by up to {(left - right).abs().max().item():.3g}"
