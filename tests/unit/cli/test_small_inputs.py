"""Inputs that are legal and rare, or wrong in a rare way: none ends in a traceback."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from lsp_server.config import ConfigError, parse
from lsp_server.entrypoints import problem_of_variable
from lsp_server.features.documents import path_of
from lsp_server.server.main import Wire


@pytest.mark.parametrize("uri", ["file:train.py", "file:./a/train.py", "file:///a%00b.py", "untitled:Untitled-1", "file:"])
def test_uris_that_name_no_file(uri: str) -> None:
    assert path_of(uri) is None


def test_uris_of_files() -> None:
    assert path_of("file:///a/b%20c.py") == "/a/b c.py"


@pytest.mark.parametrize("value", ["[" * 20_000 + "]" * 20_000, "{a=" * 20_000 + "1" + "}" * 20_000])
def test_deeply_nested_toml(value: str) -> None:
    with pytest.raises(ConfigError, match="too deeply"):
        parse(Path("pyproject.toml"), f"[tool.magpy]\nargs = {value}\n")


@pytest.mark.parametrize("header", [b"content-length: 12\r\n", b"CONTENT-LENGTH:12\r\n", b"Content-Length:  12 \r\n"])
def test_headers_of_any_case(header: bytes) -> None:
    wire = Wire(io.BytesIO(header + b"content-type: x\r\n\r\n" + b"content-length: 1"))
    assert [wire.readline() for _ in range(3)] == [b"Content-Length: 12\r\n", b"content-type: x\r\n", b"\r\n"]
    assert wire.read(17) == b"content-length: 1"


def test_environment_variables() -> None:
    assert problem_of_variable("A", "b=c") is None
    assert [bool(problem_of_variable(*pair)) for pair in (("A=B", ""), ("", "x"), ("A\0", ""), ("A", "\0"))] == [True] * 4
