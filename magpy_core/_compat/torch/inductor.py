"""AOTAutograd and Inductor, called directly on a torch-level graph, without a TorchDynamo compile in flight.

Key functions: `aot_eager_compile`, `inductor_compile` (both return a `Compiled`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MethodDescriptorType
from typing import Any

import torch
from torch._guards import TracingContext, tracing

from magpy_core._compat.torch.partition import default_partition
from magpy_core._compat.torch.torch_state import get_modes

Compiled = tuple[Callable[..., Sequence[Any]], Callable[[list[Any]], Sequence[Any]] | None, list[str]]
"""What the compiler stack returned: a function that takes the inputs one by one; one (or None) that takes them as a list,
which it may empty, and so saves a copy; the text of every module that Inductor generated."""


@contextmanager
def _collect_sources(into: list[str]) -> Iterator[None]:
    """Keeps the text of every wrapper module Inductor loads in the block, whether generated now or found in its cache.

    Both ways end in `PyCodeCache.load_by_key_path`; `GraphLowering.save_output_code` would miss cache hits.
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


def _ours(metadata: Any) -> None:
    """Changes what AOTAutograd noted for the time after the compilation: no tensor of the program's is marked as dynamic,
    and no buffer is donated (the check at run time takes None, "not looked at", for "some are")."""
    metadata.dynamic_outputs = False
    metadata.dynamic_saved_tensors_idxs.clear()
    if metadata.bw_donated_idxs is None:
        metadata.bw_donated_idxs = []


@contextmanager
def _unmarked_outputs(context: TracingContext) -> Iterator[None]:
    """Keeps AOTAutograd from noting dynamic dimensions as attributes on the program's tensors: TorchDynamo's business, and
    the program could see them (``vars(tensor)``, pickles). What comes from the cache on disk is changed as it is read."""
    from torch._functorch._aot_autograd import runtime_wrappers
    from torch._functorch._aot_autograd.schemas import ViewAndMutationMeta

    def restore(metadata: Any, state: dict[str, Any]) -> None:
        vars(metadata).update(state)
        _ours(metadata)

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
        _ours(context.fw_metadata)


@contextmanager
def _methods_are_cached() -> Iterator[None]:
    """Lets AOTAutograd's cache take graphs with methods of tensors. It takes TorchDynamo's, where a node's ``meta`` has an
    example of its value; ours have none, since Inductor's early passes would transform the graph by it. A graph of ours has
    no other objects: its inputs are tensors and numbers, and the cache's key has its code and what these are."""
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


def import_inductor() -> None:
    """Imports what compiling needs, which takes a second or two."""


def inductor_is_imported() -> bool:
    return "torch._inductor.compile_fx" in sys.modules


def _unwrap(forward: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[[list[Any]], Any] | None]:
    """Takes off `torch._dynamo.disable` (it costs microseconds a call and there is nothing of ours to trace here).

    Below it lies `aot_module_simplified`'s plain function, whose ``__wrapped__`` takes a list.
    """
    fn = forward
    while hasattr(fn, "_torchdynamo_orig_callable"):
        fn = fn._torchdynamo_orig_callable
    return fn, getattr(fn, "__wrapped__", None)


def _run(compile_it: Callable[[], Any], fake_mode: Any, options: dict[str, Any], **patches: Any) -> Compiled:
    """``options``: of Inductor; ``patches``: of functorch's configuration."""
    from torch._dynamo.convert_frame import compile_lock
    from torch._functorch import config as functorch_config
    from torch._inductor import config as inductor_config

    context, sources = TracingContext(fake_mode), list[str]()
    # The backward is compiled here and now: a failure must surface as ours, never inside the program's backward().
    # And a backward whose buffers are donated refuses backward(retain_graph=True), which eager allows.
    # Autocast of the call is not in force where backward() is called, by torch's own advice; "off" is no autocast.
    patches |= {"force_non_lazy_backward_lowering": True, "donated_buffer": False, "backward_pass_autocast": "off"}
    with (
        compile_lock,  # TorchDynamo holds it while it compiles: a torch.compile on another thread and ours take turns
        tracing(context),
        functorch_config.patch(patches),
        inductor_config.patch(options),
        _collect_sources(sources),
        _unmarked_outputs(context),
        _methods_are_cached(),
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

    # Without it, removing dead code takes a draw whose numbers nobody uses for dead, and the stream goes on elsewhere.
    return _run(compile_it, fake_mode, {"fallback_random": True})


def hoist() -> Any:
    """The operator `magpy::hoist`; Inductor, which is taught it, takes a second to import."""
    from magpy_core._compat.torch.inductor_extensions import hoist

    return hoist


def _key_tag(fakes: Sequence[Any]) -> str:
    """What a graph is compiled for that the key of torch's caches does not have: which inputs share memory, which are
    leaves, and (before torch 2.12) the dtypes that are in force."""
    tensors = [t for t in fakes if isinstance(t, torch.Tensor)]
    storages = [t.untyped_storage()._cdata if t.layout is torch.strided else id(t) for t in tensors]
    shared = [storages.index(storage) for storage in storages]
    leaves = "".join("1" if t.is_leaf else "0" for t in tensors)
    return f"magpy {shared} {leaves} {torch.get_default_dtype()} {get_modes()}"


@contextmanager
def compile_alone() -> Iterator[None]:
    """In a forked process: no pool of threads or processes is used, as those of the program do not run there."""
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
) -> Compiled:
    """Forward and backward kernels by Inductor, with these ``options``. Takes ownership of ``graph``."""
    from torch._dynamo.convert_frame import compile_lock
    from torch._inductor import config as inductor_config
    from torch._inductor.compile_fx import compile_fx

    from magpy_core._compat.torch.inductor_extensions import MinCut, ScaledProducts

    with compile_lock:  # no other compilation has changed what is read here
        config = {
            **(options or {}),
            "fallback_random": fallback_random,
            # Its folding makes `x` of `x + torch.zeros(3)`, also where that leaves the graph: it shares the memory of x.
            "joint_graph_constant_folding": False,
            "custom_partitioner_fn": MinCut(fallback_random),
            "post_grad_custom_pre_pass": ScaledProducts(inductor_config.post_grad_custom_pre_pass),
        }
        with torch.compiler.config.patch(cache_key_tag=_key_tag(fakes)):  # type: ignore[attr-defined]
            return _run(lambda: compile_fx(graph, fakes), fake_mode, config)
