"""Functions of torch that are not operators: which ones read torch's state, and which of those need no separate guard.

Every other function of torch that the operator recorder does not record is refused. Names: COVERED_READS, HARMLESS,
reads_state. At the end: what classes, parameters and attributes of torch stand for.
"""

from __future__ import annotations

from typing import Any

import torch

# Prefixes of torch functions that read torch's state and change nothing.
_STATE_READS = (
    "is_", "get_", "_is_", "_get_", "has_", "_has_", "_are_", "_len_", "_jit_get", "_cuda_get", "_cuda_is", "_functorch",
    "_autograd_is", "_accelerator_getDeviceIndex",
)  # fmt: skip
#: State readers that need no separate guard. Results of the others are guarded by reading them again.
COVERED_READS = frozenset(
    # compared by the guard of torch's global state (`global_check`)
    """
        is_grad_enabled is_inference_mode_enabled is_autocast_enabled is_autocast_cpu_enabled is_autocast_ipu_enabled
        is_autocast_xla_enabled _is_any_autocast_enabled get_default_dtype get_num_threads _get_deterministic_algorithms
        _get_deterministic_algorithms_warn_only
    """.split()
    # modes active around a call (`same_surroundings`); during a recording, these include MagPy's modes
    + """
        _is_tracing _get_tracing_state _len_torch_dispatch_stack _len_torch_function_stack _get_dispatch_mode
        _get_dispatch_stack_at _get_function_stack_at _get_torch_function_state _is_torch_function_all_disabled
        _is_torch_function_enabled _is_torch_function_mode_enabled _are_functorch_transforms_active
        get_dynamic_layer_stack_depth get_interpreter_stack is_batchedtensor is_functorch_wrapped_tensor
        is_gradtrackingtensor is_functionaltensor is_legacy_batchedtensor is_dead_tensor_wrapper _is_functional_tensor
        _is_functional_tensor_base _has_torch_function _has_torch_function_unary _has_torch_function_variadic
        _get_default_device
    """.split()
    # constant in a process
    + """
        _accelerator_getAccelerator _get_accelerator _get_all_dtypes _get_custom_class_python_wrapper
        _get_operation_overload _get_privateuse1_backend_name _get_schema _jit_get_all_schemas _jit_get_operation
        _jit_get_schemas_for_operator
    """.split()
)


#: Functions whose result is an object: the current stream of a device, or what a device is.
STREAM_READS = frozenset({"_accelerator_getStream"})
DEVICE_PROPERTIES = frozenset({"_get_device_properties"})
#: Functions that select the current device, of which the first two return the one before.
DEVICE_SELECTIONS = frozenset(
    {
        "_cuda_exchangeDevice", "_cuda_maybeExchangeDevice", "_cuda_setDevice", "_accelerator_exchangeDevice",
        "_accelerator_maybeExchangeDevice", "_accelerator_setDeviceIndex",
    }
)  # fmt: skip


def reads_state(fn: Any, args: tuple[Any, ...]) -> bool:
    """Whether a call of torch reads torch's state that no other guard covers (``torch._C._get_cudnn_enabled()``). A call
    with a tensor argument is an operation."""
    name = getattr(fn, "__name__", "")
    return name.startswith(_STATE_READS) and name not in COVERED_READS and not any(isinstance(a, torch.Tensor) for a in args)


#: Functions that read or change no state that a graph would have to contain.
HARMLESS = frozenset(
    # classes, and functions of types, dtypes, shapes and devices
    """
        Size device dtype finfo iinfo is_storage promote_types result_type can_cast broadcast_shapes _infer_size
        parse_schema compiled_with_cxx11_abi
    """.split()
    # dispatch from Python to an operator, without computation
    + """
        _has_torch_function _has_torch_function_unary _has_torch_function_variadic handle_torch_function
        _disabled_torch_function_impl _unset_dispatch_mode _add_docstr annotate is_scripting unset_lazy
    """.split()
    # usage counts, and profiler ranges
    + """
        _log_api_usage_once _log_api_usage_metadata record_function _record_function_enter_new _record_function_exit
    """.split()
    # repeated by the recording itself: grad mode, checkpoints
    + """
        _set_grad_enabled _pop_saved_tensors_default_hooks _saved_tensors_hooks_get_disabled_error_message
        _saved_tensors_hooks_disable _saved_tensors_hooks_enable
    """.split()
    # dependent on the tensor arguments, and guarded with them
    + """
        _can_use_flash_attention _is_flash_attention_available _group_tensors_by_device_and_dtype
    """.split()
)


# -- classes, attributes and parameters ----------------------------------------------------------------------------------

#: Classes of tensors on the CPU, by dtype, which are called with sizes or data.
CPU_TENSOR_TYPES = frozenset({
    torch.FloatTensor, torch.DoubleTensor, torch.HalfTensor, torch.BFloat16Tensor, torch.LongTensor, torch.IntTensor,
    torch.ShortTensor, torch.CharTensor, torch.ByteTensor, torch.BoolTensor,
})  # fmt: skip

_NORM = ("input", "running_mean", "running_var", "weight", "bias")
_NATIVE_NORM = ("input", "weight", "bias", "running_mean", "running_var")
#: Functions that write arguments without incrementing the tensors' version counters: the names of their parameters in order,
#: and the flag that makes them write.
UPDATES_STATISTICS: dict[Any, tuple[tuple[str, ...], str]] = {
    torch.nn.functional.batch_norm: ((*_NORM, "training"), "training"),
    torch.nn.functional.instance_norm: ((*_NORM, "use_input_stats"), "use_input_stats"),
    torch.batch_norm: ((*_NATIVE_NORM, "training"), "training"),
    torch.instance_norm: ((*_NATIVE_NORM, "use_input_stats"), "use_input_stats"),
}

#: What code in a backward pass sees of the pass itself: gradients that it has accumulated, and the engine that runs it.
#: A graph assigns gradients after the pass.
SHOWS_BACKWARD_PASS = frozenset({"grad", "_grad", "_execution_engine", "queue_callback"})

#: A number of an optimizer's group, and what a scheduler that sets it keeps there.
SCHEDULED = {"lr": "initial_lr", "momentum": "max_momentum", "betas": "max_momentum"}
#: What code of torch sets of these, in calls that take a path of their own.
SET_BY = {torch.optim.lr_scheduler.ReduceLROnPlateau.step.__code__: frozenset({"lr"})}
