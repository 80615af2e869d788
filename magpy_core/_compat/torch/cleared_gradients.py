"""Where torch sets gradients to None whatever they were. Key function: sets_to_none."""

from __future__ import annotations

import inspect
import os
from types import CodeType, FrameType

import torch


def _codes() -> frozenset[CodeType]:
    functions = (torch.optim.Optimizer.zero_grad, torch.nn.Module.zero_grad)
    codes = [getattr(inspect.unwrap(function), "__code__", None) for function in functions]
    folder = os.path.join(os.path.dirname(torch.__file__), "")
    return frozenset(code for code in codes if code is not None and code.co_filename.startswith(folder))


_CODES = _codes()


def sets_to_none(code: CodeType, frame: FrameType | None) -> bool:
    """Whether ``frame``, which runs ``code`` or an instrumented copy of it, is torch's ``zero_grad(set_to_none=True)``: it
    reads a gradient only to find out whether it is None already, and the gradient is None afterwards in either case."""
    if frame is None or code not in _CODES or _place(frame.f_code) != _place(code):
        return False
    return frame.f_locals.get("set_to_none") is True


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_filename, code.co_firstlineno
