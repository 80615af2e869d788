"""Ending with the editor. Key functions: watch_process, on_signal.

An editor that crashes may leave our stdin open in another process, so end of input is not enough: its process is
watched as well. On Linux a pidfd becomes readable when the process ends; elsewhere it is looked for now and then.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable

import psutil

log = logging.getLogger(__name__)
_POLL_SECONDS = 3.0


def watch_process(pid: int, gone: Callable[[], None]) -> bool:
    """Call ``gone`` when process ``pid`` ends; False when it can't be watched (a client in another container)."""
    loop = asyncio.get_running_loop()
    if not psutil.pid_exists(pid):
        # The number may belong to another pid namespace, so this is no proof of a dead editor.
        log.warning("the editor's process %d is not visible from here; relying on end of input", pid)
        return False
    if hasattr(os, "pidfd_open"):
        try:
            descriptor = os.pidfd_open(pid)
        except OSError as error:
            log.info("no pidfd for the editor's process: %s", error)
        else:
            loop.add_reader(descriptor, _gone_once, loop, descriptor, gone)
            return True
    _poll(loop, pid, gone)
    return True


def _gone_once(loop: asyncio.AbstractEventLoop, descriptor: int, gone: Callable[[], None]) -> None:
    loop.remove_reader(descriptor)
    os.close(descriptor)
    gone()


def _poll(loop: asyncio.AbstractEventLoop, pid: int, gone: Callable[[], None]) -> None:
    if psutil.pid_exists(pid):
        loop.call_later(_POLL_SECONDS, _poll, loop, pid, gone)
    else:
        gone()


def on_signal(stop: Callable[[], None]) -> None:
    """Call ``stop`` on SIGTERM, SIGINT and SIGHUP, where the platform has them."""
    loop = asyncio.get_running_loop()
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is None:
            continue
        try:
            loop.add_signal_handler(number, stop)
        except (NotImplementedError, RuntimeError) as error:  # Windows, or not the main thread (a test)
            log.info("no handler for %s: %s", name, error)
