"""Runs the Triton kernel by Triton's interpreter and compares it with ATen's operators. `test_row_kernel.py` runs this.

    TRITON_INTERPRET=1 python -m tests.unit.fused.interpreted [RIGHT WRONG]

Prints a line for each difference. With two arguments, the second replaces the first in the kernel's text: a bug that must be
found.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from magpy_core.fused import row_kernel
from magpy_core.fused.chunks import Head, gradients_of, losses_of, precision_of, row_stride
from magpy_core.fused.reference import compute_rows

IGNORED = -100
VOCABULARIES = (1, 7, 64, 4096, 10_007)  # 4096 is a block
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def rows_of(vocabulary: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits in padded rows (what is beyond the vocabulary is NaN), targets, factors. The highest number of row 0 is its
    last, row 1 begins with -inf (of a large vocabulary, a whole block), row 2 is ignored, row 3 is -inf, row 4 has a NaN,
    row 5 an infinity."""
    torch.manual_seed(vocabulary)
    logits = torch.full((7, row_stride(vocabulary)), float("nan"), dtype=dtype)
    logits[:, :vocabulary] = 4 * torch.randn(7, vocabulary)
    logits[0, vocabulary - 1] = 25.0
    logits[1, : vocabulary // 2] = logits[3, :vocabulary] = float("-inf")
    logits[4, vocabulary // 3], logits[5, vocabulary // 3] = float("nan"), float("inf")
    target = torch.randint(vocabulary // 2, vocabulary, (7,))
    target[2] = IGNORED
    scale = torch.rand(7, dtype=precision_of(dtype))
    scale[2] = 0
    return logits, target, scale


def differences() -> Iterator[str]:
    for dtype, vocabulary, smoothing, gradient in itertools.product(DTYPES, VOCABULARIES, (0.0, 0.2), (False, True)):
        logits, target, scale = rows_of(vocabulary, dtype)
        results = []
        for compute in (compute_rows, row_kernel.launch):
            changed, losses = logits.clone(), torch.full((7,), 9.0, dtype=precision_of(dtype))
            compute(changed, vocabulary, target, scale if gradient else None, losses, IGNORED, smoothing)
            results.append((changed[:, :vocabulary], losses))
        name = f"{dtype}, vocabulary {vocabulary}, smoothing {smoothing}, {'gradient' if gradient else 'losses'}"
        yield from _compared(name, *results)
    yield from _through_chunks()


def _through_chunks() -> Iterator[str]:
    """The whole computation, with products between the kernels."""
    torch.manual_seed(0)
    hidden, weight, bias = torch.randn(150, 8), torch.randn(300, 8), torch.randn(300)
    head = Head(hidden, weight, bias, torch.randint(0, 300, (150,)).index_fill(0, torch.arange(0, 150, 5), -1), -1, 0.1)
    scale = torch.rand(150)
    ways = (compute_rows, row_kernel.launch)
    yield from _compared("losses of a layer", *([losses_of(head, way)] for way in ways))
    yield from _compared("gradients of a layer", *(gradients_of(head, scale, (True, True, True), way) for way in ways))


def _compared(name: str, want: Any, got: Any) -> Iterator[str]:
    try:
        for one, other in zip(got, want, strict=True):
            exact = {"rtol": 1e-12, "atol": 1e-14} if other.dtype is torch.float64 else {}
            torch.testing.assert_close(one, other, equal_nan=True, **exact)
    except AssertionError as error:
        yield f"{name}: {' '.join(str(error).split())[:200]}"


def targets_that_are_no_class() -> Iterator[str]:
    from triton.runtime.errors import InterpreterError

    logits, target, _ = rows_of(7, torch.float32)
    for wrong in (7, -1):
        target[0] = wrong
        try:
            row_kernel.launch(logits.clone(), 7, target, None, torch.empty(7), IGNORED, 0.0)
        except InterpreterError as error:  # an assertion of the device
            if "out of bounds" in str(error):
                continue
            raise
        yield f"the target {wrong} is accepted"


def plant(right: str, wrong: str) -> None:
    """A copy of the kernel with another text."""
    path = Path(row_kernel.__file__)
    text = path.read_text(encoding="utf-8")
    assert text.count(right) >= 1, right
    changed = Path(tempfile.mkdtemp()) / "planted.py"
    changed.write_text(text.replace(right, wrong), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("planted", changed)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    row_kernel.loss_rows = module.loss_rows


def _check_targets() -> None:
    """The interpreter leaves assertions of the device out unless it is told to debug."""
    from triton.runtime import interpreter

    options = interpreter.interpreter_builder.options
    interpreter.interpreter_builder.options = replace(options, debug=True, sanitize_overflow=False)


def main() -> None:
    warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, about infinity
    _check_targets()
    if len(sys.argv) == 3:
        plant(*sys.argv[1:])
    found = [*differences(), *targets_that_are_no_class()]
    print(*found, f"{len(found)} differences", sep="\n")


if __name__ == "__main__":
    main()
