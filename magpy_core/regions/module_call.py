"""A module compiled in place: its calls go to a region, and in every other respect it stays the module it was.

It works as ``nn.Module.compile`` does: ``nn.Module.__call__`` consults ``_compiled_call_impl`` in the module's ``__dict__``,
which state dicts, deep copies and pickles leave out. Key type: ModuleCall.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from magpy_core._compat.torch.eval_frame import hide
from magpy_core._compat.torch.module_calls import COMPILED_CALL
from magpy_core.regions.region import Region


class ModuleCall:
    """What ``nn.Module.__call__`` calls instead of hooks and ``forward``. The module owns it: its reference back is weak."""

    def __init__(self, module: nn.Module, region: Region) -> None:
        self._module = weakref.ref(module)
        self.region = region

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        # The __dict__ that this stands in may have been copied to another module (nn.DataParallel does): the caller has it.
        module = sys._getframe(1).f_locals.get("self")
        if not isinstance(module, nn.Module) or vars(module).get(COMPILED_CALL) is not self:
            module = self._module()
        return self.region(module, *args, **kwargs)

    hide(__call__)

    def __reduce__(self) -> Any:
        return type(None), ()  # copies and pickles that contain the whole __dict__ are those of a plain module


def is_bypassed(module: nn.Module) -> bool:
    """Whether the class has a ``__call__`` of its own that does not go on to ``nn.Module.__call__``."""
    call = type(module).__call__
    code = getattr(call, "__code__", None)
    if call is nn.Module.__call__ or code is None or call.__module__.startswith("torch."):
        return False
    return "__call__" not in code.co_names


def install(module: nn.Module, region: Region) -> None:
    """Send the calls of ``module`` to ``region``, whose target is torch's ``CALL``."""
    vars(module)[COMPILED_CALL] = ModuleCall(module, region)


def installed(module: nn.Module) -> Region | None:
    """The region that calls of ``module`` go to, if it is compiled."""
    call = vars(module).get(COMPILED_CALL)
    return call.region if isinstance(call, ModuleCall) else None


def uninstall(module: nn.Module) -> None:
    if installed(module) is not None:
        del vars(module)[COMPILED_CALL]


def inner(module: nn.Module) -> nn.Module:
    """The module to compile: a wrapper that talks to other processes runs as it is, around the module that it holds."""
    return module.module if isinstance(module, DistributedDataParallel) else module
