"""CopyEvents: tensors that ``copy.deepcopy`` reaches are copied by nodes of the graph.

Each node makes the copy as torch does; with a memo of each replay's own tensors that share memory
have copies that do.
Key type: CopyEvents.
"""

from __future__ import annotations

from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.opgraph.made import copy_tensor, new_memo
from magpy_core.recording.scripts import ScriptEvents


def _has_more(tensor: Any) -> bool:
    """Whether copying a tensor copies more than its data, or fails."""
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_inference() or tensor.device.type == "meta":
        return True
    plain = type(tensor) is torch.Tensor
    return not tensor.is_leaf or (plain and (tensor.grad is not None or bool(tensor.__dict__)))


class CopyEvents(ScriptEvents):
    """Copies of tensors."""

    _memos: dict[int, tuple[Any, Any]]  # memos of ``copy.deepcopy``, by id, with their graph values

    def copy_tensor(self, site: Any, tensor: Any = None, memo: Any = None) -> None:
        """``copy.deepcopy`` has come to a tensor: a node that copies it again, with a memo of its own for each call."""
        if self.ops.op_depth or self._applied is not None:
            return
        self.pause()
        odd = type(tensor) not in (torch.Tensor, torch.nn.Parameter) or type(memo) is not dict or self.refgraph.node(memo)
        with no_torch_function():
            if odd or id(tensor) in memo or (id(memo) not in self._memos and "torch" in memo) or _has_more(tensor):
                self.refuse("MP106", f"{HERE} copies a tensor in a way that a graph can't hold.", site=site,
                            hint="Copy its values: `x.detach().clone()`.")  # fmt: skip
                return
        node = self.refgraph.node(tensor)
        if type(tensor) is torch.Tensor and node is not None:
            if not any(written is tensor and name == "grad" for written, name, *_ in self.field_writes):
                self.value(self.sources.make("own_grad", node.source, None), None, site)
            self.refgraph.read(self.sources.make("dict", node.source, None), guard.KEYS, (), site)
        if id(memo) not in self._memos:
            self._memos[id(memo)] = (memo, self.ops.graph.call_function(new_memo))
        self.ops.eager_only.append(("MP106", f"{HERE} copies a tensor deeply, which a compiled graph can't do.", site))
        self.apply_as(site, copy_tensor, (tensor, self._memos[id(memo)][1]), {})
