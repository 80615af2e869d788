"""The device of these tests: CUDA, or the CPU to try the tests themselves (``MAGPY_GPU_TESTS=cpu``). Key names: DEVICE,
BACKEND, needs_cuda.

On the CPU the backend is ``eager``, which needs no compiler; ``MAGPY_GPU_TESTS_BACKEND`` names another.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_map

import magpy_core
from magpy_core.findings import Finding
from magpy_core.regions.api import region_of

DEVICE = torch.device(os.environ.get("MAGPY_GPU_TESTS", "cuda"))
IS_CUDA = DEVICE.type == "cuda"
BACKEND = os.environ.get("MAGPY_GPU_TESTS_BACKEND", "inductor" if IS_CUDA else "eager")

needs_cuda = pytest.mark.skipif(not IS_CUDA, reason="CUDA only: the CPU has nothing of the kind")


def missing() -> str:
    """Why these tests can't run here, or empty."""
    if not IS_CUDA:
        return ""
    if not torch.cuda.is_available():
        return "no CUDA device here: torch.cuda.is_available() is False"
    return "" if importlib.util.find_spec("triton") else "Triton is not installed"


def moved(tree: Any) -> Any:
    """Lists, tuples and dicts with their tensors on the device."""
    return tree_map(lambda value: value.to(DEVICE) if isinstance(value, torch.Tensor) else value, tree)


def compiled(target: Any, **options: Any) -> Any:
    """With the backend of these tests, eager's random numbers, and no measurement that could give it up."""
    return magpy_core.compile(target, **{"backend": BACKEND, "wait": True, "same_random": True, **options})


def served(target: Any) -> int:
    """How many calls captures have served."""
    return region_of(target).hits


def codes(target: Any) -> set[str]:
    """Of the findings."""
    return {finding.code for finding in findings(target)}


def findings(target: Any) -> list[Finding]:
    return list(region_of(target).findings.values())


def generated_code(target: Any) -> str:
    """By Inductor, of all captures."""
    return "\n".join(text for capture in magpy_core.captures(target) for text in capture.generated_code)


def environment(**more: str) -> dict[str, str]:
    """Of a process that a test starts: it finds MagPy, and what the test's own process finds."""
    paths = [str(Path(magpy_core.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}


def finished() -> None:
    """Waits for the device; an error of a kernel is raised here."""
    if IS_CUDA:
        torch.cuda.synchronize()


def random_state() -> torch.Tensor:
    """Of the device's random stream."""
    return torch.cuda.get_rng_state() if IS_CUDA else torch.get_rng_state()


def twice(make: Callable[[], Any]) -> tuple[Any, Any]:
    """Two objects, made with the same random numbers."""
    torch.manual_seed(0)
    first = make()
    torch.manual_seed(0)
    return first, make()
