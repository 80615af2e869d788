"""Compiled graphs on disk, which are loaded without torch's compilers, and without tracing the recorded graph again.

Key functions: `key_of` (what a compiled graph depends on), `load`, `save`.
"""

from magpy_core.backends.stored.files import load, note, save
from magpy_core.backends.stored.key import key_of

__all__ = ["key_of", "load", "note", "save"]
