"""The checks in Inductor's code that its inputs have the sizes and strides that it was compiled for. Each takes as long as a
small allocation. Key function: `unchecked_inputs`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_WRITES = "codegen_input_size_asserts"


@contextmanager
def unchecked_inputs() -> Iterator[None]:
    """Code that this thread generates in the block does not check its inputs again, except for a backward graph's, which
    come from outside: gradients, and what hooks may have replaced."""
    from torch._inductor.codegen.wrapper import PythonWrapperCodegen
    from torch._inductor.virtualized import V

    original = getattr(PythonWrapperCodegen, _WRITES, None)
    if original is None:
        yield
        return
    thread = threading.get_ident()

    def write(wrapper: Any) -> None:
        if threading.get_ident() != thread or getattr(V.graph, "is_backward", True):
            original(wrapper)

    setattr(PythonWrapperCodegen, _WRITES, write)
    try:
        yield
    finally:
        setattr(PythonWrapperCodegen, _WRITES, original)
