"""Programs whose control flow depends on data, one a file. Key names: PROGRAMS (file name -> maker), build."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from tests.programs.dynamic.program import Program


def _program(name: str) -> Program:
    program: Program = importlib.import_module(f"{__name__}.{name}").program()
    return program


PROGRAMS: dict[str, Callable[[], Program]] = {
    file.stem: partial(_program, file.stem)
    for file in sorted(Path(__file__).parent.glob("*.py"))
    if file.stem not in ("__init__", "program")
}


def seed(number: int) -> None:
    """Start all random streams of the process."""
    torch.manual_seed(number)
    random.seed(number)
    np.random.seed(number)


def build(name: str) -> Program:
    """The program of that file, the same each time."""
    seed(0)
    return PROGRAMS[name]()
