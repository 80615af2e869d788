"""A compiled nn.Module usable in the module's place: same class, same state, another ``__call__``.

Key function: ``compiled_module``.

The compiled object is an instance of a subclass of the module's own class that *shares the module's ``__dict__``*, so
parameters, buffers, train/eval, hooks and attributes are one state under two handles.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from torch import nn

from magpy_core._compat.torch.eval_frame import hide

_OWN: dict[type, type] = {}
_FIELDS = ("__magpy_region__", "__magpy_module__", "__magpy_options__")


# The shared __dict__ must not show our own fields (state_dict, pickling, deepcopy of the module), so they live here.
_STATE: dict[int, dict[str, Any]] = {}


class CompiledModule:
    """Mixin of compiled modules. ``__magpy_module__`` is the module whose state is shared."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _STATE[id(self)]["__magpy_region__"](*args, **kwargs)

    hide(__call__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return _like(self, copy.deepcopy(_STATE[id(self)]["__magpy_module__"], memo))

    def __copy__(self) -> Any:
        return _like(self, copy.copy(_STATE[id(self)]["__magpy_module__"]))

    def __reduce_ex__(self, protocol: Any) -> Any:
        state = _STATE[id(self)]
        return state["compile_like"], (state["__magpy_module__"], *state["__magpy_options__"])

    def __getattribute__(self, name: str) -> Any:
        if name in _FIELDS:
            return _STATE[id(self)][name]
        return super().__getattribute__(name)

    def __del__(self, forget: Callable[..., Any] = _STATE.pop) -> None:
        forget(id(self), None)  # at the interpreter's end there may be no more globals


class CompiledWrapper(CompiledModule):
    """Mixin of compiled modules that talk to other processes: they run as they are, around the compiled module inside."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return nn.Module.__call__(self, *args, **kwargs)

    @property
    def module(self) -> Any:
        state = _STATE[id(self)]
        inner = state["__magpy_module__"]._modules["module"]
        if state["inner"] is not inner:  # another module was put there
            state["inner"] = inner
            state["handle"] = compiled_module(inner, state["make_region"], state["compile_like"], state["__magpy_options__"])
            state["__magpy_region__"] = state["handle"].__magpy_region__
        return state["handle"]


def _like(handle: CompiledModule, module: nn.Module) -> Any:
    """``module`` compiled as ``handle`` is."""
    state = _STATE[id(handle)]
    return state["compile_like"](module, *state["__magpy_options__"])


def compiled_module(
    module: nn.Module, make_region: Callable[[nn.Module], Any], compile_like: Callable[..., Any], options: tuple[Any, ...]
) -> nn.Module:
    """The compiled handle of ``module``. ``compile_like(module, *options)`` compiles a copy likewise; pickles name it."""
    if isinstance(module, CompiledModule):
        module = _STATE[id(module)]["__magpy_module__"]
    cls = type(module)
    # it talks to other processes around the call of the module inside: work of each call, that no graph can hold
    around = isinstance(module, nn.parallel.DistributedDataParallel)
    own = _OWN.get(cls)
    if own is None:
        mixin = CompiledWrapper if around else CompiledModule
        own = _OWN[cls] = type(cls.__name__, (mixin, cls), {"__module__": cls.__module__, "__qualname__": cls.__qualname__})
    handle: Any = object.__new__(own)
    object.__setattr__(handle, "__dict__", module.__dict__)
    state: dict[str, Any] = {"__magpy_module__": module, "__magpy_options__": options, "compile_like": compile_like}
    _STATE[id(handle)] = state
    if around:
        state |= {"make_region": make_region, "inner": None}
        handle.module  # noqa: B018  # makes the region
    else:
        state["__magpy_region__"] = make_region(module)
    return handle  # type: ignore[no-any-return]
