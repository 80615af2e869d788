"""What operations on lists of tensors write, on a device: some of them count no versions, and each write has to be known, to
be undone where a graph turns out not to fit.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.gpu.device import DEVICE, compiled, served

_OPERATIONS: dict[str, tuple[Any, ...]] = {
    "add": (0.5,), "sub": (0.5,), "mul": (1.5,), "div": (2.0,), "lerp": ("other", 0.5), "addcmul": ("other", "other", 0.5),
    "addcdiv": ("other", "other", 0.5), "sqrt": (), "copy": ("other",), "zero": (), "clamp_max": (0.5,), "neg": (),
}  # fmt: skip


@pytest.mark.parametrize("name", _OPERATIONS)
def test_a_write_is_undone(name: str) -> None:
    """The branch after it goes the other way in the last call: what the graph has written by then must not stay."""
    operation = getattr(torch, f"_foreach_{name}_")

    def run(step: Any, written: list[torch.Tensor]) -> list[float]:
        found = []
        for sign in (1.0, 1.0, 1.0, 1.0, -1.0):
            for tensor in written:
                tensor.fill_(0.25)
            step(torch.full((3,), sign, device=DEVICE))
            found += [value for tensor in written for value in tensor.tolist()]
        return found

    def make() -> tuple[Any, list[torch.Tensor]]:
        written = [torch.zeros(3, device=DEVICE) for _ in range(2)]
        other = [torch.full((3,), 0.75, device=DEVICE) for _ in range(2)]
        arguments = [other if argument == "other" else argument for argument in _OPERATIONS[name]]

        def step(x: torch.Tensor) -> torch.Tensor:
            operation(written, *arguments)
            total = (written[0].abs() + 1) * x
            return x * 2 if total.sum() > 0 else x - 1

        return step, written

    plain, expected = make()
    step, written = make()
    step = compiled(step)
    assert run(step, written) == pytest.approx(run(plain, expected))
    assert served(step) >= 2
