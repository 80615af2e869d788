"""What Inductor does at the start of each process, done once, or not at all where it is of no use. Key function:
quick_start.

To test an instruction set, Inductor builds libraries and loads them in processes of their own, and it tests all that the
processor has, although it uses the best one only; for a precompiled header it runs the preprocessor, even if the kernels
that need it are already compiled.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from magpy_core._compat.torch.first_compilation import builds, header_pays, triton_version


@contextmanager
def quick_start(folder: Path, sources: int, is_damaged: Callable[[Path], bool] = lambda _: False) -> Iterator[None]:
    """Use cached results of probes inside the block, and let new probes import nothing from the working directory. Needs the
    compile lock: it replaces functions of torch for all threads. ``folder``, ``sources``: see `header_pays`;
    ``is_damaged``: see `caching_in`; torch uses a source, and the library built from it, if they are there."""
    from torch._inductor import codecache
    from torch._inductor.cpu_vec_isa import VecISA

    probe, write, check = VecISA.__dict__.get("_probe_load"), codecache.write, VecISA.check_build
    key = getattr(codecache, "triton_key", None)
    isa: Any = importlib.import_module("torch._inductor.cpu_vec_isa")
    all_sets, environment = isa.valid_vec_isa_list, getattr(isa, "python_subprocess_env", None)
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

    headers = getattr(codecache, "_HEADER_DIR", "")

    def only_to_build(*args: Any, **kwargs: Any) -> Any:
        # the header is only used to build the library of the source that was written last
        if (written and _library_of(written[0]).exists()) or not header_pays(folder, sources):
            return ""
        return _headers_in(headers, header)(*args, **kwargs)

    def safe_environment() -> dict[str, str]:
        return {**environment(), "PYTHONSAFEPATH": "1"}  # type: ignore[misc]

    try:
        if environment is not None:
            isa.python_subprocess_env = safe_environment
        if probe is not None:
            VecISA._probe_load = functools.partialmethod(_probe_once, probe)  # type: ignore[assignment,method-assign]
        VecISA.check_build = functools.partialmethod(builds, check)  # type: ignore[assignment,method-assign]
        isa.valid_vec_isa_list = functools.partial(_best_set, all_sets)
        if key is not None and not torch.accelerator.is_available():
            codecache.triton_key = triton_version
        codecache.write = noting
        if header is not None:
            codecache._precompile_header = only_to_build  # type: ignore[assignment]
        yield
    finally:
        isa.valid_vec_isa_list, VecISA.check_build = all_sets, check  # type: ignore[method-assign]
        if key is not None:
            codecache.triton_key = key
        if environment is not None:
            isa.python_subprocess_env = environment
        if probe is not None:
            VecISA._probe_load = probe  # type: ignore[method-assign]
        codecache.write = write
        if header is not None:
            codecache._precompile_header = header


@functools.cache
def _headers_in(folder: str, precompile: Any) -> Callable[..., Any]:
    """torch's function, which remembers where it has put a header: for the program's compilations, in another folder."""
    return functools.cache(getattr(precompile, "__wrapped__", precompile))


def _best_set(all_sets: Callable[[], list[Any]]) -> list[Any]:
    """The instruction set that `pick_vec_isa` takes, of those that ``all_sets`` finds: the first that works on x86-64."""
    from torch._inductor import config
    from torch._inductor.cpu_vec_isa import supported_vec_isa_list, x86_isa_checker

    processors = x86_isa_checker()
    if not processors or config.cpp.simdlen is not None or os.environ.get("ATEN_CPU_CAPABILITY"):
        return all_sets()
    named = (one for one in supported_vec_isa_list if all(name in processors for name in str(one).split()))
    best = next(filter(bool, named), None)
    return [] if best is None else [best]


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
