"""The kernels of captures on a device that they are compiled for. Key function: kernels_of; key type: Captured.

Each piece of work (a capture) runs in a forked process: `retarget`, the backends' own preparation, Inductor, Triton, the
assembler. What comes back is plain data.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch import fake as fake_compat
from magpy_core._compat.torch import forked_autograd, inductor, triton_device
from magpy_core._compat.torch.torch_state import no_autograd, preserve_torch_state, set_modes
from magpy_core._compat.torch.triton_lowering import LoweredGraph, LoweredKernel, keeping_places, lower
from magpy_core._compat.torch.warning_filters import COMPILERS, no_warnings
from magpy_core.backends import cache
from magpy_core.backends.calling import Direct
from magpy_core.backends.convention import Convention
from magpy_core.backends.fakes import FakeInputs
from magpy_core.backends.gradients import without_autograd
from magpy_core.backends.lowering import Lowering, needs_lowering
from magpy_core.backends.preparation import prepare
from magpy_core.capture.build import Capture
from magpy_core.distribution import DISTRIBUTION
from magpy_core.findings import Unsupported
from magpy_core.findings.json_form import build
from magpy_core.findings.kernels import (
    Kernel,
    KernelCode,
    KernelLine,
    KernelWork,
    TargetGraph,
    TargetProblem,
    TargetReport,
    Unfused,
)
from magpy_core.products.targets import fusion, kept, ptxas, roofline
from magpy_core.products.targets.devices import Device
from magpy_core.products.targets.retarget import example_inputs, place_of, retarget, stays_on_cpu
from magpy_core.products.targets.worker import WorkerFailed, results_of

_CPU = torch.device("cpu")


class MissingTriton(ImportError):
    """The ``triton`` package is not installed."""

    def __init__(self) -> None:
        super().__init__(
            f"A target needs Triton, which is not installed: `pip install triton`, or `{DISTRIBUTION}[triton]`."
        )


@dataclass(frozen=True)
class Captured:
    """A capture with the id of its region. ``kind``: the region's."""

    region: str
    kind: str
    capture: Capture


def kernels_of(
    captured: Sequence[Captured], device: Device, line: tuple[str, int] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> TargetReport:  # fmt: skip
    """The kernels of these captures on ``device``, and which could not be compiled. What an earlier run has compiled is not
    compiled again. ``line``: only graphs that have this line are compiled, and of their kernels only the line's have code;
    if no graph has it, all graphs are compiled, and none of their kernels. ``on_progress`` gets how many captures are done,
    and of how many. Raises MissingTriton."""
    if not triton_device.has_triton():
        raise MissingTriton
    if line is not None:
        captured = [one for one in captured if _computes(one.capture, line)] or captured
    report = TargetReport(device.target, device.title, device.bandwidth, roofline.LAUNCH_US)
    files = [kept.file_of(kept.name_of(one.region, one.kind, one.capture, device)) for one in captured]
    found: dict[int, Any] = {index: known for index, file in enumerate(files) if (known := kept.read(file)) is not None}
    left = [index for index in range(len(captured)) if index not in found]
    if on_progress is not None:
        on_progress(len(found), len(captured))
    for index, result in results_of([_Work(captured[index], device, line, files[index]) for index in left]):
        found[left[index]] = result
        if on_progress is not None:
            on_progress(len(found), len(captured))
    for index, one in enumerate(captured):
        result = found[index]
        if isinstance(result, WorkerFailed):
            text = f"The process that compiled the graph for {device.target} failed: {result}."
            report.problems.append(TargetProblem(one.region, text))
            continue
        report.kernels += [build(Kernel, each) for each in result["kernels"]]
        report.graphs += [build(TargetGraph, each) for each in result["graphs"]]
        report.unfused += [build(Unfused, each) for each in result["unfused"]]
        report.problems += [TargetProblem(one.region, text) for text in result["problems"]]
    return report


def _computes(capture: Capture, line: tuple[str, int]) -> bool:
    places = (place_of(node) for node in capture.nodes)
    return any(KernelLine(*place).is_at(*line) for place in places if place is not None)


@dataclass(frozen=True)
class _Work:
    """Lowers one capture; runs in a forked process. ``file``: where what it finds is kept; None: it is not."""

    captured: Captured
    device: Device
    line: tuple[str, int] | None
    file: Path | None

    def __call__(self) -> dict[str, Any]:
        problems: list[str] = []
        found: dict[str, list[Any]] = {"kernels": [], "graphs": [], "unfused": []}
        try:
            with cache.kept():
                found = {name: [asdict(each) for each in of] for name, of in self._compiled().items()}
                if self.line is None:  # else most kernels have no code
                    kept.write(self.file, found)
        except Unsupported as error:
            problems.append(error.message)
        except Exception as error:  # a compiler may raise anything, and the report says what
            problems.append(f"{type(error).__name__}: {' '.join(str(error).split())[:300]} ({_place(error)})")
        return {**found, "problems": problems}

    def _compiled(self) -> dict[str, list[Any]]:
        figures = _figures(self.device)
        triton_device.stand_in(figures)
        forked_autograd.allow()  # the program may have run a backward pass on a real device
        # torch loops over the parameters on the CPU, and updates them together on CUDA
        lowered = lowered_graphs(self.captured.capture, combined=self.captured.kind == "optimizer")
        codes: dict[str, KernelCode] = {}
        graphs: dict[str, list[tuple[LoweredGraph, list[Kernel]]]] = {}
        for graph in lowered:
            for one in graph.kernels:
                if one.source and one.source not in codes and self._is_wanted(one):
                    codes[one.source] = _code(one, self.device, figures)
            name = self._name(graph)
            kernels = [self._kernel(name, one, codes.get(one.source)) for one in graph.kernels]
            graphs.setdefault(name, []).append((graph, kernels))
        region = self.captured.region
        return {
            "kernels": grouped(kernel for of in graphs.values() for _, kernels in of for kernel in kernels),
            "graphs": [fusion.graph(region, name, of) for name, of in graphs.items()],
            "unfused": [pair for name, of in graphs.items() for pair in fusion.unfused(region, name, of, self.device)],
        }

    def _is_wanted(self, one: LoweredKernel) -> bool:
        line = self.line
        return line is None or any(KernelLine(*place).is_at(*line) for place in one.places)

    def _kernel(self, graph: str, one: LoweredKernel, code: KernelCode | None) -> Kernel:
        work = KernelWork(one.bytes_read, one.bytes_written, one.flops, one.dtype)
        us, bound = roofline.estimate(self.device, work)
        lines = tuple(KernelLine(file, line) for file, line in one.places)
        kind = "triton" if one.source else "extern"
        return Kernel(self.captured.region, graph, one.name, kind, one.operators, lines, 1, work, round(us, 3), bound, code)

    def _name(self, graph: LoweredGraph) -> str:
        if self.captured.kind == "optimizer":
            return "optimizer"
        if _has_backward(self.captured.capture):
            return "step"
        return graph.graph


def _place(error: Exception) -> str:
    """Where an error was raised."""
    raised = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(raised.filename).name}:{raised.lineno}, {raised.name}"


def grouped(kernels: Iterable[Kernel]) -> list[Kernel]:
    """The same kernels for the same lines as one with several launches, in the order of the first."""
    launches: dict[Kernel, int] = {}
    for kernel in kernels:
        launches[kernel] = launches.get(kernel, 0) + 1
    return [Kernel(**{**vars(kernel), "launches": count}) for kernel, count in launches.items()]


@dataclass(frozen=True)
class LoweredSegment:
    """A segment of a capture on the device. ``fn``: takes its inputs, and can be called if its modules were loaded."""

    graphs: list[LoweredGraph]
    fn: Direct


def lowered_graphs(capture: Capture, *, combined: bool = False) -> list[LoweredGraph]:
    """What Inductor generates for each segment of a capture. ``combined``: independent loops become one
    kernel. `stand_in` must have been called. Raises Unsupported."""
    return [graph for segment in lowered_segments(capture, combined=combined).values() for graph in segment.graphs]


def lowered_segments(
    capture: Capture, *, combined: bool = False, load: Callable[[Path], Callable[..., Any]] | None = None
) -> dict[int, LoweredSegment]:
    """The segments that have operations, by position (see `lowered_graphs`). ``load``: as for
    `_compat.torch.triton_lowering.lower`."""
    facts = {given.node: given.facts for given in capture.trace.inputs}
    paths = {given.node: given.source.describe() for given in capture.trace.inputs}
    known: dict[torch.fx.Node, Any] = {}
    found: dict[int, LoweredSegment] = {}
    with preserve_torch_state(), no_warnings(COMPILERS), fake_compat.no_meta_logs():
        set_modes(capture.modes)
        for index, segment in enumerate(capture.segments):
            if not segment.nodes:
                continue
            inputs = example_inputs(segment.inputs, facts, known)
            on_cpu = {i for i, n in enumerate(segment.inputs) if n in facts and stays_on_cpu(paths[n], facts[n])}
            module = segment.module()
            for node, value in zip(module.graph.find_nodes(op="placeholder"), inputs.fakes, strict=True):
                if not isinstance(value, torch.Tensor):
                    node.meta["magpy_scalar"] = type(value)
            found[index] = _lowered(retarget(module), inputs, on_cpu, combined, load)
            if segment is not capture.segments[-1]:
                with inputs.fake_mode:
                    known.update(zip(segment.outputs, module(*inputs.fakes), strict=True))
    return found


def _lowered(
    graph: torch.fx.GraphModule, inputs: FakeInputs, on_cpu: set[int], combined: bool,
    load: Callable[[Path], Callable[..., Any]] | None,
) -> LoweredSegment:  # fmt: skip
    """One graph, as `backends.aot` compiles it, but as one, without blocks, and without the checks of CPU kernels."""
    mode, fakes = inputs
    arity, numbers = len(fakes), None
    with ExitStack() as context:
        graph = prepare(graph, fakes, _CPU)
        if needs_lowering(graph):
            numbers = Lowering(graph, fakes, mode, inductor.hoist()).run()
            graph, fakes = numbers.graph, numbers.fakes
            on_cpu = {i for i, (index, wrapped) in enumerate(numbers.inputs) if wrapped is not None or index in on_cpu}
        with keeping_places():
            differentiated = without_autograd(graph, fakes, mode)
        if differentiated is not None:
            graph, fakes = differentiated.graph, differentiated.fakes
            context.enter_context(no_autograd())
        lowered = lower(
            lambda inner: inductor.inductor_compile(graph, fakes, mode, inner=inner), on_cpu, combined=combined, load=load
        )
    fn, boxed, _ = lowered.compiled
    freed = None if differentiated is None else tuple(differentiated.freed)
    fn, _ = Convention(arity, freed, None if numbers is None else (numbers.inputs, numbers.outputs)).applied(fn, boxed)
    return LoweredSegment(lowered.graphs, fn)


def _code(one: LoweredKernel, device: Device, figures: triton_device.DeviceFigures) -> KernelCode:
    made = triton_device.compile_kernel(one.name, one.source, one.numels, figures)
    used = ptxas.resources(made.ptx, triton_device.assembler(device.capability), device.architecture)
    return KernelCode(
        one.source.strip("\n"), made.ptx, used.registers, used.spill_bytes, made.shared_bytes, made.num_warps, made.grid
    )


def _figures(device: Device) -> triton_device.DeviceFigures:
    return triton_device.DeviceFigures(
        device.title, device.capability, device.multiprocessors, device.registers, device.threads, device.warp,
        device.shared_bytes, device.memory_bytes,
    )  # fmt: skip


def _has_backward(capture: Capture) -> bool:
    return any(node.target is torch.autograd.grad for node in capture.nodes)
