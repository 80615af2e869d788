"""Results of Inductor's probes in each process, cached in the folder of compiled code. Key function: cached_probes.

To test whether a library for an instruction set can be loaded, Inductor starts a process for each instruction set; for a
precompiled header it runs the preprocessor, even if the kernels that need it are already compiled.
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
def cached_probes(is_damaged: Callable[[Path], bool] = lambda _: False) -> Iterator[None]:
    """Use cached results inside the block. Needs the compile lock: it replaces functions of torch for all threads.
    ``is_damaged``: see `caching_in`; torch uses a source, and the library built from it, if they are there."""
    from torch._inductor import codecache
    from torch._inductor.cpu_vec_isa import VecISA

    probe, write = VecISA.__dict__.get("_probe_load"), codecache.write
    header = getattr(codecache, "_precompile_header", None)
    written: list[str] = []

    def noting(content: Any, extension: str, *args: Any, **kwargs: Any) -> Any:
        basename, path = write(content, extension, *args, **kwargs)
        if is_damaged(Path(path)):
            basename, path = write(content, extension, *args, **kwargs)
        if extension.endswith("cpp"):
            is_damaged(_library_of(path))
            written[:] = [path]
        return basename, path

    folder = os.environ.get("TORCHINDUCTOR_CACHE_DIR", "")

    def only_to_build(*args: Any, **kwargs: Any) -> Any:
        # the header is only used to build the library of the source that was written last
        return "" if written and _library_of(written[0]).exists() else _headers_in(folder, header)(*args, **kwargs)

    try:
        if probe is not None:
            VecISA._probe_load = functools.partialmethod(_probe_once, probe)  # type: ignore[assignment,method-assign]
        codecache.write = noting
        if header is not None:
            codecache._precompile_header = only_to_build  # type: ignore[assignment]
        yield
    finally:
        if probe is not None:
            VecISA._probe_load = probe  # type: ignore[method-assign]
        codecache.write = write
        if header is not None:
            codecache._precompile_header = header


@functools.cache
def _headers_in(folder: str, precompile: Any) -> Callable[..., Any]:
    """torch's function, which remembers where it has put a header: for the program's compilations, in another folder."""
    return functools.cache(getattr(precompile, "__wrapped__", precompile))


def _library_of(source: str) -> Path:
    """``x.main.cpp`` is built to ``x.main.so``, and ``x.cpp`` to ``x.so``."""
    return Path(source).with_suffix(".so")


def _probe_once(isa: Any, probe: Callable[[Any, str], bool], library: str) -> bool:
    """``probe(isa, library)``, cached for this library on this processor."""
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
    """A description of this processor; others may use the same folder."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
    return ""
