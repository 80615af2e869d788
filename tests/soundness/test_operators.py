"""torch's own samples of its operators: some in every run of the tests, a part of all of them when
``exhaustive``."""

from __future__ import annotations

import pytest
import torch

from tests.soundness.generators.operators import KINDS, differing, operators

pytestmark = pytest.mark.filterwarnings("ignore")

#: Operators a kind takes when slow: every so many-th; all of them take an hour
#: (`python -m tests.soundness.generators.operators`).
STEPS = {"samples": 16, "sizes": 36, "numbers": 32, "layouts": 48}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_few(kind: str) -> None:
    lines = [line for op in operators()[15::339] for line in differing(op, kind)]
    assert lines
    assert [line for line in lines if line is not None] == []


@pytest.mark.parametrize(
    "name",
    [
        "nn.functional.dropout",
        pytest.param("__getitem__", marks=pytest.mark.slow),
        pytest.param("unbind_copy", marks=pytest.mark.slow),
        pytest.param("fft.hfft", marks=pytest.mark.slow),
        pytest.param("nn.functional.max_pool1d", marks=pytest.mark.slow),
    ],
)
def test_what_differed(name: str) -> None:
    (op,) = [op for op in operators() if op.name == name and not op.variant_test_name]
    assert [line for kind in ("sizes", "numbers") for line in differing(op, kind) if line is not None] == []


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_a_part_of_all(kind: str) -> None:
    step = STEPS[kind]
    assert [line for op in operators()[step // 2 :: step] for line in differing(op, kind) if line is not None] == []


def test_importing_torchs_samples_leaves_its_flags_open() -> None:
    """torch's test library closes them for its importer; other tests of this process set them."""
    operators()
    kept = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = not kept
    torch.backends.cudnn.benchmark = kept


def test_importing_torchs_samples_leaves_calls_of_scripts_alone() -> None:
    operators()
    assert "prof" not in torch._C.ScriptFunction.__call__.__name__
    assert "prof" not in torch._C.ScriptMethod.__call__.__name__
