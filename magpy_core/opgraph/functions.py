"""What each torch function means to the recorder: metadata read, host read, random, mutation of state, or plain op."""

from __future__ import annotations

import types
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import is_tensor_base
from magpy_core.findings import HERE
from magpy_core.refgraph.kinds import is_number_of_numpy

# Answers that follow from what TensorGuards check (type, dtype, device, sizes, strides, requires_grad).
METADATA_GETTERS = frozenset({
    "dtype", "device", "layout", "requires_grad", "ndim", "is_cuda", "is_cpu", "is_sparse", "is_quantized", "is_meta",
    "is_mps", "is_xpu", "is_xla", "is_sparse_csr", "is_nested", "is_mkldnn", "itemsize", "nbytes", "names", "is_mtia",
    "is_maia", "is_hpu", "is_ipu", "is_vulkan", "name", "_has_symbolic_sizes_strides", "__cuda_array_interface__",
})  # fmt: skip
METADATA_CALLS = frozenset({
    "dim", "ndimension", "is_floating_point", "is_complex", "is_signed", "is_contiguous", "element_size", "type_as_",
    "get_device", "is_same_size", "is_neg", "is_conj", "is_inference", "has_names", "is_distributed", "is_coalesced",
    "is_non_overlapping_and_dense",
})  # fmt: skip
SHAPE_GETTERS = frozenset({"shape"})
SHAPE_CALLS = frozenset({"size", "numel", "nelement", "stride", "__len__", "storage_offset"})
# One edge of a tensor object read through C: guarded as a field of the tensor.
FIELD_GETTERS = frozenset({
    "grad", "is_leaf", "grad_fn", "retains_grad", "_backward_hooks", "_base", "_post_accumulate_grad_hooks",
})  # fmt: skip
SCALAR_READS = frozenset({"item", "__float__", "__int__", "__index__", "__complex__"})
TRUTH_READS = frozenset({"__bool__", "is_nonzero", "equal", "allclose", "__contains__"})
OPAQUE_READS = frozenset({
    "tolist", "numpy", "__array__", "__repr__", "__format__", "__str__", "data_ptr", "storage", "untyped_storage",
    "__reduce_ex__", "__dlpack__", "_version", "__cuda_array_interface__",
})  # fmt: skip
_AS_TEXT = ("__repr__", "__format__", "__str__")
GIVES_ARRAY = ("numpy", "__array__")
# Results of as many parts as a size of the input says.
LENGTH_FROM_SIZE = frozenset({
    "unbind", "split", "chunk", "tensor_split", "hsplit", "vsplit", "dsplit", "unsafe_split", "unsafe_chunk", "__iter__",
    "split_with_sizes", "meshgrid", "__reversed__",
})  # fmt: skip
# Operations that give their input itself back for some dimensions or sizes, and for some layouts; dropouts do with a rate
# of 0.0.
SAME_BY_NUMBER = frozenset({"flatten", "sum_to_size"})
SAME_BY_LAYOUT = frozenset({"contiguous", "ravel", "sum_to_size"})
# Metadata that follows from sizes.
SIZE_READS = frozenset({"nbytes", "is_same_size", "is_non_overlapping_and_dense"})
# In-place operations whose names do not end in one underscore.
IN_PLACE = frozenset({
    "__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__", "__iand__",
    "__ior__", "__ixor__", "__ilshift__", "__irshift__",
})  # fmt: skip
# What makes tensors of data; of NumPy numbers the dtype too.
FROM_DATA = frozenset({"tensor", "as_tensor", "asarray"})
REFUSED = frozenset({
    "backward", "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "__deepcopy__", "share_memory_",
    "set_", "resize_", "resize_as_", "pin_memory", "as_subclass", "_make_subclass", "sparse_resize_", "module_load",
    "_set_grad_fn", "register_multi_grad_hook",
})  # fmt: skip
_NEW_TENSOR = "Make a new tensor and assign it: `self.work = x.new_zeros(x.shape)`."
_GRADIENT = "Put it on the region's result, outside of it; `x * s + (x - x * s).detach()` scales a gradient inside."
REFUSED_HINTS = {
    "backward": "Let the region end before it: `backward()` of a region's result works as ever.",
    "register_hook": _GRADIENT, "retain_grad": _GRADIENT, "set_": _NEW_TENSOR, "resize_": _NEW_TENSOR,
    "resize_as_": _NEW_TENSOR, "share_memory_": "Do it once, outside the region.",
    "pin_memory": "Do it once, outside the region.",
}  # fmt: skip
# Builtin torch functions that read only interpreter or torch state the global guard covers, and change nothing.
STATE_READ_PREFIXES = (
    "is_", "get_", "_is_", "_get_", "has_", "_has_", "_log_api", "_are_", "_len_", "_jit_get", "_cuda_get", "_functorch",
    "_autograd_is",
)  # fmt: skip

# Settings that the global guard watches already, and what is not a setting: it differs while a call is recorded.
_NO_SETTINGS = ("autocast", "grad", "default_dtype", "num_threads", "tracing", "dispatch", "function", "functorch", "mode",
                "stack", "stream", "device", "rng", "nested", "deterministic_algorithms")  # fmt: skip
# Those that the global guard does not watch, or watches only while they count.
_SETTINGS = frozenset({
    "is_anomaly_enabled", "is_anomaly_check_nan_enabled", "is_autocast_cache_enabled", "get_autocast_dtype",
    "get_autocast_cpu_dtype", "get_autocast_gpu_dtype", "_is_multithreading_enabled",
})  # fmt: skip


def reads_setting(fn: Any) -> bool:
    """Whether a function of torch tells how torch is set up (``torch._C._get_cudnn_enabled``), as no other guard does."""
    name = getattr(fn, "__name__", "")
    return name in _SETTINGS or (name.startswith(("_get_", "get_")) and not any(part in name for part in _NO_SETTINGS))


# Functions that write arguments without a trace in the tensors' version counters: names of their parameters in order, the
# flag that makes them write, and what is written.
_NORM = ("input", "running_mean", "running_var", "weight", "bias")
_NATIVE_NORM = ("input", "weight", "bias", "running_mean", "running_var")
_SILENT_WRITES: dict[Any, tuple[tuple[str, ...], str]] = {
    torch.nn.functional.batch_norm: ((*_NORM, "training"), "training"),
    torch.nn.functional.instance_norm: ((*_NORM, "use_input_stats"), "use_input_stats"),
    torch.batch_norm: ((*_NATIVE_NORM, "training"), "training"),
    torch.instance_norm: ((*_NATIVE_NORM, "use_input_stats"), "use_input_stats"),
}


# Operations that take numbers as values: whatever the number, the result has the same shape.
_NUMBERS_ARE_VALUES = frozenset({
    "add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide", "remainder", "fmod", "pow",
    "float_power", "rsub", "eq", "ne", "lt", "le", "gt", "ge", "clamp", "clip", "clamp_min", "clamp_max", "where",
    "masked_fill", "lerp", "addcmul", "addcdiv", "full_like", "dropout", "leaky_relu", "elu", "softplus", "threshold",
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__", "__floordiv__",
    "__rfloordiv__", "__mod__", "__rmod__", "__pow__", "__rpow__", "__eq__", "__ne__", "__lt__", "__le__",
    "__gt__", "__ge__", "__and__", "__or__", "__xor__", "bitwise_and", "bitwise_or", "bitwise_xor", "tensor",
    "scalar_tensor", "maximum", "minimum", "isclose", "nan_to_num",
})  # fmt: skip


_PYTHON_DTYPES: dict[Any, torch.dtype] = {
    bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128,
}  # fmt: skip


def is_python_dtype(value: Any) -> bool:
    """Whether it is one of Python's types that torch takes for a dtype."""
    return type(value) is type and value in _PYTHON_DTYPES


def constant(value: Any) -> Any:
    """A constant as a graph holds it: a NumPy number as Python's (``numpy.float64`` is a float), a type as a dtype."""
    if is_python_dtype(value):
        return _PYTHON_DTYPES[value]
    return value.item() if is_number_of_numpy(value) else value


def writes_in_place(name: str) -> bool:
    """Whether an operation of this name changes the tensor it is called on."""
    return (name.endswith("_") and not name.endswith("__")) or name in IN_PLACE


def gives_parts(name: str, result: Any) -> bool:
    """Whether an operation may give as many tensors as a size of its input says (`unbind_copy`, a list of a custom one)."""
    return type(result) is list or (type(result) is tuple and any(part in name for part in ("split", "chunk", "unbind")))


def may_size(name: str) -> bool:
    """Whether a number that the operation takes may decide the shape of its result. Changing a tensor in place does not."""
    return not writes_in_place(name) and name not in _NUMBERS_ARE_VALUES and not name.startswith(("_foreach_", "_fused_"))


def silently_written(func: Any, fx_args: tuple[Any, ...], fx_kwargs: dict[str, Any]) -> list[Any]:
    """The graph values of the running statistics that a normalisation in training mode changes."""
    try:
        names, flag = _SILENT_WRITES[func]
    except (KeyError, TypeError):
        return []
    bound = {**dict(zip(names, fx_args, strict=False)), **fx_kwargs}
    written = [bound.get("running_mean"), bound.get("running_var")]
    return [v for v in written if v is not None] if bound.get(flag, flag == "use_input_stats") else []


def function_name(func: Any) -> str:
    """``relu``, ``__getitem__``, or for a tensor attribute's getter/setter the attribute's name with ``get:``/``set:``."""
    if isinstance(func, types.MethodWrapperType):
        descriptor = func.__self__
        prefix = {"__get__": "get:", "__set__": "set:", "__delete__": "del:"}[func.__name__]
        name = getattr(descriptor, "__name__", None) or getattr(getattr(descriptor, "fget", None), "__name__", "?")
        return prefix + str(name)
    return str(getattr(func, "__name__", func))


def is_tensor_method(func: Any) -> bool:
    if isinstance(func, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return is_tensor_base(func.__objclass__)
    if isinstance(func, types.FunctionType):
        return getattr(torch.Tensor, func.__name__, None) is func
    return False


def opaque_read(name: str) -> str:
    """What one of OPAQUE_READS does, as a message."""
    if name in _AS_TEXT:
        return f"{HERE} puts a tensor's values into text, where the graph can't follow."
    if name in GIVES_ARRAY:
        return f"{HERE} gives a tensor's data to NumPy, which no graph can hold."
    if name == "tolist":
        return f"{HERE} gives a tensor's data to Python, where the graph can't follow."
    return f"{HERE} shows Python a tensor's memory (`.{name.strip('_')}`), which no guard can watch."


def opaque_hint(name: str) -> str:
    """What to do instead of one of OPAQUE_READS."""
    return "Compute with torch, or move what NumPy does out of the region." if name in GIVES_ARRAY else ""


OUTSIDE_ARRAY = f"{HERE} uses an array from outside, whose memory can change without a trace."
OUTSIDE_ARRAY_HINT = "Make the tensor once, outside the region: a buffer (`register_buffer`) or an argument."
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def note(node: torch.fx.Node, result: Any, **meta: Any) -> None:
    """Keep ``meta`` with a recorded call and, of a plain tensor that it gave, dtype and shape: for whoever shows the graph.

    A subclass's properties may be the program's own code."""
    node.meta.update(meta)
    if type(result) in _PLAIN:
        node.meta["magpy_tensor"] = (result.dtype, tuple(result.shape))
