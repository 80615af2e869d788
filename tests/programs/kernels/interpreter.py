"""What Inductor has generated for CUDA, run on the CPU: the wrapper as it is, with its order, grids and library calls, on
CPU memory; the kernels by Triton's interpreter, with the first configuration that Inductor would try.

Key function: prepare. Private torch: only these tests run code for another device.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from magpy_core._compat.torch import triton_device
from magpy_core.products.targets.devices import DEVICES
from tests.programs.kernels import attention, blocks, libdevice

_FOLDER = tempfile.TemporaryDirectory(prefix="magpy-interpreted-")
_COUNT = itertools.count()
_ON_CPU = {
    "from torch._C import _cuda_getCurrentRawStream as get_raw_stream": "get_raw_stream = lambda index: 0",
    "device(type='cuda', index=0)": "device(type='cpu')",
}

_STANDS_IN: dict[ModuleType, dict[str, Any]] = {}

LAUNCHES: list[str] = []
"""The names of the kernels that have run."""

PLANTED: dict[str, str] = {}
"""What is replaced in the source of kernels: bugs, which must be found."""


def prepare(target: str) -> None:
    """Lets this process, until it ends, compile for ``target`` and run the result. It must have ``TRITON_INTERPRET=1``."""
    from torch._inductor.async_compile import AsyncCompile

    assert os.environ.get("TRITON_INTERPRET") == "1"
    before = {module: dict(vars(module)) for module in (torch.cuda, torch.accelerator)}
    like = DEVICES[target]
    triton_device.stand_in(triton_device.DeviceFigures(
        like.title, like.capability, like.multiprocessors, like.registers, like.threads, like.warp, like.shared_bytes,
        like.memory_bytes,
    ))  # fmt: skip
    for module, names in before.items():
        _STANDS_IN[module] = {name: now for name, now in vars(module).items() if now is not names.get(name)}
        for name in _STANDS_IN[module]:
            setattr(module, name, names[name])
    libdevice.supply()
    blocks.supply()
    attention.supply()
    AsyncCompile.triton = _kernel  # type: ignore[method-assign]


@contextmanager
def device() -> Iterator[None]:
    """In the block, torch believes that there is the device. Outside it does not: the guards of captures look at the same
    functions."""
    with ExitStack() as stack:
        for module, functions in _STANDS_IN.items():
            for name, function in functions.items():
                stack.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, function)
        yield


def load(path: Path) -> Callable[..., Any]:
    """The function that runs the generated module at ``path``."""
    text = path.read_text(encoding="utf-8")
    for on_cuda, on_cpu in _ON_CPU.items():
        text = text.replace(on_cuda, on_cpu)
    module: Any = _module(text)
    module.empty_strided_cuda = _empty
    call = module.call

    def run(*args: Any, **kwargs: Any) -> Any:
        with device():
            return call(*args, **kwargs)

    return run


def _empty(size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Memory in which numbers are NaN until a kernel has written them."""
    made = torch.empty_strided(size, stride, dtype=dtype)
    torch.empty(0, dtype=torch.uint8).set_(made.untyped_storage()).fill_(0xFF)
    return made


def _module(text: str) -> ModuleType:
    """From a file, because the interpreter reads the source of functions."""
    name = f"generated{next(_COUNT)}"
    path = Path(_FOLDER.name) / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Interpreted:
    def __init__(self, name: str, tuner: Any) -> None:
        self._name, self._tuner = name, tuner

    def run(self, *args: Any, **kwargs: Any) -> None:
        LAUNCHES.append(self._name)
        self._tuner.run(*args, **kwargs)


def _kernel(self: Any, kernel_name: str, source_code: str, device_str: str = "cuda") -> _Interpreted:
    for right, wrong in PLANTED.items():
        source_code = source_code.replace(right, wrong)
    return _Interpreted(kernel_name, getattr(_module(source_code), kernel_name))
