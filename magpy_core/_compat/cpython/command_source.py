"""What ``python -c`` leaves behind (private names of ``linecache``). Key function: forget_command_source."""

from __future__ import annotations

import sys


def forget_command_source() -> None:
    """Take the text of this process's ``-c`` out of ``linecache``, where Python 3.13 keeps it as the file ``<string>``.

    Tracebacks would show its lines for whatever the program executes under that name.
    """
    linecache = sys.modules.get("linecache")
    if linecache is not None:
        linecache.cache.pop("<string>", None)
        getattr(linecache, "_interactive_cache", {}).clear()  # where later releases of 3.13 keep it
