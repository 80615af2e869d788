"""The native functions that ``os.path`` is made of, which compute with texts and ask no file system.

Key name: NATIVE_PATHS."""

from __future__ import annotations

import posix
from typing import Any, Final

NATIVE_PATHS: Final[tuple[Any, ...]] = tuple(
    getattr(posix, name) for name in ("_path_normpath", "_path_splitroot_ex") if hasattr(posix, name)
)
"""``_path_normpath`` is ``os.path.normpath`` itself from 3.14 on; 3.11 has no ``_path_splitroot_ex``."""
