"""Sizes and numbers from outside that vary: every way to one times everything Python does with a number.

After a change of size a capture holds for many: what Python then gets as a size is an expression of the input's, found by
repeating the operations on tensors with symbolic sizes. The sizes are short, long, even, odd, and 1 where the path must
change. `python -m tests.soundness.generators.sizes`. The uses are those of `numbers_of_data`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from tests.soundness.generators.numbers_of_data import USES, Data, counted
from tests.soundness.harness.families import Family, main


class Sized(Data):
    """What one call is given: ``t`` of shape (n, 2), ``n`` itself in several places, and data that stay as they are."""

    def __init__(self, n: int) -> None:
        super().__init__(1.5, 2)
        self.t = torch.arange(2.0 * n).reshape(n, 2)
        self.n = n
        self.rate = n / 4
        self.numbers = {"n": n, "list": [n, (n + 1,)]}
        self.items = list(range(n))


SIZES = [7, 7, 8, 5, 2, 3, 12, 1, 9, 7, 33]
CALLS = [Sized(n) for n in SIZES]


def _row(d: Sized) -> torch.Tensor:
    """(1, 2, n)"""
    return d.t.t()[None]


def _longest(d: Sized) -> int:
    lengths = [len(part) for part in d.t.split(3)]
    return max(lengths) * 100 + lengths[-1]


def _steps(d: Sized) -> int:
    count = 0
    while count * count < d.t.shape[0]:
        count += 1
    return count


SOURCES: dict[str, Callable[[Sized], Any]] = {
    "shape": lambda d: d.t.shape[0],
    "size": lambda d: d.t.size(0),
    "whole size": lambda d: d.t.size()[0],
    "length": lambda d: len(d.t),
    "number of elements": lambda d: d.t.numel(),
    "unpacked": lambda d: next(iter(d.t.shape)),
    "product of sizes": lambda d: d.t.shape.numel() + math.prod(d.t.shape),
    "transposed": lambda d: d.t.mT.shape[1],
    "computed": lambda d: (d.t @ torch.ones(2, 3)).relu().shape[0],
    "flat": lambda d: d.t.flatten().shape[0],
    "reshaped": lambda d: d.t.reshape(-1, 1).shape[0],
    "in two": lambda d: d.t.reshape(2, -1).shape[1],
    "from the second": lambda d: d.t[1:].shape[0],
    "up to five": lambda d: d.t[:5].shape[0],
    "the last five": lambda d: d.t[-5:].shape[0],
    "between": lambda d: d.t[2:-1].shape[0],
    "every other": lambda d: d.t[::2].shape[0],
    "narrowed": lambda d: d.t.narrow(0, 0, d.t.shape[0] // 2).shape[0],
    "half": lambda d: d.t[: d.t.shape[0] // 2].shape[0],
    "padded": lambda d: F.pad(d.t, (0, 0, 2, -1)).shape[0],
    "padded to four": lambda d: F.pad(d.t, (0, 0, 0, -d.t.shape[0] % 4)).shape[0],
    "pooled": lambda d: F.max_pool1d(_row(d), 3, 2, 1, ceil_mode=True).shape[-1],
    "pooled to three": lambda d: F.adaptive_avg_pool1d(_row(d), 3).shape[-1] + d.n,
    "convolved": lambda d: F.conv1d(_row(d), torch.ones(1, 2, 3), stride=2, padding=2).shape[-1],
    "scaled": lambda d: F.interpolate(_row(d), scale_factor=0.75).shape[-1],
    "unfolded": lambda d: d.t.unfold(0, 2, 1).shape[0],
    "transformed": lambda d: torch.fft.rfft(d.t, dim=0).shape[0],
    "transformed back": lambda d: torch.fft.irfft(d.t, dim=0).shape[0],
    "differences": lambda d: d.t.diff(dim=0).shape[0],
    "first of three": lambda d: d.t.chunk(3)[0].shape[0],
    "chunks": lambda d: len(d.t.chunk(3)),
    "parts": lambda d: len(d.t.split(3)),
    "longest part": _longest,
    "joined": lambda d: torch.cat([d.t, d.t[:3]]).shape[0],
    "pairs": lambda d: (d.t[:, :1] + d.t[:, 0]).numel(),
    "repeated": lambda d: d.t.repeat(2, 1).shape[0],
    "interleaved": lambda d: d.t[:, 0].repeat_interleave(2).shape[0],
    "diagonal": lambda d: (d.t[:, :1] * d.t[:, 0]).diagonal(1).shape[0],
    "made": lambda d: torch.arange(0, d.t.shape[0], 2).shape[0],
    "indexed": lambda d: d.t[torch.arange(d.t.shape[0] - 1)].shape[0],
    "stepped": _steps,
    "by three": lambda d: math.ceil(d.t.shape[0] / 3),
    "root": lambda d: d.t.shape[0] ** 0.5,
    "bytes": lambda d: d.t.nbytes,
    "rows less columns": lambda d: d.t.shape[0] - d.t.shape[1],
    "of NumPy": lambda d: d.t.numpy().shape[0],
    "number": lambda d: d.n,
    "float": lambda d: d.rate,
    "in a dict": lambda d: d.numbers["n"],
    "in a tuple": lambda d: d.numbers["list"][1][0],
    "length of a list": lambda d: len(d.items),
    "two together": lambda d: d.n * d.t.shape[0],
}


def sized(source: str, use: str) -> str | None:
    """How a region that does this with such a size differs from eager mode over the calls; None where it doesn't."""
    return counted(source, use, SOURCES, USES, CALLS)


FAMILY = Family.product(sized, source=SOURCES, use=USES)


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))
