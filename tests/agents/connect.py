"""A client that starts the server, and edits of a fix applied to a file. Key functions: connected, call, apply."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

COMMAND = [sys.executable, "-m", "lsp_server.cli", "mcp"]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}


@asynccontextmanager
async def connected(folder: Path, mode: str = "auto") -> AsyncIterator[Client]:
    """A client of a server that was started in ``folder``. ``mode``: how the protocol's version is negotiated."""
    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=environment(), cwd=folder)
    async with Client(parameters, mode=mode) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a tool, which is the same as its text."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error and result.structured_content is not None, result.content
    (text,) = result.content
    if tool != "explain":
        assert json.loads(text.text) == result.structured_content  # type: ignore[union-attr]
    return dict(result.structured_content)


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Why a tool refused the call."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]


def apply(fix: dict[str, Any]) -> None:
    """Applies the edits of a fix as the answer's schema describes them."""
    for edit in sorted(fix["edits"], key=lambda one: one["range"]["start"]["line"], reverse=True):
        file = Path(edit["file"])
        text = file.read_bytes().decode()
        lines = text.splitlines(keepends=True)
        starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
        first, last = (starts[edit["range"][end]["line"]] + edit["range"][end]["character"] for end in ("start", "end"))
        assert text[first:last] == edit["old_text"]
        file.write_bytes((text[:first] + edit["new_text"] + text[last:]).encode())
