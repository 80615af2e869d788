"""Notices backward passes. Key function: watch_backward."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

_NAME = "_engine_run_backward"  # what `backward` and `grad` of torch.autograd call; torch.compiler replaces it the same way


def watch_backward(begins: Callable[[], bool], ended: Callable[[], None]) -> None:
    """Calls ``begins`` before each backward pass, and each pass of ``torch.autograd.grad``, and ``ended`` after it, if
    ``begins`` has returned True."""
    original: Callable[..., Any] = getattr(torch.autograd, _NAME)

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not begins():
            return original(*args, **kwargs)
        try:
            return original(*args, **kwargs)
        finally:
            ended()

    setattr(torch.autograd, _NAME, run)
