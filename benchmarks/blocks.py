"""Compiling deep models: each repeated block once, against the whole graph and against torch.compile.

Processor seconds, children included: how busy the machine is must not decide. Each measurement has a process and an empty
cache of its own, in which a small function has been compiled before (Inductor's import, its precompiled headers).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import magpy_core
from benchmarks.models import char_gpt_module
from benchmarks.result import Result, Row
from benchmarks.timing import user_environment
from magpy_core.backends import aot

STEPS = 9  # timed once everything is compiled
FIRST = 3  # calls until a graph is compiled: recorded, guards hold once more, compiled


def cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _timed(step: Callable[[], object]) -> float:
    before = time.process_time()
    step()
    return time.process_time() - before


def _measure(contender: str, step_of: Callable[[Callable[[Any], Any]], Callable[[], object]]) -> dict[str, float]:
    """``step_of`` makes the step that is measured of a function that compiles. What compiling took: the first calls' time,
    less that of as many later ones."""
    torch.set_num_threads(1)
    if contender == "whole":
        patch.object(aot, "compile_blocks", lambda *args: None).start()
    theirs = contender == "torch.compile"
    compile_it: Any = torch.compile if theirs else magpy_core.compile
    small, first = compile_it(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU())), 1 if theirs else FIRST
    for _ in range(FIRST):
        small(torch.randn(2, 4)).sum().backward()
    step = step_of(compile_it)
    before = cpu_seconds()
    for _ in range(first):
        step()
    spent = cpu_seconds() - before
    steps = [_timed(step) for _ in range(STEPS)]
    return {"compile": spent - first * min(steps), "step": min(steps)}


def _model_step(layers: int) -> Callable[[Callable[[Any], Any]], Callable[[], object]]:
    """Forward and backward of examples/char_gpt's model."""
    torch.manual_seed(0)
    source = char_gpt_module()
    config = source.GPTConfig(n_layer=layers)
    model, tokens = source.GPT(config), torch.randint(config.vocab_size, (16, config.block_size + 1))
    x, y = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def step_of(compile_it: Callable[[Any], Any]) -> Callable[[], object]:
        # torch.compile would compile once more for each new value of ``tokens_seen``
        torch._dynamo.config.allow_unspec_int_on_nn_module = True
        compiled = compile_it(model)

        def step() -> None:
            model.zero_grad()
            compiled(x, y)[1].backward()

        return step

    return step_of


def _update(layers: int) -> Callable[[Callable[[Any], Any]], Callable[[], object]]:
    """A step of AdamW for the parameters of that model."""
    source = char_gpt_module()
    model = source.GPT(source.GPTConfig(n_layer=layers))
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter) * 1e-3
    optimizer = torch.optim.AdamW(model.parameter_groups(weight_decay=0.1), lr=1e-3)
    optimizer.step()
    return lambda compile_it: compile_it(optimizer.step)


def _in_child(contender: str, what: str, layers: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as cache:
        env = {"OMP_NUM_THREADS": "1", **user_environment(), "TORCHINDUCTOR_CACHE_DIR": cache, "MAGPY_COMPILE": "foreground"}
        command = [sys.executable, "-m", "benchmarks.blocks", contender, what, str(layers)]
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=Path(__file__).parents[1])
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} exited with {done.returncode}:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compile_blocks() -> Result:
    """Models of 4, 12 and 48 layers, and the optimizer's step for 52 parameters."""
    ours = {layers: _in_child("blocks", "model", layers) for layers in (4, 12, 48)}
    whole, theirs = _in_child("whole", "model", 12), _in_child("torch.compile", "model", 12)
    update, whole_update = _in_child("blocks", "update", 6), _in_child("whole", "update", 6)
    times = ", ".join(f"{layers} layers {found['compile']:.1f} s" for layers, found in ours.items())
    slower = 100 * (ours[12]["step"] / whole["step"] - 1)
    steps = f"{1e3 * update['step']:.2f} ms a step, {1e3 * whole_update['step']:.2f} ms as one graph"
    return Result(
        [
            Row("compile 48 layers / 4 layers", ours[48]["compile"] / ours[4]["compile"], "x", 1.5, times),
            Row(
                "compile 12 layers / torch.compile",
                ours[12]["compile"] / theirs["compile"],
                "x",
                0.5,
                f"torch.compile {theirs['compile']:.1f} s, as one graph {whole['compile']:.1f} s",
            ),
            Row("step of 12 layers over one graph's", slower, "%", 3.0, f"{1e3 * ours[12]['step']:.0f} ms, minima"),
            Row(
                "compile AdamW for 52 parameters",
                update["compile"],
                "s",
                3.0,
                f"cpu; as one graph {whole_update['compile']:.1f} s; {steps}",
            ),
        ],
        {f"{layers} layers": {"compile_s": [found["compile"]], "step_s": [found["step"]]} for layers, found in ours.items()},
    )


if __name__ == "__main__":
    _contender, _what, _layers = sys.argv[1:]
    print(json.dumps(_measure(_contender, {"model": _model_step, "update": _update}[_what](int(_layers)))))
