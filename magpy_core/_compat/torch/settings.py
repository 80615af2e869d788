"""Settings of torch's backends that a program may change while it runs (`torch.backends.cudnn.flags(...)`). They are kept in
C++, so no object shows a change. Key function: ``changes_setting``.
"""

from __future__ import annotations

from typing import Any

import torch

_NAMES = (
    "_set_cudnn_enabled", "_set_cudnn_benchmark", "_set_cudnn_deterministic", "_set_cudnn_allow_tf32",
    "_set_cudnn_depthwise_kernel", "_cuda_set_cudnn_benchmark_limit", "_set_fp32_precision_setter",
)  # fmt: skip
_SETTERS = {name: getattr(torch._C, name) for name in _NAMES if hasattr(torch._C, name)}  # not every torch has all of them


def changes_setting(fn: Any) -> bool:
    """Whether a function changes one of the settings."""
    return _SETTERS.get(getattr(fn, "__name__", "")) is fn
