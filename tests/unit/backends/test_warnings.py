"""What a compiler warns of while it is imported and runs is not the program's: nothing is shown, and nothing raised."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from magpy_core._compat.torch.warning_filters import COMPILERS, no_warnings

PROGRAM = """
import warnings
import torch, magpy_core

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
step = magpy_core.compile(lambda x: (model(x) ** 2).mean(), backend="inductor", fullgraph=True)
warnings.simplefilter("error")
for n in (3, 3, 5):
    step(torch.randn(n, 4)).backward()
print(len(magpy_core.captures(step)), "captures")
"""


@pytest.mark.slow
def test_compiling_warns_of_nothing(tmp_path: Path) -> None:
    """The compiler is imported by the first call, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True, text=True, timeout=250,
        env={"PATH": "/usr/bin:/bin", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "2 captures\n"), done.stderr
    assert "Warning" not in done.stderr  # builds for CUDA log there that they find none


def test_other_modules_warnings_are_shown() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        with no_warnings(COMPILERS):
            warnings.warn_explicit("lost", UserWarning, "x.py", 1, "torch.jit._script")
            warnings.warn_explicit("shown", UserWarning, "x.py", 1, "torchvision_like")
            warnings.warn_explicit("shown too", UserWarning, "x.py", 1, "mine.torch")
        assert warnings.filters == before
    assert [str(w.message) for w in shown] == ["shown", "shown too"]
