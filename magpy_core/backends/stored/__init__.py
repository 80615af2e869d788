"""Compiled graphs on disk, which are loaded without torch's compilers, and without tracing the recorded graph again.

Key functions: `key_of` (what a compiled graph depends on), `load`, `save`.
"""

from magpy_core.backends.stored.files import is_verified, load, note, note_verified, remove, save
from magpy_core.backends.stored.key import key_of

__all__ = ["is_verified", "key_of", "load", "note", "note_verified", "remove", "save"]
