"""The loss that a program prints, found in its output. Key type: LossReader."""

from __future__ import annotations

import re

# ``loss: 0.31``, ``train_loss=0.31``, ``loss 0.31``, ``'loss': tensor(0.31, ...)``; not ``lossless 3``, ``loss function 3``
_LOSS = re.compile(
    rb"(?<![a-z])(?:[a-z0-9]+[_./-])*loss[\"']?(?:[ \t]*[:=][ \t]*|[ \t]+)(?:tensor\()?"
    rb"([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|[-+]?(?:nan|inf))(?![\w%]|\.\d)",
    re.IGNORECASE,
)
_ESCAPE = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
_LINE_END = re.compile(rb"[\r\n]+")
_LONGEST = 4096  # bytes of a line that are searched


_DIGITS = 10


class LossReader:
    """Takes the output of a program piece by piece. ``last``: the number as printed, if short; empty until there is one."""

    def __init__(self) -> None:
        self.last = ""
        self._line = b""

    def feed(self, data: bytes) -> None:
        *lines, rest = _LINE_END.split(self._line + data)
        self._line = rest[-_LONGEST:]
        if b"\n" in data or b"\r" in data:
            for line in reversed(lines):  # the last one counts
                if (found := _LOSS.search(_ESCAPE.sub(b"", line[:_LONGEST]))) is not None:
                    printed = found[1].decode("ascii")
                    self.last = printed if len(printed) <= _DIGITS else f"{float(printed):.6g}"
                    return
