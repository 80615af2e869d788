"""The backends that use AOTAutograd: aot_eager and inductor. Key types: AotEagerBackend, InductorBackend."""

from __future__ import annotations

import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch import fake as fake_compat
from magpy_core._compat.torch import hoist
from magpy_core._compat.torch import inductor as compat
from magpy_core._compat.torch.decompositions import wrongly_decomposed
from magpy_core._compat.torch.torch_state import default_device, preserve_torch_state
from magpy_core._compat.torch.warning_filters import COMPILERS, no_warnings
from magpy_core.backends.base import CompiledGraph, ShapeGuard
from magpy_core.backends.calling import UNCOUNTED, adapt, is_identity, keep_versions
from magpy_core.backends.checks import write_checks
from magpy_core.backends.fakes import make_fake_inputs
from magpy_core.backends.lowering import lower_scalars, needs_lowering
from magpy_core.backends.preparation import prepare
from magpy_core.backends.saved import saved_and_written
from magpy_core.findings import Unsupported


@contextmanager
def frames_cleared() -> Iterator[None]:
    """Releases the objects of a failed compilation. Among them are modes of the graph (inference mode) that restore the
    thread's state when their last reference is dropped."""
    handled = sys.exc_info()[1]
    try:
        yield
    except BaseException as error:
        seen: set[int] = {id(handled)}  # the exception that the program is handling keeps its frames
        left: list[BaseException | None] = [error]
        while left:
            known = left.pop()
            if known is not None and id(known) not in seen:
                seen.add(id(known))
                traceback.clear_frames(known.__traceback__)
                left += [known.__cause__, known.__context__]
        raise


class AotBackend(ABC):
    """Fakes, lowering, compilation under a lock that preserves the program's torch state, and shape guards."""

    name: str

    def compile(
        self, gm: torch.fx.GraphModule, example_inputs: Sequence[Any], *, dynamic: bool, same_random: bool = False
    ) -> CompiledGraph:
        """Compiles for the caller's grad mode and autocast state; ``gm`` itself is not changed."""
        try:
            return self._compile(gm, example_inputs, dynamic=dynamic, same_random=same_random)
        except Unsupported:
            raise
        except Exception as error:  # a compiler may raise anything; the program continues as plain Python
            raise Unsupported("MP902", _reason(self.name, error)) from error

    def _compile(
        self, gm: torch.fx.GraphModule, example_inputs: Sequence[Any], *, dynamic: bool, same_random: bool
    ) -> CompiledGraph:
        device = default_device()
        placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
        fakes = [n.meta.get("example_value") for n in placeholders]
        mode = fake_compat.fake_mode_of(fakes) or fake_compat.fake_mode_of(example_inputs)
        if mode is None:
            mode, _, fakes = make_fake_inputs(example_inputs, _every_dimension(example_inputs) if dynamic else None)
        elif fake_compat.fake_mode_of(fakes) is None:
            fakes = list(example_inputs)
        with preserve_torch_state(), no_warnings(COMPILERS), fake_compat.no_meta_logs(), frames_cleared():
            graph = prepare(gm, fakes, device)
            self._complete(graph, fakes)
            lowered, graph_inputs = None, fakes
            if needs_lowering(graph):
                lowered = lower_scalars(graph, fakes, mode, self._hoist())
                graph, graph_inputs = lowered.graph, lowered.fakes
            if torch.is_grad_enabled() and any(isinstance(t, torch.Tensor) and t.requires_grad for t in fakes):
                self._refuse_saved(graph, graph_inputs, mode)
            wrong = wrongly_decomposed(graph, graph_inputs, mode)
            if wrong is not None:
                raise Unsupported("MP902", f"This torch compiles `{wrong}` incorrectly: its states get another shape.")
            compiled = self._build(graph, graph_inputs, mode, same_random)
            names = [f"L[{i}]" for i in range(len(fakes))]
            expressions = fake_compat.shape_guards(mode.shape_env, fakes, names)
        guards = [ShapeGuard(e, f"{self.name} assumed {e} when it compiled this capture") for e in expressions]
        code = "\n\n".join(compiled.sources) or None
        fn, boxed = compiled.fn, compiled.boxed
        if lowered is not None and not is_identity(lowered, len(fakes)):
            fn, boxed = adapt(lowered, len(fakes), fn, boxed), None
        if uncounted := [i for i, node in enumerate(placeholders) if UNCOUNTED in node.meta]:
            fn, boxed = keep_versions(fn, boxed, uncounted)
        return CompiledGraph(fn, self.name, boxed, guards, code)

    def _refuse_saved(self, graph: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any) -> None:
        with preserve_torch_state():
            saved = saved_and_written(graph, fakes, mode)
        if saved is not None:
            text = f"Autograd saves `{saved}`, which the region writes: what the backward pass takes depends on later calls."
            raise Unsupported("MP902", text)

    def _complete(self, graph: torch.fx.GraphModule, fakes: Sequence[Any]) -> None:  # noqa: B027
        """Adds checks of eager mode that this compiler omits to the graph; by default none."""

    def _hoist(self) -> Any:
        return None

    @abstractmethod
    def _build(self, graph: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any, same_random: bool) -> compat.Compiled: ...


class AotEagerBackend(AotBackend):
    """Forward and backward by AOTAutograd, run operator by operator: separates tracing bugs from code generation bugs."""

    name = "aot_eager"

    def _build(self, graph: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any, same_random: bool) -> compat.Compiled:
        return compat.aot_eager_compile(graph, fakes, mode)


class InductorBackend(AotBackend):
    """Kernels by Inductor: C++ on CPU, Triton on CUDA. ``same_random`` keeps eager's random stream."""

    name = "inductor"

    def _complete(self, graph: torch.fx.GraphModule, fakes: Sequence[Any]) -> None:
        if all(t.device.type == "cpu" for t in fakes if isinstance(t, torch.Tensor)):
            write_checks(graph.graph)
            graph.recompile()

    def _hoist(self) -> Any:
        hoist.register_lowering()
        return hoist.hoist

    def _build(self, graph: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any, same_random: bool) -> compat.Compiled:
        return compat.inductor_compile(graph, fakes, mode, fallback_random=same_random)


def _every_dimension(values: Sequence[Any]) -> dict[int, set[int]]:
    """All dimensions of all inputs but parameters."""
    inputs = [(i, v) for i, v in enumerate(values) if isinstance(v, torch.Tensor) and not isinstance(v, torch.nn.Parameter)]
    return {i: set(range(v.dim())) for i, v in inputs}


def _reason(backend: str, error: BaseException) -> str:
    """One sentence with the first line of the innermost cause, which is the compiler's actual reason."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    text = lines[0] if lines else "no message"
    return f"The backend {backend} can't compile the graph: {type(cause).__name__}: {text[:300]}"
