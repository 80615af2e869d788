"""AOTAutograd and Inductor, called directly on a torch-level graph, without TorchDynamo.

Key functions: `aot_eager_compile`, `inductor_compile` (both return a `Compiled`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import MethodDescriptorType
from typing import Any

import torch
from torch._guards import TracingContext, tracing

from magpy_core._compat.torch.compiled_headers import whole_headers
from magpy_core._compat.torch.cpp_batches import batched_kernels
from magpy_core._compat.torch.direct_calls import direct_calls
from magpy_core._compat.torch.input_checks import unchecked_inputs
from magpy_core._compat.torch.kept_guards import keep_all_guards
from magpy_core._compat.torch.overlapping_rows import overlaps_found
from magpy_core._compat.torch.partition import default_partition
from magpy_core._compat.torch.recurrent_layers import corrected_layers
from magpy_core._compat.torch.rnn_kernels import RNN_LAYERS
from magpy_core._compat.torch.rounded_divisions import exact_divisions
from magpy_core._compat.torch.symbolic_sizes import lowered_for_all_sizes, sizes_stay_symbolic
from magpy_core._compat.torch.torch_kernels import own_kernels
from magpy_core._compat.torch.torch_state import get_modes
from magpy_core._compat.torch.written_buffers import ordered_after_writes
from magpy_core._compat.torch.written_memory import read_before_written

Compiled = tuple[Callable[..., Sequence[Any]], Callable[[list[Any]], Sequence[Any]] | None, list[str]]
"""The result of the compiler stack: a function that takes the inputs as arguments; one (or None) that takes them as a list,
which it may clear, and so saves a copy; the text of every module that Inductor generated."""


@contextmanager
def _collect_sources(into: list[str]) -> Iterator[None]:
    """Collects the text of every wrapper module that Inductor loads in the block, whether generated or found in its cache.

    Both call `PyCodeCache.load_by_key_path`; `GraphLowering.save_output_code` would miss cache hits.
    """
    from torch._inductor.codecache import PyCodeCache

    original = PyCodeCache.__dict__["load_by_key_path"]
    thread = threading.get_ident()

    def load_by_key_path(cls: Any, key: str, path: str, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() == thread:
            text = Path(path).read_text(encoding="utf-8")
            if text not in into:
                into.append(text)
        return original.__get__(None, cls)(key, path, *args, **kwargs)

    PyCodeCache.load_by_key_path = classmethod(load_by_key_path)  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        PyCodeCache.load_by_key_path = original  # type: ignore[method-assign]


def _clear_marks(metadata: Any) -> None:
    """Changes AOTAutograd's metadata for run time: no tensor of the program is marked as dynamic, and no buffer is donated
    (the check at run time interprets None, "not computed", as donated)."""
    metadata.dynamic_outputs = False
    metadata.dynamic_saved_tensors_idxs.clear()
    if metadata.bw_donated_idxs is None:
        metadata.bw_donated_idxs = []


@contextmanager
def _unmarked_outputs(context: TracingContext) -> Iterator[None]:
    """Keeps AOTAutograd from setting attributes for dynamic dimensions on the program's tensors: only Dynamo needs them,
    and the program could see them (``vars(tensor)``, pickles). Metadata from the cache on disk is changed when read."""
    from torch._functorch._aot_autograd import runtime_wrappers
    from torch._functorch._aot_autograd.schemas import ViewAndMutationMeta

    def restore(metadata: Any, state: dict[str, Any]) -> None:
        vars(metadata).update(state)
        _clear_marks(metadata)

    name = "mark_dynamo_propagated_dynamic_indices"
    original = getattr(runtime_wrappers, name, None)  # from torch 2.12 on it is bound into generated code
    if original is not None:
        setattr(runtime_wrappers, name, lambda tensor, dims: None)
    ViewAndMutationMeta.__setstate__ = restore  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del ViewAndMutationMeta.__setstate__  # type: ignore[attr-defined]
        if original is not None:
            setattr(runtime_wrappers, name, original)
    if context.fw_metadata is not None:
        _clear_marks(context.fw_metadata)


@contextmanager
def _methods_are_cached() -> Iterator[None]:
    """Lets AOTAutograd's cache accept graphs with tensor methods. It accepts Dynamo's, in which a node's ``meta`` has an
    example value; MagPy's graphs have none, because Inductor's early passes would use it to transform the graph. MagPy's
    graphs contain no other objects: their inputs are tensors and numbers, and the cache key has the code and the inputs."""
    from torch._functorch._aot_autograd import autograd_cache

    original = autograd_cache.check_node_safe

    def check(node: torch.fx.Node) -> None:
        target = node.target
        of_tensors = isinstance(target, MethodDescriptorType) and target.__objclass__ is torch._C.TensorBase
        if node.op != "call_method" and not of_tensors:
            original(node)

    autograd_cache.check_node_safe = check
    try:
        yield
    finally:
        autograd_cache.check_node_safe = original


@contextmanager
def _recurrent_layers() -> Iterator[None]:
    """Lets AOTAutograd use our operators for recurrent layers. Passing decompositions to the compiler would disable its
    cache."""
    from torch._functorch.aot_autograd import aot_autograd_decompositions as known

    before = dict(known)
    known.update(RNN_LAYERS)
    try:
        yield
    finally:
        known.clear()
        known.update(before)


def _unwrap(forward: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[[list[Any]], Any] | None]:
    """Removes the wrapper of `torch._dynamo.disable`, which costs microseconds per call and is not needed here.

    It wraps the plain function of `aot_module_simplified`, whose ``__wrapped__`` takes a list.
    """
    fn = forward
    while hasattr(fn, "_torchdynamo_orig_callable"):
        fn = fn._torchdynamo_orig_callable
    return fn, getattr(fn, "__wrapped__", None)


def _run(compile_it: Callable[[], Any], fake_mode: Any, options: dict[str, Any], **patches: Any) -> Compiled:
    """``options``: Inductor's configuration; ``patches``: functorch's configuration."""
    from torch._dynamo.convert_frame import compile_lock
    from torch._functorch import config as functorch_config
    from torch._inductor import config as inductor_config

    context, sources = TracingContext(fake_mode), list[str]()
    shape_env = fake_mode.shape_env if fake_mode is not None else None
    if shape_env is not None:
        keep_all_guards(shape_env)
    # Compile the backward graph now: a failure must occur here, never inside the program's backward().
    # A backward graph with donated buffers refuses backward(retain_graph=True), which eager allows.
    # backward() runs without the call's autocast, as torch recommends.
    patches |= {"force_non_lazy_backward_lowering": True, "donated_buffer": False, "backward_pass_autocast": "off"}
    with (
        compile_lock,  # TorchDynamo holds it while it compiles: excludes a torch.compile on another thread
        tracing(context),
        functorch_config.patch(patches),
        inductor_config.patch(options),
        _collect_sources(sources),
        _unmarked_outputs(context),
        _methods_are_cached(),
        _recurrent_layers(),
        corrected_layers(),
        direct_calls(),
        overlaps_found(),
        sizes_stay_symbolic(shape_env),
    ):
        forward = compile_it()
    return *_unwrap(forward), sources


def aot_eager_compile(graph: torch.fx.GraphModule, fakes: Sequence[Any], fake_mode: Any) -> Compiled:
    """Forward and backward graphs by AOTAutograd, each run operator by operator."""
    from torch._functorch._aot_autograd.utils import make_boxed_func
    from torch._functorch.aot_autograd import aot_module_simplified

    def compiler(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        return make_boxed_func(gm.forward)

    def compile_it() -> Any:
        return aot_module_simplified(
            graph, fakes, compiler, compiler, default_partition, keep_inference_input_mutations=True
        )

    # Otherwise dead code elimination removes a draw whose numbers are unused, and later draws differ.
    return _run(compile_it, fake_mode, {"fallback_random": True})


def hoist() -> Any:
    """The operator `magpy::hoist`; registering it imports Inductor, which takes a second."""
    from magpy_core._compat.torch.inductor_extensions import hoist

    return hoist


#: To be raised when the same graph is compiled to other code than before.
_GENERATION = 18


def _key_tag(fakes: Sequence[Any], *, checked: bool = False) -> str:
    """The part of the cache key that torch's caches omit: which inputs share memory, which are leaves, (before torch 2.12)
    the default dtype and autocast, and whether the code checks its inputs."""
    tensors = [t for t in fakes if isinstance(t, torch.Tensor)]
    storages = [t.untyped_storage()._cdata if t.layout is torch.strided else id(t) for t in tensors]
    shared = [storages.index(storage) for storage in storages]
    leaves = "".join("1" if t.is_leaf else "0" for t in tensors)
    return f"magpy {_GENERATION} {shared} {leaves} {torch.get_default_dtype()} {get_modes()}{' checked' * checked}"


@contextmanager
def compile_alone() -> Iterator[None]:
    """In a forked process: use no pool of threads or processes, because the program's pools do not run there."""
    from torch._inductor import config

    with config.patch({"compile_threads": 1}):
        yield


def inductor_compile(
    graph: torch.fx.GraphModule,
    fakes: Sequence[Any],
    fake_mode: Any,
    *,
    fallback_random: bool = False,
    options: Mapping[str, Any] | None = None,
    inner: Callable[..., Any] | None = None,
    checked: bool = False,
) -> Compiled:
    """Forward and backward kernels by Inductor, with these ``options``. Takes ownership of ``graph``. ``inner``: called for
    each ATen graph in place of Inductor's ``compile_fx_inner``. ``checked``: the caller compares the sizes and strides of
    all inputs with the ``fakes``' at each call."""
    from torch._dynamo.convert_frame import compile_lock
    from torch._inductor import config as inductor_config
    from torch._inductor.compile_fx import compile_fx

    from magpy_core._compat.torch.inductor_extensions import MinCut, ScaledProducts, SeparateResults

    with compile_lock:  # another compilation may have changed the configuration that is read here
        config = {
            **(options or {}),
            "fallback_random": fallback_random,
            # Constant folding replaces `x + torch.zeros(3)` by `x`, even if it is an output, which then shares x's memory.
            "joint_graph_constant_folding": False,
            "custom_partitioner_fn": MinCut(fallback_random),
            "joint_custom_pre_pass": SeparateResults(inductor_config.joint_custom_pre_pass),
            "post_grad_custom_pre_pass": ScaledProducts(inductor_config.post_grad_custom_pre_pass),
        }
        with torch.compiler.config.patch(cache_key_tag=_key_tag(fakes, checked=checked)):  # type: ignore[attr-defined]
            replaced: dict[str, Any] = {} if inner is None else {"inner_compile": inner}
            with (
                lowered_for_all_sizes(),
                whole_headers(),
                batched_kernels(),
                ordered_after_writes(),
                read_before_written(),
                exact_divisions(),
                own_kernels(),
                unchecked_inputs() if checked else nullcontext(),
            ):
                return _run(lambda: compile_fx(graph, fakes, **replaced), fake_mode, config)
