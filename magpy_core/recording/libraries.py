"""Library code that is not monitored: its files, and its functions that are one operation. Key functions: is_library_file,
is_one_operation."""

from __future__ import annotations

import functools
import importlib.util
import os
import types

import torch

from magpy_core._compat.cpython.weak_caches import by_object
from magpy_core._compat.torch.dynamo import bypass
from magpy_core.knowledge.library_files import UNMONITORED_OF_STDLIB, UNMONITORED_OF_TORCH

TORCH_FOLDER = os.path.dirname(torch.__file__) + os.sep
STDLIB_FOLDER = os.path.dirname(os.__file__) + os.sep
_UNMONITORED = [
    folder + name.replace("/", os.sep)
    for folder, names in ((TORCH_FOLDER, UNMONITORED_OF_TORCH), (STDLIB_FOLDER, UNMONITORED_OF_STDLIB))
    for name in names
]
_LIBRARY_FILES = frozenset(_UNMONITORED)
_LIBRARY_FOLDERS = tuple(name for name in _UNMONITORED if name.endswith(os.sep))
_numpy = importlib.util.find_spec("numpy")
if _numpy is not None and _numpy.origin is not None:
    _LIBRARY_FOLDERS += (os.path.dirname(_numpy.origin) + os.sep,)

_COMPILER_WRAPPERS = TORCH_FOLDER + "_dynamo" + os.sep + "eval_frame.py"


@functools.lru_cache(maxsize=8192)
def is_library_file(filename: str) -> bool:
    """Whether frames from this file are not monitored: they are assumed to depend only on their arguments."""
    return (
        filename in _LIBRARY_FILES
        or filename.startswith(_LIBRARY_FOLDERS)
        or filename.endswith(os.sep + "typing_extensions.py")  # wherever it is installed
    )


def is_compiler_wrapper(code: types.CodeType) -> bool:
    """Whether this is a wrapper of torch.compile or torch.compiler.disable: the wrapped function is monitored."""
    return code.co_filename == _COMPILER_WRAPPERS and bypass(code) is not None


@by_object
def _code_is_one_operation(code: types.CodeType) -> bool:
    return "handle_torch_function" in code.co_names or code.co_name in ("boolean_dispatch", "wrapped")


def is_one_operation(fn: types.FunctionType) -> bool:
    """Whether a function of torch is one operation of the graph with all its arguments, including dynamic numbers."""
    return _code_is_one_operation(fn.__code__) or fn.__qualname__.startswith("boolean_dispatch.")
