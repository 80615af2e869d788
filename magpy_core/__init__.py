"""MagPy: operator graphs, guards and replay code from one monitored run of a Python program.

Public names are resolved lazily so that ``import magpy_core`` costs nothing and
``magpy_core.findings`` stays importable in processes without torch.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from magpy_core.findings import Finding as Finding
    from magpy_core.products.targets.kernels import kernels as kernels
    from magpy_core.regions.api import Capture as Capture
    from magpy_core.regions.api import GraphBreak as GraphBreak
    from magpy_core.regions.api import Monitored as Monitored
    from magpy_core.regions.api import UnsupportedVersion as UnsupportedVersion
    from magpy_core.regions.api import captures as captures
    from magpy_core.regions.api import compile as compile
    from magpy_core.regions.api import disable as disable
    from magpy_core.regions.api import disabled as disabled
    from magpy_core.regions.api import mark_dynamic as mark_dynamic
    from magpy_core.regions.api import monitor as monitor
    from magpy_core.regions.api import reset as reset
    from magpy_core.regions.api import uncompile as uncompile

_API = (
    "compile", "uncompile", "disable", "disabled", "mark_dynamic", "monitor", "reset", "captures", "kernels",
    "Capture", "Monitored", "GraphBreak", "UnsupportedVersion",
)  # fmt: skip
__all__ = [*_API, "Finding", "__version__"]


def __getattr__(name: str) -> Any:
    value: Any
    if name == "UnsupportedVersion":
        from magpy_core._compat import versions

        value = versions.UnsupportedVersion
    elif name in _API:
        from magpy_core._compat import versions

        versions.check_versions()  # before anything is imported that an unknown Python or torch would break
        if name == "kernels":
            from magpy_core.products.targets import kernels

            value = kernels.kernels
        else:
            from magpy_core.regions import api

            value = getattr(api, name)
    elif name == "Finding":
        from magpy_core import findings

        value = findings.Finding
    else:
        raise AttributeError(f"module 'magpy_core' has no attribute {name!r}")
    if name != "monitor":  # a property, see _Package
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """This package's type: ``monitor`` is a public function and a subpackage, which must not hide it once imported."""

    @property
    def monitor(self) -> Any:
        return __getattr__("monitor")

    @monitor.setter
    def monitor(self, value: Any) -> None:
        """The import system binds the subpackage here; ``from magpy_core.monitor import ...`` does not need it."""


sys.modules[__name__].__class__ = _Package
