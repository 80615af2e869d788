"""AOTAutograd and Inductor, called directly on a torch-level graph, without a TorchDynamo compile in flight.

Key functions: `aot_eager_compile`, `inductor_compile` (both return a `Compiled`), `compile_lock`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch._guards import TracingContext, tracing

from magpy_core._compat.torch.partition import default_partition


@dataclass
class Compiled:
    """What the compiler stack returned.

    ``fn`` takes the inputs one by one; ``boxed`` (when there is one) takes them as a list that it empties, saving a copy.
    ``sources``: the text of every module Inductor generated.
    """

    fn: Callable[..., Sequence[Any]]
    boxed: Callable[[list[Any]], Sequence[Any]] | None
    sources: list[str] = field(default_factory=list)


def compile_lock() -> threading.RLock:
    """The lock that TorchDynamo holds while it compiles: a user's torch.compile on another thread and ours take turns."""
    from torch._dynamo.convert_frame import compile_lock as lock

    return lock  # type: ignore[no-any-return,unused-ignore]


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


@contextmanager
def _unmarked_outputs(context: TracingContext) -> Iterator[None]:
    """Keeps AOTAutograd from noting dynamic dimensions as attributes on the program's tensors: TorchDynamo's business, and
    the program could see them (``vars(tensor)``, pickles)."""
    from torch._functorch._aot_autograd import runtime_wrappers

    name = "mark_dynamo_propagated_dynamic_indices"
    original = getattr(runtime_wrappers, name, None)  # from torch 2.12 on it is bound into generated code
    if original is not None:
        setattr(runtime_wrappers, name, lambda tensor, dims: None)
    try:
        yield
    finally:
        if original is not None:
            setattr(runtime_wrappers, name, original)
    metadata = context.fw_metadata
    if metadata is not None:
        metadata.dynamic_outputs = False
        metadata.dynamic_saved_tensors_idxs.clear()


def _unwrap(forward: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[[list[Any]], Any] | None]:
    """Takes off `torch._dynamo.disable` (it costs microseconds a call and there is nothing of ours to trace here).

    Below it lies `aot_module_simplified`'s plain function, whose ``__wrapped__`` takes a list.
    """
    fn = forward
    while hasattr(fn, "_torchdynamo_orig_callable"):
        fn = fn._torchdynamo_orig_callable
    boxed = getattr(fn, "__wrapped__", None)
    return fn, boxed


def _run(
    compile_it: Callable[[], Callable[..., Any]], fake_mode: Any, graph: torch.fx.GraphModule, sources: list[str]
) -> Compiled:
    from torch._functorch import config as functorch_config

    context = TracingContext(fake_mode)
    with ExitStack() as stack:
        stack.enter_context(compile_lock())
        stack.enter_context(tracing(context))
        # The backward is compiled here and now: a failure must surface as ours, never inside the program's backward().
        # And a backward whose buffers are donated refuses backward(retain_graph=True), which eager allows.
        # Autocast of the call is not in force where backward() is called, by torch's own advice; "off" is no autocast.
        stack.enter_context(
            functorch_config.patch(force_non_lazy_backward_lowering=True, donated_buffer=False, backward_pass_autocast="off")
        )
        stack.enter_context(_collect_sources(sources))
        stack.enter_context(_unmarked_outputs(context))
        forward = compile_it()
        if context.fw_metadata is not None and context.fw_metadata.bw_donated_idxs is None:
            # The check at run time takes None, "not looked at", for "some are donated".
            context.fw_metadata.bw_donated_idxs = []
    fn, boxed = _unwrap(forward)
    if any(True for _ in graph.parameters()) or any(True for _ in graph.buffers()):
        boxed = None  # state of the graph module itself is prepended by ``fn`` only
    return Compiled(fn, boxed, sources)


def _boxed_eager(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    forward = graph.forward

    def run(args: list[Any]) -> Any:
        taken = list(args)
        args.clear()
        return forward(*taken)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def aot_eager_compile(graph: torch.fx.GraphModule, fakes: Sequence[Any], fake_mode: Any) -> Compiled:
    """Forward and backward graphs by AOTAutograd, each run operator by operator."""
    from torch._functorch.aot_autograd import aot_module_simplified
    from torch._inductor import config as inductor_config

    compiler: Any = _boxed_eager

    def compile_it() -> Callable[..., Any]:
        # Without it, removing dead code takes a draw whose numbers nobody uses for dead, and the stream goes on elsewhere.
        with inductor_config.patch(fallback_random=True):
            return aot_module_simplified(
                graph, fakes, compiler, compiler, default_partition, keep_inference_input_mutations=True
            )

    return _run(compile_it, fake_mode, graph, [])


def hoist() -> Any:
    """The operator `magpy::hoist`; Inductor, which is taught it, takes a second to import."""
    from magpy_core._compat.torch.inductor_extensions import hoist

    return hoist


# What AOTAutograd's cache does not look at: it would find a graph that was made for inputs apart, or (before torch 2.12) for
# another dtype. With none of this it is asked, and nothing made with any of it is kept there.


def _state_is_odd() -> bool:
    return torch.get_default_dtype() is not torch.float32 or bool(torch._C._is_any_autocast_enabled())


def _share_memory(fakes: Sequence[Any]) -> bool:
    tensors = [t for t in fakes if isinstance(t, torch.Tensor)]
    strided = [t.untyped_storage()._cdata for t in tensors if t.layout is torch.strided]
    return len(strided) < len(tensors) or len(set(strided)) < len(strided)


def inductor_compile(
    graph: torch.fx.GraphModule, fakes: Sequence[Any], fake_mode: Any, *, fallback_random: bool = False
) -> Compiled:
    """Forward and backward kernels by Inductor. Takes ownership of ``graph``."""
    from torch._functorch import config as functorch_config
    from torch._inductor import config as inductor_config
    from torch._inductor.compile_fx import compile_fx

    from magpy_core._compat.torch.inductor_extensions import MinCut, ScaledProducts

    sources: list[str] = []

    def compile_it() -> Callable[..., Any]:
        patches = ExitStack()
        # Its folding makes `x` of `x + torch.zeros(3)`, also where that leaves the graph: a result that shares x's memory.
        patches.enter_context(inductor_config.patch(fallback_random=fallback_random, joint_graph_constant_folding=False))
        patches.enter_context(inductor_config.patch(custom_partitioner_fn=MinCut(fallback_random)))
        scaled = ScaledProducts(inductor_config.post_grad_custom_pre_pass)
        patches.enter_context(inductor_config.patch(post_grad_custom_pre_pass=scaled))
        if _share_memory(fakes) or _state_is_odd():
            patches.enter_context(functorch_config.patch(enable_autograd_cache=False))
        with patches:
            compiled: Any = compile_fx(graph, fakes)
            return compiled  # type: ignore[no-any-return]

    return _run(compile_it, fake_mode, graph, sources)
