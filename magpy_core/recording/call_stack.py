"""CallStack: the calls in progress, and the handlers of their results.

Key types: CallStack, Call, Consumer.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from magpy_core.monitor.events import MaybeSite
from magpy_core.opgraph.scalars import ScalarTable, Sym


class Consumer(enum.Enum):
    """How a callee uses the results of Python functions that it calls (a key function, ``__len__``)."""

    PYTHON = enum.auto()  # it is Python code: events show the use
    PASSES = enum.auto()  # native code that returns the result unchanged
    KEEPS = enum.auto()  # native code that uses the result unobserved


@dataclass(slots=True)
class Call:
    """One call in progress.

    ``number_of`` is the tensor whose number the call reads (``x.item()``), until it has been read.
    ``receive`` converts the callee's result to the program's; a callback into Python resets it.
    ``unobserved`` is called instead if native code makes the call, so that no event shows its result.
    ``returned`` ends what began with the call (a node, a checkpoint), even if the call made others.
    """

    site: MaybeSite
    consumer: Consumer
    number_of: torch.Tensor | None = None
    receive: Callable[[Any], Any] | None = None
    unobserved: Callable[[], None] | None = None
    returned: Callable[[Any], Any] | None = None


class TensorLength:
    """Receives ``len(tensor)``: native code creates a new number, replaced here by a copy with the symbol."""

    def __init__(self, scalars: ScalarTable) -> None:
        self._scalars = scalars
        self.sym: Sym | None = None

    def __call__(self, result: Any) -> Any:
        return result if self.sym is None or type(result) is not int else self._scalars.bind(result, self.sym)


class CallStack:
    """``torch``: the call into torch (its site and callee) that the operator recorder must see next."""

    def __init__(self) -> None:
        self.frames: list[Call] = []
        self.torch: tuple[Any, Any] | None = None

    def enter(self, site: MaybeSite, consumer: Consumer, number_of: torch.Tensor | None = None) -> None:
        if self.frames:
            self.frames[-1].receive = self.frames[-1].unobserved = None
        self.frames.append(Call(site, consumer, number_of))

    def leave(self, site: MaybeSite) -> Call | None:
        """The call at ``site`` has returned; calls above it ended with an exception."""
        for i in range(len(self.frames) - 1, -1, -1):
            if self.frames[i].site is site:
                call = self.frames[i]
                del self.frames[i:]
                return call
        return None

    def raised(self, site: MaybeSite) -> None:
        """A frame has caught an exception at ``site``: the native call that it was making has ended."""
        call = self.frames[-1] if self.frames else None
        if call is not None and site is not None and call.site is not None and call.site.code is site.code:
            if call.consumer is not Consumer.PYTHON and call.returned is None:
                self.frames.pop()

    def expect(self, receive: Callable[[Any], Any] | None, unobserved: Callable[[], None] | None = None) -> None:
        """Set the handlers for the result of the call that is about to run."""
        if self.frames:
            self.frames[-1].receive, self.frames[-1].unobserved = receive, unobserved

    @property
    def expects(self) -> bool:
        return bool(self.frames) and self.frames[-1].receive is not None

    def on_return(self, returned: Callable[[Any], Any]) -> None:
        self.frames[-1].returned = returned

    def reads_number_of(self, tensor: torch.Tensor) -> bool:
        """Whether the call in progress returns the number that is being read from ``tensor`` to the program. Other native
        code (``math.sqrt(t)``, ``"%d" % t``) would use it unobserved."""
        call = self.frames[-1] if self.frames else None
        if call is None or call.number_of is not tensor:
            return False
        call.number_of = None
        return True

    @property
    def consumer(self) -> Consumer | None:
        """The consumer of the innermost call; None if there is no call."""
        return self.frames[-1].consumer if self.frames else None
