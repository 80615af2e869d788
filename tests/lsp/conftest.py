"""Fixtures: a language server, and a laboratory in which the user's Python does what a scenario says."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from tests.lsp.client import Client
from tests.lsp.spare import Nursery

SOURCE = Path(__file__).with_name("fake_worker.py")
PROGRAM = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        print("π 🙂", x); y = x.sum().item()
        return y


if __name__ == "__main__":
    net = Net()
    net(torch.ones(3))
"""


class Lab:
    """A folder with a program, and an interpreter that plays ``scenario``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.machine = folder / "machine"
        self.machine.mkdir()
        self.python = self.machine / "python"
        self.python.write_text(f"#!{sys.executable}\n{SOURCE.read_text()}")
        self.python.chmod(0o755)
        self.program = folder / "train.py"
        self.program.write_text(PROGRAM, encoding="utf-8")

    def scenario(self, text: str) -> None:
        (self.machine / "scenario.py").write_text(textwrap.dedent(text), encoding="utf-8")

    def gate(self, name: str) -> None:
        os.mkfifo(self.machine / f"gate.{name}")

    def open_gate(self, name: str) -> None:
        with open(self.machine / f"gate.{name}", "w"):
            pass

    def noted(self, name: str) -> str | None:
        path = self.machine / name
        return path.read_text() if path.exists() else None

    @property
    def request(self) -> dict[str, Any]:
        text = self.noted("request.json")
        assert text is not None, "the worker was never started"
        request = json.loads(text)
        assert isinstance(request, dict)
        return request

    def processes(self) -> list[int]:
        """Processes of this laboratory that are alive."""
        marker = str(self.machine)
        found = []
        for process in psutil.process_iter(["pid", "cmdline", "status"]):
            line = process.info["cmdline"] or []
            if process.info["status"] != psutil.STATUS_ZOMBIE and any(marker in part for part in line):
                found.append(process.info["pid"])
        return found


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest_asyncio.fixture
async def server(nursery: Nursery) -> AsyncIterator[Client]:
    """A server process that was not initialized yet."""
    client = Client(await nursery.server())
    try:
        yield client
    finally:
        await client.stop()


@pytest_asyncio.fixture
async def client(server: Client, lab: Lab) -> Client:
    """A server initialized as VS Code does, that runs programs with the laboratory's Python."""
    server.settings = {"interpreter": str(lab.python)}
    await server.initialize(folder=lab.folder)
    return server
