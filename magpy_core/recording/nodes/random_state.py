"""RandomState: TODO."""

from __future__ import annotations

import inspect
import sys
import types
from typing import TYPE_CHECKING, Any

import torch
import torch.fx
import torch.utils.checkpoint

from magpy_core.monitor.record import is_own_file
from magpy_core.opgraph.made import (
    keep_random_state,
    put_random_state,
    set_seed,
)
from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Ledger
from magpy_core.recording.pauses import Pauses
from magpy_core.refgraph.kinds import is_a

if TYPE_CHECKING:
    from magpy_core.recording.groups import Nodes

_FILE = torch.utils.checkpoint.__file__


_FORK_RNG = inspect.unwrap(torch.random.fork_rng).__code__


class RandomState:
    """TODO."""

    def __init__(self, ledger: Ledger, journal: Journal, pauses: Pauses, nodes: Nodes) -> None:
        self.ledger = ledger
        self.journal = journal
        self.pauses = pauses
        self.nodes = nodes

    def frame(self, frame: Any) -> bool:
        """The state that ``checkpoint`` keeps for its second run is no part of what the region computes."""
        caller: types.FrameType | None = sys._getframe(1)
        while caller is not None and is_own_file(caller.f_code.co_filename):
            caller = caller.f_back
        if self.nodes.checkpoints._begun and caller is not None and caller.f_code.co_filename == _FILE:
            return False
        return super().random_state(frame)

    def call(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A function of torch.random: seeding and putting a state back are operations of the graph, on the CPU's stream."""
        if self.ledger.ops.op_depth or self.nodes.one_node.active is not None:
            return
        name = fn.__name__
        values = (*args, *kwargs.values())
        if torch.cuda.is_initialized():
            known = False  # the streams of the devices are set as well
        elif name == "manual_seed" and len(values) == 1 and type(values[0]) is int:
            known = True
            self.nodes.one_node.apply(site, set_seed, values, {}, void=True)
            self.pauses.during_call()
        elif name == "get_rng_state" and not values:
            known = True
            self.nodes.one_node.apply(site, keep_random_state, (), {})
        elif name == "set_rng_state" and len(values) == 1 and is_a(values[0], torch.Tensor):
            known = True
            self.nodes.one_node.apply(site, put_random_state, values, {})
        else:
            known = name == "fork_rng"  # its two steps are seen when it takes them
        if not known:
            self.journal.refuse("MP106", f"`torch.{name}` reads or sets a random stream inside the region.", site=site)
        elif name != "fork_rng":
            self._random_state_set(site)

    def frame(self, frame: Any) -> bool:
        """A frame of torch.random that no call event announced: ``fork_rng`` takes the state, and puts it back."""
        if self.ledger.ops.op_depth:
            return False
        name = frame.f_code.co_name
        if name == "fork_rng":
            return False
        caller: types.FrameType | None = sys._getframe(1)
        while caller is not None and is_own_file(caller.f_code.co_filename):
            caller = caller.f_back
        forking = caller is not None and caller.f_code is _FORK_RNG and not torch.cuda.is_initialized()
        if name == "get_rng_state" and forking:
            self._forked.append((self.ledger.ops.graph.call_function(keep_random_state), id(caller)))
        elif name == "set_rng_state" and forking and self._forked and self._forked[-1][1] == id(caller):
            self.ledger.ops.graph.call_function(put_random_state, (self._forked.pop()[0],))
        else:
            self.journal.refuse("MP106", f"`torch.{name}` reads or sets a random stream inside the region.")
            return False
        self._random_state_set(self.journal.site)
        return False
