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

TORCH_FOLDER = os.path.dirname(torch.__file__) + os.sep
STDLIB_FOLDER = os.path.dirname(os.__file__) + os.sep
# Library files whose Python only calls recorded operations: not monitored, assumed to depend only on their arguments.
_LIBRARY_FILES = frozenset(
    [TORCH_FOLDER + f for f in (
        "nn/functional.py", "functional.py", "overrides.py", "_tensor.py", "_ops.py", "_VF.py", "_jit_internal.py",
        "_compile.py", "nn/parameter.py", "autograd/grad_mode.py", "nn/init.py", "utils/checkpoint.py",
        "utils/_python_dispatch.py", "autograd/function.py", "autograd/profiler.py", "_utils.py", "types.py",
        "nn/_reduction.py", "nn/modules/_functions.py", "amp/autocast_mode.py", "jit/_trace.py", "jit/_script.py",
        "__init__.py", "random.py", "utils/_device.py", "utils/_stats.py", "_library/custom_ops.py", "compiler/__init__.py",
        "_linalg_utils.py", "nn/attention/__init__.py", "fx/experimental/sym_node.py",
    )]
    + [STDLIB_FOLDER + f for f in (
        "warnings.py", "typing.py", "abc.py", "inspect.py", "linecache.py", "traceback.py", "tokenize.py", "re/__init__.py",
        "re/_compiler.py", "re/_parser.py", "reprlib.py",
    )]
)  # fmt: skip
_LIBRARY_FOLDERS: tuple[str, ...] = (
    *(TORCH_FOLDER + name + os.sep
      for name in ("_dynamo", "_inductor", "_functorch", "fx", "_higher_order_ops", "_library", "_logging")),
    STDLIB_FOLDER + "importlib" + os.sep,
)  # fmt: skip
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
