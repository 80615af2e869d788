"""Makes torch store compiled code in MagPy's folder, inside a block only. Key functions: caching_in, has_own_folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from magpy_core._compat.code_cache import writable_by_others
from magpy_core._compat.cpython.imports import imported
from magpy_core._compat.torch.compilers import import_dynamo
from magpy_core._compat.torch.inductor_start import quick_start

_VARIABLE, _DEFAULTS = "TORCHINDUCTOR_CACHE_DIR", "torch._inductor.runtime.cache_dir_utils"


def has_own_folder() -> bool:
    """Whether the user has set the folder of torch's caches. torch sets an unset variable to its default."""
    given = os.environ.get(_VARIABLE)
    if not given:
        return False
    import_dynamo()
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    return os.path.abspath(given) != os.path.abspath(default_cache_dir())


def seems_to_have_own_folder() -> bool:
    """The same without an import of torch's compiler: before that, nobody but the user has set the variable."""
    return bool(os.environ.get(_VARIABLE)) and (imported(_DEFAULTS) is None or has_own_folder())


@contextmanager
def caching_in(folder: Path, is_damaged: Callable[[Path], bool] = lambda _: False, sources: int = 0) -> Iterator[set[str]]:
    """Compilations of this process read and write ``folder``, and files that they use get the current time. The user's own
    ``torch.compile`` waits meanwhile, and keeps its folder. ``sources``: C++ sources that are compiled before torch's header
    is precompiled. ``is_damaged`` is asked about each file before it is used, and
    removes it if it is. Gives the set of the files and folders that are used, complete at the end."""
    before = os.environ.get(_VARIABLE)
    import torch._dynamo.package  # noqa: F401  # reads the folder's name when it is imported, and keeps it
    from torch._dynamo.convert_frame import compile_lock
    from torch._inductor.codecache import CacheBase

    used: set[str] = set()
    with compile_lock:
        forget: Any = getattr(CacheBase.get_local_cache_path, "cache_clear", lambda: None)
        os.environ[_VARIABLE] = str(folder)
        forget()
        try:
            with _own_headers(folder), _note_used_files(used, is_damaged), quick_start(folder, sources, is_damaged):
                yield used
        finally:
            forget()
            if before is None:
                os.environ.pop(_VARIABLE, None)
            else:
                os.environ[_VARIABLE] = before
    for path in used:
        for name in [path, *(os.path.join(path, each) for each in _listed(path))]:
            with suppress(OSError):
                os.utime(name)


@contextmanager
def _own_headers(folder: Path) -> Iterator[None]:
    """torch has precompiled headers in its default folder always. If anybody else can write there, they are in ``folder``:
    what a header says would be part of each kernel."""
    from torch._inductor import codecache

    names = ("_HEADER_DIR", "_HEADER_LOCK_DIR")
    before = {name: Path(getattr(codecache, name)) for name in names if hasattr(codecache, name)}
    others = before and not _is_private(before[names[0]])
    for name in before if others else ():
        setattr(codecache, name, str(folder / "precompiled_headers" / before[name].relative_to(before[names[0]])))
    try:
        yield
    finally:
        for name, place in before.items():
            setattr(codecache, name, str(place))


def _is_private(headers: Path) -> bool:
    """Whether nobody else can have written the headers in torch's folder, or can from now on."""
    try:
        headers.mkdir(mode=0o700, parents=True, exist_ok=True)
        return not any(map(writable_by_others, (headers.parent, headers)))
    except OSError:
        return False


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


@contextmanager
def _note_used_files(used: set[str], is_damaged: Callable[[Path], bool]) -> Iterator[None]:
    """Adds the entries that torch looks up, and the libraries and modules that it loads, to ``used``."""
    from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache
    from torch._inductor.codecache import CppCodeCache, FxGraphCache, PyCodeCache

    with ExitStack() as stack:
        for owner, name, position in (
            (AOTAutogradCache, "_get_tmp_dir_for_key", None),
            (FxGraphCache, "_get_tmp_dir_for_key", None),
            (CppCodeCache, "_load_library", 0),
            (PyCodeCache, "load_by_key_path", 1),
        ):
            _patch(stack, owner, name, position, used, is_damaged)
        yield


def _patch(
    stack: ExitStack, owner: Any, name: str, position: int | None, used: set[str], is_damaged: Callable[[Path], bool]
) -> None:
    """Makes a class method add its argument at ``position``, or its result, to ``used``."""
    original = owner.__dict__.get(name)
    if original is None:
        return

    def noting(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if position is not None and len(args) > position:
            used.add(str(args[position]))
            if is_damaged(Path(str(args[position]))):
                raise OSError(f"{args[position]} was damaged")  # torch writes or builds it again
        result = original.__get__(None, cls)(*args, **kwargs)
        if position is None:
            used.add(str(result))
            for each in _listed(str(result)):
                is_damaged(Path(str(result), each))
        return result

    setattr(owner, name, classmethod(noting))
    stack.callback(setattr, owner, name, original)
