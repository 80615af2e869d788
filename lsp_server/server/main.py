"""The language server's process; reserves stdio for the protocol. Key names: main, Wire."""

from __future__ import annotations

import logging
import os
import sys
from typing import BinaryIO, cast

from lsp_server.server.app import MagpyServer
from lsp_server.server.handlers import register


class Wire:
    """The client's stream. The names of headers have any case, but pygls knows only one."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.read, self.close = stream.read, stream.close

    def readline(self) -> bytes:
        """A header: messages are not read in lines."""
        line = self._stream.readline()
        name, colon, value = line.partition(b":")
        if colon and name.strip().lower() == b"content-length":
            return b"Content-Length: " + value.strip() + b"\r\n"
        return line


def main() -> int:
    """Serves LSP on stdin and stdout until the client exits. Returns the exit code required by LSP."""
    level = os.environ.get("MAGPY_LSP_LOG", "warning").upper()
    logging.basicConfig(
        stream=sys.stderr,
        level=level if level in logging.getLevelNamesMapping() else logging.WARNING,
        format="%(levelname)s %(name)s: %(message)s",
    )
    # The protocol uses private descriptors; stray prints go to stderr, and stray reads see an empty stdin.
    wire_in = os.fdopen(os.dup(0), "rb")
    wire_out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    server = MagpyServer()
    register(server)
    try:
        server.start_io(cast(BinaryIO, Wire(wire_in)), wire_out)
    finally:
        server.notebooks.close()
    return 0 if server.shutdown_requested else 1


if __name__ == "__main__":
    sys.exit(main())
