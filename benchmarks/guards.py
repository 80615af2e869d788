"""The cost of guards on deep transformers models, compared with the compiled step and with TorchDynamo's guards.

Random weights, real configurations: BERT-base, and a GPT-2 with the depth of GPT-2 XL (48 layers) but narrower, to limit
memory and time. The number of guards depends on the depth, and a narrow model makes their share of a step larger.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch._dynamo.eval_frame import _debug_get_cache_entry_list

import magpy_core
from benchmarks.result import Result, Row
from benchmarks.timing import interleave, ratio_of

BATCH, LENGTH = 1, 64
Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _bert() -> nn.Module:
    import transformers

    return transformers.BertForMaskedLM(transformers.BertConfig())


def _gpt48() -> nn.Module:
    import transformers

    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=48, n_embd=256, n_head=8, use_cache=False))


def _seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _dynamo_check(step: Any, locals_: dict[str, Any]) -> Callable[[], object]:
    """TorchDynamo's guards of a compiled function, checked on the locals of a call's frame."""
    (entry,) = _debug_get_cache_entry_list(step.__code__)
    root = entry.guard_manager.root
    if not root.check(locals_):
        raise RuntimeError("TorchDynamo's guards do not hold for the call that made them")
    return lambda: root.check(locals_)


def _compare(name: str, model: nn.Module, backend: str) -> Result:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model.eval()
    ids = torch.randint(5, 1000, (BATCH, LENGTH))
    mask = torch.ones(BATCH, LENGTH, dtype=torch.long)
    mask[:, -4:] = 0

    def step(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return model(input_ids=ids, attention_mask=mask).logits  # type: ignore[no-any-return]

    with torch.no_grad():
        expected = step(ids, mask)
        eager_s = min(_seconds(lambda: step(ids, mask)) for _ in range(3))
        traced = torch.compile(step, backend="eager", fullgraph=True)
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))  # exclude the compiler's one-time set-up
        trace_s = _seconds(lambda: traced(ids, mask)) - eager_s
        check = _dynamo_check(step, {"ids": ids, "mask": mask, "model": model})
        magpy_core.compile(nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))
        compiled = magpy_core.compile(step, backend=backend, fullgraph=True, wait=True)
        capture_s = _seconds(lambda: compiled(ids, mask)) - eager_s
        for _ in range(6):  # the fast guard starts with the fourth call
            torch.testing.assert_close(compiled(ids, mask), expected, rtol=1e-3, atol=1e-4)
        (capture,) = magpy_core.captures(compiled)
        if not capture.matches((ids, mask), {}):
            raise RuntimeError("MagPy's guards do not hold for the call that made them")
        samples = interleave(
            {
                "guards": lambda: capture.matches((ids, mask), {}),
                "TorchDynamo's guards": check,
                "compiled step": lambda: compiled(ids, mask),
            },
            rounds=31,
        )
    share = ratio_of(samples["guards"], samples["compiled step"])
    against = ratio_of(samples["guards"], samples["TorchDynamo's guards"])
    ours, theirs = (1e6 * min(samples[who].cpu) for who in ("guards", "TorchDynamo's guards"))
    step_ms = 1e3 * min(samples["compiled step"].cpu)
    return Result(
        [
            Row(f"{name}: guards / compiled step", 100 * share.cpu_median, "%", 3.0, f"{ours:.0f} µs of {step_ms:.1f} ms"),
            Row(
                f"{name}: guards / TorchDynamo's guards", against.cpu_median, "x", 1.0,
                f"{against}; {len(capture.guards)} guards, {ours:.0f} µs; TorchDynamo {theirs:.0f} µs",
            ),
            Row(
                f"{name}: capture / TorchDynamo's tracing", capture_s / trace_s, "x", 1.0,
                f"{capture_s:.2f} s and {trace_s:.2f} s of CPU time more than eager",
            ),
        ],
        {key: value.to_json() for key, value in samples.items()},
    )  # fmt: skip


def guards_bert() -> Result:
    """BERT-base: 12 layers, hidden 768."""
    return _compare("BERT-base", _bert(), "inductor")


def guards_gpt48() -> Result:
    """GPT-2 of 48 layers, width 256."""
    return _compare("GPT-2, 48 layers", _gpt48(), "inductor")
