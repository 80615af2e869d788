"""Reads the user's source files for excerpts and comments; never raises. Key type: Sources; key function: is_library."""

from __future__ import annotations

import io
import tokenize
from dataclasses import dataclass, field


def decode(raw: bytes) -> str:
    """Source text in the encoding that its first lines declare; bytes that can't be decoded become U+FFFD."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    except SyntaxError:
        encoding = "utf-8"
    text = raw.decode(encoding, errors="replace").removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_library(path: str) -> bool:
    """Whether a file is of an installed package."""
    parts = path.replace("\\", "/").split("/")
    return "site-packages" in parts or "dist-packages" in parts


@dataclass
class Sources:
    """Texts of files by path, each read once. ``None``: the file does not exist or is not readable."""

    _texts: dict[str, str | None] = field(default_factory=dict)

    def text(self, file: str) -> str | None:
        if file not in self._texts:
            self._texts[file] = self._read(file)
        return self._texts[file]

    def line(self, file: str, number: int) -> str | None:
        """The 0-based line ``number`` without its line end. As in Python, only newlines end a line."""
        text = self.text(file)
        lines = text.split("\n") if text is not None else []
        return lines[number] if 0 <= number < len(lines) else None

    @staticmethod
    def _read(file: str) -> str | None:
        try:
            with open(file, "rb") as stream:
                return decode(stream.read())
        except (OSError, ValueError):
            # ValueError: a path that contains NUL, such as an invented name of generated code.
            return None
