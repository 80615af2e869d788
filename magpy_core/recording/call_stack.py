"""CallStack: the calls in progress, one typed frame each, and what becomes of their results.

Key types: CallStack, Call, Consumer.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from magpy_core.opgraph.scalars import ScalarTable, Sym


class Consumer(enum.Enum):
    """What a callee does with what Python functions return to it (a key function, ``__len__``)."""

    PYTHON = enum.auto()  # it is Python code itself: events show what it does
    PASSES = enum.auto()  # native code that passes it on as it is
    KEEPS = enum.auto()  # native code that uses it unobserved


@dataclass(slots=True)
class Call:
    """One call in progress.

    ``number_of`` is the tensor whose number the call reads (``x.item()``), until it has been read.
    ``receive`` turns the callee's own result into what the program gets; a callback into Python drops it.
    ``unobserved``: what to do instead where native code makes the call, so that no event shows its result.
    ``returned`` ends what was begun with the call (a node, a checkpoint), however many calls it made.
    """

    site: Any
    consumer: Consumer
    number_of: torch.Tensor | None = None
    receive: Callable[[Any], Any] | None = None
    unobserved: Callable[[], None] | None = None
    returned: Callable[[Any], Any] | None = None


class TensorLength:
    """Receives ``len(tensor)``: native code makes a number of its own, so the copy that carries the symbol goes out here."""

    def __init__(self, scalars: ScalarTable) -> None:
        self._scalars = scalars
        self.sym: Sym | None = None

    def __call__(self, result: Any) -> Any:
        return result if self.sym is None or type(result) is not int else self._scalars.bind(result, self.sym)


class CallStack:
    """``torch``: the call into torch (its site and callee) that the operator recorder is expected to see next."""

    def __init__(self) -> None:
        self.frames: list[Call] = []
        self.torch: tuple[Any, Any] | None = None

    def enter(self, site: Any, consumer: Consumer, number_of: torch.Tensor | None = None) -> None:
        if self.frames:
            self.frames[-1].receive = self.frames[-1].unobserved = None
        self.frames.append(Call(site, consumer, number_of))

    def leave(self, site: Any) -> Call | None:
        """The call at ``site`` has returned; calls above it left by an exception."""
        for i in range(len(self.frames) - 1, -1, -1):
            if self.frames[i].site is site:
                call = self.frames[i]
                del self.frames[i:]
                return call
        return None

    def expect(self, receive: Callable[[Any], Any] | None, unobserved: Callable[[], None] | None = None) -> None:
        """What becomes of the result of the call that is about to run."""
        if self.frames:
            self.frames[-1].receive, self.frames[-1].unobserved = receive, unobserved

    @property
    def expects(self) -> bool:
        return bool(self.frames) and self.frames[-1].receive is not None

    def on_return(self, returned: Callable[[Any], Any]) -> None:
        self.frames[-1].returned = returned

    def reads_number_of(self, tensor: torch.Tensor) -> bool:
        """Whether the number that is being read from ``tensor`` goes to the program itself, by the call in progress. Other
        native code (``math.sqrt(t)``, ``"%d" % t``) would take it where no event follows it."""
        call = self.frames[-1] if self.frames else None
        if call is None or call.number_of is not tensor:
            return False
        call.number_of = None
        return True

    @property
    def consumer(self) -> Consumer | None:
        """Of the innermost call; None outside of any."""
        return self.frames[-1].consumer if self.frames else None
