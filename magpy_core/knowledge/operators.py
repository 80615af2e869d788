"""Facts about torch's operators, one entry per name. Stages get the sets they need from `named`.

Names are those that `opgraph.functions.function_name` returns for functions, methods and attributes, and those of graph
nodes (``getitem``, ``setitem``, ``iadd``). A fact that is not listed is not assumed: without `SAFE` an operator may raise,
without `EARLY` it stays in the graph. Key types: Fact, OPERATORS; key function: `named`.
"""

from __future__ import annotations

import enum


class Fact(enum.Flag):
    """One fact about an operator."""

    METADATA_ATTRIBUTE = enum.auto()
    """An attribute determined by what tensor guards check: type, dtype, device, sizes, strides, requires_grad."""
    METADATA_CALL = enum.auto()
    """A method or function with such a result."""
    SIZE_ATTRIBUTE = enum.auto()
    """An attribute whose value is sizes as Python numbers."""
    SIZE_CALL = enum.auto()
    """A call that returns sizes, strides or an offset as Python numbers."""
    LAYOUT_READ = enum.auto()
    """Metadata that depends on sizes and strides but is not a size."""
    FIELD = enum.auto()
    """An attribute stored in the tensor object, guarded as a field."""
    EMPTY_INSIDE = enum.auto()
    """A field that may be read from a tensor created inside the region while it is None."""
    READS_ITEM = enum.auto()
    """Returns the number in a tensor to Python; its type depends on the dtype."""
    READS_FLOAT = enum.auto()
    READS_INT = enum.auto()
    READS_COMPLEX = enum.auto()
    READS_BOOL = enum.auto()
    """Returns the truth value of the number in a tensor to Python."""
    COMPARES = enum.auto()
    """Returns a bool to Python that depends on several values."""
    GIVES_TEXT = enum.auto()
    """Formats values as text."""
    GIVES_ARRAY = enum.auto()
    """Returns the data as a NumPy array."""
    GIVES_LIST = enum.auto()
    """Returns all numbers to Python at once."""
    SHOWS_MEMORY = enum.auto()
    """Exposes the tensor's memory or version counter to Python."""
    REFUSED = enum.auto()
    """Can't be recorded safely yet."""
    FROM_DATA = enum.auto()
    """Creates a tensor from data; a NumPy number determines the dtype too."""
    FACTORY = enum.auto()
    """Any argument may be a size or count: a 0-d tensor among them is read as a number."""
    SIZED = enum.auto()
    """Any argument except the first may be a size or count."""
    DATA_SHAPED = enum.auto()
    """The shape of the result is data-dependent."""
    REDUCES = enum.auto()
    """Called with only a tensor, without a dimension, returns a 0-d tensor for all sizes."""
    PARTS = enum.auto()
    """The number of results depends on a size of the input."""
    INPUT_BY_NUMBER = enum.auto()
    """Returns the input itself for some values of number arguments (dropout is handled separately)."""
    INPUT_BY_LAYOUT = enum.auto()
    """Returns the input itself for some layouts."""
    IN_PLACE = enum.auto()
    """Writes its first argument, though the name doesn't end in one underscore."""
    VALUES = enum.auto()
    """Number arguments are values: they don't affect the shape of the result."""
    OF_NUMBERS = enum.auto()
    """With only plain numbers as arguments, returns a tensor that depends only on them."""
    SAFE = enum.auto()
    """Raises only because of shapes, types and devices, never because of data."""
    KEEPS_LAYOUT = enum.auto()
    """Written in place, its compiled form keeps the written tensor's strides."""
    KEEPS_EQUAL_LAYOUT = enum.auto()
    """The same, if its other tensors have these strides, too."""
    CONVERTS = enum.auto()
    """Returns the same elements in another type."""
    EARLY = enum.auto()
    """Fast, deterministic, without effects, independent of grad mode and default dtype: may run before the graph."""

    NUMBER_READ = READS_ITEM | READS_FLOAT | READS_INT | READS_COMPLEX
    HOST_READ = NUMBER_READ | READS_BOOL | COMPARES
    """Python waits for a value that depends on a tensor's data."""
    OPAQUE_READ = GIVES_TEXT | GIVES_ARRAY | GIVES_LIST | SHOWS_MEMORY
    """Exposes data or memory to Python in a way that neither the graph nor guards can track."""


_NEW_TENSOR = "Make a new tensor and assign it: `self.work = x.new_zeros(x.shape)`."
_GRADIENT = "Call it on the region's result, outside the region; `x * s + (x - x * s).detach()` scales a gradient inside."
_OUTSIDE = "Do it once, outside the region."
#: Operators that are refused, and what to do instead.
REFUSED: dict[str, str] = {
    "register_hook": _GRADIENT, "retain_grad": _GRADIENT, "set_": _NEW_TENSOR, "resize_": _NEW_TENSOR,
    "resize_as_": _NEW_TENSOR, "share_memory_": _OUTSIDE, "pin_memory": _OUTSIDE, "register_multi_grad_hook": "",
    "register_post_accumulate_grad_hook": "", "__deepcopy__": "", "as_subclass": "", "_make_subclass": "",
    "is_coalesced": "Call `coalesce()`: it returns the tensor itself if that is coalesced.",
    "sparse_resize_": "", "module_load": "", "_set_grad_fn": "",
}  # fmt: skip

REFUSED_OF_AUTOGRAD = frozenset({
    "register_hook", "retain_grad", "register_multi_grad_hook", "register_post_accumulate_grad_hook", "_set_grad_fn",
})  # fmt: skip

_ROWS: tuple[tuple[str, Fact], ...] = (
    ("""
        _has_symbolic_sizes_strides device dtype is_cpu is_cuda is_hpu is_ipu is_maia is_meta is_mkldnn is_mps
        is_mtia is_nested is_quantized is_sparse is_sparse_csr is_vulkan is_xla is_xpu itemsize layout name
        names ndim
     """, Fact.METADATA_ATTRIBUTE),
    ("__cuda_array_interface__", Fact.METADATA_ATTRIBUTE | Fact.SHOWS_MEMORY),
    ("nbytes", Fact.METADATA_ATTRIBUTE | Fact.LAYOUT_READ),
    ("requires_grad", Fact.METADATA_ATTRIBUTE | Fact.KEEPS_LAYOUT),
    ("""
        __hash__ dim element_size get_device has_names is_complex is_conj is_contiguous is_distributed
        is_floating_point is_inference is_neg is_signed ndimension type_as_
     """, Fact.METADATA_CALL),
    ("is_non_overlapping_and_dense is_same_size", Fact.METADATA_CALL | Fact.LAYOUT_READ),
    ("shape", Fact.SIZE_ATTRIBUTE),
    ("nelement storage_offset stride", Fact.SIZE_CALL),
    ("size", Fact.SIZE_CALL | Fact.SAFE | Fact.EARLY),
    ("__len__ numel", Fact.SIZE_CALL | Fact.EARLY),
    ("_base _post_accumulate_grad_hooks is_leaf", Fact.FIELD),
    ("_backward_hooks grad grad_fn retains_grad", Fact.FIELD | Fact.EMPTY_INSIDE),
    ("__complex__", Fact.READS_COMPLEX),
    ("item", Fact.READS_ITEM | Fact.SAFE | Fact.EARLY),
    ("__float__", Fact.READS_FLOAT | Fact.EARLY),
    ("__index__ __int__", Fact.READS_INT | Fact.EARLY),
    ("allclose", Fact.COMPARES),
    ("__bool__ is_nonzero", Fact.READS_BOOL | Fact.SAFE | Fact.EARLY),
    ("__contains__ equal", Fact.COMPARES | Fact.EARLY),
    ("__format__ __repr__ __str__", Fact.GIVES_TEXT),
    ("__array__ numpy", Fact.GIVES_ARRAY),
    ("tolist", Fact.GIVES_LIST),
    ("__dlpack__ __reduce_ex__ _version data_ptr storage untyped_storage", Fact.SHOWS_MEMORY),
    ("as_tensor asarray", Fact.FROM_DATA),
    ("tensor", Fact.FROM_DATA | Fact.VALUES | Fact.OF_NUMBERS | Fact.SAFE),
    ("""
        bartlett_window blackman_window eye hamming_window hann_window kaiser_window linspace logspace randint
        randperm range tril_indices triu_indices
     """, Fact.FACTORY),
    ("arange empty full ones rand randn zeros", Fact.FACTORY | Fact.SAFE),
    ("""
        adaptive_avg_pool1d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d as_strided broadcast_to
        diag diag_embed diagonal interpolate multinomial new_empty new_full new_ones new_zeros slice_scatter
        tile topk unfold upsample
     """, Fact.SIZED),
    ("split_with_sizes tensor_split unsafe_chunk unsafe_split", Fact.SIZED | Fact.PARTS),
    ("chunk split", Fact.SIZED | Fact.PARTS | Fact.SAFE),
    ("adaptive_avg_pool2d pad repeat unflatten", Fact.SIZED | Fact.SAFE),
    ("expand narrow", Fact.SIZED | Fact.SAFE | Fact.EARLY),
    ("reshape view", Fact.SIZED | Fact.SAFE | Fact.EARLY),
    ("""
        _pack_padded_sequence _pad_packed_sequence _unique _unique2 argwhere bincount histc_ index masked_select
        nonzero_static one_hot repeat_interleave unique_dim
     """, Fact.DATA_SHAPED),
    ("mean norm std var", Fact.REDUCES | Fact.SAFE),
    ("all amax amin any argmax argmin max min sum", Fact.REDUCES | Fact.SAFE | Fact.EARLY),
    ("nonzero unique unique_consecutive", Fact.DATA_SHAPED | Fact.EARLY),
    ("__iter__ __reversed__ dsplit hsplit meshgrid vsplit", Fact.PARTS),
    ("unbind", Fact.PARTS | Fact.SAFE),
    ("sum_to_size", Fact.INPUT_BY_NUMBER | Fact.INPUT_BY_LAYOUT),
    ("flatten", Fact.INPUT_BY_NUMBER | Fact.SAFE | Fact.EARLY),
    ("contiguous", Fact.INPUT_BY_LAYOUT | Fact.SAFE | Fact.EARLY),
    ("ravel", Fact.INPUT_BY_LAYOUT | Fact.EARLY),
    ("""
        __iadd__ __iand__ __ifloordiv__ __ilshift__ __imod__ __imul__ __ior__ __ipow__ __irshift__ __isub__
        __itruediv__ __ixor__ __setitem__
     """, Fact.IN_PLACE),
    ("""
        __floordiv__ __mod__ __pow__ __rfloordiv__ __rmod__ __rpow__ __rtruediv__ __truediv__ float_power
        isclose rsub
     """, Fact.VALUES),
    ("__rdiv__", Fact.SAFE),
    ("floor_divide scalar_tensor", Fact.VALUES | Fact.OF_NUMBERS),
    ("maximum minimum", Fact.VALUES | Fact.OF_NUMBERS | Fact.SAFE),
    ("div", Fact.VALUES | Fact.OF_NUMBERS | Fact.SAFE | Fact.KEEPS_LAYOUT),
    ("add mul sub", Fact.VALUES | Fact.OF_NUMBERS | Fact.SAFE | Fact.KEEPS_LAYOUT | Fact.EARLY),
    ("remainder true_divide", Fact.VALUES | Fact.OF_NUMBERS | Fact.KEEPS_LAYOUT),
    ("dropout full_like softplus", Fact.VALUES | Fact.SAFE),
    ("lerp", Fact.VALUES | Fact.SAFE | Fact.KEEPS_EQUAL_LAYOUT),
    ("addcdiv addcmul clamp_max clamp_min clip elu leaky_relu", Fact.VALUES | Fact.SAFE | Fact.KEEPS_LAYOUT),
    ("clamp eq ge gt le lt ne", Fact.VALUES | Fact.SAFE | Fact.KEEPS_LAYOUT | Fact.EARLY),
    ("masked_fill where", Fact.VALUES | Fact.SAFE | Fact.EARLY),
    ("bitwise_xor divide fmod multiply nan_to_num pow subtract threshold", Fact.VALUES | Fact.KEEPS_LAYOUT),
    ("bitwise_and bitwise_or", Fact.VALUES | Fact.KEEPS_LAYOUT | Fact.EARLY),
    ("__and__ __eq__ __ge__ __gt__ __le__ __lt__ __ne__ __or__ __xor__", Fact.VALUES | Fact.EARLY),
    ("__add__ __mul__ __radd__ __rmul__ __rsub__ __sub__", Fact.VALUES | Fact.OF_NUMBERS | Fact.EARLY),
    ("__neg__", Fact.OF_NUMBERS | Fact.EARLY),
    ("ceil floor round", Fact.OF_NUMBERS | Fact.SAFE | Fact.KEEPS_LAYOUT),
    ("detach", Fact.OF_NUMBERS | Fact.SAFE | Fact.KEEPS_LAYOUT | Fact.EARLY),
    ("clone int long", Fact.OF_NUMBERS | Fact.SAFE | Fact.EARLY),
    ("to", Fact.OF_NUMBERS | Fact.SAFE | Fact.EARLY | Fact.CONVERTS),
    ("""
        _max_pool2d addmm and_ avg_pool2d baddbmm batch_norm bfloat16 binary_cross_entropy_with_logits bmm cat concat conv1d
        conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d dot einsum
        empty_like group_norm half instance_norm invert l1_loss layer_norm linalg_vector_norm linear
        log_softmax lstm matmul max_pool2d
        mm mse_loss multi_head_attention_forward mv ones_like or_ outer rand_like randn_like relu_ requires_grad_
        rms_norm roll scaled_dot_product_attention smooth_l1_loss softmax stack truediv zeros_like
     """, Fact.SAFE),
    ("""
        copy cos erf exp expm1 fill gelu hardswish hardtanh log log10 log1p log2 mish reciprocal relu rsqrt
        sigmoid silu sin sqrt square tan tanh trunc zero
     """, Fact.SAFE | Fact.KEEPS_LAYOUT),
    ("abs logical_and logical_not logical_or neg sign squeeze t transpose unsqueeze",
     Fact.SAFE | Fact.KEEPS_LAYOUT | Fact.EARLY),
    ("""
        bool cumsum double expand_as flip isfinite isinf isnan permute select tril triu type_as
     """, Fact.SAFE | Fact.EARLY),
    ("float", Fact.SAFE | Fact.EARLY | Fact.CONVERTS),
    ("""
        absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2
        atanh bitwise_left_shift bitwise_not bitwise_right_shift celu conj_physical cosh deg2rad digamma erfc
        erfinv exp2 fix frac greater greater_equal hardsigmoid hypot i0 iadd iand ilshift imod imul index_put
        ior ipow irshift isub itruediv ixor ldexp less less_equal lgamma logit negative not_equal polygamma
        rad2deg relu6 selu setitem sgn sinc sinh swapaxes swapdims
     """, Fact.KEEPS_LAYOUT),
    ("logical_xor", Fact.KEEPS_LAYOUT | Fact.EARLY),
    ("""
        __abs__ __getitem__ __invert__ __rand__ __ror__ __rxor__ count_nonzero diff getattr getitem isin
        type
     """, Fact.EARLY),
    (" ".join(REFUSED), Fact.REFUSED),
)  # fmt: skip


def _entries() -> dict[str, Fact]:
    found: dict[str, Fact] = {}
    for names, facts in _ROWS:
        for name in names.split():
            if name in found:
                raise ValueError(f"the operator {name} has two entries")
            found[name] = facts
    return found


OPERATORS: dict[str, Fact] = _entries()


#: Operations that compute each element from those at the same place, and have not torch's tag for that.
ELEMENTWISE = frozenset(
    """
    alias clone copy_ detach empty_like fill_ full full_like hoist ones_like scalar_tensor _to_copy zero_ zeros_like
    """.split()
)


def named(facts: Fact) -> frozenset[str]:
    """The names of operators with at least one of these facts."""
    return frozenset(name for name, known in OPERATORS.items() if known & facts)
