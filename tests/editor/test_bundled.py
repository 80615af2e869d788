"""What the extension brings: with it, an interpreter that has torch and nothing of MagPy serves the editor."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import lsp_server
from lsp_server.cli.docs import pages
from magpy_core import __version__
from release.bundle import LEFT_OUT, bundle
from tests.environments import torch_only
from tests.lsp.client import Client

PROGRAM = (Path(lsp_server.__file__).parent / "demo" / "train.py").read_text(encoding="utf-8")
ONLY_TORCH = """\
try:
    import rich
except ImportError:
    print("only torch")
"""
SHADOWS = ("attr", "click", "lsprotocol", "pygls", "rich")


@pytest.fixture(scope="module")
def brought(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("extension") / "bundled"
    bundle(folder)
    return folder


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return torch_only(tmp_path_factory.mktemp("torch") / "env")


def test_it_is_pure_python_and_has_licences(brought: Path) -> None:
    files = [path for path in brought.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} & {".so", ".pyd", ".dylib", ".pyc"} == set()
    described = list((brought / "libs").glob("*.dist-info"))
    assert len(described) > 5
    for package in described:
        assert any("licen" in path.name.lower() or "copying" in path.name.lower() for path in package.rglob("*")), package
    assert not any((brought / "libs" / name).exists() for name in LEFT_OUT)


def test_the_command_line(brought: Path, python: Path, tmp_path: Path) -> None:
    """Files of the program's folder shadow none of its modules."""
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('shadowed')\n")
    (tmp_path / "train.py").write_text("import torch\nimport click\n")

    def magpy(*args: str) -> subprocess.CompletedProcess[str]:
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        command = [str(python), "-P", str(brought / "magpy.py"), *args]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)

    assert magpy("--version").stdout == f"magpy-lsp {__version__}\n"
    listed = magpy("docs").stdout
    assert all(name in listed for name in pages(brought / "sources" / "lsp_server"))
    checked = magpy("check", "train.py")
    assert checked.returncode == 3 and "RuntimeError: shadowed" in checked.stderr, "the program's own modules are its own"


@pytest.mark.asyncio
async def test_the_server(brought: Path, python: Path, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(ONLY_TORCH + PROGRAM)
    client = await Client.start({"PYTHONPATH": ""}, [str(python), "-P", str(brought / "magpy.py"), "server", "--stdio"])
    client.settings = {"interpreter": str(python)}
    await client.initialize(folder=tmp_path)
    uri = client.open(path)
    result = await client.command("magpy.check", {"uri": uri})
    assert result["state"] == "done", (result["failure"], client.output("stderr")[-1500:])
    await client.diagnostics_where(uri, lambda d: [x["severity"] for x in d] == [2], "its warning")
    assert "only torch" in client.output("stdout"), "the program sees nothing of the server's packages"
    await client.stop()


@pytest.mark.asyncio
async def test_another_version_in_the_interpreter_is_named(brought: Path, python: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "magpy_core"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("__version__ = '0.0.1'\n")
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    command = [str(python), "-P", str(brought / "magpy.py"), "server"]
    client = await Client.start({"PYTHONPATH": str(other.parent)}, command)
    client.settings = {"interpreter": str(python)}
    await client.initialize(folder=tmp_path)
    result = await client.command("magpy.check", {"uri": client.open(path)})
    wanted = f"MagPy 0.0.1 is installed for {python} (Python "
    assert result["state"] == "failed" and wanted in result["summary"], result
    assert f"-m pip install magpy-lsp=={__version__}" in result["summary"]
    await client.stop()
