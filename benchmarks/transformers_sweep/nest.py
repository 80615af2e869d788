"""A process that has transformers loaded and forks one child per architecture, and that one child per mode and engine.

Key function: run_architecture.
"""

from __future__ import annotations

import contextlib
import logging
import os
from functools import partial
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported: a configuration must never fetch anything

import torch._dynamo
import transformers

from benchmarks.sweeps.child import Verdict, Write, forked, limit, serve
from benchmarks.sweeps.engines import Case, run_case
from benchmarks.transformers_sweep.architecture import Architecture
from benchmarks.transformers_sweep.report import MODES
from benchmarks.transformers_sweep.zoo import ZOO

_MEMORY = 10 << 30


def _run(architecture: Architecture, mode: str, engine: str) -> Verdict:
    limit(memory=_MEMORY)
    logging.disable(logging.WARNING)
    config: Any = None

    def build() -> torch.nn.Module:
        nonlocal config
        module = architecture.build()
        config = module.config
        return module

    return run_case(Case(build, lambda: architecture.call(config), mode == "train"), engine, warm=True)


def run_architecture(name: str, engine: str, write: Write) -> Verdict:
    """Both modes of an architecture under an engine, each in a process of its own."""
    architecture = ZOO[name]
    with contextlib.suppress(Exception):  # what fails here is found out, and said, below
        architecture.build()  # imports the model's code, once for both modes
    for mode in MODES:
        verdict = forked(partial(_run, architecture, mode, engine))
        write({"case": name, "mode": mode, "model": architecture.model, "kind": architecture.kind, engine: verdict})
    return {"engine": engine}


def _run_request(request: dict[str, Any], write: Write) -> Verdict:
    return run_architecture(request["architecture"], request["engine"], write)


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    serve(_run_request)
