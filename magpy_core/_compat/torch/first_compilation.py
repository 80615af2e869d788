"""What the first compilation on a machine does that most programs never need. Key functions: builds,
header_pays, triton_version.

Of 30 processor seconds that compiling a training step took in a new environment (torch 2.13), 20 went to these:

- To test an instruction set, Inductor compiles and loads a library with all of torch's vector headers (4 to 6 s). Whether
  torch and the processor have the set is known without: torch says which one its own kernels use. Left to test is whether
  the C++ compiler takes the flags and the intrinsics.
- It precompiles a header (7 to 11 s), which saves 3 s in each source that is compiled later.
- It reads all of Triton's files for the key of its caches (2 s), also without a device that Triton compiles for.
"""

from __future__ import annotations

import importlib
import os
import platform
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from magpy_core._compat.code_cache import SOURCES

_USES_SET = 'typedef float all __attribute__((vector_size({size})));\nextern "C" all sum(all a, all b) {{ return a + b; }}\n'


def builds(isa: Any, check: Callable[[Any, str], bool], code: str) -> bool:
    """``check(isa, code)`` of `VecISA`: whether ``code`` can be compiled for the set, and runs here."""
    if platform.machine() != "x86_64" or not _torch_uses(isa):
        return check(isa, code)
    from torch._inductor.codecache import write
    from torch._inductor.cpp_builder import get_compiler_version_info, get_cpp_compiler

    quick = _USES_SET.format(size=isa.bit_width() // 8) if code == isa._avx_code else code
    compiler, flags = get_cpp_compiler(), isa.build_arch_flags().split()
    _, source = write(quick, "cpp", extra=" ".join([get_compiler_version_info(compiler), *flags]))
    library = Path(source).with_suffix(".so")
    if library.exists():
        return True
    beside = library.with_suffix(f".{os.getpid()}")
    try:
        command = [compiler, *flags, "-shared", "-fPIC", "-o", str(beside), source]
        if subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode:
            return False
        beside.replace(library)
        return True
    finally:
        beside.unlink(missing_ok=True)


def _torch_uses(isa: Any) -> bool:
    """Whether torch's own kernels use the set, or one that has it: then the processor has it and torch was built with it."""
    uses: str = torch.backends.cpu.get_cpu_capability()
    return uses == "AVX512" or (uses == "AVX2" and str(isa) == "avx2")


def header_pays(folder: Path, sources: int) -> bool:
    """Whether to precompile the header for a source that is compiled now: not before so many ``sources`` were compiled
    without it. ``folder``: of compiled code."""
    note = folder / SOURCES
    with suppress(OSError):
        if not note.exists() or note.stat().st_size < sources:
            with note.open("ab") as file:
                file.write(b".")
            return False
    return True


def triton_version() -> str | None:
    """Stands for Triton in keys where nothing is compiled by it."""
    with suppress(ImportError):
        return str(importlib.import_module("triton").__version__)
    return None
