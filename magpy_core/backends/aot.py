"""The backends that use AOTAutograd: aot_eager and inductor. Key type: AotBackend."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch import fake as fake_compat
from magpy_core._compat.torch import inductor as compat
from magpy_core._compat.torch.compilers import import_dynamo, import_inductor
from magpy_core._compat.torch.torch_state import default_device, no_autograd, preserve_torch_state
from magpy_core._compat.torch.warning_filters import COMPILERS, no_warnings
from magpy_core.backends import cache
from magpy_core.backends.base import CompiledCode, CompiledGraph
from magpy_core.backends.blocks import compile_blocks
from magpy_core.backends.calling import UNCOUNTED
from magpy_core.backends.checks import write_checks
from magpy_core.backends.convention import Convention
from magpy_core.backends.cuda_graphs import compile_replayed
from magpy_core.backends.fakes import FakeInputs
from magpy_core.backends.gradients import Differentiated, operations_of, without_autograd
from magpy_core.backends.lowering import Lowering, needs_lowering
from magpy_core.backends.preparation import prepare
from magpy_core.backends.recurrent import keep_layers
from magpy_core.backends.refusals import located, node_of
from magpy_core.backends.sharing import saved_and_written, written_positions
from magpy_core.backends.tuning import DEFAULT, Tuning
from magpy_core.backends.undefined import keep_undefined
from magpy_core.findings import Unsupported


class AotBackend:
    """Fakes, lowering, compilation under a lock that preserves the program's torch state, and shape guards.

    ``aot_eager``: forward and backward by AOTAutograd, run operator by operator, which separates tracing bugs from code
    generation bugs. ``inductor``: kernels by Inductor, C++ on CPU and Triton on CUDA.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def compile(
        self,
        gm: torch.fx.GraphModule,
        inputs: FakeInputs,
        *,
        same_random: bool = False,
        tuning: Tuning = DEFAULT,
        checked: bool = False,
    ) -> CompiledGraph:
        """Compiles for the caller's grad mode and autocast state; ``gm`` itself is not changed."""
        try:
            return self._compile(gm, inputs, same_random, tuning, checked)
        except Unsupported:
            raise
        except Exception as error:  # a compiler may raise anything; the program continues in eager mode
            raise located(Unsupported("MP902", _reason(self.name, error)), node_of(error)) from error

    def _compile(
        self, gm: torch.fx.GraphModule, inputs: FakeInputs, same_random: bool, tuning: Tuning, checked: bool
    ) -> CompiledGraph:
        device, inductor = default_device(), self.name == "inductor"
        mode, fakes = inputs
        tensors = [t for t in fakes if isinstance(t, torch.Tensor)]
        on_cpu = all(t.device.type == "cpu" for t in tensors)
        differentiated: Differentiated | None = None

        def compile_one(
            graph: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any, checked: bool = False
        ) -> compat.Compiled:
            with preserve_torch_state():  # tracing ends in the grad mode that the graph ends in
                if inductor:
                    options = tuning.for_inductor(has_backward=on_cpu and differentiated is not None)
                    compiled = compat.inductor_compile(
                        graph, fakes, mode, fallback_random=same_random, options=options, checked=checked
                    )
                else:
                    compiled = compat.aot_eager_compile(graph, fakes, mode)
            fn, boxed, sources = compiled
            called = boxed or (lambda inputs: fn(*inputs))
            with preserve_torch_state():
                kept = keep_undefined(graph, fakes, mode, called)
            return compiled if kept is called else ((lambda *inputs: kept(list(inputs))), kept, sources)

        def compile_whole(graph: torch.fx.GraphModule, fakes: Sequence[Any]) -> compat.Compiled:
            joined = None if tuning.as_one_graph else compile_blocks(graph, fakes, mode, compile_one)
            return joined or compile_one(graph, fakes, mode, checked)

        with preserve_torch_state(), no_warnings(COMPILERS), fake_compat.no_meta_logs(), ExitStack() as context:
            import_inductor() if inductor else import_dynamo()
            graph = prepare(gm, fakes, device)
            if on_cpu:
                keep_layers(graph)
            if inductor and on_cpu:
                write_checks(graph.graph)
                graph.recompile()
            lowered, lower_fakes = None, fakes
            if needs_lowering(graph):
                lowered = Lowering(graph, fakes, mode, compat.hoist() if inductor else None).run()
                graph, lower_fakes = lowered.graph, lowered.fakes
            before = graph
            differentiated = without_autograd(graph, lower_fakes, mode)
            can_replay = inductor and not on_cpu and tuning.replays
            if can_replay and differentiated is None and not _needs_autograd(tensors):
                differentiated = operations_of(graph, lower_fakes, mode)
            if differentiated is not None:
                graph, lower_fakes = differentiated.graph, differentiated.fakes
                context.enter_context(no_autograd())
            if _needs_autograd(tensors):
                with preserve_torch_state():
                    saved = saved_and_written(graph, lower_fakes, mode)
                if saved is not None:
                    text = f"Autograd saves `{saved}`, which the region writes, so its backward pass depends on later calls."
                    raise Unsupported("MP916", text)
            with cache.kept() if inductor else nullcontext():
                if can_replay and differentiated is not None:
                    written = written_positions(before.graph)
                    compiled, replayed = compile_replayed(graph, lower_fakes, mode, written, compile_whole)
                else:
                    compiled, replayed = compile_whole(graph, lower_fakes), None
                fn, boxed, sources = compiled
            guards = fake_compat.shape_guards(mode.shape_env, fakes, [f"L[{i}]" for i in range(len(fakes))])
        convention = Convention(
            len(fakes),
            None if differentiated is None else tuple(differentiated.freed),
            None if lowered is None else (lowered.inputs, lowered.outputs),
            tuple(i for i, node in enumerate(gm.graph.find_nodes(op="placeholder")) if UNCOUNTED in node.meta),
        )
        code = CompiledCode(boxed, convention)
        fn, boxed = convention.applied(fn, boxed)
        return CompiledGraph(fn, boxed, guards, "\n\n".join(sources) or None, replayed, code)


def _needs_autograd(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether a graph of these inputs is called under autograd."""
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def _reason(backend: str, error: BaseException) -> str:
    """One sentence with the first line of the innermost cause, which is the compiler's actual reason."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    text = lines[0] if lines else "no message"
    return f"The backend {backend} can't compile the graph: {type(cause).__name__}: {text[:300]}"
