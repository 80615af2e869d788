"""Tensors whose sizes and strides cannot be compared: a region that takes one runs in eager mode and says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import magpy_core

LAYOUTS: dict[str, Callable[[], torch.Tensor]] = {
    "nested, strided": lambda: torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)]),
    "nested, jagged": lambda: torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged),
    "compressed rows": lambda: torch.eye(4).to_sparse_csr(),
    "compressed columns": lambda: torch.eye(4).to_sparse_csc(),
    "blocks of rows": lambda: torch.eye(4).to_sparse_bsr((2, 2)),
}

USES: dict[str, Callable[[torch.Tensor], object]] = {
    "an operator": lambda x: x * 2,
    "its number of dimensions": lambda x: torch.ones(2) * x.dim(),
    "its size": lambda x: torch.ones(2) * x.size(0),
    "its layout": lambda x: torch.ones(2) * (x.layout == torch.strided),
    "itself": lambda x: (x, torch.ones(2) + 1),
    "a container": lambda x: {"x": [x], "y": torch.ones(2) + 1},
}


def outcome(use: Callable[[torch.Tensor], object], x: torch.Tensor) -> tuple[str, str]:
    try:
        return "gives", repr(use(x))
    except RuntimeError as error:
        return "raises", str(error)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_without_strides(layout: str, use: str) -> None:
    compiled = magpy_core.compile(USES[use], backend="eager")
    for _ in range(3):
        x = LAYOUTS[layout]()
        assert outcome(compiled, x) == outcome(USES[use], x)
    x = torch.ones(4, 4)
    assert outcome(compiled, x) == outcome(USES[use], x)
    x = LAYOUTS[layout]()
    assert outcome(compiled, x) == outcome(USES[use], x)


def test_finding_names_the_layout() -> None:
    findings = magpy_core.monitor(lambda x: x * 2)(torch.eye(4).to_sparse_csr()).findings
    assert [(f.code, "torch.sparse_csr" in f.message) for f in findings] == [("MP106", True)]
