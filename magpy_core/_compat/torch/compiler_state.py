"""What compiled code depends on besides its graph and inputs. Key functions: changed_settings, state_of_compilers."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
from pathlib import Path
from typing import Any

import torch

from magpy_core._compat.torch.torch_state import default_device, get_modes

#: Modules of settings that compilers read.
_SETTINGS = ("torch._inductor.config", "torch._functorch.config", "torch._dynamo.config", "torch.compiler.config",
             "torch.fx.experimental._config")  # fmt: skip
_VARIABLES = ("TORCH", "TRITON", "CXX", "ATEN_", "MAGPY_FUSED")  # how those begin that decide on compiled code
_MISSING = object()


def changed_settings() -> list[str]:
    """The names of all settings of compilers that the program has changed; those of modules that it has not imported have
    their defaults."""
    modules = [module for name in _SETTINGS if (module := sys.modules.get(name)) is not None]
    return [f"{module.__name__}.{name}" for module in modules for name in _changed(module)]


def _changed(module: Any) -> list[str]:
    entries = vars(module).get("_config")
    if not isinstance(entries, dict):
        return ["?"]  # another version of torch: who knows
    unset = vars(sys.modules[type(module).__module__]).get("_UNSET_SENTINEL", _MISSING)
    return [name for name, entry in entries.items() if _is_changed(entry, unset)]


def _is_changed(entry: Any, unset: object) -> bool:
    given = getattr(entry, "user_override", _MISSING)
    if hasattr(given, "get") and hasattr(given, "reset"):  # a context variable
        given = given.get()
    if given is unset:
        return False
    variable = getattr(entry, "env_value_default", unset)
    return bool(given is _MISSING or given != (getattr(entry, "default", _MISSING) if variable is unset else variable))


def state_of_compilers() -> str | None:
    """The state of this thread, process and machine that compiled code depends on, as text; None if the program has changed
    settings of the compilers."""
    if changed_settings():
        return None
    mkldnn, cuda, einsum = torch.backends.mkldnn, torch.backends.cuda, torch.backends.opt_einsum
    flags = (
        get_modes(), torch.is_inference_mode_enabled(), str(default_device()), torch.get_default_dtype(),
        torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(), torch.get_float32_matmul_precision(),
        getattr(torch.utils.deterministic, "fill_uninitialized_memory", None),
        torch._C._get_mkldnn_enabled(), mkldnn.deterministic, getattr(mkldnn, "allow_tf32", None),
        cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(), cuda.math_sdp_enabled(),
        einsum.is_available(), einsum.enabled, einsum.strategy, torch.is_anomaly_enabled(),
    )  # fmt: skip
    names = sorted(name for name in os.environ if name.startswith(_VARIABLES) and not name.endswith("_CACHE_DIR"))
    return repr((_versions(), flags, [(name, os.environ[name]) for name in names]))


def environment() -> dict[str, str]:
    """What compiled code of every program depends on, by names for users: torch, Python, MagPy's own source, which may be
    edited, and the processor."""
    return {
        "torch": f"{torch.__version__} ({torch.version.git_version})",
        "Python": sys.version,
        "MagPy's source": own_source(),
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "instruction set": _instructions(),
    }


@functools.cache
def _versions() -> str:
    return repr([*environment().values()])


def _instructions() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return next((line.partition(":")[2].strip() for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        return platform.processor()


@functools.cache
def own_source() -> str:
    """A digest of MagPy's source."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root)}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()
