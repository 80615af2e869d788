"""Changes of modules (hooks, parameters, children), and the state of the interpreter that a call runs in.

Importing this registers the modules' kinds of change; ``AMBIENT`` lists the others, and ``surroundings`` makes them true for
the time of one call. Key functions: surroundings, ambient_changes.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.soundness.harness.changes import a, change, double, wrapped
from tests.soundness.harness.world import Change, World

# -- modules ---------------------------------------------------------------------------------------------------


def _parameters(m: nn.Module) -> list[str]:
    return [n for n, p in m._parameters.items() if p is not None and not isinstance(p, nn.parameter.UninitializedParameter)]


def _has_parameter(v: Any) -> bool:
    return issubclass(type(v), nn.Module) and bool(_parameters(v))


def _has_children(v: Any) -> bool:
    return issubclass(type(v), nn.Module) and bool(v._modules)


_module = a(nn.Module)


@change("toggle training", _module)
def _toggle_training(m: nn.Module) -> None:
    m.train(not m.training)


@change("toggle training of this module only", _module)
def _toggle_training_here(m: nn.Module) -> None:
    m.training = not m.training


@change("add forward hook", _module)
def _add_hook(m: nn.Module) -> None:
    m.register_forward_hook(_double_output)


@change("add forward hook with kwargs", _module)
def _add_hook_with_kwargs(m: nn.Module) -> None:
    m.register_forward_hook(_double_output_kwargs, with_kwargs=True, prepend=True)


@change("add forward pre-hook", _module)
def _add_pre_hook(m: nn.Module) -> None:
    m.register_forward_pre_hook(_halve_input)


@change("add full backward hook", _module)
def _add_backward_hook(m: nn.Module) -> None:
    m.register_full_backward_hook(_double_gradients)


@change("add full backward pre-hook", _module)
def _add_backward_pre_hook(m: nn.Module) -> None:
    m.register_full_backward_pre_hook(_double_gradients_before)


@change("remove hooks", _module)
def _remove_hooks(m: nn.Module) -> Any:
    tables = (m._forward_hooks, m._forward_pre_hooks, m._backward_hooks, m._backward_pre_hooks)
    if not any(tables):
        return False
    for table in tables:
        table.clear()


@change("forward of an instance", _module)
def _instance_forward(m: nn.Module) -> Any:
    if "forward" in m.__dict__:
        del m.__dict__["forward"]
    else:
        m.forward = functools.partial(_doubled_forward, m)


def _doubled_forward(m: nn.Module, *args: Any, **kwargs: Any) -> Any:
    return double(type(m).forward(m, *args, **kwargs))


def _double_output(module: Any, args: Any, out: Any) -> Any:
    return out * 2 if isinstance(out, torch.Tensor) else out


def _double_output_kwargs(module: Any, args: Any, kwargs: Any, out: Any) -> Any:
    return _double_output(module, args, out)


def _halve_input(module: Any, args: Any) -> Any:
    return tuple(x * 0.5 if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in args)


def _double_gradients(module: Any, before: Any, after: Any) -> Any:
    return tuple(g * 2 if isinstance(g, torch.Tensor) else g for g in before)


def _double_gradients_before(module: Any, gradients: Any) -> Any:
    return tuple(g * 2 if isinstance(g, torch.Tensor) else g for g in gradients)


@change("replace parameter", _has_parameter)
def _replace_parameter(m: nn.Module) -> None:
    name, old = _first_parameter(m)
    m._parameters[name] = nn.Parameter(old.detach().clone() + 0.5, requires_grad=old.requires_grad)


def _first_parameter(m: nn.Module) -> tuple[str, nn.Parameter]:
    name = _parameters(m)[0]
    found = m._parameters[name]
    assert found is not None
    return name, found


@change("strided parameter", _has_parameter)
def _stride_parameter(m: nn.Module) -> Any:
    name, old = _first_parameter(m)
    if old.dim() < 2:
        return False
    m._parameters[name] = nn.Parameter(old.detach().t().contiguous().t() if old.dim() == 2 else old.detach())


@change("freeze parameter", _has_parameter)
def _freeze(m: nn.Module) -> None:
    _first_parameter(m)[1].requires_grad_(False)


@change("resize parameter", _has_parameter)
def _resize_parameter(m: nn.Module) -> Any:
    name, old = _first_parameter(m)
    if old.dim() == 0:
        return False
    m._parameters[name] = nn.Parameter(torch.cat([old.detach(), old.detach()[:1]]))


@change("parameter becomes None", _has_parameter)
def _no_parameter(m: nn.Module) -> None:
    m._parameters[_parameters(m)[-1]] = None


@change("parameter becomes a buffer", _has_parameter)
def _parameter_to_buffer(m: nn.Module) -> None:
    name, old = _first_parameter(m)
    del m._parameters[name]
    m._buffers[name] = old.detach()


@change("parameter becomes an attribute", _has_parameter)
def _parameter_to_attribute(m: nn.Module) -> None:
    name, old = _first_parameter(m)
    del m._parameters[name]
    m.__dict__[name] = old.detach() * 2


@change("attribute over a parameter", _has_parameter)
def _attribute_over_parameter(m: nn.Module) -> None:
    name, old = _first_parameter(m)
    m.__dict__[name] = old.detach() * 3


@change("cast module", _has_parameter)
def _cast_module(m: nn.Module) -> None:
    m.double() if next(m.parameters()).dtype is not torch.float64 else m.float()


@change("post-accumulate hook", _has_parameter)
def _post_accumulate(m: nn.Module) -> Any:
    parameter = _first_parameter(m)[1]
    if not parameter.requires_grad:
        return False
    parameter.register_post_accumulate_grad_hook(_scale_grad)


def _scale_grad(parameter: torch.Tensor) -> None:
    assert parameter.grad is not None
    parameter.grad.mul_(0.5)


@change("parametrize", _has_parameter)
def _parametrize(m: nn.Module) -> Any:
    name = _first_parameter(m)[0]
    if "." in name or type(m).__module__.startswith("torch.nn.utils"):
        return False
    nn.utils.parametrize.register_parametrization(m, name, _Halved())


class _Halved(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 0.5


@change("gradients to None", _module)
def _zero_grad(m: nn.Module) -> None:
    m.zero_grad(set_to_none=True)


@change("gradients to zero", _module)
def _grads_to_zero(m: nn.Module) -> None:
    for p in m.parameters():
        if not isinstance(p, nn.parameter.UninitializedParameter):
            p.grad = torch.zeros_like(p)


@change("alias parameters", _module)
def _alias_parameters(m: nn.Module) -> Any:
    """Make two parameters of one shape a single object."""
    places: dict[Any, tuple[nn.Module, str]] = {}
    for sub in m.modules():
        for name in _parameters(sub):
            p = sub._parameters[name]
            assert p is not None
            first = places.setdefault(tuple(p.shape), (sub, name))
            if first != (sub, name) and first[0]._parameters[first[1]] is not p:
                sub._parameters[name] = first[0]._parameters[first[1]]
                return True
    return False


@change("parameters share memory", _module)
def _share_memory(m: nn.Module) -> Any:
    known: dict[Any, nn.Parameter] = {}
    for p in m.parameters():
        if isinstance(p, nn.parameter.UninitializedParameter):
            continue
        first = known.setdefault((p.shape, p.dtype), p)
        if first is not p and first.data_ptr() != p.data_ptr():
            p.data = first.data
            return True
    return False


@change("alias children", _has_children)
def _alias_children(m: nn.Module) -> Any:
    names = list(m._modules)
    if len(names) < 2:
        return False
    m._modules[names[-1]] = m._modules[names[0]]


@change("swap children", _has_children)
def _swap_children(m: nn.Module) -> Any:
    names = list(m._modules)
    if len(names) < 2:
        return False
    m._modules[names[0]], m._modules[names[-1]] = m._modules[names[-1]], m._modules[names[0]]


@change("reorder children", _has_children)
def _reorder_children(m: nn.Module) -> Any:
    if len(m._modules) < 2:
        return False
    m._modules = dict(list(m._modules.items())[::-1])


@change("replace child", _has_children)
def _replace_child(m: nn.Module) -> None:
    m._modules[next(iter(m._modules))] = nn.Hardtanh()


@change("add child", _module)
def _add_child(m: nn.Module) -> None:
    m.add_module("added_child", nn.Hardtanh(-0.5, 0.5))


@change("drop child", _has_children)
def _drop_child(m: nn.Module) -> None:
    del m._modules[list(m._modules)[-1]]


@change("child becomes None", _has_children)
def _no_child(m: nn.Module) -> None:
    m._modules[list(m._modules)[-1]] = None


@change("buffer becomes None", lambda v: _module(v) and any(b is not None for b in v._buffers.values()))
def _no_buffer(m: nn.Module) -> None:
    m._buffers[next(iter(m._buffers))] = None


@change("replace buffer", lambda v: _module(v) and any(b is not None for b in v._buffers.values()))
def _replace_buffer(m: nn.Module) -> None:
    name = next(n for n, b in m._buffers.items() if b is not None)
    buffer = m._buffers[name]
    assert buffer is not None
    m._buffers[name] = buffer.clone() + 1


# -- the interpreter -------------------------------------------------------------------------------------------


class _Counting(TorchDispatchMode):
    """Writes down every operation that reaches it."""

    def __init__(self, seen: list[str]) -> None:
        super().__init__()
        self.seen = seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class _DoublingRelu(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        return out * 2 if func in (torch.relu, torch.Tensor.mul, torch.Tensor.add) else out


@contextlib.contextmanager
def _setting(read: Callable[[], Any], write: Callable[[Any], Any], value: Any) -> Iterator[None]:
    """``value`` set by ``write`` for a while; nothing is written where that is the value already."""
    before = read()
    if before != value:
        write(value)
    try:
        yield
    finally:
        if read() != before:
            write(before)


@contextlib.contextmanager
def _patched(owner: Any, name: str) -> Iterator[None]:
    own = name in owner.__dict__  # a class may inherit it
    original = getattr(owner, name)
    setattr(owner, name, _PATCHES[owner.__name__, name])
    try:
        yield
    finally:
        if own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)


@contextlib.contextmanager
def _hooked(register: Callable[[Any], Any], hook: Any) -> Iterator[None]:
    handle = register(hook)
    try:
        yield
    finally:
        handle.remove()


@contextlib.contextmanager
def _environment(values: dict[str, str | None]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    _set_environment(values)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


_PATCHED = [
    (nn.Linear, "forward"), (nn.Dropout, "forward"), (nn.Conv2d, "forward"), (nn.BatchNorm1d, "forward"),
    (nn.LayerNorm, "forward"), (nn.Sequential, "forward"), (nn.Module, "__call__"), (nn.Module, "__getattr__"),
    (nn.functional, "relu"), (nn.functional, "dropout"), (nn.functional, "softmax"), (torch, "relu"), (torch, "sum"),
    (torch, "zeros"), (torch.Tensor, "sum"), (torch.Tensor, "mul"), (torch.Tensor, "__mul__"), (torch.Tensor, "__add__"),
]  # fmt: skip
# Made once: what replaces a function is the same object every time.
_PATCHES = {(owner.__name__, name): wrapped(getattr(owner, name)) for owner, name in _PATCHED}


def _settings(world: World) -> dict[str, Callable[[Any], Any]]:
    """How each kind of state is set for one call: key of ``World.ambient`` -> context manager of its value."""
    seen = world.namespace.setdefault("seen_by_modes", [])

    def pack(t: torch.Tensor) -> torch.Tensor:
        seen.append(("saved", tuple(t.shape)))
        return t.detach()

    hooks = nn.modules.module
    return {
        "dtype": lambda v: _setting(torch.get_default_dtype, torch.set_default_dtype, v),
        "deterministic": lambda v: _setting(
            torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, v
        ),
        "grad": torch.set_grad_enabled,
        "inference": torch.inference_mode,
        "autocast": lambda v: torch.autocast("cpu", v, enabled=v is not None),
        "autocast cache": lambda v: _setting(torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled, v),
        "anomaly": lambda v: torch.autograd.set_detect_anomaly(v, check_nan=False),
        "saved tensors": lambda v: torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t),
        "device": torch.device,
        "function mode": lambda v: _DoublingRelu(),
        "dispatch mode": lambda v: _Counting(seen),
        "matmul precision": lambda v: _setting(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, v),
        "mkldnn": lambda v: _setting(torch._C._get_mkldnn_enabled, torch._C._set_mkldnn_enabled, v),
        "filter": warnings.simplefilter,
        "float errors": lambda v: numpy.errstate(all=v),
        "global forward hook": lambda v: _hooked(hooks.register_module_forward_hook, _double_output),
        "global forward pre-hook": lambda v: _hooked(hooks.register_module_forward_pre_hook, _halve_input),
        "global backward hook": lambda v: _hooked(hooks.register_module_full_backward_hook, _double_gradients),
        "patch": lambda v: _patched(*v),
        "environment": _environment,
        "printing": lambda v: torch._tensor_str.printoptions(precision=v),
        "multithreading": torch.autograd.grad_mode.set_multithreading_enabled,
    }


@contextlib.contextmanager
def surroundings(world: World) -> Iterator[None]:
    """The interpreter-wide state this world's next call sees."""
    defaults: dict[str, Any] = {"dtype": torch.float32, "deterministic": False, "grad": True}
    known = _settings(world)
    grad = torch.is_grad_enabled()
    with contextlib.ExitStack() as stack:
        for key, value in (defaults | world.ambient).items():
            if value is not None and not (key == "inference" and not value):
                manager = known[key](value)
                if manager is not None:
                    stack.enter_context(manager)
        try:
            yield
        finally:
            # what the program itself changed is part of its effects
            world.ambient_after = (
                torch.get_default_dtype(),
                torch.is_grad_enabled(),
                torch.is_autocast_enabled("cpu"),
            )
    torch.set_grad_enabled(grad)


def _ambient(key: str, value: Any, shown: str = "") -> Change:
    def apply(world: World) -> bool:
        if world.ambient.get(key) == value and key not in ("dtype", "grad"):
            del world.ambient[key]
        else:
            world.ambient[key] = value
        return True

    return Change(f"ambient {key}={shown or value}", apply, f"ambient: {key}")


AMBIENT = [
    _ambient("grad", False), _ambient("grad", True), _ambient("inference", True), _ambient("autocast", torch.bfloat16),
    _ambient("autocast", torch.float16), _ambient("autocast cache", False), _ambient("dtype", torch.float64),
    _ambient("dtype", torch.float32), _ambient("deterministic", True), _ambient("anomaly", True),
    _ambient("saved tensors", True), _ambient("device", "cpu"), _ambient("function mode", True),
    _ambient("dispatch mode", True), _ambient("matmul precision", "medium"), _ambient("mkldnn", False),
    _ambient("filter", "error"), _ambient("filter", "ignore"), _ambient("float errors", "raise"),
    _ambient("global forward hook", True), _ambient("global forward pre-hook", True), _ambient("global backward hook", True),
    _ambient("printing", 1), _ambient("multithreading", False),
]  # fmt: skip

_NAMES_READ = re.compile(r"""(?:environ|getenv)[^'"\n]{0,6}['"](\w+)['"]""")


def ambient_changes(world: World) -> list[Change]:
    """Those that say something to this program: all of AMBIENT, the library functions it may use, the variables it names."""
    source = world.program.source
    out = list(AMBIENT)
    for owner, name in _PATCHED:
        word = owner.__name__.rsplit(".", 1)[-1] if isinstance(owner, type) else name
        if word in source or owner is nn.Module or owner is torch.Tensor:
            out.append(_ambient("patch", (owner, name), f"{owner.__name__}.{name}"))
    for name in sorted(set(_NAMES_READ.findall(source))):
        for value in ("1", "2.5", None):
            out.append(_ambient("environment", {name: value}, f"{name}={value}"))
    return out
