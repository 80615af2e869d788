"""The operator recorder's view of the recording that it is a part of. Key types: Host, Pending."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import torch
import torch.fx

from magpy_core.opgraph.scalars import Sym
from magpy_core.refgraph.source import Source, SourceTable

if TYPE_CHECKING:
    from magpy_core.opgraph.operator_graph import OperatorGraph


class Pending(Protocol):
    """A torch call that is about to run, its arguments converted while they have their entry state."""

    def finish(self, result: Any) -> Any:
        """Record the call, which gave ``result``; returns what the program gets."""


class Host(Protocol):
    """The recording's side: sources of outside tensors, guards, decisions and refusals."""

    graph_incomplete: bool
    branch: Callable[[Sym, Any, str], None]
    escape: Callable[[Sym, Any], None]
    paused: Callable[[], bool]
    is_plain_array: Callable[[Any], bool]
    share_array: Callable[[Any], None]
    gives_number_to_program: Callable[[torch.Tensor], bool]
    sources: SourceTable

    @property
    def ops(self) -> OperatorGraph: ...
    @property
    def site(self) -> Any: ...
    @property
    def call_keeps_state(self) -> bool:
        """Whether the call that is one node keeps something between calls, so that it can't be repeated on fakes."""

    def refuse(self, code: str, message: str, *, hint: str = "", site: Any = None) -> None: ...
    def begin(self, step: Callable[..., Pending], *args: Any) -> Pending | None:
        """What ``step`` prepares; None where it failed, which refuses the capture."""

    def finish(self, pending: Pending | None, result: Any) -> Any:
        """What the program gets of ``result``: ``result`` itself where a step failed."""

    def torch_call_started(self) -> None: ...
    def operation_raised(self, name: str) -> None: ...
    def name_result(self, result: Any) -> None:
        """Name the tensors of a call without a node in the graph, so that later operations are not refused for them."""

    def annotate(self, node: torch.fx.Node, result: Any) -> None: ...

    def source_of_outside(self, tensor: torch.Tensor) -> Source: ...
    def guard_field(self, source: Source, tensor: torch.Tensor, name: str, value: Any) -> None: ...
    def guard_contents(self, container: Any) -> None: ...
    def guard_offset(self, source: Source, value: int) -> None: ...
    def tensor_written(self, tensor: torch.Tensor, source: Source) -> None: ...
    def field_written(self, tensor: torch.Tensor, name: str, value: Any) -> None: ...

    def size_read(self, tensor: torch.Tensor, what: str, result: Any, args: tuple[Any, ...]) -> Any: ...
    def layout_read(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None: ...
    def hold_sizes(self, tensors: list[torch.Tensor]) -> None: ...
    def guard_shape_path(self, node: torch.fx.Node) -> None: ...
