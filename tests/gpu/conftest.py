"""What holds for every test here: it is marked ``gpu``, skipped where its device is missing, and starts from one state."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.gpu.device import IS_CUDA, finished, missing

_FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing()
    for item in items:
        if item.path.parent == _FOLDER:
            item.add_marker(pytest.mark.gpu)
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def exact_float32() -> Iterator[None]:
    """TF32 would make eager and compiled differ in the third digit for reasons of neither."""
    matmul, conv = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = matmul, conv


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """An error of a kernel belongs to the test that has launched it, and memory to nobody."""
    torch.manual_seed(0)
    yield
    finished()
    if IS_CUDA:
        gc.collect()
        torch.cuda.empty_cache()
