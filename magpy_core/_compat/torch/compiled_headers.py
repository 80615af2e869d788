"""Inductor's precompiled C++ headers. Key function: whole_headers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_HEADER, _WHOLE = ".gch", b"gpch"  # GCC writes these first bytes last


@contextmanager
def whole_headers() -> Iterator[None]:
    """Inside the block, incomplete headers are compiled anew. torch uses a header once its file exists; if the compiler was
    killed while writing it, each kernel reads the header's source, and takes three times as long, until someone removes the
    file. Needs the compile lock."""
    from torch._inductor import codecache

    original = codecache._worker_compile_cpp

    def build(lock_path: str, cpp_builders: Sequence[Any]) -> None:
        from torch.utils._filelock import FileLock

        headers = [path for one in cpp_builders if (path := one.get_target_file_path()).endswith(_HEADER)]
        if headers:
            with FileLock(lock_path, timeout=codecache.LOCK_TIMEOUT):  # nobody is writing them now
                for path in headers:
                    if is_incomplete(path):
                        os.remove(path)
        original(lock_path, cpp_builders)

    codecache._worker_compile_cpp = build
    try:
        yield
    finally:
        codecache._worker_compile_cpp = original


def is_incomplete(path: str) -> bool:
    """Whether there is a file that GCC has not written to the end."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_WHOLE)) != _WHOLE
    except FileNotFoundError:
        return False
