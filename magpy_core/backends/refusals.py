"""Where a graph that a compiler refuses has what it refuses. Key type: FailedAt; key functions: failures_at, located."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch.fx

from magpy_core._compat.torch.failed_node import failed_node
from magpy_core.findings import Unsupported
from magpy_core.opgraph.places import path, place


class FailedAt(Exception):
    """Raised from an error that an operation of the graph has caused."""

    def __init__(self, node: torch.fx.Node) -> None:
        super().__init__(node.name)
        self.node = node


@contextmanager
def failures_at(node: torch.fx.Node) -> Iterator[None]:
    """What is raised inside is about ``node``."""
    try:
        yield
    except Unsupported as error:
        raise located(error, node) from error.__cause__
    except Exception as error:
        raise FailedAt(node) from error


def located(refusal: Unsupported, node: torch.fx.Node | None) -> Unsupported:
    """``refusal`` with the place of ``node`` in the program, if it has none."""
    if node is not None and refusal.location is None:
        refusal.location, refusal.path = place(node), path(node)
    return refusal


def node_of(error: Exception) -> torch.fx.Node | None:
    """The operation that has caused ``error``; None: that is not known."""
    return error.node if isinstance(error, FailedAt) else failed_node(error)
