"""Start-up: importing the engine, printing the CLI's help, and the language server up to `initialized`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from statistics import median
from typing import IO, Any

from benchmarks.result import Result, Row
from benchmarks.timing import Samples, interleave_commands, user_environment

CLI = [sys.executable, "-m", "lsp_server.cli"]


def import_magpy() -> Result:
    """`import magpy_core` with its public names resolved, over `import torch`."""
    samples = interleave_commands(
        {
            "import torch": [sys.executable, "-c", "import torch"],
            "import magpy_core": [sys.executable, "-c", "import torch, magpy_core; magpy_core.compile, magpy_core.monitor"],
        },
        rounds=9,
    )
    theirs, ours = samples["import torch"], samples["import magpy_core"]
    added = 1e3 * (min(ours.cpu) - min(theirs.cpu))
    per_round = median(1e3 * (b - a) for a, b in zip(theirs.wall, ours.wall, strict=True))
    detail = f"cpu, minima; wall, median of rounds {per_round:.0f} ms; import torch {1e3 * min(theirs.wall):.0f} ms"
    return Result(
        [Row("import magpy_core: added to import torch", added, "ms", 150.0, detail)],
        {key: value.to_json() for key, value in samples.items()},
    )


def cli_help() -> Result:
    """`magpy-lsp --help` as a whole process."""
    samples = interleave_commands({"magpy-lsp --help": [*CLI, "--help"]}, rounds=9)
    wall = samples["magpy-lsp --help"].wall
    return Result(
        [Row("magpy-lsp --help", 1e3 * median(wall), "ms", 300.0, f"wall, median; min {1e3 * min(wall):.0f} ms")],
        {key: value.to_json() for key, value in samples.items()},
    )


def _send(stream: IO[bytes], message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    stream.flush()


def _response(stream: IO[bytes], wanted: int) -> dict[str, Any]:
    """Reads messages until the response to request ``wanted``."""
    while True:
        length = 0
        while (line := stream.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if not length:
            raise RuntimeError("the server closed its output before it answered")
        message: dict[str, Any] = json.loads(stream.read(length))
        if message.get("id") == wanted and "method" not in message:
            return message


def _server_session() -> float:
    """Seconds from starting the process until it responds to a request after `initialized`."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [*CLI, "server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=user_environment(),
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        _send(
            process.stdin,
            {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
        )
        answer = _response(process.stdout, 1)
        if "result" not in answer:
            raise RuntimeError(f"initialize failed: {answer}")
        _send(process.stdin, {"method": "initialized", "params": {}})
        _send(process.stdin, {"id": 2, "method": "shutdown"})
        _response(process.stdout, 2)
        took = time.perf_counter() - start
        _send(process.stdin, {"method": "exit"})
        process.wait(10)
        return took
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def server_start() -> Result:
    """`magpy-lsp server` from process start until it is initialized and responds."""
    _server_session()
    samples = Samples()
    for _ in range(7):
        samples.wall.append(_server_session())
    detail = f"wall, median; min {min(samples.wall):.2f} s"
    return Result(
        [Row("server start to initialized", median(samples.wall), "s", 1.0, detail)], {"server": samples.to_json()}
    )
