"""Tensor subclasses: what they are asked, and what they answer, is as in eager mode.

Each kind of class (its operations are Python, its kernels are, or neither) is used in each way, in five calls between
which what the class's own code reads changes. Compared are results, what was written, and everything the class was asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.regions.api import region_of

ASKED: list[str] = []
FACTOR = 1


class OwnFunctions(torch.Tensor):
    """Answers every operation, gives plain tensors, and ``dim`` as it likes."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", str(func))
        ASKED.append(name)
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        if name == "dim":
            return FACTOR
        return result.as_subclass(torch.Tensor) * FACTOR if isinstance(result, torch.Tensor) else result


class Named(torch.Tensor):
    """A subclass in name only: torch makes results of it instances of it."""


class Duck:
    """No tensor at all, but functions of torch take it."""

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        ASKED.append(getattr(func, "__name__", str(func)))
        return func(*[a.inner if isinstance(a, Duck) else a for a in args], **(kwargs or {})) * FACTOR


class OwnKernels(torch.Tensor):
    """A wrapper whose kernels are Python and give plain tensors."""

    inner: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> OwnKernels:
        wrapper: OwnKernels = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)  # type: ignore[attr-defined]
        wrapper.inner = inner
        return wrapper

    def __init__(self, inner: torch.Tensor) -> None:
        pass

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        ASKED.append(str(func))
        return func(*[a.inner if isinstance(a, OwnKernels) else a for a in args], **(kwargs or {})) * FACTOR


class Holder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(3).as_subclass(OwnFunctions))

    def forward(self, x: Any, y: torch.Tensor) -> torch.Tensor:
        return y * self.scale


def _written(x: Any, y: torch.Tensor) -> torch.Tensor:
    y.add_(x)
    return y + 1


def _attribute(x: Any, y: torch.Tensor) -> Any:
    return getattr(x, "note", 3) * y, x.requires_grad, x.grad


MAKE: dict[str, Callable[[], Any]] = {
    "own functions": lambda: torch.ones(3).as_subclass(OwnFunctions),
    "own kernels": lambda: OwnKernels(torch.ones(3)),
    "named": lambda: torch.ones(3).as_subclass(Named),
    "duck": lambda: Duck(torch.ones(3)),
}
USES: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    "operation": lambda x, y: torch.mul(x, 2) + y,
    "operation among plain ones": lambda x, y: y * 2 + torch.add(y, x),
    "what dim tells": lambda x, y: y * x.dim(),
    "what shape tells": lambda x, y: y * x.shape[0],
    "length": lambda x, y: y * len(x),
    "number": lambda x, y: y * torch.sum(x).item(),
    "truth": lambda x, y: y + 1 if torch.all(torch.gt(x, 0)) else y,
    "list": lambda x, y: (x.tolist(), y + 1),
    "text of a fact": lambda x, y: (f"{x.dtype}", y + 1),
    "passed through": lambda x, y: ([x, {"x": x}], y + 1),
    "what it is": lambda x, y: y + 1 if isinstance(x, torch.Tensor) else y + 2,
    "attributes": _attribute,
    "written from": _written,
    "function of Python": lambda x, y: nn.functional.linear(y, torch.eye(3)) + torch.relu(x),
    "data": lambda x, y: x.data + y,
    "tensor of elements": lambda x, y: torch.tensor([x[0], x[1]]) + y[:2],
    "made inside": lambda x, y: y.as_subclass(OwnFunctions) * 2,
    "out": lambda x, y: torch.add(x, 1, out=y),
    "buffer": Holder(),
}


def plain(value: Any) -> Any:
    """A result as text, without asking a subclass."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (Duck, OwnKernels)):
        return type(value).__name__, value.inner.tolist()
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction():
            return type(value).__name__, value.tolist()
    return repr(value)


def calls(function: Callable[..., Any], make: Callable[[], Any]) -> list[Any]:
    global FACTOR
    told = []
    for FACTOR in (1, 1, 2, 2, 3):  # noqa: B007
        x, y = make(), torch.ones(3)
        ASKED.clear()
        try:
            result = function(x, y)
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        asked = list(ASKED)
        told.append((plain(result), plain(x), plain(y), asked))
    return told


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", MAKE)
def test_a_subclass_is_asked_what_plain_python_asks(kind: str, use: str, backend: str) -> None:
    expected = calls(USES[use], MAKE[kind])
    compiled = magpy_core.compile(USES[use], backend=backend)
    assert calls(compiled, MAKE[kind]) == expected
    region = region_of(compiled)
    assert region.hits or region.findings or any("Error" in str(result) for result, *_ in expected)


def test_the_finding_names_the_class() -> None:
    compiled = magpy_core.compile(USES["operation"], backend="eager")
    compiled(MAKE["own functions"](), torch.ones(3))
    (found,) = region_of(compiled).findings.values()
    assert found.code == "MP106" and "takes a `OwnFunctions`, whose `__torch_function__` is Python code" in found.message


def test_a_plain_tensor_beside_is_captured() -> None:
    compiled = magpy_core.compile(USES["passed through"], backend="eager")
    calls(compiled, MAKE["own functions"])
    assert region_of(compiled).hits == 4


class OwnParameter(nn.Parameter):
    """Has nothing of its own, yet."""


GAINED: dict[str, Any] = {
    "dim": lambda self: 9,
    "shape": property(lambda self: (9,)),
    "__len__": lambda self: 9,
    "relu": lambda self: torch.zeros(3),
    "__mul__": lambda self, other: torch.zeros(3),
    "is_floating_point": lambda self: 5,
    "__torch_function__": classmethod(lambda cls, func, types, args=(), kwargs=None: 7),
}
ASKING: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    "dim": lambda x, y: y * x.dim(),
    "shape": lambda x, y: y * x.shape[0],
    "len": lambda x, y: y * len(x),
    "relu": lambda x, y: x.relu() + y,
    "product": lambda x, y: x * y,
    "is_floating_point": lambda x, y: y * x.is_floating_point(),
    "function": lambda x, y: y * torch.numel(x),
}


def changing(function: Callable[..., Any], cls: Any, name: str) -> list[Any]:
    told = []
    had = cls.__dict__.get(name)
    try:
        for call in range(4):
            if call == 2:
                setattr(cls, name, GAINED[name])
            x = torch.ones(3).as_subclass(cls) if cls is Named else cls(torch.ones(3))
            try:
                told.append(plain(function(x, torch.ones(3))))
            except Exception as error:
                told.append(f"{type(error).__name__}: {error}")
    finally:
        if had is not None:
            setattr(cls, name, had)
        elif name in cls.__dict__:
            delattr(cls, name)
    return told


@pytest.mark.parametrize(
    ("cls", "name"), [(c, n) for c in (Named, nn.Parameter, OwnParameter) for n in GAINED if n not in c.__dict__]
)
def test_what_a_tensors_class_gains(cls: Any, name: str) -> None:
    """A method or property found before torch's own, patched in after the capture."""
    for asking in ASKING.values():
        assert changing(magpy_core.compile(asking, backend="eager"), cls, name) == changing(asking, cls, name)
