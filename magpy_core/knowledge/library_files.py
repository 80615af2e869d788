"""Library files: Python files of torch and of the standard library, and what recordings need to know about their code.

Paths are relative to the package `torch`, or to the folder of the standard library; a folder ends in a slash.
"""

from __future__ import annotations

#: Their Python only calls recorded operations: it is not monitored, and assumed to depend only on its arguments.
UNMONITORED_OF_TORCH = (
    "nn/functional.py", "functional.py", "overrides.py", "_tensor.py", "_ops.py", "_VF.py", "_jit_internal.py",
    "_compile.py", "nn/parameter.py", "autograd/grad_mode.py", "nn/init.py", "utils/checkpoint.py",
    "utils/_python_dispatch.py", "autograd/function.py", "autograd/profiler.py", "_utils.py", "types.py",
    "nn/_reduction.py", "nn/modules/_functions.py", "amp/autocast_mode.py", "jit/_trace.py", "jit/_script.py",
    "__init__.py", "random.py", "utils/_device.py", "utils/_stats.py", "_library/custom_ops.py", "compiler/__init__.py",
    "_linalg_utils.py", "nn/attention/__init__.py", "fx/experimental/sym_node.py",
    "_dynamo/", "_inductor/", "_functorch/", "fx/", "_higher_order_ops/", "_library/", "_logging/",
)  # fmt: skip
UNMONITORED_OF_STDLIB = (
    "warnings.py", "typing.py", "abc.py", "inspect.py", "linecache.py", "traceback.py", "tokenize.py", "re/__init__.py",
    "re/_compiler.py", "re/_parser.py", "reprlib.py", "importlib/",
    "_py_warnings.py", "annotationlib.py",  # 3.14: of warnings, and of typing and inspect
)  # fmt: skip

#: They select devices and examine them.
OF_DEVICES = ("cuda/", "xpu/", "mtia/")

#: Every operator under a mode runs them, so they are left out of call paths.
PLUMBING = ("_compile.py", "overrides.py", "_dynamo/", "_library/", "_ops.py")
