"""What Inductor finds out anew in each process, taken from the folder that its code is kept in. Key function: remembered.

Whether a library for an instruction set can be loaded takes a process for each instruction set, and a precompiled header a
run of the preprocessor, though the kernels it would be used for are there.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


@contextmanager
def remembered() -> Iterator[None]:
    """For the block, and under the lock of the compilers: the names of torch's that it replaces are all threads'."""
    from torch._inductor import codecache
    from torch._inductor.cpu_vec_isa import VecISA

    probe, write = VecISA.__dict__.get("_probe_load"), codecache.write
    header = getattr(codecache, "_precompile_header", None)
    written: list[str] = []

    def noting(content: Any, extension: str, *args: Any, **kwargs: Any) -> Any:
        basename, path = write(content, extension, *args, **kwargs)
        if extension.endswith("cpp"):
            written[:] = [path]
        return basename, path

    def only_to_build(*args: Any, **kwargs: Any) -> Any:
        # what is given back counts only where the library of the source that was written last is built
        return "" if written and _library_of(written[0]).exists() else header(*args, **kwargs)  # type: ignore[misc]

    try:
        if probe is not None:
            VecISA._probe_load = functools.partialmethod(_probe_once, probe)  # type: ignore[assignment,method-assign]
        if header is not None:
            codecache.write, codecache._precompile_header = noting, only_to_build  # type: ignore[assignment]
        yield
    finally:
        if probe is not None:
            VecISA._probe_load = probe  # type: ignore[method-assign]
        if header is not None:
            codecache.write, codecache._precompile_header = write, header


def _library_of(source: str) -> Path:
    """``x.main.cpp`` or ``x.cpp`` makes ``x.main.so`` or ``x.so``."""
    return Path(source).with_suffix(".so")


def _probe_once(isa: Any, probe: Callable[[Any, str], bool], library: str) -> bool:
    """``probe(isa, library)``, whose answer holds for this library on this processor."""
    answer = Path(f"{library}.json")
    with suppress(OSError):
        about = [Path(library).stat().st_mtime_ns, os.path.getsize(library), _processor(), os.environ.get("LD_LIBRARY_PATH")]
        with suppress(OSError, ValueError):
            if (known := json.loads(answer.read_text()))[:-1] == about and type(known[-1]) is bool:
                return bool(known[-1])
        found = probe(isa, library)
        answer.write_text(json.dumps([*about, found]))
        return found
    return probe(isa, library)


@functools.cache
def _processor() -> str:
    """What tells this processor from another one that uses the same folder."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
    return ""
