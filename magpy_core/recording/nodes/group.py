"""Nodes: the group of the trackers of calls that become one node. Key type: Nodes."""

from __future__ import annotations

from magpy_core.recording.nodes.caches import Caches
from magpy_core.recording.nodes.checkpoints import Checkpoints
from magpy_core.recording.nodes.constructors import Constructors
from magpy_core.recording.nodes.modes import Modes
from magpy_core.recording.nodes.one_node import OneNode
from magpy_core.recording.nodes.parallel import ParallelCalls
from magpy_core.recording.nodes.random_state import RandomState
from magpy_core.recording.nodes.scripts import Scripts


class Nodes:
    """Calls that become one node of the graph, or that mark nodes."""

    one_node: OneNode
    caches: Caches
    constructors: Constructors
    scripts: Scripts
    checkpoints: Checkpoints
    modes: Modes
    random_state: RandomState
    parallel: ParallelCalls
