"""Inductor and Triton for a CUDA device that this machine does not have.

Everything private that this needs is here, behind named functions: a stand-in for the device (`stand_in`), AOTAutograd and
Inductor on fake tensors (`lower`), Triton and its assembler (`compile_kernel`, `assembler`). Nothing is launched.

`stand_in` replaces functions of torch for good: call it only in a process that ends afterwards.

The order is: AOTAutograd traces on the CPU, because autograd's engine needs the streams of a real device; before the first
pass of Inductor, the traced graph is moved to the device (`_MoveToDevice`), and every later pass, the partition included,
sees tensors of the device.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.fx
from torch.utils import flop_counter

_CUDA, _CPU = torch.device("cuda", 0), torch.device("cpu")

#: Positions in torch's table of device guards.
_CUDA_GUARD, _META_GUARD, _GUARDS = 1, 14, 21
_GUARD_TABLE = "_ZN3c104impl26device_guard_impl_registryE"

#: Operations of a loop body that compute nothing.
_NO_ARITHMETIC = frozenset({
    "load", "store", "store_reduction", "constant", "index_expr", "get_index", "to_dtype", "to_dtype_bitcast", "masked",
    "load_seed", "check_bounds", "identity", "output", "partial_accumulate",
})  # fmt: skip
_FRAME = re.compile(r'File "(.+)", line (\d+), in')


class StandInFailed(RuntimeError):
    """This torch can't be made to compile for a device that is not there."""


@dataclass(frozen=True)
class DeviceFigures:
    """What Inductor and Triton ask a device for. ``shared_bytes``: the most that a block can have."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    registers: int
    threads: int
    warp: int
    shared_bytes: int
    memory_bytes: int


@dataclass
class LoweredKernel:
    """One launch in generated code. ``source``: Triton's; empty for a library's kernel. ``numels``: the sizes of the loops
    by the names of the kernel's parameters. ``graph``: ``inference``, ``forward`` or ``backward``. ``places``: files and lines that its operations were recorded at."""

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
class CompiledKernel:
    """Triton's result. ``grid``: empty if it depends on more than the sizes of the loops."""

    ptx: str
    shared_bytes: int
    num_warps: int
    grid: tuple[int, ...]


# -- the package ---------------------------------------------------------------------------------------------------------


def has_triton() -> bool:
    """Whether the ``triton`` package is installed, with the backend for NVIDIA's devices."""
    return importlib.util.find_spec("triton") is not None and importlib.util.find_spec("triton.backends.nvidia") is not None


def assembler(capability: tuple[int, int]) -> Path:
    """The assembler of the ``triton`` package for this compute capability. It may not exist."""
    import triton

    folder = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    newer = folder / "ptxas-blackwell"
    return newer if capability >= (10, 0) and newer.exists() else folder / "ptxas"


# -- the stand-in --------------------------------------------------------------------------------------------------------


def stand_in(figures: DeviceFigures) -> None:
    """Lets torch and Triton believe, until this process ends, that it has one CUDA device with these figures, without
    touching any device. Raises StandInFailed."""
    import torch._inductor.runtime.triton_helpers as helpers
    import triton
    from torch._dynamo.device_interface import CudaInterface

    guard_without_device()
    properties = _properties(figures)
    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "is_initialized": lambda: False,
        "_lazy_init": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: figures.capability,
        "get_device_name": lambda device=None: figures.name,
        "is_bf16_supported": lambda including_emulation=True: True,
        "get_rng_state": lambda device="cuda": torch.zeros(16, dtype=torch.uint8),
        "set_rng_state": lambda state, device="cuda": None,
        "set_device": lambda device: None,
        "synchronize": lambda device=None: None,
        "_exchange_device": lambda device: 0,
        "_maybe_exchange_device": lambda device: 0,
    }
    for name, answer in answers.items():
        if not hasattr(torch.cuda, name):
            raise StandInFailed(f"torch.cuda has no {name}")
        setattr(torch.cuda, name, answer)
    for name in ("device_count", "current_device", "get_device_properties", "is_bf16_supported", "set_device"):
        setattr(CudaInterface, name, staticmethod(answers[name]))
    CudaInterface.exchange_device = staticmethod(answers["_exchange_device"])  # type: ignore[assignment]
    CudaInterface.maybe_exchange_device = staticmethod(answers["_maybe_exchange_device"])  # type: ignore[assignment]
    CudaInterface.Worker.get_device_properties = staticmethod(answers["get_device_properties"])  # type: ignore[method-assign]
    CudaInterface.Worker.current_device = staticmethod(answers["current_device"])  # type: ignore[method-assign]
    torch.accelerator.current_accelerator = lambda check_available=False: None
    helpers.set_driver_to_gpu = lambda: None
    triton.runtime.driver.set_active(_Driver(figures))


def guard_without_device() -> None:
    """Gives CUDA the device guard of meta tensors, which does nothing. Indexing a fake CUDA tensor needs a guard, and torch
    for the CPU has none; that of torch for CUDA needs the driver. Raises StandInFailed."""
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
        table = (ctypes.c_void_p * _GUARDS).in_dll(library, _GUARD_TABLE)
    except (OSError, ValueError) as error:
        raise StandInFailed(f"torch's table of device guards is not where it is expected: {error}") from error
    if not table[0] or not table[_META_GUARD]:
        raise StandInFailed("torch's table of device guards has another layout")
    table[_CUDA_GUARD] = table[_META_GUARD]


def _properties(figures: DeviceFigures) -> Any:
    major, minor = figures.capability
    return SimpleNamespace(
        name=figures.name, major=major, minor=minor, multi_processor_count=figures.multiprocessors,
        regs_per_multiprocessor=figures.registers, max_threads_per_multi_processor=figures.threads,
        max_threads_per_block=1024, warp_size=figures.warp, total_memory=figures.memory_bytes,
        shared_memory_per_block=48 << 10, shared_memory_per_block_optin=figures.shared_bytes,
        shared_memory_per_multiprocessor=figures.shared_bytes + 1024, L2_cache_size=40 << 20, gcnArchName="",
        is_integrated=0, is_multi_gpu_board=0,
    )  # fmt: skip


class _Driver:
    """The parts of Triton's driver that compilation uses."""

    def __init__(self, figures: DeviceFigures) -> None:
        self._figures = figures
        limits = {"max_shared_mem": figures.shared_bytes, "multiprocessor_count": figures.multiprocessors}
        self.utils = SimpleNamespace(get_device_properties=lambda index: limits)

    def get_current_target(self) -> Any:
        return _gpu_target(self._figures)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return _CUDA

    def get_device_interface(self) -> Any:
        return torch.cuda


def _gpu_target(figures: DeviceFigures) -> Any:
    from triton.backends.compiler import GPUTarget

    major, minor = figures.capability
    return GPUTarget("cuda", 10 * major + minor, figures.warp)


# -- lowering ------------------------------------------------------------------------------------------------------------


def trace_text(file: str, line: int) -> str:
    """What a node's ``meta["stack_trace"]`` says for this place; `lower` returns the places of each kernel's operations."""
    return f'  File "{file}", line {line}, in region\n'


@contextmanager
def keeping_places() -> Iterator[None]:
    """Traces in the block keep the places of the nodes that they run."""
    from torch.fx.traceback import preserve_node_meta

    with preserve_node_meta():
        yield


def lower(
    compile_it: Callable[[Callable[..., Any]], Any], on_cpu: Collection[int] = (), *, combined: bool = False
) -> list[LoweredKernel]:
    """The kernels that Inductor generates for `stand_in`'s device, one per launch.

    ``compile_it(inner)`` calls Inductor on a graph with fake CPU tensors, with ``inner`` in place of its inner compiler.
    ``on_cpu``: the positions of inputs that stay on the CPU. ``combined``: independent loops become one kernel. Raises what Inductor raises."""
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
        _watch(stack, found)
        compile_it(inner)
    return found.kernels


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
        values = [_value(node) if self._stays(node) else _on_device(_value(node)) for node in placeholders]
        for node, value in zip(placeholders, values, strict=True):
            node.meta["val"] = value
        for node in graph.nodes:
            if node.kwargs.get("device") == _CPU and not _is_number(node):
                node.kwargs = {**node.kwargs, "device": _CUDA}
        mode = next((value.fake_mode for value in values if _is_fake(value)), None)
        module = graph.owning_module
        if mode is not None and module is not None:
            module.recompile()
            with torch.no_grad():
                FakeTensorProp(module, mode).propagate_dont_convert_inputs(*values)

    def uuid(self) -> Any:
        return None  # nothing is cached

    def _stays(self, node: torch.fx.Node) -> bool:
        value = _value(node)
        if not isinstance(value, torch.Tensor) or value.dim():
            return False
        # "descriptors" say which argument of the graph a traced input is (torch 2.9 and later)
        return _is_number(node) or getattr(node.meta.get("desc"), "idx", None) in self._on_cpu

    def __repr__(self) -> str:
        return "magpy: move to a device"


def _value(node: torch.fx.Node) -> Any:
    return node.meta.get("val")


def _is_number(node: torch.fx.Node) -> bool:
    """Whether a node is a number of Python's as a tensor: 0-d, with Python's precision."""
    value = _value(node)
    is_scalar = isinstance(value, torch.Tensor) and not value.dim()
    return is_scalar and value.dtype is torch.float64 and str(getattr(node.meta.get("desc"), "expr", "")) != "tangents"


def _is_fake(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and hasattr(value, "fake_mode")


def _is_on_device(node: torch.fx.Node) -> bool:
    value = _value(node)
    return isinstance(value, torch.Tensor) and value.device.type == "cuda"


def _on_device(value: Any) -> Any:
    """A fake like ``value`` on the device; anything but a tensor is unchanged."""
    if not _is_fake(value) or value.device.type == "cuda":
        return value
    with value.fake_mode, torch.no_grad():
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=_CUDA)


class _Launches:
    """What generated modules launch. A module is loaded when its kernels have been noted."""

    def __init__(self) -> None:
        self.kernels: list[LoweredKernel] = []
        self._with_source = 0

    def loads(self, module: str) -> None:
        known = sources(module)
        for kernel in self.kernels[self._with_source :]:
            kernel.source = known.get(kernel.name, "")
        self._with_source = len(self.kernels)

    def triton(self, name: str, schedule: Iterable[Any], kernel: Any) -> None:
        from torch._inductor.virtualized import V

        nodes = [node for item in schedule for node in _scheduled(item)]
        origins = [origin for node in nodes for origin in getattr(node.node, "origins", ())]
        read, written = _traffic(nodes, kernel)
        dtypes = {V.graph.get_dtype(buffer) for buffer in written} | {V.graph.get_dtype(buffer) for buffer in read}
        double = torch.float64 in dtypes
        numels = {f"{prefix}numel": _hint(size) for prefix, size in getattr(kernel, "numels", {}).items()}
        self.kernels.append(LoweredKernel(
            name, _graph(), _operators(origins), _places(origins), sum(read.values()), sum(written.values()),
            sum(map(_arithmetic, nodes)), "float64" if double else "float32", numels=numels,
        ))  # fmt: skip

    def extern(self, scheduled: Any) -> None:
        from torch._inductor import ir

        node = scheduled.node
        device = scheduled.get_device()
        if node is None or isinstance(node, ir.MultiOutput) or device is None or device.type != "cuda":
            return
        origin = _origin(node)
        origins = [origin] if origin is not None else list(node.origins)
        name = str(getattr(node, "python_kernel_name", "") or getattr(node, "op_overload", "") or type(node).__name__)
        read = sum(_bytes(_value(each)) for each in origin.all_input_nodes) if origin is not None else 0
        written = _bytes(_value(origin)) if origin is not None else 0
        flops, dtype = (product_flops(origin), _product_dtype(origin)) if origin is not None else (0, "float32")
        operators = (_operator(origin.target),) if origin is not None else _operators(origins)
        self.kernels.append(LoweredKernel(name, _graph(), operators, _places(origins), read, written, flops, dtype))


def _graph() -> str:
    from torch._inductor.virtualized import V

    return "backward" if V.graph.is_backward else "inference" if V.graph.is_inference else "forward"


def _watch(stack: ExitStack, found: _Launches) -> None:
    """Notes what Inductor generates, and lets it load nothing that it has generated."""
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.codegen.triton import TritonScheduling
    from torch._inductor.fx_passes import fuse_attention
    from torch._inductor.scheduler import Scheduler

    define, extern, load = (
        TritonScheduling.define_kernel,
        Scheduler.codegen_extern_call,
        PyCodeCache.__dict__["load_by_key_path"],
    )

    def define_kernel(self: Any, src_code: str, node_schedule: Any, kernel: Any) -> Any:
        name = define(self, src_code, node_schedule, kernel)
        found.triton(name, node_schedule, kernel)
        return name

    def codegen_extern_call(self: Any, scheduler_node: Any) -> Any:
        found.extern(scheduler_node)
        return extern(self, scheduler_node)

    def load_by_key_path(cls: Any, key: str, path: str, *args: Any, **kwargs: Any) -> Any:
        found.loads(Path(path).read_text(encoding="utf-8"))
        return SimpleNamespace(__file__=path, call=_never_called, recursively_apply_fns=None)

    replaced: list[tuple[Any, str, Any, Any]] = [
        (TritonScheduling, "define_kernel", define, define_kernel),
        (Scheduler, "codegen_extern_call", extern, codegen_extern_call),
        (PyCodeCache, "load_by_key_path", load, classmethod(load_by_key_path)),
        # its replacements are traced under autograd, on tensors of the device, which autograd's engine refuses
        (fuse_attention, "_sfdp_init", fuse_attention._sfdp_init, lambda *args, **kwargs: None),
    ]
    for owner, name, before, replacement in replaced:
        setattr(owner, name, replacement)
        stack.callback(setattr, owner, name, before)


def _never_called(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("code for another device is never run")


# -- what a kernel does --------------------------------------------------------------------------------------------------


def _scheduled(item: Any) -> list[Any]:
    """The single nodes in an item of a schedule; its markers have none."""
    if not hasattr(item, "get_nodes"):
        return []
    return [node for node in item.get_nodes() if hasattr(node, "read_writes")]


def _traffic(nodes: Sequence[Any], kernel: Any) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes that a kernel reads and writes, by buffer: what it addresses, and each buffer at most once. What it computes
    and only it uses stays in registers."""
    from torch._inductor.dependencies import WeakDep
    from torch._inductor.virtualized import V

    inside = set(getattr(kernel, "removed_buffers", ())) | set(V.graph.removed_buffers)
    reads: dict[str, dict[Any, int]] = defaultdict(dict)
    writes: dict[str, dict[Any, int]] = defaultdict(dict)
    for node in nodes:
        for deps, into in ((node.read_writes.reads, reads), (node.read_writes.writes, writes)):
            for dep in deps:
                if dep.name not in inside and not isinstance(dep, WeakDep):
                    into[dep.name][str(getattr(dep, "index", "") if hasattr(dep, "var_names") else "")] = _hint(
                        dep.get_numel()
                    )

    def size(buffer: str, addressed: Mapping[Any, int]) -> int:
        width = V.graph.get_dtype(buffer).itemsize
        return int(min(sum(addressed.values()), _hint(V.graph.get_numel(buffer))) * width)

    read = {buffer: size(buffer, addressed) for buffer, addressed in reads.items() if buffer not in writes}
    # several buffers may have one memory, which is written once, with the last of them
    last = {name: group[-1] for group in _in_place(kernel) for name in group}
    written = {last.get(buffer, buffer): size(buffer, addressed) for buffer, addressed in writes.items()}
    return read, written


def _in_place(kernel: Any) -> list[list[str]]:
    """The names of the buffers that a kernel keeps in the same memory, one after the other."""
    found = getattr(getattr(kernel, "args", None), "inplace_buffers", {}).values()
    return [list(group.other_names) for group in found if hasattr(group, "other_names")]


def _hint(size: Any) -> int:
    """A size as a number: for a symbol, the one that was recorded."""
    from torch._inductor.virtualized import V

    if getattr(size, "is_number", True):
        return int(size)
    sizes = V.graph.sizevars
    hint = getattr(sizes, "optimization_hint", None) or sizes.size_hint  # renamed in torch 2.12
    return int(hint(size))


def _arithmetic(node: Any) -> int:
    """The arithmetic operations of one loop."""
    counts: Mapping[str, int] = getattr(getattr(node, "_body", None), "op_counts", {})
    ranges = node.get_ranges() if hasattr(node, "get_ranges") else ()
    turns = math.prod(_hint(size) for sizes in ranges for size in sizes)
    per_turn = sum(
        n for name, n in counts.items() if name not in _NO_ARITHMETIC and not name.startswith(("masked_", "set_"))
    )
    return turns * per_turn


def product_flops(node: torch.fx.Node) -> int:
    """The floating-point operations of a matrix product, convolution or attention, by torch's formulas; 0 for others."""
    packet = getattr(node.target, "overloadpacket", None)
    formula = flop_counter.flop_registry.get(packet)
    if formula is None:
        return 0
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), _value)
    return int(formula(*args, **kwargs, out_val=_value(node)))


def _product_dtype(node: torch.fx.Node) -> str:
    first = next((leaf for leaf in _tensors(_value(node))), None)
    dtype = first.dtype if first is not None else torch.float32
    if dtype is torch.float32 and torch.get_float32_matmul_precision() != "highest":
        return "tf32"
    return str(dtype).removeprefix("torch.")


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for each in value for tensor in _tensors(each)] if isinstance(value, tuple | list) else []


def _bytes(value: Any) -> int:
    """The bytes of the tensors in a value; an expanded dimension takes no memory."""
    total = 0
    for tensor in _tensors(value):
        sizes = [int(size) for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride]
        total += math.prod(sizes) * tensor.dtype.itemsize
    return total


def _operators(origins: Iterable[torch.fx.Node]) -> tuple[str, ...]:
    """The names of ATen operations, as the program's graph has them before decomposition."""
    names = []
    for node in origins:
        if node.op == "call_function":
            of = node.meta.get("original_aten") or node.target
            names.append(_operator(of))
    return tuple(dict.fromkeys(names))


def _operator(target: Any) -> str:
    packet = getattr(target, "overloadpacket", None)
    return str(packet).partition(".")[2] if packet is not None else str(getattr(target, "__name__", target))


def _origin(node: Any) -> torch.fx.Node | None:
    """The graph's node that a library's kernel computes; None if it computes none alone."""
    overload = getattr(node, "op_overload", None)
    of_overload = [origin for origin in node.origins if overload is not None and origin.target is overload]
    if len(of_overload) == 1:
        return of_overload[0]
    origin: torch.fx.Node | None = node.get_origin_node()
    return origin


def _places(origins: Iterable[torch.fx.Node]) -> tuple[tuple[str, int], ...]:
    found = dict.fromkeys(
        (file, int(line)) for node in origins for file, line in _FRAME.findall(node.meta.get("stack_trace") or "")
    )
    return tuple(sorted(found))


# -- Triton --------------------------------------------------------------------------------------------------------------


def sources(module: str) -> dict[str, str]:
    """The kernels in the text of a module of Inductor's: Triton source by name."""
    return {
        match[1]: match[2]
        for match in re.finditer(r"async_compile\.triton\('(\w+)', '''(.*?)''', device_str", module, re.DOTALL)
    }


def compile_kernel(name: str, source: str, numels: Mapping[str, int], figures: DeviceFigures) -> CompiledKernel:
    """A kernel of Inductor's, compiled by Triton with the first of the configurations that Inductor would try: without a
    device, it can't time them. Raises what Triton raises."""
    import triton
    from torch._inductor.codecache import PyCodeCache
    from triton.compiler import ASTSource

    module = PyCodeCache.load(source)
    tuner: Any = getattr(module, name, None) or getattr(module, "triton_", None)
    tuner = getattr(tuner, "kernel", tuner)
    config = tuner.configs[0]
    meta = tuner._create_compile_meta(config)
    text = ASTSource(tuner.fn, meta["signature"], meta["constants"], meta["configs"][0])
    options = tuner._create_compile_options(config, meta)
    made = triton.compile(text, target=_gpu_target(figures), options=options)
    grid = _grid(tuner.inductor_meta, config, numels)
    return CompiledKernel(made.asm["ptx"], int(made.metadata.shared), int(made.metadata.num_warps), grid)


def _grid(meta: Mapping[str, Any], config: Any, numels: Mapping[str, int]) -> tuple[int, ...]:
    from torch._inductor.runtime.triton_heuristics import GridExpr

    try:
        blocks = GridExpr.from_meta(dict(meta), config).eval_slow({**config.kwargs, **numels})
    except (NameError, KeyError, TypeError, AttributeError):
        return ()  # a grid of several kernels in one: it depends on more
    return tuple(int(each) for each in blocks)
