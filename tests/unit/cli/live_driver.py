"""Runs a program as `magpy-lsp run` does, with messages that the test sends, and without the engine.

Usage: ``python -m tests.unit.cli.live_driver MESSAGES PROGRAM [OPTIONS]``; MESSAGES is a FIFO of the runner's messages.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator

from lsp_server.cli.follow import Runs
from lsp_server.cli.main import cli
from lsp_server.cli.settings import resolve
from magpy_core.findings import Report
from magpy_core.runner.handle import _output_target
from magpy_core.runner.protocol import Decoder, Message
from magpy_core.runner.request import Outcome, RunRequest


class Handle:
    """A run whose messages are those of a FIFO, until it is closed and the program has ended."""

    def __init__(self, request: RunRequest, program: str, messages: str) -> None:
        self._messages = open(messages, "rb", buffering=0)  # before the program starts, whose words the test waits for
        out, err = (_output_target(sink) for sink in (request.stdout, request.stderr))
        command = [sys.executable, program]
        self._process = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)
        self.outcome = Outcome("ok", 0, None, "", Report(request.entrypoint))

    def __iter__(self) -> Iterator[Message]:
        decoder = Decoder()
        with self._messages:
            while True:
                # As the runner does: a signal that comes just before a wait is handled after it, so none is endless.
                if select.select([self._messages], [], [], 0.1)[0]:
                    if not (data := self._messages.read(4096)):
                        break
                    yield from decoder.feed(data)
        self._process.wait()

    def interrupt(self) -> None:
        os.killpg(self._process.pid, signal.SIGINT)

    def cancel(self) -> None:
        self._process.kill()

    def suspend(self) -> None:
        os.killpg(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.killpg(self._process.pid, signal.SIGCONT)

    def resized(self) -> None:
        os.killpg(self._process.pid, signal.SIGWINCH)


def main(messages: str, program: str, *options: str) -> None:
    params = cli.commands["run"].make_context("run", [*options, program]).params
    Runs(resolve("run", [], params), lambda request, _: Handle(request, program, messages)).follow()
    print("the report")


if __name__ == "__main__":
    main(*sys.argv[1:])
