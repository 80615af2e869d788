"""``magpy-lsp cache``: what it prints of the folder of compiled code, and that it empties it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lsp_server.cli.cache import size_text
from lsp_server.cli.main import cli


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("MAGPY_CACHE_SIZE", "3G")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    return tmp_path / "magpy" / "inductor"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["cache", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def fill(folder: Path) -> None:
    entry = folder / "aotautograd" / "key"
    entry.mkdir(parents=True)
    (entry / "graph").write_bytes(b"x" * 1536)


def test_info(folder: Path) -> None:
    assert "0 B of 3.0 GiB" in run("info")
    fill(folder)
    shown = run("info")
    assert str(folder) in shown and "1.5 KiB of 3.0 GiB" in shown and "graphs:  1" in shown and "not used" not in shown
    assert json.loads(run("info", "--format", "json")) == {
        "folder": str(folder), "size": 1536, "entries": 1, "limit": 3 << 30, "problem": "",
    }  # fmt: skip


def test_why_it_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("info")
    folder.chmod(0o777)
    assert "not used:" in run("info") and "can be written by others" in run("info")
    folder.chmod(0o700)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/elsewhere")
    assert "kept in /elsewhere" in run("info")


def test_clear(folder: Path) -> None:
    fill(folder)
    assert run("clear") == f"Removed 1.5 KiB from {folder}.\n"
    assert run("clear") == f"Removed 0 B from {folder}.\n"
    assert not [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "size, text", [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (150 << 20, "150 MiB"), (5 << 40, "5.0 TiB")]
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text
