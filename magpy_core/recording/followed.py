"""Followed: generators whose values native code uses up at once: `sum(x for ...)`, `", ".join(...)`. Key type: Followed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType, GeneratorType
from typing import Any

from magpy_core.recording.tracker import Tracker


@dataclass(eq=False)
class _Generator:
    """``values``: what it has yielded, of these ``types``."""

    frame: FrameType
    types: frozenset[type]
    values: list[Any] = field(default_factory=list)


class Followed(Tracker):
    """Values of such generators have not escaped: what native code makes of all of them is known."""

    _open: list[_Generator] = field(default_factory=list, init=False)

    def follow(
        self, generator: GeneratorType[Any, Any, Any], types: frozenset[type], finish: Callable[[list[Any], Any], Any]
    ) -> None:
        """The call that is about to begin uses ``generator`` up. ``finish`` gets its values of these ``types``, and the
        result; it returns the program's."""
        if generator.gi_frame is None:
            return
        one = _Generator(generator.gi_frame, types)
        self._open.append(one)

        def returned(result: Any) -> Any:
            self._open.remove(one)
            return finish(one.values, result)

        self.context.stack.on_return(returned)

    def takes(self, frame: FrameType | None, value: Any) -> bool:
        """Whether ``frame`` yields a value to a call that uses it up."""
        for one in self._open:
            if one.frame is frame and type(value) in one.types:
                one.values.append(value)
                return True
        return False

    def __bool__(self) -> bool:
        return bool(self._open)
