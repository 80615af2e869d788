"""A whole training step as one region, against its parts as regions, torch.compile and eager."""

from __future__ import annotations

from collections.abc import Callable

import torch

import magpy_core
from benchmarks.models import CharGPT
from benchmarks.result import Result, Row
from benchmarks.timing import interleave, ratio_of

LAYERS, BATCH = 3, 4


def _step_of(gpt: CharGPT) -> Callable[[], None]:
    def train_step() -> None:
        gpt.step(gpt.model, gpt.optimizer.step)

    return train_step


def whole_step_gpt() -> Result:
    """A 3-layer GPT with AdamW and clipping: ms per step, contenders in turns."""
    torch.set_num_threads(1)
    plain, theirs, parts, whole, eager_graph = (CharGPT(BATCH, n_layer=LAYERS) for _ in range(5))
    their_model, their_step = torch.compile(theirs.model), torch.compile(theirs.optimizer.step)
    model = magpy_core.compile(parts.model, backend="inductor", wait=True)
    optimizer_step = magpy_core.compile(parts.optimizer.step, backend="inductor", wait=True)
    one_region = magpy_core.compile(_step_of(whole), backend="inductor", wait=True)
    one_eager_region = magpy_core.compile(_step_of(eager_graph), backend="eager")
    contenders: dict[str, Callable[[], object]] = {
        "eager": _step_of(plain),
        "torch.compile": lambda: theirs.step(their_model, their_step),
        "MagPy, model and optimizer": lambda: parts.step(model, optimizer_step),
        "MagPy, whole step": one_region,
        "MagPy, whole step, eager backend": one_eager_region,
    }
    for call in contenders.values():
        for _ in range(4):
            call()
    for ours in (whole, parts, eager_graph):
        for one, other in zip(ours.model.parameters(), plain.model.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)
    captures = magpy_core.captures(one_region)
    assert captures and all(capture.is_complete for capture in captures), "the step is no complete graph"
    samples = interleave(contenders, rounds=15, slice_s=0.2)
    rows = [Row(f"GPT, {LAYERS} layers: {name}", 1e3 * min(s.wall), "ms") for name, s in samples.items()]
    for name in ("eager", "torch.compile", "MagPy, model and optimizer"):
        ratio = ratio_of(samples["MagPy, whole step"], samples[name])
        rows.append(Row(f"GPT, {LAYERS} layers: MagPy, whole step / {name}", ratio.wall_median, "x", None, str(ratio)))
    return Result(rows, {f"whole step: {key}": value.to_json() for key, value in samples.items()})
