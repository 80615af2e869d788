"""A stand-in for a CUDA device that this machine does not have, and Triton for it.

Private parts of torch and Triton, behind named functions: `stand_in` replaces functions of torch for good, so call it only
in a process that ends afterwards; `compile_kernel` runs Triton on what Inductor has generated. Nothing is launched.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

CUDA = torch.device("cuda", 0)

#: Positions in torch's table of device guards.
_CUDA_GUARD, _META_GUARD, _GUARDS = 1, 14, 21
_GUARD_TABLE = "_ZN3c104impl26device_guard_impl_registryE"


class StandInFailed(RuntimeError):
    """This torch can't be made to compile for a device that is not there."""


@dataclass(frozen=True)
class DeviceFigures:
    """What Inductor and Triton ask a device for. ``shared_bytes``: the most that a block can have."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    registers: int
    threads: int
    warp: int
    shared_bytes: int
    memory_bytes: int


@dataclass(frozen=True)
class CompiledKernel:
    """Triton's result. ``grid``: empty if it depends on more than the sizes of the loops."""

    ptx: str
    shared_bytes: int
    num_warps: int
    grid: tuple[int, ...]


# -- the package ---------------------------------------------------------------------------------------------------------


def has_triton() -> bool:
    """Whether the ``triton`` package is installed, with the backend for NVIDIA's devices."""
    return importlib.util.find_spec("triton") is not None and importlib.util.find_spec("triton.backends.nvidia") is not None


def assembler(capability: tuple[int, int]) -> Path:
    """The assembler that Triton runs for this compute capability; which one that is depends on the version."""
    from triton.backends.nvidia.compiler import get_ptxas

    major, minor = capability
    return Path(get_ptxas(10 * major + minor).path)


# -- the stand-in --------------------------------------------------------------------------------------------------------


def stand_in(figures: DeviceFigures) -> None:
    """Lets torch and Triton believe, until this process ends, that it has one CUDA device with these figures, without
    touching any device. Raises StandInFailed."""
    import torch._inductor.runtime.triton_helpers as helpers
    import triton
    from torch._dynamo.device_interface import CudaInterface
    from torch._subclasses import fake_tensor

    if torch.version.hip is not None:
        raise StandInFailed("this torch is built for ROCm, and compiles for AMD's devices only")
    guard_without_device()
    properties = _properties(figures)
    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "is_initialized": lambda: False,
        "_lazy_init": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: figures.capability,
        "get_device_name": lambda device=None: figures.name,
        "is_bf16_supported": lambda including_emulation=True: True,
        "get_rng_state": lambda device="cuda": torch.zeros(16, dtype=torch.uint8),
        "set_rng_state": lambda state, device="cuda": None,
        "set_device": lambda device: None,
        "synchronize": lambda device=None: None,
        "_exchange_device": lambda device: 0,
        "_maybe_exchange_device": lambda device: 0,
    }
    for name, answer in answers.items():
        if not hasattr(torch.cuda, name):
            raise StandInFailed(f"torch.cuda has no {name}")
        setattr(torch.cuda, name, answer)
    # torch's table of devices has references of its own to some of them
    for name in ("device_count", "current_device", "get_device_properties", "is_bf16_supported", "set_device"):
        setattr(CudaInterface, name, staticmethod(answers[name]))
    for name in ("exchange_device", "maybe_exchange_device"):
        setattr(CudaInterface, name, staticmethod(answers[f"_{name}"]))
    for name in ("get_device_properties", "current_device"):
        setattr(CudaInterface.Worker, name, staticmethod(answers[name]))
    torch.accelerator.current_accelerator = lambda check_available=False: None
    if not hasattr(fake_tensor, "init_gpu_context"):
        raise StandInFailed("torch makes fake tensors of devices in another way")
    fake_tensor.init_gpu_context = lambda device: None  # type: ignore[assignment]  # torch 2.11 would make a tensor there
    helpers.set_driver_to_gpu = lambda: None
    _forget_devices()
    triton.runtime.driver.set_active(_Driver(figures))


def _forget_devices() -> None:
    """torch keeps what it has found out about this machine: that Triton can't run here, say."""
    from torch._inductor import utils as of_inductor
    from torch.utils import _triton as of_triton

    for function in [*vars(of_triton).values(), *vars(of_inductor).values()]:
        if callable(clear := getattr(function, "cache_clear", None)):
            clear()


def guard_without_device() -> None:
    """Gives CUDA the device guard of meta tensors, which does nothing. Indexing a fake CUDA tensor needs a guard, and torch
    for the CPU has none; that of torch for CUDA needs the driver. Raises StandInFailed."""
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
        table = (ctypes.c_void_p * _GUARDS).in_dll(library, _GUARD_TABLE)
    except (OSError, ValueError) as error:
        raise StandInFailed(f"torch's table of device guards is not where it is expected: {error}") from error
    if not table[0] or not table[_META_GUARD]:
        raise StandInFailed("torch's table of device guards has another layout")
    table[_CUDA_GUARD] = table[_META_GUARD]


def _properties(figures: DeviceFigures) -> Any:
    major, minor = figures.capability
    return SimpleNamespace(
        name=figures.name, major=major, minor=minor, multi_processor_count=figures.multiprocessors,
        regs_per_multiprocessor=figures.registers, max_threads_per_multi_processor=figures.threads,
        max_threads_per_block=1024, warp_size=figures.warp, total_memory=figures.memory_bytes,
        shared_memory_per_block=48 << 10, shared_memory_per_block_optin=figures.shared_bytes,
        shared_memory_per_multiprocessor=figures.shared_bytes + 1024, L2_cache_size=40 << 20, gcnArchName="",
        is_integrated=0, is_multi_gpu_board=0,
    )  # fmt: skip


class _Driver:
    """The parts of Triton's driver that compilation uses."""

    def __init__(self, figures: DeviceFigures) -> None:
        self._figures = figures
        limits = {"max_shared_mem": figures.shared_bytes, "multiprocessor_count": figures.multiprocessors}
        self.utils = SimpleNamespace(get_device_properties=lambda index: limits)

    def get_current_target(self) -> Any:
        return _gpu_target(self._figures)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return CUDA

    def get_device_interface(self) -> Any:
        return torch.cuda


def _gpu_target(figures: DeviceFigures) -> Any:
    from triton.backends.compiler import GPUTarget

    major, minor = figures.capability
    return GPUTarget("cuda", 10 * major + minor, figures.warp)


# -- Triton --------------------------------------------------------------------------------------------------------------


def compile_kernel(name: str, source: str, numels: Mapping[str, int], figures: DeviceFigures) -> CompiledKernel:
    """A kernel of Inductor's, compiled by Triton with the first of the configurations that Inductor would try: without a
    device, it can't time them. Raises what Triton raises."""
    import triton
    from torch._inductor.codecache import PyCodeCache
    from triton.compiler import ASTSource

    # with attributes it is a module of its own: one that has run on a device has forgotten its configurations
    module = PyCodeCache.load_by_key_path(*PyCodeCache.write(source), attrs={})
    tuner: Any = getattr(module, name, None) or getattr(module, "triton_", None)
    tuner = getattr(tuner, "kernel", tuner)
    config = tuner.configs[0]
    meta = tuner._create_compile_meta(config)
    text = ASTSource(tuner.fn, meta["signature"], meta["constants"], meta["configs"][0])
    options = tuner._create_compile_options(config, meta)
    made = triton.compile(text, target=_gpu_target(figures), options=options)
    grid = _grid(tuner.inductor_meta, config, numels)
    return CompiledKernel(made.asm["ptx"], int(made.metadata.shared), int(made.metadata.num_warps), grid)


def _grid(meta: Mapping[str, Any], config: Any, numels: Mapping[str, int]) -> tuple[int, ...]:
    from torch._inductor.runtime.triton_heuristics import GridExpr

    try:
        blocks = GridExpr.from_meta(dict(meta), config).eval_slow({**config.kwargs, **numels})
    except (NameError, KeyError, TypeError, AttributeError):
        return ()  # a grid of several kernels in one: it depends on more
    return tuple(int(each) for each in blocks)
