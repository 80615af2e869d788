"""AOTAutograd and Inductor on fake tensors, for a CUDA device that this machine does not have. Key function: lower.

The order is: AOTAutograd traces on the CPU, because autograd's engine needs the streams of a real device; before the first
pass of Inductor, the traced graph is moved to the device (`_MoveToDevice`), and every later pass, the partition included,
sees tensors of the device.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
import torch.fx

from magpy_core._compat.torch.fusion import Apart, Launch, Reasons, apart, least_bytes, note_reasons
from magpy_core._compat.torch.kernel_work import (
    arithmetic,
    buffer_bytes,
    library_traffic,
    operator,
    operators,
    origin_of,
    places,
    product_dtype,
    product_flops,
    scheduled,
    size_of,
    tensor_bytes,
    traffic,
    value_of,
)
from magpy_core._compat.torch.triton_device import CUDA

_CPU = torch.device("cpu")


@dataclass
class LoweredKernel:
    """One launch in generated code. ``source``: Triton's; empty for a library's kernel. ``numels``: the sizes of the loops
    by the names of the kernel's parameters. ``graph``: ``inference``, ``forward`` or ``backward``. ``places``: files and
    lines that its operations were recorded at."""

    name: str
    graph: str
    operators: tuple[str, ...]
    places: tuple[tuple[str, int], ...]
    bytes_read: int
    bytes_written: int
    flops: int
    dtype: str
    source: str = ""
    numels: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LoweredGraph:
    """One graph that Inductor has compiled: its ``kernels``, in order, and by their positions which of them it has left
    ``apart``. ``least_bytes``: its inputs read once, and its results written once."""

    graph: str
    kernels: list[LoweredKernel]
    apart: list[Apart]
    least_bytes: int


class Lowering(NamedTuple):
    """``compiled``: what ``compile_it`` has returned."""

    graphs: list[LoweredGraph]
    compiled: Any


@contextmanager
def keeping_places() -> Iterator[None]:
    """Traces in the block keep the places of the nodes that they run."""
    from torch.fx.traceback import preserve_node_meta

    with preserve_node_meta():
        yield


def lower(
    compile_it: Callable[[Callable[..., Any]], Any], on_cpu: Collection[int] = (), *, combined: bool = False,
    load: Callable[[Path], Callable[..., Any]] | None = None,
) -> Lowering:  # fmt: skip
    """The kernels that Inductor generates for `stand_in`'s device, one per launch.

    ``compile_it(inner)`` calls Inductor on a graph with fake CPU tensors, with ``inner`` in place of its inner compiler.
    ``on_cpu``: the positions of inputs that stay on the CPU. ``combined``: independent loops become one
    kernel. ``load``: the function that runs a generated module; without it, what is compiled can't be called. Raises what
    Inductor raises."""
    from torch._functorch import config as functorch_config
    from torch._inductor import config as inductor_config
    from torch._inductor.compile_fx import compile_fx_inner

    found = _Launches()

    def inner(graph: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Any:
        moved = [
            _on_device(value) if _is_on_device(node) else value for node, value in zip(_inputs(graph), inputs, strict=True)
        ]
        return compile_fx_inner(graph, moved, **options)

    patches = {
        "joint_custom_pre_pass": _MoveToDevice(on_cpu),
        "fx_graph_cache": False,
        "fx_graph_remote_cache": False,
        "compile_threads": 1,
        "cpp.simdlen": 1,  # the instruction set of this processor does not matter, and is slow to find out
        "triton.cudagraphs": False,
        "shape_padding": False,  # whether padded products are faster is measured on the device
        "combo_kernels": combined,
    }
    with inductor_config.patch(patches), functorch_config.patch({"enable_autograd_cache": False}), ExitStack() as stack:
        _watch(stack, found, load or (lambda path: _never_called))
        compiled = compile_it(inner)
    return Lowering(found.graphs, compiled)


def _inputs(graph: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return list(graph.graph.find_nodes(op="placeholder"))


class _MoveToDevice:
    """The first pass over a graph of AOTAutograd: its tensors are on the device from now on, except Python's numbers (0-d
    float64 and int64 tensors of the engine) and the inputs at these positions. For ``joint_custom_pre_pass``."""

    def __init__(self, on_cpu: Collection[int]) -> None:
        self._on_cpu = frozenset(on_cpu)

    def __call__(self, graph: torch.fx.Graph) -> None:
        from torch.fx.passes.fake_tensor_prop import FakeTensorProp

        placeholders = list(graph.find_nodes(op="placeholder"))
        values = [value_of(node) if self._stays(node) else _on_device(value_of(node)) for node in placeholders]
        for node, value in zip(placeholders, values, strict=True):
            node.meta["val"] = value
        for node in graph.nodes:
            if node.kwargs.get("device") == _CPU and not _is_number(node):
                node.kwargs = {**node.kwargs, "device": CUDA}
        mode = next((value.fake_mode for value in values if _is_fake(value)), None)
        module = graph.owning_module
        if mode is not None and module is not None:
            module.recompile()
            with torch.no_grad():
                FakeTensorProp(module, mode).propagate_dont_convert_inputs(*values)

    def uuid(self) -> Any:
        return None  # nothing is cached

    def _stays(self, node: torch.fx.Node) -> bool:
        value = value_of(node)
        if not isinstance(value, torch.Tensor) or value.dim():
            return False
        # "descriptors" say which argument of the graph a traced input is (torch 2.9 and later)
        return _is_number(node) or getattr(node.meta.get("desc"), "idx", None) in self._on_cpu

    def __repr__(self) -> str:
        return "magpy: move to a device"


def _is_number(node: torch.fx.Node) -> bool:
    """Whether a node is a number of Python's as a tensor: 0-d, with Python's precision."""
    value = value_of(node)
    is_scalar = isinstance(value, torch.Tensor) and not value.dim()
    return is_scalar and value.dtype is torch.float64 and str(getattr(node.meta.get("desc"), "expr", "")) != "tangents"


def _is_fake(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and hasattr(value, "fake_mode")


def _is_on_device(node: torch.fx.Node) -> bool:
    value = value_of(node)
    return isinstance(value, torch.Tensor) and value.device.type == "cuda"


def _on_device(value: Any) -> Any:
    """A fake like ``value`` on the device; anything but a tensor is unchanged."""
    if not _is_fake(value) or value.device.type == "cuda":
        return value
    with value.fake_mode, torch.no_grad():
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=CUDA)


class _Launches:
    """What generated modules launch. A module is loaded when the kernels of its graphs have been noted. A graph inside
    another (of a condition) is generated in the midst of it."""

    def __init__(self) -> None:
        self.graphs: list[LoweredGraph] = []
        self.reasons: Reasons = {}
        self._open: list[tuple[list[LoweredKernel], list[Launch]]] = []
        self._with_source = 0

    def loads(self, module: str) -> None:
        known = sources(module)
        for graph in self.graphs[self._with_source :]:
            for kernel in graph.kernels:
                kernel.source = known.get(kernel.name, "")
        self._with_source = len(self.graphs)

    def graph(self, generate: Callable[[], Any]) -> Any:
        """Notes what ``generate`` generates for the graph that is being compiled."""
        reasons, kernels, launches = dict(self.reasons), list[LoweredKernel](), list[Launch]()
        self.reasons.clear()
        self._open.append((kernels, launches))
        try:
            result = generate()
        finally:
            self._open.pop()
        if kernels:
            self.graphs.append(LoweredGraph(_graph(), kernels, list(apart(launches, reasons)), least_bytes(launches)))
        return result

    def _add(self, kernel: LoweredKernel, launch: Launch) -> None:
        kernels, launches = self._open[-1]
        kernels.append(kernel)
        launches.append(launch)

    def triton(self, name: str, schedule: Iterable[Any], kernel: Any) -> None:
        from torch._inductor.virtualized import V

        nodes = [node for item in schedule for node in scheduled(item)]
        origins = [origin for node in nodes for origin in getattr(node.node, "origins", ())]
        read, written = traffic(nodes, kernel)
        dtypes = {V.graph.get_dtype(buffer) for buffer in written} | {V.graph.get_dtype(buffer) for buffer in read}
        double = torch.float64 in dtypes
        numels = {f"{prefix}numel": size_of(size) for prefix, size in getattr(kernel, "numels", {}).items()}
        lowered = LoweredKernel(
            name, _graph(), operators(origins), places(origins), sum(read.values()), sum(written.values()),
            sum(map(arithmetic, nodes)), "float64" if double else "float32", numels=numels,
        )  # fmt: skip
        self._add(lowered, Launch({node.get_name() for node in nodes}, read, written, is_generated=True))

    def extern(self, scheduled: Any) -> None:
        from torch._inductor import ir

        node = scheduled.node
        device = scheduled.get_device()
        if node is None or device is None or device.type != "cuda":
            return
        if isinstance(node, ir.MultiOutput):
            self._part(scheduled)
            return
        origin = origin_of(node)
        origins = [origin] if origin is not None else list(node.origins)
        name = str(getattr(node, "python_kernel_name", "") or getattr(node, "op_overload", "") or type(node).__name__)
        read = sum(tensor_bytes(value_of(each)) for each in origin.all_input_nodes) if origin is not None else 0
        written = tensor_bytes(value_of(origin)) if origin is not None else 0
        flops, dtype = (product_flops(origin), product_dtype(origin)) if origin is not None else (0, "float32")
        computes = (operator(origin.target),) if origin is not None else operators(origins)
        lowered = LoweredKernel(name, _graph(), computes, places(origins), read, written, flops, dtype)
        self._add(lowered, Launch({scheduled.get_name()}, *library_traffic(scheduled), is_generated=False))

    def _part(self, scheduled: Any) -> None:
        """One of several results of a library's kernel."""
        of = {dep.name for dep in scheduled.read_writes.reads}
        for launch in self._open[-1][1]:
            if of & launch.writes.keys():
                launch.nodes.add(scheduled.get_name())
                launch.writes |= {name: buffer_bytes(name) for name in scheduled.get_buffer_names()}


def _graph() -> str:
    from torch._inductor.virtualized import V

    return "backward" if V.graph.is_backward else "inference" if V.graph.is_inference else "forward"


def _watch(stack: ExitStack, found: _Launches, load: Callable[[Path], Callable[..., Any]]) -> None:
    """Notes what Inductor generates, which only ``load`` loads."""
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.codegen.triton import TritonScheduling
    from torch._inductor.fx_passes import fuse_attention
    from torch._inductor.scheduler import Scheduler

    define: Any
    extern: Any
    generate: Any
    define, extern, generate, loaded = (
        TritonScheduling.define_kernel,
        Scheduler.codegen_extern_call,
        Scheduler.codegen,
        PyCodeCache.__dict__["load_by_key_path"],
    )

    def define_kernel(self: Any, src_code: str, node_schedule: Any, kernel: Any) -> Any:
        name = define(self, src_code, node_schedule, kernel)
        found.triton(name, node_schedule, kernel)
        return name

    def codegen_extern_call(self: Any, scheduler_node: Any) -> Any:
        found.extern(scheduler_node)
        return extern(self, scheduler_node)

    def codegen(self: Any) -> Any:
        return found.graph(lambda: generate(self))

    def load_by_key_path(cls: Any, key: str, path: str, *args: Any, **kwargs: Any) -> Any:
        found.loads(Path(path).read_text(encoding="utf-8"))
        return SimpleNamespace(__file__=path, call=load(Path(path)), recursively_apply_fns=None)

    replaced: list[tuple[Any, str, Any, Any]] = [
        (TritonScheduling, "define_kernel", define, define_kernel),
        (Scheduler, "codegen_extern_call", extern, codegen_extern_call),
        (Scheduler, "codegen", generate, codegen),
        (PyCodeCache, "load_by_key_path", loaded, classmethod(load_by_key_path)),
        # its replacements are traced under autograd, on tensors of the device, which autograd's engine refuses
        (fuse_attention, "_sfdp_init", fuse_attention._sfdp_init, lambda *args, **kwargs: None),
    ]
    _draw_as_on_device(stack)
    note_reasons(stack, found.reasons)
    for owner, name, before, replacement in replaced:
        setattr(owner, name, replacement)
        stack.callback(setattr, owner, name, before)


def _draw_as_on_device(stack: ExitStack) -> None:
    """Inductor draws Bernoulli numbers by an operator on the CPU, and in the kernel elsewhere; tracing is on the CPU."""
    from torch._inductor.decomposition import select_decomp_table

    table: dict[Any, Any] = select_decomp_table()
    aten = torch.ops.aten
    for overload in (aten.bernoulli_.float, aten.bernoulli_.Tensor, aten.bernoulli.p):
        stack.callback(table.__setitem__, overload, table[overload])
        table[overload] = _bernoulli_ if overload is not aten.bernoulli.p else _bernoulli


def _bernoulli(like: torch.Tensor, p: Any = 0.5, *, generator: Any = None) -> torch.Tensor:
    drawn: torch.Tensor = torch.rand_like(like, dtype=torch.float32) < p
    return drawn


def _bernoulli_(into: torch.Tensor, p: Any = 0.5, *, generator: Any = None) -> torch.Tensor:
    return into.copy_(_bernoulli(into, p))


def _never_called(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("code for another device is never run")


def sources(module: str) -> dict[str, str]:
    """The kernels in the text of a module of Inductor's: Triton source by name."""
    return {
        match[1]: match[2]
        for match in re.finditer(r"async_compile\.triton\('(\w+)', '''(.*?)''', device_str", module, re.DOTALL)
    }
