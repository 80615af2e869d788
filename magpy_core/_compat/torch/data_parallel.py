"""DistributedDataParallel, as operations: which ones its hooks run in C++ on each process.

The collectives are those of the plain module, in number, order, size and dtype, so that a process that runs a captured step
can work with one that runs in eager mode. Key type: Replica; key functions: reason_to_refuse, replica, all_reduced,
broadcast, collectives_run, group_of.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import distributed_c10d
from torch.nn.parallel import DistributedDataParallel

#: Fields that must have these values: with others, the module communicates in another way.
PLAIN_FIELDS: dict[str, Any] = {
    "find_unused_parameters": False, "static_graph": False, "gradient_as_bucket_view": False, "mixed_precision": None,
    "device_ids": None, "_delay_all_reduce_all_params": False, "_use_python_reducer": False,
}  # fmt: skip
#: Fields that decide whether it communicates in a call.
SYNCS_BUFFERS, SYNCS_GRADIENTS = "require_forward_param_sync", "require_backward_grad_sync"
HAS_BUCKETS = "_has_rebuilt_buckets"
#: The module's functions: the whole call; what is before and after the call of the module in it; and that call.
CALL = DistributedDataParallel.forward
BEFORE, AFTER = DistributedDataParallel._pre_forward, DistributedDataParallel._post_forward
NOTES_MODULE = DistributedDataParallel._inside_ddp_forward
CALLS_MODULE = (DistributedDataParallel._run_ddp_forward, inspect.unwrap(NOTES_MODULE))
#: Fields with other settings inside, and one that may be missing.
HOLDERS, BUFFER_HOOK = ("_comm_hooks", "_join_config"), "buffer_hook"
_COLLECTIVES = ("_c10d_functional", "_c10d_functional_autograd", "c10d")  # namespaces of operations


@dataclass(frozen=True, eq=False)
class Replica:
    """One process's copy of a module. ``buckets``: the parameters whose gradients are averaged together, in this order;
    ``buffers``: those that are copied together from the first process."""

    module: DistributedDataParallel
    reducer: Any
    group: str
    processes: int
    buckets: tuple[tuple[nn.Parameter, ...], ...]
    buffers: tuple[tuple[torch.Tensor, ...], ...]


def fields_read(module: DistributedDataParallel) -> list[str]:
    """The fields of ``module`` that decide how it communicates, in this version of torch."""
    names = ("forward_sync_buffers", "broadcast_buffers", "skip_all_reduce_unused_params")
    return [*PLAIN_FIELDS, SYNCS_BUFFERS, SYNCS_GRADIENTS, HAS_BUCKETS, *(n for n in names if n in vars(module))]


def is_arranged(module: DistributedDataParallel) -> bool:
    """Whether its buckets are final: it arranges them in its second call."""
    return bool(vars(module)[HAS_BUCKETS])


def copies_buffers(module: DistributedDataParallel) -> bool:
    """Whether the next call of ``module`` begins with the buffers of the first process."""
    return bool(module.will_sync_module_buffers())


def reason_to_refuse(module: DistributedDataParallel) -> str | None:
    """What about ``module`` this file can't express; None if there is nothing."""
    if type(module) is not DistributedDataParallel:
        return "it is of a subclass"
    for name, value in PLAIN_FIELDS.items():
        if vars(module).get(name, "") != value:
            return f"its `{name}` is {vars(module).get(name)!r}"
    # hooks of C++ are listed only in the logging data
    if module._comm_hooks or hasattr(module, BUFFER_HOOK) or module._get_ddp_logging_data().get("comm_hook"):
        return "it has a communication hook"
    if module._join_config.enable:
        return "it takes uneven inputs (`join`)"
    tensors = [*module.parameters(), *module.buffers()]
    if any(t.device.type != "cpu" or not t.is_contiguous() or t.layout is not torch.strided for t in tensors):
        return "it has tensors that are not contiguous or not on the CPU"
    return None


def replica(module: DistributedDataParallel) -> Replica:
    """The communication of a module that there is no reason to refuse."""
    import torch.distributed._functional_collectives  # noqa: F401 - what collectives do on fake tensors

    buckets = module.reducer._get_zeros_like_grad_buckets()
    ordered = sorted(buckets, key=lambda bucket: bucket.index())
    ignored = module.parameters_to_ignore
    buffers = [buffer for name, buffer in module.module.named_buffers() if name not in ignored]
    assign: Any = getattr(dist, "_compute_bucket_assignment_by_size")  # noqa: B009 - it is not exported
    together = assign(buffers, [int(module.broadcast_bucket_size)])[0] if buffers else []
    return Replica(
        module,
        module.reducer,
        module.process_group.group_name,
        dist.get_world_size(module.process_group),
        tuple(tuple(bucket.parameters()) for bucket in ordered),  # type: ignore[arg-type]
        tuple(tuple(buffers[i] for i in indices) for indices in together),
    )


class Idle:
    """Stands for a module's reducer for a while. ``is_due``: a call has been made whose backward pass is still to come."""

    is_due = False

    def prepare_for_forward(self) -> None:
        pass

    def prepare_for_backward(self, results: list[torch.Tensor]) -> None:
        self.is_due = True

    def _rebuild_buckets(self) -> bool:
        return False


def disable_hooks(replica: Replica) -> Idle:
    """Until :func:`restore_hooks`, calls of the module prepare no hooks: hooks that have been prepared and don't run would
    communicate in a later backward pass."""
    idle = vars(replica.module)["reducer"] = Idle()
    return idle


def restore_hooks(replica: Replica, idle: Idle) -> None:
    """Undo :func:`disable_hooks`; the hooks are prepared if they are due."""
    vars(replica.module)["reducer"] = replica.reducer
    if idle.is_due:
        replica.reducer.prepare_for_forward()
        replica.reducer.prepare_for_backward([])


def collectives_run(groups: Iterable[str]) -> float:
    """How many collectives this process has begun in ``groups``, up to now; NaN, which differs from itself, where a group
    does not count them."""
    resolve: Any = getattr(distributed_c10d, "_resolve_process_group")  # noqa: B009 - it is not exported
    try:
        return float(sum(resolve(name)._get_sequence_number_for_group() for name in groups))
    except (RuntimeError, ValueError):  # of a backend without sequence numbers; no group has this name any more
        return math.nan


def group_of(target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """The group of processes in which an operation communicates; None if it does not."""
    if target in (all_reduced, broadcast):
        return str(args[1])
    name = str(getattr(target, "_qualified_op_name", target)).replace("::", ".")
    namespace, _, operation = name.partition(".")
    if namespace not in _COLLECTIVES or operation.startswith("wait_tensor"):
        return None
    return str(kwargs.get("group_name", args[-1] if args else ""))


def all_reduced(flat: torch.Tensor, group: str) -> torch.Tensor:
    """The sum of ``flat`` over the processes of a group."""
    functional: Any = torch.ops._c10d_functional
    summed: torch.Tensor = functional.wait_tensor(functional.all_reduce(flat, "sum", group))
    return summed


def broadcast(flat: torch.Tensor, group: str) -> torch.Tensor:
    """``flat`` of the first process of a group."""
    functional: Any = torch.ops._c10d_functional
    first: torch.Tensor = functional.wait_tensor(functional.broadcast(flat, 0, group))
    return first
