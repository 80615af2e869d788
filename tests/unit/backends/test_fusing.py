"""Which graphs get the operator for a linear layer and its cross entropy, and that these compute the same."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.fx
import torch.nn.functional as F
from torch import nn

import magpy_core
from magpy_core.backends import fusing
from magpy_core.backends.fakes import make_fake_inputs
from magpy_core.backends.fusing import FusedLoss, Fusing, fuse_losses
from magpy_core.backends.tuning import Tuning
from magpy_core.fused import operators
from magpy_core.opgraph.segments import CHECKPOINT
from tests.unit.backends.recorder import compile_recorded, record

BATCH, STEPS, WIDTH, VOCABULARY = 3, 4, 5, 7
Inputs = tuple[torch.Tensor, ...]


def inputs(dtype: torch.dtype = torch.float32) -> Inputs:
    """Hidden, weight, bias, targets."""
    torch.manual_seed(0)
    shapes = ((BATCH, STEPS, WIDTH), (VOCABULARY, WIDTH), (VOCABULARY,))
    target = torch.randint(0, VOCABULARY, (BATCH, STEPS))
    target[0, 1] = -1
    return *(torch.randn(shape).to(dtype).requires_grad_() for shape in shapes), target


def graph_of(region: Callable[..., Any], *given: torch.Tensor) -> tuple[torch.fx.GraphModule, list[Any]]:
    """The graph that a monitored call gives, and its inputs."""
    (capture,) = magpy_core.monitor(region)(*given).captures
    (segment,) = capture.segments
    named = dict(zip("hwby", given, strict=True))
    return segment.module(), [named[node.name] for node in segment.inputs]


def rewritten(gm: torch.fx.GraphModule, given: list[Any], how: Fusing = Fusing.EVERYTHING) -> list[FusedLoss]:
    fakes = make_fake_inputs(given)
    return fuse_losses(gm, fakes.fakes, fakes.fake_mode, how)


def targets(gm: torch.fx.GraphModule) -> set[Any]:
    return {node.target for node in gm.graph.nodes}


# -- applied -------------------------------------------------------------------------------------------------------------


def as_in_nanogpt(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    logits = F.linear(h, w)
    return F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1), ignore_index=-1)


def with_bias(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(F.linear(h, w, b).reshape(BATCH * STEPS, -1), y.flatten(), ignore_index=-1)


def flattened_and_upcast(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(F.linear(h, w).float().contiguous().flatten(0, 1), y.view(-1), ignore_index=-1)


def summed(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(F.linear(h, w).view(-1, VOCABULARY), y.view(-1), ignore_index=-1, reduction="sum") / 10


def of_each_token(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    losses = F.cross_entropy(F.linear(h, w).view(-1, VOCABULARY), y.view(-1), ignore_index=-1, reduction="none")
    return (losses.view(BATCH, STEPS) * torch.arange(1.0, STEPS + 1)).mean()


def smoothed(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    criterion = nn.CrossEntropyLoss(ignore_index=-1, label_smoothing=0.2)
    loss: torch.Tensor = criterion(F.linear(h, w, b).view(-1, VOCABULARY), y.view(-1))
    return loss


def of_two_heads(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return as_in_nanogpt(h, w, b, y) + with_bias(h, w, b, y.flip(0))


def tied(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return as_in_nanogpt(F.embedding(y.clamp(min=0), w) + h, w, b, y)


def of_two_dimensions(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(F.linear(h[0], w), y[0], ignore_index=-1)


def with_a_frozen_body(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return as_in_nanogpt(h.detach(), w, b, y)


def under_autocast(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return with_bias(h, w, b, y)


Region = Callable[..., torch.Tensor]
APPLIED: list[Region] = [
    as_in_nanogpt, with_bias, flattened_and_upcast, summed, of_each_token, smoothed, of_two_heads, tied, of_two_dimensions,
    with_a_frozen_body, under_autocast,
]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("region", APPLIED, ids=lambda region: region.__name__)
def test_losses_are_rewritten_and_stay_the_same(region: Region, dtype: torch.dtype) -> None:
    given = inputs(dtype)
    gm, recorded = graph_of(region, *given)
    fused = rewritten(gm, recorded)
    assert len(fused) == (2 if region is of_two_heads else 1)
    assert F.cross_entropy not in targets(gm) and F.linear not in targets(gm)
    want = region(*given)
    (got,) = gm(*recorded)
    assert got.dtype is want.dtype
    rounded = dtype is not torch.float32 or region is under_autocast
    close = {"rtol": 0.03, "atol": 0.03} if rounded else {"rtol": 1.3e-6, "atol": 1e-6}
    torch.testing.assert_close(got, want, **close)
    for a, b in zip(*(torch.autograd.grad(loss, given[:3], allow_unused=True) for loss in (got, want)), strict=True):
        assert (a is None) is (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, **close)


def used(region: Region, given: Inputs) -> set[Any]:
    gm, recorded = graph_of(region, *given)
    assert rewritten(gm, recorded)
    return targets(gm) & operators.ALL


def test_gradients_come_with_the_loss_where_that_is_exact() -> None:
    assert used(as_in_nanogpt, inputs()) == {operators.SUM} == used(summed, inputs(torch.bfloat16))
    assert used(of_each_token, inputs()) == {operators.LOSSES}
    assert used(as_in_nanogpt, inputs(torch.float16)) == {operators.LOSSES}
    with torch.no_grad():
        assert used(as_in_nanogpt, inputs()) == {operators.LOSSES}


def test_only_what_needs_a_gradient_gets_one() -> None:
    gm, recorded = record(with_a_frozen_body, *inputs())
    rewritten(gm, recorded)
    (node,) = (node for node in gm.graph.nodes if node.target is operators.SUM)
    assert node.args[-2:] == (True, [False, True, False])


def test_a_varying_number_of_rows_is_one_graph() -> None:
    given = inputs()
    gm, recorded = record(as_in_nanogpt, *given)
    dims = {i: {0, 1} for i, value in enumerate(recorded) if value is given[0] or value is given[3]}
    fakes = make_fake_inputs(recorded, dims)
    assert fuse_losses(gm, fakes.fakes, fakes.fake_mode, Fusing.EVERYTHING)
    torch.manual_seed(5)
    longer = {id(given[0]): torch.randn(2, 9, WIDTH), id(given[3]): torch.randint(0, VOCABULARY, (2, 9))}
    others = [longer.get(id(value), value) for value in recorded]
    h, y = longer[id(given[0])], longer[id(given[3])]
    torch.testing.assert_close(gm(*others)[0], as_in_nanogpt(h, given[1], given[2], y))


def test_places_are_kept() -> None:
    gm, recorded = record(as_in_nanogpt, *inputs())
    for node in gm.graph.nodes:
        if node.target is F.cross_entropy:
            node.meta |= {"magpy_user": ("train.py", 7), "stack_trace": "here"}
        if node.target is F.linear:
            node.meta["magpy_tensor"] = (torch.float32, (8, 1024, VOCABULARY))
    (loss,) = rewritten(gm, recorded)
    assert (loss.file, loss.line, loss.rows, loss.vocabulary) == ("train.py", 7, 8192, VOCABULARY)
    (node,) = (node for node in gm.graph.nodes if node.target is operators.SUM)
    assert node.meta["stack_trace"] == "here"


# -- refused -------------------------------------------------------------------------------------------------------------


def logits_of(h: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.linear(h, w).view(-1, VOCABULARY)


def logits_are_returned(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    logits = F.linear(h, w)
    return F.cross_entropy(logits.view(-1, VOCABULARY), y.view(-1), ignore_index=-1), logits


def logits_are_used(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    logits = logits_of(h, w)
    return F.cross_entropy(logits, y.view(-1), ignore_index=-1), (logits.argmax(1) == y.view(-1)).sum()


def logits_are_written(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    logits = logits_of(h, w)
    logits[:, 3] = -100.0
    return F.cross_entropy(logits, y.view(-1), ignore_index=-1)


def logits_are_scaled(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    return F.cross_entropy(logits_of(h, w) / 0.7, y.view(-1), ignore_index=-1)


def classes_have_weights(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    return F.cross_entropy(logits_of(h, w), y.view(-1), b.detach(), ignore_index=-1)


def targets_are_probabilities(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    return F.cross_entropy(logits_of(h, w), F.one_hot(y.view(-1).clamp(min=0), VOCABULARY).float())


def classes_are_in_the_middle(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    return F.cross_entropy(F.linear(h, w).view(BATCH, VOCABULARY, STEPS), y, ignore_index=-1)


def rows_are_mixed(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    return F.cross_entropy(F.linear(h, w).view(VOCABULARY, -1), y[0, :1].expand(VOCABULARY), ignore_index=-1)


def hidden_is_written_between(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    hidden = h.detach() * 2
    logits = logits_of(hidden, w.detach())
    hidden.add_(1)
    return F.cross_entropy(logits, y.view(-1), ignore_index=-1)


def hidden_is_written_after(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    hidden = h * 2
    loss = F.cross_entropy(logits_of(hidden, w), y.view(-1), ignore_index=-1)
    hidden.detach()[0].add_(1)
    return loss  # eager mode can't differentiate it


def weight_is_written_between(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    weight = w.detach()
    logits = logits_of(h.detach(), weight)
    torch.mul(weight, 2, out=weight)
    return F.cross_entropy(logits, y.view(-1), ignore_index=-1)


def autocast_ends_between(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        logits = logits_of(h, w)
    return F.cross_entropy(logits, y.view(-1), ignore_index=-1)


def gradients_end_between(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    with torch.no_grad():
        logits = logits_of(h, w)
    return F.cross_entropy(logits, y.view(-1), ignore_index=-1)


def the_loss_is_more_precise(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    return F.cross_entropy(logits_of(h, w).double(), y.view(-1), ignore_index=-1)


def the_loss_is_less_precise(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    return F.cross_entropy(logits_of(h, w).to(torch.bfloat16), y.view(-1), ignore_index=-1)


def logits_are_reinterpreted(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    return F.cross_entropy(
        F.linear(h.half(), w.half()).view(torch.bfloat16).view(-1, VOCABULARY), y.view(-1), ignore_index=-1
    )


def the_gradient_is_differentiated(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    loss = F.cross_entropy(logits_of(h, w), y.view(-1), ignore_index=-1)
    (gradient,) = torch.autograd.grad(loss, (w,), create_graph=True)
    return loss + gradient.square().sum()


def the_gradient_of_logits_is_wanted(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> Any:
    logits = logits_of(h, w)
    loss = F.cross_entropy(logits, y.view(-1), ignore_index=-1)
    return torch.autograd.grad(loss, (logits,))


REFUSED = [
    logits_are_returned, logits_are_used, logits_are_written, logits_are_scaled, classes_have_weights,
    targets_are_probabilities, classes_are_in_the_middle, rows_are_mixed, hidden_is_written_between, hidden_is_written_after,
    weight_is_written_between, autocast_ends_between, gradients_end_between, the_loss_is_more_precise,
    the_loss_is_less_precise, logits_are_reinterpreted, the_gradient_is_differentiated, the_gradient_of_logits_is_wanted,
]  # fmt: skip


@pytest.mark.parametrize("region", REFUSED, ids=lambda region: region.__name__)
def test_in_doubt_nothing_is_rewritten(region: Callable[..., Any]) -> None:
    gm, recorded = graph_of(region, *inputs())
    before = str(gm.graph)
    assert F.cross_entropy in targets(gm) and F.linear in targets(gm)
    assert not rewritten(gm, recorded)
    assert str(gm.graph) == before


def test_checkpointed_logits_are_computed_as_written() -> None:
    for target in (F.linear, F.cross_entropy):
        gm, recorded = record(with_bias, *inputs())
        for node in gm.graph.nodes:
            if node.target is target:
                node.meta[CHECKPOINT] = 1
        assert not rewritten(gm, recorded)


def test_a_graph_that_no_fakes_can_run_is_left_to_the_compiler() -> None:
    def region(h: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return as_in_nanogpt(h * torch.nonzero(y).sum(), w, b, y)

    gm, recorded = record(region, *inputs())
    fakes = make_fake_inputs(recorded)  # without sizes that depend on data
    assert not fuse_losses(gm, fakes.fakes, fakes.fake_mode, Fusing.EVERYTHING)


# -- where ---------------------------------------------------------------------------------------------------------------


def test_small_losses_and_other_devices_are_left_to_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    gm, recorded = record(as_in_nanogpt, *inputs())
    for how in (Fusing.NOTHING, Fusing.LARGE, Fusing.ANY_DEVICE):
        assert not rewritten(gm, recorded, how)
    monkeypatch.setattr(fusing, "LEAST_BYTES", BATCH * STEPS * VOCABULARY * 4 + 1)
    assert not rewritten(gm, recorded, Fusing.ANY_DEVICE)
    monkeypatch.setattr(fusing, "LEAST_BYTES", BATCH * STEPS * VOCABULARY * 4)
    assert not rewritten(gm, recorded, Fusing.LARGE)  # on the CPU
    assert rewritten(gm, recorded, Fusing.ANY_DEVICE)


def test_the_kernel_is_for_cuda_with_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda, cpu = torch.device("cuda"), torch.device("cpu")
    monkeypatch.setattr(fusing, "has_triton", lambda: True)
    monkeypatch.setattr(torch.version, "hip", None)
    assert fusing._has_kernel(cuda) and not fusing._has_kernel(cpu)
    monkeypatch.setattr(torch.version, "hip", "6.2")
    assert not fusing._has_kernel(cuda)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(fusing, "has_triton", lambda: False)
    assert not fusing._has_kernel(cuda)


@pytest.mark.parametrize(
    ("variable", "wanted", "how"),
    [
        ("", True, Fusing.LARGE), ("1", True, Fusing.LARGE), ("0", True, Fusing.NOTHING),
        ("always", True, Fusing.EVERYTHING), ("", False, Fusing.NOTHING), ("always", False, Fusing.NOTHING),
        ("", None, Fusing.NOTHING), ("1", None, Fusing.LARGE), ("0", None, Fusing.NOTHING),
        ("always", None, Fusing.EVERYTHING), ("1", False, Fusing.NOTHING),
    ],
)  # fmt: skip
def test_the_switches(variable: str, wanted: bool | None, how: Fusing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGPY_FUSED_LOSS", variable)
    assert fusing.fusing(wanted) is how


@pytest.mark.parametrize("fused_loss", [True, False])
def test_a_compiled_graph_says_what_was_rewritten(fused_loss: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGPY_FUSED_LOSS", "always")
    given = inputs()
    gm, recorded = record(as_in_nanogpt, *given)
    compiled = compile_recorded(gm, recorded, "aot_eager", tuning=Tuning(fused_loss=fused_loss))
    assert [(loss.rows, loss.vocabulary) for loss in compiled.fused] == [(BATCH * STEPS, VOCABULARY)] * fused_loss
    (got,), want = compiled.fn(*recorded), as_in_nanogpt(*given)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(torch.autograd.grad(got, given[:2]), torch.autograd.grad(want, given[:2]))


def test_a_loss_without_a_place_has_none() -> None:
    assert fusing._place(SimpleNamespace(meta={})) == ("", 0)  # type: ignore[arg-type]
