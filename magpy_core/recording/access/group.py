"""Access: the group of the trackers of reads and writes. Key type: Access."""

from __future__ import annotations

from magpy_core.recording.access.arguments import Arguments
from magpy_core.recording.access.callbacks import Callbacks
from magpy_core.recording.access.flow import Flow
from magpy_core.recording.access.globals import Globals
from magpy_core.recording.access.items import Items
from magpy_core.recording.access.natives import Natives
from magpy_core.recording.access.operators import Operators
from magpy_core.recording.access.ports import AccessGroup
from magpy_core.recording.access.reads import Reads
from magpy_core.recording.access.texts import Texts
from magpy_core.recording.access.unobserved import UnobservedCode
from magpy_core.recording.access.writes import Writes


class Access(AccessGroup):
    """Reads and writes of the program, and of native code that it calls."""

    globals: Globals
    reads: Reads
    items: Items
    writes: Writes
    natives: Natives
    callbacks: Callbacks
    arguments: Arguments
    operators: Operators
    flow: Flow
    texts: Texts
    unobserved: UnobservedCode
