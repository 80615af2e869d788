"""Writes that leave a compiled graph with another layout than the tensor has.

A compiler makes a new tensor of each write. Where that tensor's strides don't follow the written one's, everything computed
from it afterwards has other strides than in plain Python, and draws go to other elements. Key function: `keeps_layout`.
"""

from __future__ import annotations

_UNARY = """
abs absolute acos acosh angle asin asinh atan atanh arccos arccosh arcsin arcsinh arctan arctanh bitwise_not
ceil conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac i0 lgamma log log10
log1p log2 logical_not logit nan_to_num neg negative polygamma rad2deg reciprocal round rsqrt sgn sigmoid sign
sin sinc sinh sqrt square tan tanh trunc celu elu gelu hardsigmoid hardswish hardtanh leaky_relu mish relu
relu6 selu silu threshold
"""
_BINARY = """
add addcdiv addcmul atan2 arctan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
clamp clamp_max clamp_min clip div divide eq fmod ge greater greater_equal gt hypot
ldexp le less less_equal logical_and logical_or logical_xor lt mul multiply ne not_equal pow remainder
sub subtract true_divide iadd iand ilshift imod imul ior ipow irshift isub itruediv ixor
"""
_FILLS = "copy fill index_put setitem zero"
_VIEWS = "squeeze swapaxes swapdims t transpose unsqueeze requires_grad detach"

#: Without the underscores around them. All else is taken not to keep it.
_KEEPS = frozenset(f"{_UNARY} {_BINARY} {_FILLS} {_VIEWS}".split())


def keeps_layout(name: str, *, masked: bool) -> bool:
    """Whether what a compiler makes of a write of this name has the written tensor's strides, whichever they are.
    ``masked``: it is given a tensor of bool."""
    plain = name.removeprefix("_foreach_").strip("_")
    return plain in _KEEPS and not (masked and plain in ("setitem", "index_put"))
