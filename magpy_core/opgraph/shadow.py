"""ShadowRecorder: the second recorder, below the first, sees every ATen operation.

It checks that each ran inside a recorded call; an operation that did not (``torch.Tensor(...)``, ``from_numpy``, native
extensions) fails the capture closed. Key type: ShadowRecorder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from magpy_core._compat.torch.eval_frame import never_intercept
from magpy_core._compat.torch.tensor_guards import no_subclass_functions
from magpy_core._compat.torch.torch_state import PlainDispatchMode
from magpy_core.opgraph.operator_graph import OperatorGraph

# In inference mode operations are not taken apart before they get here.
_READS = frozenset(
    {torch.ops.aten._local_scalar_dense.default, torch.ops.aten.item.default, torch.ops.aten.is_nonzero.default}
)


class ShadowRecorder(PlainDispatchMode):
    """Dispatch-level check of one recording."""

    def __init__(self, ops: OperatorGraph, unrecorded: Callable[[str], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ops = ops
        ops.shadow = self
        self.unrecorded = unrecorded

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        ops = self.ops
        if ops.op_depth == 0 and not ops.host.paused():
            self.unrecorded(str(func))
            ops.op_depth += 1  # the call below goes through torch functions again; it is not the program's
            try:
                # nor is it the functions' of a subclass, which would make the result one of theirs
                with no_subclass_functions():
                    result = func(*args, **(kwargs or {}))
            finally:
                ops.op_depth -= 1
            ops.host.name_result(result)
            return result
        if func in _READS:
            ops.read_inside.append(args[0])
        with no_subclass_functions():  # below them, as it would be without us
            return func(*args, **(kwargs or {}))


never_intercept(ShadowRecorder.__torch_dispatch__)
