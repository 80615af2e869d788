"""Which operations of a graph can raise although everything a guard watches is as it was recorded: by the data they see.

Everything that is not known to be safe can. Key functions: ``can_raise``, ``undo_needed``.
"""

from __future__ import annotations

import math
import operator

import torch.fx

from magpy_core._compat.torch.autograd import switches_modes

# Pointwise operations, reductions, views and layers that raise for shapes, types and devices only.
_SAFE = frozenset({
    "add", "sub", "mul", "div", "neg", "abs", "sqrt", "rsqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "sin",
    "cos", "tan", "tanh", "sigmoid", "relu", "relu_", "gelu", "silu", "elu", "leaky_relu", "hardtanh", "hardswish",
    "softplus", "mish", "softmax", "log_softmax", "clamp", "clamp_min", "clamp_max", "clip", "where", "maximum",
    "minimum", "square", "reciprocal", "sign", "round", "floor", "ceil", "trunc", "erf", "lerp", "addcmul", "addcdiv",
    "copy", "zero", "fill", "sum", "mean", "var", "std", "amax", "amin", "max", "min", "argmax", "argmin", "norm",
    "cumsum", "any", "all", "matmul", "mm", "bmm", "addmm", "linear", "baddbmm", "einsum", "conv1d", "conv2d", "conv3d",
    "batch_norm", "layer_norm", "group_norm", "instance_norm", "rms_norm", "dropout", "scaled_dot_product_attention",
    "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "view", "reshape", "permute", "transpose", "t", "flatten",
    "unflatten", "squeeze", "unsqueeze", "expand", "expand_as", "contiguous", "clone", "detach", "to", "float", "double",
    "half", "bfloat16", "long", "int", "bool", "type_as", "cat", "concat", "stack", "chunk", "split", "unbind", "narrow",
    "select", "masked_fill", "tril", "triu", "zeros", "ones", "empty", "full", "arange", "zeros_like", "ones_like",
    "empty_like", "full_like", "rand", "randn", "rand_like", "randn_like", "tensor", "truediv", "eq", "ne", "lt", "le",
    "gt", "ge", "logical_and", "logical_or", "logical_not", "and_", "or_", "invert", "isnan", "isinf", "isfinite",
    "size", "repeat", "pad", "flip", "roll", "mse_loss", "l1_loss", "smooth_l1_loss", "outer", "dot", "mv", "item",
    "requires_grad_",
})  # fmt: skip
_PLAIN_INDEX = (int, slice, type(None), type(Ellipsis))

#: In a node's ``meta``: what no guard watches decides whether it raises.
MAY_RAISE = "magpy_may_raise"


def can_raise(node: torch.fx.Node) -> bool:
    """Whether a call may raise for some data."""
    if MAY_RAISE in node.meta:
        return True
    target = node.target
    name = target if isinstance(target, str) else str(getattr(target, "__name__", target))
    if name == "getattr" or switches_modes(target) or name.startswith("_foreach_"):
        return False
    if name in ("getitem", "setitem", "__getitem__", "__setitem__"):
        index = node.args[1]
        parts = index if isinstance(index, tuple) else (index,)
        return not all(isinstance(p, _PLAIN_INDEX) for p in parts)
    if name == "pow":
        base = node.args[0]
        # `beta ** step`: a number of at most 1 to a power that grows can't overflow; copying every parameter of an
        # optimizer at each step, in case the step count were hugely negative, would cost more than compiling it wins
        return not isinstance(node.args[1], (int, float)) and not (isinstance(base, float) and 0.0 < base <= 1.0)
    if target in (operator.truediv, math.sqrt, math.log):  # on Python's numbers
        number = node.args[-1]
        return isinstance(number, torch.fx.Node) and not _bias_correction(number)
    if getattr(target, "__module__", "") == "math":
        return target is not math.fabs
    if "rounding_mode" in node.kwargs:
        return True
    plain = name.removesuffix("_") if name not in _SAFE else name
    return plain.removeprefix("i") not in _SAFE and plain not in _SAFE


def _bias_correction(node: torch.fx.Node) -> bool:
    """``1 - beta ** step``: an optimizer's, which is not 0 from the first step on."""
    if node.target is not operator.sub or node.args[0] != 1 or not isinstance(node.args[1], torch.fx.Node):
        return False
    power = node.args[1]
    return power.target in (operator.pow, pow) and isinstance(power.args[0], float) and 0.0 < power.args[0] < 1.0


def undo_needed(graph: torch.fx.Graph, first_change: torch.fx.Node | None) -> tuple[bool, bool]:
    """(whether the graph can raise at all, whether it can after it has changed an input)."""
    raises = changed = after = False
    for node in graph.nodes:
        if node.op not in ("call_function", "call_method"):
            continue
        changed = changed or node is first_change
        if can_raise(node):
            raises = True
            after = after or changed
    return raises, after
