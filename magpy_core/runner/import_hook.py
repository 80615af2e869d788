"""Acts when the program imports a module. Key type: ImportHook."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any

from magpy_core._compat.cpython.collector import collector_paused


class ImportHook:
    """A meta path finder that calls ``then`` once, when ``module`` has been imported."""

    def __init__(self, then: Callable[[], None], module: str = "torch") -> None:
        self._then = then
        self._module = module

    def install(self) -> None:
        if self._module in sys.modules:
            self._then()
        else:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        loader: Any = spec.loader
        run = loader.exec_module

        def exec_module(module: Any) -> None:
            del loader.exec_module
            with collector_paused():
                run(module)
            self._then()

        loader.exec_module = exec_module
        return spec
