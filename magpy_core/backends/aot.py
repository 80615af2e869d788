"""The backends that use AOTAutograd: aot_eager and inductor. Key type: AotBackend."""

from __future__ import annotations

from contextlib import ExitStack

import torch
import torch.fx

from magpy_core._compat.torch import fake as fake_compat
from magpy_core._compat.torch import inductor as compat
from magpy_core._compat.torch.torch_state import default_device, no_autograd, preserve_torch_state
from magpy_core._compat.torch.warning_filters import COMPILERS, no_warnings
from magpy_core.backends.base import CompiledGraph
from magpy_core.backends.calling import UNCOUNTED, adapt, is_identity, keep_versions
from magpy_core.backends.checks import write_checks
from magpy_core.backends.fakes import FakeInputs
from magpy_core.backends.gradients import call_without_autograd, without_autograd
from magpy_core.backends.lowering import Lowering, needs_lowering
from magpy_core.backends.preparation import prepare
from magpy_core.backends.sharing import saved_and_written
from magpy_core.findings import Unsupported


class AotBackend:
    """Fakes, lowering, compilation under a lock that preserves the program's torch state, and shape guards.

    ``aot_eager``: forward and backward by AOTAutograd, run operator by operator, which separates tracing bugs from code
    generation bugs. ``inductor``: kernels by Inductor, C++ on CPU and Triton on CUDA.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def compile(self, gm: torch.fx.GraphModule, inputs: FakeInputs, *, same_random: bool = False) -> CompiledGraph:
        """Compiles for the caller's grad mode and autocast state; ``gm`` itself is not changed."""
        try:
            return self._compile(gm, inputs, same_random)
        except Unsupported:
            raise
        except Exception as error:  # a compiler may raise anything; the program continues as plain Python
            raise Unsupported("MP902", _reason(self.name, error)) from error

    def _compile(self, gm: torch.fx.GraphModule, inputs: FakeInputs, same_random: bool) -> CompiledGraph:
        device, inductor = default_device(), self.name == "inductor"
        mode, fakes = inputs
        tensors = [t for t in fakes if isinstance(t, torch.Tensor)]
        with preserve_torch_state(), no_warnings(COMPILERS), fake_compat.no_meta_logs(), ExitStack() as context:
            graph = prepare(gm, fakes, device)
            if inductor and all(t.device.type == "cpu" for t in tensors):
                write_checks(graph.graph)
                graph.recompile()
            lowered, lower_fakes = None, fakes
            if needs_lowering(graph):
                lowered = Lowering(graph, fakes, mode, compat.hoist() if inductor else None).run()
                graph, lower_fakes = lowered.graph, lowered.fakes
            differentiated = without_autograd(graph, lower_fakes, mode)
            if differentiated is not None:
                graph, lower_fakes = differentiated.graph, differentiated.fakes
                context.enter_context(no_autograd())
            if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
                with preserve_torch_state():
                    saved = saved_and_written(graph, lower_fakes, mode)
                if saved is not None:
                    text = f"Autograd saves `{saved}`, which the region writes: its backward pass depends on later calls."
                    raise Unsupported("MP902", text)
            if inductor:
                fn, boxed, sources = compat.inductor_compile(graph, lower_fakes, mode, fallback_random=same_random)
            else:
                fn, boxed, sources = compat.aot_eager_compile(graph, lower_fakes, mode)
            guards = fake_compat.shape_guards(mode.shape_env, fakes, [f"L[{i}]" for i in range(len(fakes))])
        if differentiated is not None:
            fn, boxed = call_without_autograd(fn, boxed, differentiated.freed)
        if lowered is not None and not is_identity(lowered, len(fakes)):
            fn, boxed = adapt(lowered, len(fakes), fn, boxed), None
        placeholders = gm.graph.find_nodes(op="placeholder")
        if uncounted := [i for i, node in enumerate(placeholders) if UNCOUNTED in node.meta]:
            fn, boxed = keep_versions(fn, boxed, uncounted)
        return CompiledGraph(fn, boxed, guards, "\n\n".join(sources) or None)


def _reason(backend: str, error: BaseException) -> str:
    """One sentence with the first line of the innermost cause, which is the compiler's actual reason."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    text = lines[0] if lines else "no message"
    return f"The backend {backend} can't compile the graph: {type(cause).__name__}: {text[:300]}"
