"""Values that are dynamic from the first capture on: marked dimensions, counters, what schedulers set; with
``dynamic=True``, sizes and integers among the arguments.

They are added to what is learned, as if they had varied before. Key functions: may_be_dynamic, assume_dims, assume_number,
assume_momentum.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

import torch

from magpy_core._compat.cpython.counters import counted_names, counts_item, stored_keys
from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.knowledge.torch_functions import SCHEDULED, SET_BY
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording import marks
from magpy_core.recording.ledger import Learned, Ledger
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.lookup import MODULE_TABLES
from magpy_core.refgraph.source import Source

#: Tensors inside these keep their sizes: weights, running statistics, an optimizer's state.
_HOLDERS = (torch.nn.Module, torch.optim.Optimizer, torch.nn.Parameter)

_NOTHING: frozenset[str] = frozenset()


def may_be_dynamic(learned: Learned) -> bool:
    """Whether a recording may have dynamic sizes or numbers."""
    return bool(learned.dims) or learned.dynamic or (learned.marks and marks.any_marked())


def assume_dims(ledger: Ledger, source: Source, tensor: torch.Tensor) -> None:
    """Assume dynamic dimensions of a tensor from outside at its first use in the recording. Sizes 0 and 1 are static:
    operations treat them specially."""
    learned = ledger.learned
    if not may_be_dynamic(learned):
        return
    with no_torch_function():
        if tensor.layout is not torch.strided:
            return
        dims = set(marks.marked(tensor) if learned.marks else ())
        if learned.dynamic and not is_a(tensor, torch.nn.Parameter) and _is_of_arguments(ledger, source):
            dims |= set(range(tensor.dim()))
        dims = {d for d in dims if d < tensor.dim() and tensor.shape[d] > 1}
    _assume(ledger, source, dims)


def _assume(ledger: Ledger, source: Source, dims: set[int]) -> None:
    known = ledger.learned.dims.get(source.path, set())
    if dims - known:
        ledger.learned.dims[source.path] = known | dims
        ledger.learned.assumed.add(source.path)


def assume_sizes_of(ledger: Ledger, source: Source, tensor: torch.Tensor, shape: Source) -> None:
    """Assume that those sizes of a tensor vary that do in the ``shape`` of the array of which it is made."""
    with no_torch_function():
        dims = {d for d in ledger.learned.dims.get(shape.path, ()) if d < tensor.dim() and tensor.shape[d] > 1}
    _assume(ledger, source, dims)


def assume_number(ledger: Ledger, source: Source, value: object, site: MaybeSite) -> None:
    """Know that a number from outside is dynamic, before ``site`` reads it: a counter, or what a scheduler
    sets. With ``dynamic=True``, assume it of an integer among the arguments."""
    learned = ledger.learned
    if type(value) not in kinds.NUMBER_TYPES or source.path in learned.exact or source.path in learned.numbers:
        return
    if _is_counter(site) or _is_scheduled(ledger, source):
        learned.numbers.add(source.path)
    elif learned.dynamic and type(value) is int and _is_of_arguments(ledger, source):
        learned.numbers.add(source.path)
        learned.assumed.add(source.path)


def assume_momentum(ledger: Ledger, source: Source, value: tuple[Any, ...], first: Source) -> None:
    """Know the same of the ``first`` of Adam's betas, the ``value`` at ``source``, before it is read."""
    learned = ledger.learned
    if source.key == "betas" and value and type(value[0]) is float and first.path not in learned.exact:
        if _is_scheduled(ledger, source):
            learned.numbers.add(first.path)


def _is_counter(site: MaybeSite) -> bool:
    """Whether the function that reads a number counts it up, so that it is another one in the next call."""
    if site is None:
        return False
    if site.name is None:
        return counts_item(site.code, site.lineno, site.col)
    return site.name in counted_names(site.code)


def _is_scheduled(ledger: Ledger, source: Source) -> bool:
    """Whether a number is the learning rate or momentum of a group of an optimizer's parameters that a scheduler or the
    region's code sets."""
    limit = SCHEDULED.get(source.key) if type(source.key) is str else None
    if limit is None:
        return False
    nodes = ledger.refgraph.nodes.values()
    group = next((node.obj for node in nodes if node.source is source.base), None)
    return type(group) is dict and "params" in group and (limit in group or source.key in ledger.learned.scheduled)


def code_runs(ledger: Ledger, code: CodeType) -> None:
    """Know what the region's code may set in a group of an optimizer's parameters, in this call or in a later one."""
    ledger.learned.scheduled |= SET_BY.get(code, _NOTHING) or stored_keys(code).intersection(SCHEDULED)


def _is_of_arguments(ledger: Ledger, source: Source) -> bool:
    """Whether a value is reached from an argument, but not through a module, an optimizer or a parameter."""
    chain = source.chain()
    if chain[0].kind not in ("arg", "kwarg"):
        return False
    if any(s.kind == "attr" and s.key in MODULE_TABLES for s in chain):
        return False
    steps = set(map(id, chain[:-1]))
    return not any(is_a(node.obj, _HOLDERS) for node in ledger.refgraph.nodes.values() if id(node.source) in steps)
