"""Text streams from outside that replay can write to: files, `io.StringIO`, and what `csv.writer` writes to. None of them
runs code of the program. Key functions: stream_of, is_closed, dialect_of.
"""

from __future__ import annotations

import _csv
import gc
import io
from types import BuiltinMethodType
from typing import Any

CSV_WRITER: Any = type(_csv.writer(io.StringIO()))
STREAMS: tuple[type, ...] = (io.StringIO, io.TextIOWrapper)
_BUFFERS = (io.BufferedWriter, io.BufferedRandom)
_OPTIONS = (
    "delimiter", "quotechar", "escapechar", "doublequote", "skipinitialspace", "lineterminator", "quoting", "strict",
)  # fmt: skip


def stream_of(obj: Any) -> Any:
    """The text stream that ``obj`` is, or that it writes rows to; None if that is of another class."""
    if type(obj) is CSV_WRITER:
        methods = [held for held in gc.get_referents(obj) if type(held) is BuiltinMethodType and held.__name__ == "write"]
        obj = methods[0].__self__ if len(methods) == 1 else None
    if type(obj) is io.StringIO:
        return obj
    if type(obj) is not io.TextIOWrapper:
        return None
    buffer = obj.buffer
    is_file = type(buffer) in _BUFFERS and type(buffer.raw) is io.FileIO
    return obj if is_file or type(buffer) is io.BytesIO else None


def is_closed(obj: Any) -> bool:
    """Whether writing to ``obj`` raises because its stream is closed."""
    stream = stream_of(obj)
    return stream is None or bool(stream.closed)


def dialect_of(writer: Any) -> tuple[tuple[str, Any], ...] | None:
    """How a ``csv.writer`` formats rows; None if that may raise for some values."""
    options = tuple((name, getattr(writer.dialect, name)) for name in _OPTIONS)
    return None if writer.dialect.quoting == _csv.QUOTE_NONE else options


def row_length(options: tuple[tuple[str, Any], ...], *row: Any) -> int:
    """What ``writerow`` returns: how many characters it has written."""
    return int(_csv.writer(io.StringIO(), **dict(options)).writerow(row))
