"""CallStack: the calls in progress, one typed frame each, and what becomes of their results. Key types: CallStack, Call, Consumer."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class Consumer(enum.Enum):
    """What a callee does with what Python functions return to it (a key function, ``__len__``)."""

    PYTHON = enum.auto()  # it is Python code itself: events show what it does
    PASSES = enum.auto()  # native code that passes it on as it is
    KEEPS = enum.auto()  # native code that uses it unobserved


@dataclass(slots=True)
class Call:
    """One call in progress.

    ``receive`` turns the callee's own result into what the program gets; it is dropped when the callee calls back into Python.
    ``unobserved``: what to do instead where native code made the call, so that no event shows its result.
    ``returned`` ends what was begun with the call (a node, a checkpoint), however many calls it made.
    """

    site: Any
    consumer: Consumer = Consumer.PYTHON
    receive: Callable[[Any], Any] | None = None
    unobserved: Callable[[], None] | None = None
    returned: Callable[[Any], Any] | None = None


class CallStack:
    """``torch``: the call into torch (its site and callee) that the operator recorder is expected to see next."""

    def __init__(self) -> None:
        self.frames: list[Call] = []
        self.torch: tuple[Any, Any] | None = None

    def enter(self, site: Any, consumer: Consumer) -> None:
        if self.frames:
            self.frames[-1].receive = self.frames[-1].unobserved = None
        self.frames.append(Call(site, consumer))

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

    def take_unobserved(self) -> Callable[[], None] | None:
        """A callee was called by native code: its result is not received. Gives what to do instead."""
        self.torch = None
        if not self.frames:
            return None
        call = self.frames[-1]
        unobserved, call.receive, call.unobserved = call.unobserved, None, None
        return unobserved

    def on_return(self, returned: Callable[[Any], Any]) -> None:
        self.frames[-1].returned = returned

    @property
    def consumer(self) -> Consumer | None:
        """Of the innermost call; None outside of any."""
        return self.frames[-1].consumer if self.frames else None

    def clear(self) -> None:
        self.frames.clear()
        self.torch = None
