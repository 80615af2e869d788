"""Keeps Inductor from reading memory after it has been written over, in graphs that write what they also read.

AOTAutograd's graphs compute everything from the values that the inputs had, and write the inputs at the end. Five parts
of Inductor (2.11 to 2.15) move a read behind such a write, or into the loop that writes. Each is corrected by a rule
about memory, whatever the operations are:

- A pass replaces a copy by its source (`remove_noop_ops`). It keeps a copy of memory that is written later, also where
  another pass (`reinplace_inplaceable_ops`) may make an operation write it.
- That pass makes an operation write an input whose result is used after the input has got its last value. It does not.
- A loop that writes memory computes its values from other elements of it (`mutate_to`, `index_put_impl_`). Values that
  are computed from the memory are computed first.
- Operations on lists write one tensor before the values for the next are computed. They are all computed first.
- The scheduler merges the loop that reads memory with the loop that writes it if each iteration reads what it writes, but
  knows only the reads of a buffer by its first name, and each write gives it another (`fusable_weak_dep`). It knows all
  names.

A copy that eager mode does not make is made only where the graph would have been wrong. Reported as pytorch #198131,
#198270 and #198031. Key function: `read_before_written`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.tensor_guards import storage_key


@contextmanager
def read_before_written() -> Iterator[None]:
    """While Inductor compiles a graph: what reads memory sees what the graph's operations have left there until then. Needs
    the compile lock: it replaces functions of torch for all threads."""
    from torch._inductor import lowering, scheduler
    from torch._inductor.fx_passes import post_grad, reinplace

    places: list[tuple[Any, str, Callable[[Any], Any]]] = [
        (post_grad, "remove_noop_ops", _keeping_copies),
        (reinplace, "reinplace_inplaceable_ops_core", _keeping_results),
        (lowering, "mutate_to", _computed_first),
        (lowering, "index_put_impl_", _indexed_first),
        (scheduler.Scheduler, "fusable_weak_dep", _by_all_names),
    ]
    before = [(owner, name, vars(owner)[name], changed) for owner, name, changed in places if name in vars(owner)]
    lists = _lists_in_place(lowering)
    known = {overload: lowering.lowerings[overload] for overload in lists}
    for owner, name, original, changed in before:
        setattr(owner, name, changed(original))
    lowering.lowerings.update(lists)
    try:
        yield
    finally:
        for owner, name, original, _ in before:
            setattr(owner, name, original)
        lowering.lowerings.update(known)


# -- the pass that removes copies ----------------------------------------------------------------------------------------


def _kept(*_: Any, **__: Any) -> Any:
    """Stands for an operation in a graph while a pass must not see it."""
    raise AssertionError("only graphs name it")


def _keeping_copies(remove: Callable[[torch.fx.Graph], None]) -> Callable[[torch.fx.Graph], None]:
    def remove_noop_ops(graph: torch.fx.Graph) -> None:
        written = {key for node in graph.nodes for target in _written(node) if (key := _memory(target)) is not None}
        with _hidden([node for node in graph.nodes if written and _copied(node) in written]):
            remove(graph)

    return remove_noop_ops


@contextmanager
def _hidden(nodes: Sequence[torch.fx.Node]) -> Iterator[None]:
    """A pass in the block does not know what these nodes do, and leaves them as they are."""
    targets = {node: node.target for node in nodes}
    for node in nodes:
        node.target = _kept
    try:
        yield
    finally:
        for node, target in targets.items():
            node.target = target


def _memory(node: Any) -> Any:
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return storage_key(value) or None if isinstance(value, torch.Tensor) else None


def _copied(node: torch.fx.Node) -> Any:
    """The memory that the pass would give a node instead of its own; None if it has the same, or is not a copy."""
    from torch._inductor.fx_passes.post_grad import noop_registry

    if node.target not in noop_registry:
        return None
    memory = _memory(_source_of(node, noop_registry[node.target][1]))
    return None if memory == _memory(node) else memory


def _source_of(node: torch.fx.Node, known: Any) -> Any:
    """What the pass puts in place of a node. ``known``: the position of an argument, or a function, which takes the node's
    arguments up to torch 2.13 and the node itself in 2.15."""
    if isinstance(known, int):
        return node.args[known]
    return known(node if known.__code__.co_varnames[:1] == ("node",) else node.args)


def _written(node: torch.fx.Node) -> list[torch.fx.Node]:
    """What a node writes, or may write when it is made an operation in place."""
    from torch._inductor.fx_passes import reinplace

    target: Any = node.target
    in_place = reinplace.inplaceable_ops.get(target) or reinplace.inplaceable_foreach_ops.get(target)
    if in_place is not None:
        positions = in_place.mutated_arg
        given: Any = [node.args[i] for i in (positions if isinstance(positions, tuple) else (positions,))]
    elif isinstance(target, torch._ops.OpOverload):
        arguments = enumerate(target._schema.arguments)
        given = [node.args[i] if i < len(node.args) else node.kwargs.get(one.name) for i, one in arguments if one.is_write]
    elif isinstance(target, torch._ops.HigherOrderOperator):
        return node.all_input_nodes  # a program's own operators and kernels
    else:
        return []
    flat = [one for value in given for one in (value if isinstance(value, list | tuple) else [value])]
    return [one for one in flat if isinstance(one, torch.fx.Node)]


# -- the pass that makes operations write inputs ----------------------------------------------------------------------------


def _keeping_results(reinplace: Callable[[torch.fx.Graph], None]) -> Callable[[torch.fx.Graph], None]:
    def reinplace_inplaceable_ops_core(graph: torch.fx.Graph) -> None:
        with _hidden(_outliving(graph)):
            reinplace(graph)

    return reinplace_inplaceable_ops_core


def _outliving(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """The operations that may be made to write an input, but whose result is still used when the input gets another value,
    or is returned as a tensor of its own."""
    from torch._inductor.fx_passes.reinplace import inplaceable_foreach_ops, inplaceable_ops

    order = {node: i for i, node in enumerate(graph.nodes)}
    sharing: dict[Any, list[torch.fx.Node]] = {}
    last: dict[Any, torch.fx.Node] = {}  # what writes the memory of an input at the end of the graph
    base: dict[Any, Any] = {}  # of the memory of a result, that of an input that it may come to lie in
    found = []
    for node in graph.nodes:
        sharing.setdefault(_memory(node), []).append(node)
        if node.target is torch.ops.aten.copy_.default and node.args[0].op == "placeholder":
            last.setdefault(_memory(node.args[0]), node)
    inputs = {_memory(node) for node in graph.find_nodes(op="placeholder")} - {None}
    for node in graph.nodes:
        if node.target not in inplaceable_ops and node.target not in inplaceable_foreach_ops:
            continue
        places = [_memory(target) for target in _written(node)]
        results = [node] if _memory(node) is not None else list(node.users)
        own = [key for one in results if (key := _memory(one)) is not None]
        for place in places:
            given = place if place in inputs else base.get(place)
            if given is None or given not in last:
                continue
            base.update(dict.fromkeys(own, given))
            end = last[given]
            users = {user for key in own for one in sharing[key] for user in one.users} - {end}
            remains = _memory(end.args[1]) in own  # its result is the value that the input gets
            if any(user.op == "output" or (not remains and order[user] > order[end]) for user in users):
                found.append(node)
                break
    return found


# -- the loops that write ------------------------------------------------------------------------------------------------


def _name(value: Any) -> str | None:
    """The name of the buffer that a value is stored in, or that it is a view of."""
    from torch._inductor.ir import try_get_name

    found: str | None = try_get_name(value)
    return found


def _computed(value: Any, name: str | None) -> Any:
    """``value``, in other memory than the buffer of that name if it is computed from it."""
    from torch._inductor.ir import TensorBox
    from torch._inductor.lowering import clone

    box = value if isinstance(value, TensorBox) else TensorBox(value) if value is not None else None
    if name is None or box is None or name not in box.get_read_names():
        return value
    box.realize()
    if name in box.get_read_names():  # a view of the buffer itself
        box = clone(box)
        box.realize()
    return box


def _computed_first(mutate: Callable[..., Any]) -> Callable[..., Any]:
    def mutate_to(changed: Any, val: Any, *args: Any, **kwargs: Any) -> Any:
        return mutate(changed, _computed(val, _name(changed)), *args, **kwargs)

    return mutate_to


def _indexed_first(put: Callable[..., Any]) -> Callable[..., Any]:
    def index_put_impl_(self: Any, indices: Sequence[Any], values: Any, *args: Any, **kwargs: Any) -> Any:
        name = _name(self)
        return put(self, [_computed(index, name) for index in indices], _computed(values, name), *args, **kwargs)

    return index_put_impl_


def _reads_in_place(value: Any, place: Any, names: set[str | None]) -> bool:
    """Whether a loop may write ``value`` into ``place`` as it computes it: of the buffers of these names it reads only the
    same element of ``place``."""
    from torch._inductor.lowering import clone

    loops, own = _loop(value), _loop(clone(place))
    if loops is None or own is None:
        return False
    return {read for read in loops.get_reads() if read.name in names} <= set(own.get_reads())


def _loop(value: Any) -> Any:
    """The loop that computes a value; None if something else does."""
    from torch._inductor.ir import ComputedBuffer, Pointwise, StorageBox

    box = value.data
    data = box.data if isinstance(box, StorageBox) else None
    data = data.data if isinstance(data, ComputedBuffer) else data
    return data if isinstance(data, Pointwise) else None


def _lists_in_place(lowering: Any) -> dict[Any, Callable[..., Any]]:
    """How operations in place on lists are lowered: first all values that are computed from another tensor of the list."""

    def lowered(values_of: Callable[..., Any]) -> Callable[..., Any]:
        def write(*args: Any, **kwargs: Any) -> Any:
            values, places = values_of(*args, **kwargs), args[0]
            names = {_name(place) for place in places}
            in_loop = [_reads_in_place(value, place, names) for value, place in zip(values, places, strict=True)]
            for value, alone in zip(values, in_loop, strict=True):
                if not alone:
                    value.realize()
            written = zip(places, values, in_loop, strict=True)
            return [lowering.mutate_to(place, value, unsafe_alias=alone) for place, value, alone in written]

        write._inductor_lowering_function = True  # type: ignore[attr-defined]
        return write

    found: dict[Any, Any] = getattr(lowering, "inplaceable_foreach_ops", {})
    return {in_place: lowered(lowering.lowerings[values]) for values, in_place in found.items()}


# -- the scheduler -------------------------------------------------------------------------------------------------------


def _by_all_names(fusable: Callable[..., bool]) -> Callable[..., bool]:
    def fusable_weak_dep(self: Any, weak_dep: Any, node1: Any, node2: Any) -> bool:
        return fusable(self, weak_dep, node1, node2) and _same_places(self.mutation_real_name, weak_dep, node1, node2)

    return fusable_weak_dep


def _same_places(first_names: dict[str, str], weak_dep: Any, reader: Any, writer: Any) -> bool:
    """Whether ``reader`` reads of the buffer, under any name, only the elements that ``writer`` writes in the same
    iteration."""
    from torch._inductor.dependencies import MemoryDep, WeakDep

    real = first_names[weak_dep.mutating_buf]
    (write,) = [one for one in writer.read_writes.writes if one.name == weak_dep.mutating_buf]
    reads = [one for one in reader.read_writes.reads if first_names.get(one.name, one.name) == real]
    reads = [one for one in reads if not isinstance(one, WeakDep)]  # which only orders
    return all(isinstance(one, MemoryDep) and one.index == write.index and one.size == write.size for one in reads)
