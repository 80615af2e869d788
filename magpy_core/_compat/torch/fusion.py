"""What Inductor's scheduler has left apart: kernels that write what only one other kernel reads, and its reasons.

Private parts of the scheduler, behind named functions, used while Inductor generates code. Key types: Launch, Apart. Key
functions: note_reasons, apart, least_bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from magpy_core._compat.torch.kernel_work import places

Place = tuple[str, int]
Reasons = dict[tuple[str, str], str]
"""By the names of two scheduled nodes, the first of which was to be fused with the second."""


@dataclass
class Launch:
    """A kernel as the scheduler has it. ``nodes``: the names of its operations. ``reads``, ``writes``: bytes by buffer."""

    nodes: set[str]
    reads: dict[str, int]
    writes: dict[str, int]
    is_generated: bool


@dataclass(frozen=True)
class Apart:
    """Positions of two launches, the first of which writes what only the second reads, and how many bytes. The places are
    those of the largest buffer; None: not of the program. ``reason``: empty if there is none. ``is_window``: each turn of
    a loop of the second's reads several elements of that buffer."""

    producer: int
    consumer: int
    written_at: Place | None
    read_at: Place | None
    bytes_written: int
    bytes_read: int
    reason: str
    is_window: bool = False


def note_reasons(stack: ExitStack, into: Reasons) -> None:
    """Until the stack is closed, why Inductor does not fuse two nodes is noted, the last reason for each pair."""
    from torch._inductor.scheduler import WhyNoFuse

    of_class: Any = WhyNoFuse
    call: Callable[..., None] = of_class.__call__

    def noting(self: Any, reason: str, *args: Any) -> None:
        into[self.name1, self.name2] = reason % args if args else reason
        call(self, reason, *args)

    of_class.__call__ = noting
    stack.callback(setattr, of_class, "__call__", call)


def least_bytes(launches: Sequence[Launch]) -> int:
    """The inputs of the graph that is being compiled, read once, and its results, written once."""
    from torch._inductor.virtualized import V

    graph: Any = V.graph
    real_name: Mapping[str, str] = graph.scheduler.mutation_real_name
    kept = set(graph.get_output_names())
    inputs: dict[str, int] = {}
    results: dict[str, int] = {}
    for launch in launches:
        for name, size in launch.reads.items():
            if name in graph.graph_inputs or name in graph.constants:
                inputs[name] = max(inputs.get(name, 0), size)
        for name, size in launch.writes.items():
            real = real_name.get(name, name)
            if name in kept or real in kept or real in graph.graph_inputs:
                results[real] = max(results.get(real, 0), size)
    return sum(inputs.values()) + sum(results.values())


def apart(launches: Sequence[Launch], reasons: Reasons) -> Iterator[Apart]:
    """The pairs of generated kernels of the graph that is being compiled that exchange a buffer through memory that nothing
    else needs. Not those that another kernel has to run between: these can't be one."""
    from torch._inductor.virtualized import V

    graph: Any = V.graph
    scheduler = graph.scheduler
    owner = {name: index for index, launch in enumerate(launches) for name in launch.nodes}
    kept = set(graph.get_output_names()) | set(scheduler.mutation_real_name) | set(scheduler.mutation_renames)
    pairs: dict[tuple[int, int], list[str]] = {}
    for index, launch in enumerate(launches):
        for name in launch.writes if launch.is_generated else ():
            reader = None if name in kept else _only_reader(scheduler, name, index, owner)
            if reader is not None and launches[reader].is_generated:
                pairs.setdefault((index, reader), []).append(name)
    for (index, reader), names in pairs.items():
        first, second = (_scheduled(scheduler, launches[each]) for each in (index, reader))
        if _has_detour(scheduler, first, second):
            continue
        written, read = launches[index].writes, launches[reader].reads
        largest = max(names, key=written.__getitem__)
        moved = sum(written[name] for name in names), sum(read.get(name, 0) for name in names)
        reason = _reason(scheduler, largest, first, second, reasons)
        is_window = any(_indices(node, largest) > 1 for node in second.get_nodes())
        yield Apart(index, reader, *_places(scheduler, largest, launches[reader]), *moved, reason, is_window)


def _only_reader(scheduler: Any, name: str, writer: int, owner: Mapping[str, int]) -> int | None:
    """The launch that reads a buffer, if it is the only one besides that which writes it."""
    buffer = scheduler.name_to_buf.get(name)
    if buffer is None or buffer.get_aliases() or buffer.get_mutations():
        return None
    readers: set[int | None] = set()
    for user in buffer.users:
        if user.is_weak:
            continue  # only runs later
        if not hasattr(user.node, "get_nodes"):
            return None  # a result of the graph
        readers |= {owner.get(node.get_name()) for node in user.node.get_nodes() if _reads(node, name)}
    readers.discard(writer)
    return readers.pop() if len(readers) == 1 else None


def _reads(node: Any, name: str) -> bool:
    return any(dep.name == name for dep in node.read_writes.reads)


def _indices(node: Any, name: str) -> int:
    """How many different elements of a buffer a turn of a node's loop reads."""
    return len({dep.index for dep in node.read_writes.reads if dep.name == name and hasattr(dep, "var_names")})


def _scheduled(scheduler: Any, launch: Launch) -> Any:
    """The scheduler's node of a launch, fused as it was generated."""
    return scheduler.name_to_fused_node[min(launch.nodes)]


def _has_detour(scheduler: Any, first: Any, second: Any) -> bool:
    """Whether ``second`` also needs what another kernel computes of ``first``'s results."""
    waiting = [node for node in _needed(scheduler, second) if node is not first]
    seen: set[str] = set()
    while waiting:
        node = waiting.pop()
        if node is first:
            return True
        if node.get_name() not in seen and node is not second:
            seen.add(node.get_name())
            waiting += _needed(scheduler, node)
    return False


def _needed(scheduler: Any, node: Any) -> list[Any]:
    """The scheduler's nodes whose results a node waits for."""
    buffers = (scheduler.name_to_buf.get(dep.name) for dep in node.unmet_dependencies)
    return [scheduler.name_to_fused_node[buffer.defining_op_name()] for buffer in buffers if buffer is not None]


def _places(scheduler: Any, name: str, reader: Launch) -> tuple[Place | None, Place | None]:
    """Where the program computes a buffer, and where it uses it."""
    buffer = scheduler.name_to_buf[name].node
    origin = buffer.get_origin_node()
    written = _last(places([origin] if origin is not None else [])) or _last(places(buffer.origins))
    nodes = [scheduler.name_to_node[each] for each in sorted(reader.nodes)]
    origins = [each for node in nodes if _reads(node, name) for each in getattr(node.node, "origins", ())]
    users = [each for each in origins if origin is not None and origin in each.all_input_nodes]
    return written, _last(places(users)) or _last(places(origins))


def _last(found: Iterable[Place]) -> Place | None:
    return max(found, default=None)


def _reason(scheduler: Any, name: str, first: Any, second: Any, reasons: Reasons) -> str:
    """Why two nodes are not one: as for the nodes themselves; else, since some answers come without a reason, the last for
    parts of them that exchange the buffer."""
    of_nodes = reasons.get((first.get_name(), second.get_name()))
    if of_nodes is not None:
        return of_nodes
    writer = {scheduler.name_to_buf[name].defining_op_name()}
    readers = {node.get_name() for node in second.get_nodes() if _reads(node, name)}
    for pair, reason in reversed(reasons.items()):
        parts = [set(each.split("_")) for each in pair]
        if parts[0] & writer and parts[1] & readers:
            return reason
    return ""
