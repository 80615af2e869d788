"""What a kernel of Inductor's does: bytes, arithmetic, operators, places. Used while Inductor generates code.

Key functions: traffic, library_traffic, arithmetic, product_flops, operators, places.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.fx
from torch.utils import flop_counter

#: Operations of a loop body that compute nothing.
_NO_ARITHMETIC = frozenset({
    "load", "store", "store_reduction", "constant", "index_expr", "get_index", "to_dtype", "to_dtype_bitcast", "masked",
    "load_seed", "check_bounds", "identity", "output", "partial_accumulate",
})  # fmt: skip
_FRAME = re.compile(r'File "(.+)", line (\d+), in')


def scheduled(item: Any) -> list[Any]:
    """The single nodes in an item of a schedule; its markers have none."""
    if not hasattr(item, "get_nodes"):
        return []
    return [node for node in item.get_nodes() if hasattr(node, "read_writes")]


def traffic(nodes: Sequence[Any], kernel: Any) -> tuple[dict[str, int], dict[str, int]]:
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
                    into[dep.name][str(getattr(dep, "index", "") if hasattr(dep, "var_names") else "")] = size_of(
                        dep.get_numel()
                    )

    def size(buffer: str, addressed: Mapping[Any, int]) -> int:
        width = V.graph.get_dtype(buffer).itemsize
        return int(min(sum(addressed.values()), size_of(V.graph.get_numel(buffer))) * width)

    read = {buffer: size(buffer, addressed) for buffer, addressed in reads.items() if buffer not in writes}
    # several buffers may have one memory, which is written once, with the last of them
    last = {name: group[-1] for group in _in_place(kernel) for name in group}
    written = {last.get(buffer, buffer): size(buffer, addressed) for buffer, addressed in writes.items()}
    return read, written


def library_traffic(node: Any) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes of the buffers that a library's kernel reads and writes: all of each. Results in several parts have their own
    nodes (`ir.MultiOutput`)."""
    from torch._inductor.dependencies import WeakDep

    read = {dep.name: buffer_bytes(dep.name) for dep in node.read_writes.reads if not isinstance(dep, WeakDep)}
    return read, {name: buffer_bytes(name) for name in node.get_buffer_names()}


def buffer_bytes(name: str) -> int:
    """The size of a buffer, input or constant of the graph; 0 for what is no tensor."""
    from torch._inductor.virtualized import V

    graph = V.graph
    buffer = graph.name_to_buffer.get(name)
    known = buffer.has_tensor_output() if buffer is not None else hasattr(graph.graph_inputs.get(name), "get_dtype")
    if not known and name not in graph.constants:
        return 0
    return int(size_of(graph.get_numel(name)) * graph.get_dtype(name).itemsize)


def _in_place(kernel: Any) -> list[list[str]]:
    """The names of the buffers that a kernel keeps in the same memory, one after the other."""
    found = getattr(getattr(kernel, "args", None), "inplace_buffers", {}).values()
    return [list(group.other_names) for group in found if hasattr(group, "other_names")]


def size_of(size: Any) -> int:
    """A size as a number: for a symbol, the one that was recorded."""
    from torch._inductor.virtualized import V

    if getattr(size, "is_number", True):
        return int(size)
    sizes: Any = V.graph.sizevars
    hint = getattr(sizes, "optimization_hint", None) or sizes.size_hint  # renamed in torch 2.12
    return int(hint(size))


def arithmetic(node: Any) -> int:
    """The arithmetic operations of one loop."""
    counts: Mapping[str, int] = getattr(getattr(node, "_body", None), "op_counts", {})
    ranges = node.get_ranges() if hasattr(node, "get_ranges") else ()
    turns = math.prod(size_of(size) for sizes in ranges for size in sizes)
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
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), value_of)
    return int(formula(*args, **kwargs, out_val=value_of(node)))


def product_dtype(node: torch.fx.Node) -> str:
    """The type of a product's arithmetic; ``tf32`` if torch allows it for float32."""
    values = [*map(value_of, node.all_input_nodes), value_of(node)]
    first = next((leaf for value in values for leaf in _tensors(value)), None)
    dtype = first.dtype if first is not None else torch.float32
    if dtype is torch.float32 and _allows_tf32(node):
        return "tf32"
    return str(dtype).removeprefix("torch.")


def _allows_tf32(node: torch.fx.Node) -> bool:
    """Whether torch lets this product round float32 for tensor cores on CUDA: by default only convolutions."""
    if "convolution" in operator(node.target):
        return bool(torch.backends.cudnn.allow_tf32)
    return torch.get_float32_matmul_precision() != "highest"


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for each in value for tensor in _tensors(each)] if isinstance(value, tuple | list) else []


def tensor_bytes(value: Any) -> int:
    """The bytes of the tensors in a value; an expanded dimension takes no memory."""
    total = 0
    for tensor in _tensors(value):
        sizes = [int(size) for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride]
        total += math.prod(sizes) * tensor.dtype.itemsize
    return total


def operators(origins: Iterable[torch.fx.Node]) -> tuple[str, ...]:
    """The names of ATen operations, as the program's graph has them before decomposition."""
    names = []
    for node in origins:
        if node.op == "call_function":
            of = node.meta.get("original_aten") or node.target
            names.append(operator(of))
    return tuple(dict.fromkeys(names))


def operator(target: Any) -> str:
    """The name of an ATen operator; of another function, its own."""
    packet = getattr(target, "overloadpacket", None)
    return str(packet).partition(".")[2] if packet is not None else str(getattr(target, "__name__", target))


def origin_of(node: Any) -> Any:
    """The graph's node that a library's kernel computes; None if it computes none alone."""
    overload = getattr(node, "op_overload", None)
    of_overload = [origin for origin in node.origins if overload is not None and origin.target is overload]
    if len(of_overload) == 1:
        return of_overload[0]
    return node.get_origin_node()


def trace_text(file: str, line: int) -> str:
    """What a node's ``meta["stack_trace"]`` says for this place; AOTAutograd and Inductor keep it."""
    return f'  File "{file}", line {line}, in region\n'


def places(origins: Iterable[torch.fx.Node]) -> tuple[tuple[str, int], ...]:
    """The files and lines that operations were recorded at (`trace_text`)."""
    found = dict.fromkeys((file, int(line)) for node in origins for file, line in _FRAME.findall(_trace(node)))
    return tuple(sorted(found))


def _trace(node: torch.fx.Node, depth: int = 3) -> str:
    """For an operation that a pass of Inductor's has put in without a place: that of an operation that uses it."""
    own = str(node.meta.get("stack_trace") or "")
    if own or node.op != "call_function" or not depth:
        return own
    return next((trace for user in node.users if (trace := _trace(user, depth - 1))), "")


def value_of(node: torch.fx.Node) -> Any:
    """The fake result of a node of an ATen graph."""
    return node.meta.get("val")
