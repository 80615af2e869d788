"""Parts of a graph whose context compilers lose: in inference mode, and under a checkpoint.

AOTAutograd turns inference tensors into ordinary ones, and runs the writes of a checkpointed part only once: its backward
graph recomputes values, but does not repeat writes. Key functions: `inference_leaves`, `written_again`.
"""

from __future__ import annotations

import torch.fx

from magpy_core._compat.torch.autograd import enter_inference_mode, exit_inference_mode
from magpy_core.backends.scalar_ops import name_of
from magpy_core.backends.sharing import viewed, writes
from magpy_core.opgraph.checkpoints import CHECKPOINT
from magpy_core.opgraph.functions import silently_written


def inference_leaves(graph: torch.fx.Graph) -> bool:
    """Whether an output was created in inference mode, or the graph begins or ends inside it."""
    depth = 0
    inside: set[torch.fx.Node] = set()
    for node in graph.nodes:
        if node.target is enter_inference_mode:
            depth += 1
        elif node.target is exit_inference_mode:
            depth -= 1
        elif node.op == "output":
            return depth != 0 or any(n in inside for out in node.all_input_nodes for n in (out, *viewed(out)))
        elif depth and node.op != "placeholder":
            inside.add(node)
        if depth < 0:
            return True
    return False


def written_again(graph: torch.fx.Graph) -> str | None:
    """The first operation in a checkpointed part that writes to a tensor from outside it."""
    for node in graph.nodes:
        number = node.meta.get(CHECKPOINT)
        if number is None or node.op not in ("call_function", "call_method"):
            continue
        written = silently_written(node.target, node.args, node.kwargs)
        if writes(node):
            written = [*written, next(viewed(node))]
        for target in written:
            if any(n.meta.get(CHECKPOINT) != number for n in (target, *viewed(target))):
                return name_of(node.op, node.target)
    return None
