"""The source text of ``python -c`` in ``linecache`` (private names). Key function: forget_command_source."""

from __future__ import annotations

import sys


def forget_command_source() -> None:
    """Remove the text of this process's ``-c`` from ``linecache``, where Python 3.13 stores it as the file ``<string>``.

    Tracebacks would show its lines for any code that the program executes under that name.
    """
    linecache = sys.modules.get("linecache")
    if linecache is not None:
        linecache.cache.pop("<string>", None)
        getattr(linecache, "_interactive_cache", {}).clear()  # used by later releases of 3.13
