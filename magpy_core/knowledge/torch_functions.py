"""Functions of torch that are no operators: which tell something of its state, and which of them need no guard of their own.

Every other function of torch that the operator recorder does not see is refused. Names: COVERED_READS, HARMLESS,
reads_state.
"""

from __future__ import annotations

from typing import Any

import torch

# How the names of torch's functions begin that tell something of torch's state, and change nothing.
_STATE_READS = (
    "is_", "get_", "_is_", "_get_", "has_", "_has_", "_are_", "_len_", "_jit_get", "_cuda_get", "_functorch", "_autograd_is",
)  # fmt: skip
#: State readers that need no guard of their own. What is read by any other is guarded by being read again.
COVERED_READS = frozenset(
    # what the guard of torch's global state compares (`global_check`)
    """
        is_grad_enabled is_inference_mode_enabled is_autocast_enabled is_autocast_cpu_enabled is_autocast_ipu_enabled
        is_autocast_xla_enabled _is_any_autocast_enabled get_default_dtype get_num_threads _get_deterministic_algorithms
        _get_deterministic_algorithms_warn_only
    """.split()
    # what is in force around a call (`same_surroundings`); while a call is recorded, our own modes are, too
    + """
        _is_tracing _get_tracing_state _len_torch_dispatch_stack _len_torch_function_stack _get_dispatch_mode
        _get_dispatch_stack_at _get_function_stack_at _get_torch_function_state _is_torch_function_all_disabled
        _is_torch_function_enabled _is_torch_function_mode_enabled _are_functorch_transforms_active
        get_dynamic_layer_stack_depth get_interpreter_stack is_batchedtensor is_functorch_wrapped_tensor
        is_gradtrackingtensor is_functionaltensor is_legacy_batchedtensor is_dead_tensor_wrapper _is_functional_tensor
        _is_functional_tensor_base _has_torch_function _has_torch_function_unary _has_torch_function_variadic
        _get_default_device
    """.split()
    # what stays the same in a process
    + """
        _accelerator_getAccelerator _get_accelerator _get_all_dtypes _get_custom_class_python_wrapper
        _get_operation_overload _get_privateuse1_backend_name _get_schema _jit_get_all_schemas _jit_get_operation
        _jit_get_schemas_for_operator
    """.split()
)


def reads_state(fn: Any, args: tuple[Any, ...]) -> bool:
    """Whether a call of torch's tells something of torch's state that no other guard covers
    (``torch._C._get_cudnn_enabled()``). One that is given a tensor is an operation."""
    name = getattr(fn, "__name__", "")
    return name.startswith(_STATE_READS) and name not in COVERED_READS and not any(isinstance(a, torch.Tensor) for a in args)


#: No state is read or changed by them that a graph would have to hold.
HARMLESS = frozenset(
    # classes, and what tells of types, dtypes, shapes and devices
    """
        Size device dtype finfo iinfo is_storage promote_types result_type can_cast broadcast_shapes _infer_size
        parse_schema compiled_with_cxx11_abi
    """.split()
    # how Python reaches an operator; none of it computes
    + """
        _has_torch_function _has_torch_function_unary _has_torch_function_variadic handle_torch_function
        _disabled_torch_function_impl _unset_dispatch_mode _add_docstr annotate is_scripting unset_lazy
    """.split()
    # usage counts, and ranges of a profiler
    + """
        _log_api_usage_once _log_api_usage_metadata record_function _record_function_enter_new _record_function_exit
    """.split()
    # what the recording repeats in its own way: grad mode, checkpoints
    + """
        _set_grad_enabled _pop_saved_tensors_default_hooks _saved_tensors_hooks_get_disabled_error_message
        _saved_tensors_hooks_disable _saved_tensors_hooks_enable
    """.split()
    # what follows from the tensors that are given, and is guarded with them
    + """
        _can_use_flash_attention _is_flash_attention_available _group_tensors_by_device_and_dtype
    """.split()
)
