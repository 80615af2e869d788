"""The operator recorder's view of the recording that it is a part of. Key types: Host, Finish."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
import torch.fx

from magpy_core.opgraph.scalars import Sym
from magpy_core.refgraph.source import Source
from magpy_core.refgraph.source_table import SourceTable

#: Records a torch call after it has run. Its arguments were converted before the call; takes the result and returns what the
#: program gets.
Finish = Callable[[Any], Any]


class Host(Protocol):
    """What a recording provides: sources of outside tensors, guards, decisions and refusals."""

    graph_incomplete: bool

    @property
    def sources(self) -> SourceTable: ...
    @property
    def site(self) -> Any: ...
    @property
    def is_given_up(self) -> bool:
        """Whether the recording is refused or skipped: what is left of it runs exactly as in eager mode."""

    @property
    def call_keeps_state(self) -> bool:
        """Whether the call that is one node keeps state between calls, so that it can't be repeated on fake tensors."""

    def paused(self) -> bool: ...
    def branch(self, sym: Sym, outcome: Any, what: str, /) -> None: ...
    def escape(self, sym: Sym, site: Any, /) -> None: ...
    def gives_number_to_program(self, tensor: torch.Tensor, /) -> bool: ...
    def shows_number(self, tensor: torch.Tensor, /) -> bool:
        """Whether the number that is being read from ``tensor`` only becomes part of a text that varies."""

    def show_number(self, tensor: torch.Tensor, number: Any, /) -> None:
        """The text shows ``number``, which has a symbol."""

    def is_plain_array(self, value: Any, /) -> bool: ...
    def share_array(self, array: Any, /) -> None: ...
    def array_made(self, node: torch.fx.Node, tensor: torch.Tensor, array: Any, /) -> None: ...
    def gives_tensor(self, value: Any, /) -> bool:
        """Whether this is an array of which a tensor can be made before the graph runs."""

    def index_of_array(self, value: Any, /) -> torch.Tensor | None:
        """An input of the graph with the same indices as this array of them; None if it is none, or can't be one."""

    def tensor_of_array(self, fn: Any, array: Any, options: dict[str, Any], tensor: Any, /) -> Any: ...
    def refuse(self, code: str, message: str, *, hint: str = "", site: Any = None) -> None: ...
    def begin(self, step: Callable[..., Any], *args: Any) -> Any:
        """The result of ``step``; None if it failed, which refuses the capture."""

    def finish(self, pending: Finish | None, result: Any) -> Any:
        """What the program gets for ``result``: ``result`` itself if a step failed."""

    def torch_call_started(self) -> None: ...
    def operation_raised(self, name: str) -> None: ...
    def name_result(self, result: Any) -> None:
        """Name the tensors of a call without a node in the graph, so that later operations are not refused for them."""

    def annotate(self, node: torch.fx.Node, result: Any) -> None: ...

    def source_of_outside(self, tensor: torch.Tensor) -> Source: ...
    def guard_field(self, source: Source, tensor: torch.Tensor, name: str, value: Any) -> None: ...
    def guard_hooks(self, source: Source, tensor: torch.Tensor) -> tuple[Callable[..., Any], ...]:
        """The hooks of a tensor from outside, guarded with all that they read. Raises Unsupported where that is not
        possible."""

    def guard_hook(self, hook: Any) -> None:
        """Guard all that a hook reads besides its argument. Raises Unsupported where that is not possible."""

    def guard_setting(self, getter: Callable[[], Any], value: Any) -> None:
        """Guard on ``getter()``, a function of torch, returning ``value``."""

    def guard_contents(self, container: Any) -> None: ...
    def guard_offset(self, source: Source, value: int) -> None: ...
    def tensor_written(self, tensor: torch.Tensor, source: Source) -> None: ...
    def field_written(self, tensor: torch.Tensor, name: str, value: Any) -> None: ...
    def number_at_entry(self, source: Source, number: int) -> int:
        """What the program gets for the number in a tensor from outside, which guards read at each call."""

    def tensor_length(self, number: Any) -> Any: ...
