"""Ends the server with the editor. Key functions: watch_process, on_signal.

If an editor crashes, our stdin may stay open in another process. So the server also watches the editor's process: on Linux
with a pidfd, which becomes readable when the process ends, elsewhere by polling.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable

log = logging.getLogger(__name__)
_POLL_SECONDS = 3.0


def watch_process(pid: int, on_exit: Callable[[], None]) -> bool:
    """Calls ``on_exit`` when process ``pid`` ends; False if it can't be watched (a client in another container)."""
    loop = asyncio.get_running_loop()
    if not _exists(pid):
        # The pid may belong to another pid namespace, so the editor may be alive.
        log.warning("the editor's process %d is not visible from here; relying on end of input", pid)
        return False
    if hasattr(os, "pidfd_open"):
        try:
            descriptor = os.pidfd_open(pid)
        except OSError as error:
            log.info("no pidfd for the editor's process: %s", error)
        else:
            loop.add_reader(descriptor, _exit_once, loop, descriptor, on_exit)
            return True
    _poll(loop, pid, on_exit)
    return True


def _exists(pid: int) -> bool:
    if sys.platform == "win32":
        return False  # there, signal 0 would end it
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _exit_once(loop: asyncio.AbstractEventLoop, descriptor: int, on_exit: Callable[[], None]) -> None:
    loop.remove_reader(descriptor)
    os.close(descriptor)
    on_exit()


def _poll(loop: asyncio.AbstractEventLoop, pid: int, on_exit: Callable[[], None]) -> None:
    if _exists(pid):
        loop.call_later(_POLL_SECONDS, _poll, loop, pid, on_exit)
    else:
        on_exit()


def on_signal(stop: Callable[[], None]) -> None:
    """Calls ``stop`` on SIGTERM, SIGINT and SIGHUP, if the platform has them."""
    loop = asyncio.get_running_loop()
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is None:
            continue
        try:
            loop.add_signal_handler(number, stop)
        except (NotImplementedError, RuntimeError) as error:  # Windows, or not the main thread (a test)
            log.info("no handler for %s: %s", name, error)
