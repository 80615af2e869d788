"""A mode that gets each ATen operation of a program, below autograd and in backward passes too. Key type: EveryOperation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class EveryOperation(TorchDispatchMode):
    """From ``begin`` on, ``run`` is called in place of each operation of this thread, with its overload and its arguments.
    Operations that ``run`` itself calls are not seen."""

    def __init__(self, run: Callable[[Any, Any, Any], Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._run = run

    def begin(self) -> None:
        self.__enter__()  # type: ignore[no-untyped-call]

    def end(self) -> None:
        self.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._run(func, args, kwargs or {})
