"""What torch functions write without counting versions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.fx

from magpy_core.opgraph.functions import silently_written

_LISTS = [[torch.fx.Graph().placeholder(f"{name}{i}") for i in range(2)] for name in "abcdef"]


@pytest.mark.parametrize(
    ("fn", "args", "written"),
    [
        (torch._foreach_lerp_, (*_LISTS[:2], 0.5), 1),
        (torch._foreach_add_, (_LISTS[0], 1), 1),
        (torch._foreach_add, (_LISTS[0], 1), 0),
        (torch._fused_sgd_, (*_LISTS[:3],), 3),
        (torch._amp_foreach_non_finite_check_and_unscale_, (*_LISTS[:3],), 2),
        (torch.relu_, (_LISTS[0][0],), 0),  # it counts
    ],
)
def test_operations_on_lists_write_what_their_schemas_say(fn: Any, args: tuple[Any, ...], written: int) -> None:
    """On a device, ``_foreach_lerp_`` changes tensors without counting versions."""
    assert silently_written(fn, args, {}) == [node for nodes in args[:written] for node in nodes]
