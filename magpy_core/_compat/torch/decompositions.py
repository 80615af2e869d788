"""What compiled code computes in place of one ATen operation. Key function: of_operation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

#: Those that add, subtract or divide inside.
_COMPOSED = (
    "_fused_rms_norm _fused_rms_norm_backward _log_softmax _log_softmax_backward_data _softmax _softmax_backward_data"
    " binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits elu elu_backward gelu"
    " gelu_backward huber_loss linalg_vector_norm log_sigmoid_backward log_sigmoid_forward logsumexp mish mish_backward"
    " native_group_norm native_group_norm_backward native_layer_norm native_layer_norm_backward sigmoid_backward"
    " silu silu_backward smooth_l1_loss softplus softplus_backward std std_mean tanh_backward var var_mean"
).split()


@functools.cache
def of_operation() -> dict[Any, Callable[..., Any]]:
    """By overload. An operation that this version of torch does not decompose has none."""
    from torch._decomp import get_decompositions

    packets = [getattr(torch.ops.aten, name) for name in _COMPOSED if hasattr(torch.ops.aten, name)]
    return dict(get_decompositions(packets))
