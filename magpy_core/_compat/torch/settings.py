"""Settings of torch's backends that a program may change while it runs (`torch.backends.cudnn.flags(...)`): how each is read
and written. They are kept in C++, so no object shows a change.

Key functions: ``setter_name``, ``get_settings``, ``set_settings``, ``settings``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

_FLAGS = ("cudnn_enabled", "cudnn_benchmark", "cudnn_deterministic", "cudnn_allow_tf32", "cudnn_depthwise_kernel",
          "cuda_:cudnn_benchmark_limit")  # fmt: skip
# What the others decide too comes last, the general before the particular.
_PRECISIONS = (
    ("generic", "all"), ("cuda", "all"), ("cuda", "conv"), ("cuda", "rnn"), ("cuda", "matmul"), ("mkldnn", "all"),
    ("mkldnn", "conv"), ("mkldnn", "rnn"), ("mkldnn", "matmul"),
)  # fmt: skip

Settings = list[Any]


def _functions(flag: str) -> tuple[Callable[[], Any], Callable[[Any], None]] | None:
    """``_get_``/``_set_`` of a flag, or ``_cuda_get_``/``_cuda_set_``, which only builds for CUDA have."""
    before, _, after = flag.rpartition(":")
    getter, setter = (getattr(torch._C, f"_{before}{verb}_{after}", None) for verb in ("get", "set"))
    return None if getter is None or setter is None else (getter, setter)


_FOUND = [found for flag in _FLAGS if (found := _functions(flag)) is not None]  # not every torch has all of them
_GET_PRECISION: Callable[[str, str], str] | None = getattr(torch._C, "_get_fp32_precision_getter", None)
_SET_PRECISION: Callable[[str, str, str], None] | None = getattr(torch._C, "_set_fp32_precision_setter", None)
_SETTERS: dict[str, Callable[..., None]] = {setter.__name__: setter for _, setter in _FOUND}
if _SET_PRECISION is not None:
    _SETTERS[_SET_PRECISION.__name__] = _SET_PRECISION


def setter_name(fn: Any) -> str | None:
    """The name of a function that changes one of the settings; None for any other function."""
    name = getattr(fn, "__name__", "")
    return name if _SETTERS.get(name) is fn else None


def settings() -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """How each of the settings is asked for: a function and its arguments."""
    for getter, _ in _FOUND:
        yield getter, ()
    if _GET_PRECISION is not None:
        for where in _PRECISIONS:
            yield _GET_PRECISION, where


def get_settings() -> Settings:
    """All of them, as they are. Raises RuntimeError where torch finds that two of them contradict each other."""
    return [getter(*args) for getter, args in settings()]


def set_settings(before: Settings) -> None:
    """All of them as ``get_settings`` found them."""
    for (getter, args), value in zip(settings(), before, strict=True):
        if _differs(getter, args, value):
            _SETTERS[getter.__name__.replace("_get_", "_set_").replace("_getter", "_setter")](*args, value)


def _differs(getter: Callable[..., Any], args: tuple[Any, ...], value: Any) -> bool:
    try:
        return bool(getter(*args) != value)
    except RuntimeError:  # two settings contradict each other now
        return True


def set_setting(name: str, *args: Any) -> None:
    """Call the setter of that name: a node of a graph."""
    _SETTERS[name](*args)
