"""Language servers for tests that are not about their start: forked off a process that has imported everything.

An ordinary start takes 0.9 s of processor time, nearly all of it imports, and a hundred tests want a server of their own.
``Nursery`` starts this file as a process; every server is forked off that, twice: the process between waits for it and
writes its exit status into a pipe. Each server is a process of its own, with descriptors and signal handlers as usual.
Tests of a server's start, end and environment start an ordinary one (``Client.start``). Key types: Nursery, Spare.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Spare:
    """The part of ``asyncio.subprocess.Process`` that tests use, for a server that was forked."""

    def __init__(
        self,
        pid: int,
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
        stderr: asyncio.StreamReader,
        status: asyncio.StreamReader,
    ) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.returncode: int | None = None
        self._end = asyncio.create_task(self._watch(status))

    async def wait(self) -> int:
        return await asyncio.shield(self._end)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    async def _watch(self, status: asyncio.StreamReader) -> int:
        self.returncode = struct.unpack("i", await status.readexactly(4))[0]
        return self.returncode


class Nursery:
    """The process that servers are forked off."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    async def server(self) -> Spare:
        """A server that was not initialized yet."""
        pipes = [os.pipe() for _ in range(4)]
        ours = [pipes[0][1], *(read for read, _ in pipes[1:])]
        theirs = [pipes[0][0], *(write for _, write in pipes[1:])]
        socket.send_fds(self._socket, [b"."], theirs)
        for fd in theirs:
            os.close(fd)
        (pid,) = struct.unpack("i", await asyncio.to_thread(self._socket.recv, 4))
        stdout, stderr, status = [await _reader(fd) for fd in ours[1:]]
        return Spare(pid, await _writer(ours[0]), stdout, stderr, status)

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


async def _reader(fd: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=1 << 26)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb", 0))
    return reader


async def _writer(fd: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(fd, "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _reap(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(requests: socket.socket) -> int:
    """Fork a server for every four descriptors that come; ends with the other side."""
    from lsp_server.server.main import main  # here: tests import this file for the other side only

    signal.signal(signal.SIGCHLD, _reap)
    while True:
        _, fds, _, _ = socket.recv_fds(requests, 1, 4)
        if not fds:
            return 0
        if os.fork() == 0:
            break
        for fd in fds:
            os.close(fd)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        requests.close()
        for number, fd in enumerate(fds[:3]):
            os.dup2(fd, number)
        for fd in fds:
            os.close(fd)
        return main()
    requests.send(struct.pack("i", pid))
    for fd in fds[:3]:
        os.close(fd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(fds[3], struct.pack("i", status))
    os._exit(0)


if __name__ == "__main__":
    sys.exit(_serve(socket.socket(fileno=int(sys.argv[1]))))
