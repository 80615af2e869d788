"""TorchCalls: calls into torch. The operator recorder must see each; one that it misses is refused.

Key type: TorchCalls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from magpy_core.findings import HERE, Value
from magpy_core.knowledge import policy
from magpy_core.opgraph.functions import COVERED_READS
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.kinds import is_a

_QUIET_TORCH = frozenset({
    "_has_torch_function", "_has_torch_function_unary", "_has_torch_function_variadic", "handle_torch_function", "Size",
    "device", "dtype", "finfo", "iinfo", "is_storage", "_add_docstr", "unset_lazy", "_log_api_usage_once",
    "_log_api_usage_metadata", "annotate",
    "is_scripting", "record_function", "_record_function_enter_new", "_record_function_exit", "promote_types", "result_type",
    "can_cast", "broadcast_shapes", "_disabled_torch_function_impl", "compiled_with_cxx11_abi", "_unset_dispatch_mode",
    "parse_schema", "_group_tensors_by_device_and_dtype", "_pop_saved_tensors_default_hooks",
    "_saved_tensors_hooks_get_disabled_error_message", "_saved_tensors_hooks_disable", "_saved_tensors_hooks_enable",
    "_infer_size", "_set_grad_enabled", "_can_use_flash_attention", "_is_flash_attention_available",
})  # fmt: skip


@dataclass(eq=False)
class TorchCalls(Tracker):
    """Which call into torch is expected."""

    alone: bool = field(default=False, init=False)

    def missed(self) -> None:
        """A call into torch that the operator recorder did not see: only known state readers may pass."""
        assert self.basics.stack.torch is not None
        site, fn = self.basics.stack.torch
        self.basics.stack.torch = None
        name = getattr(fn, "__name__", type(fn).__name__)
        if name in COVERED_READS or name in _QUIET_TORCH or is_a(fn, type):
            return
        self.journal.refuse(
            "MP106",
            f"{HERE} calls `{policy.shown_name(fn)}`, which reads or changes torch's state in a way that no graph can hold.",
            values=(Value("call", policy.shown_name(fn)),),
            site=site,
        )

    def expected(self, site: Any, fn: Any, args: tuple[Any, ...]) -> None:
        """The operator recorder is about to see a call of torch's."""
        self.facts.classes.operands(site, *args)
        self.basics.stack.torch = (site, fn)

    def inside_node(self, fn: Any) -> None:
        """The same inside of what is one node, which calls it again."""
        self.basics.stack.torch = None
        if is_a(getattr(fn, "__self__", None), torch.Generator):
            self.alone = True
