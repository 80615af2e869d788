"""Which sizes and numbers vary from the first capture on: `dynamic=`, `mark_dynamic`."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.capture.outcome import MISS
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import same

BACKENDS = ["eager", "aot_eager"]


def centred(x: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(0)).view(x.shape[0] * 2, -1).exp() / x.shape[0]


def agree(compiled: Any, plain: Callable[..., Any], calls: list[tuple[Any, ...]]) -> int:
    """How many captures it took."""
    for args in calls:
        assert same(compiled(*args), plain(*args)), args
    return len(magpy_core.captures(compiled))


def sizes(*counts: int) -> list[tuple[Any, ...]]:
    return [(torch.randn(n, 4),) for n in counts]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dynamic, captures", [(None, 2), (True, 1), (False, 5)])
def test_changing_shapes(backend: str, dynamic: bool | None, captures: int) -> None:
    compiled = magpy_core.compile(centred, backend=backend, dynamic=dynamic)
    assert agree(compiled, centred, sizes(6, 3, 7, 4, 5, 6)) == captures
    assert region_of(compiled).hits == {2: 4, 1: 5, 5: 1}[captures]


def test_zero_and_one_are_captured_on_their_own() -> None:
    compiled = magpy_core.compile(centred, backend="eager", dynamic=True)
    assert agree(compiled, centred, sizes(3, 1, 5, 1)) == 2
    one_first = magpy_core.compile(centred, backend="eager", dynamic=True)
    assert agree(one_first, centred, sizes(1, 3, 5, 1, 9)) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("empty_compiler_cache")
def test_with_inductor_and_gradients() -> None:
    net = nn.Linear(4, 3)
    compiled = magpy_core.compile(lambda x: net(x).relu().sum(0), dynamic=True, wait=True)
    for n in (6, 2, 9, 5):
        x, y = (torch.arange(4.0 * n).view(n, 4).requires_grad_() for _ in range(2))
        compiled(x).sum().backward()
        got = net.weight.grad.clone() if net.weight.grad is not None else None
        net.zero_grad()
        net(y).relu().sum(0).sum().backward()
        assert torch.allclose(x.grad, y.grad) and got is not None and torch.allclose(got, net.weight.grad)
        net.zero_grad()
    assert len(magpy_core.captures(compiled)) == 1


def test_integers_among_the_arguments_vary_at_once() -> None:
    def scaled(x: torch.Tensor, n: int, options: dict[str, int]) -> torch.Tensor:
        return x * n + options["shift"]

    x = torch.randn(3)
    calls: list[tuple[Any, ...]] = [(x, n, {"shift": n + 1}) for n in (2, 3, 0, 1, 7)]
    for backend in BACKENDS:
        assert agree(magpy_core.compile(scaled, backend=backend, dynamic=True), scaled, calls) == 1
        assert agree(magpy_core.compile(scaled, backend=backend), scaled, calls) == 2


def test_an_integer_that_decides_is_exact() -> None:
    def repeated(x: torch.Tensor, n: int) -> torch.Tensor:
        for _ in range(n):
            x = x * 2
        return x[:n] if n > 1 else x

    compiled = magpy_core.compile(repeated, backend="eager", dynamic=True)
    agree(compiled, repeated, [(torch.randn(4), n) for n in (2, 3, 2, 1, 3)])
    assert not region_of(compiled).disabled


def test_weights_and_buffers_keep_their_sizes() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    magpy_core.compile(net, backend="eager", dynamic=True)
    plain = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    plain.load_state_dict(net.state_dict())
    assert agree(net, plain, sizes(5, 3, 8)) == 1
    (capture,) = magpy_core.captures(net)
    assert [bool(t.dims) for t in capture.trace.tensors].count(True) == 1
    assert all(map(same, net.state_dict().values(), plain.state_dict().values()))


def test_a_recording_that_asks_too_much_is_made_again_as_it_is() -> None:
    """A stride is read: it follows from sizes in a way that no number of the graph says."""

    def strided(x: torch.Tensor) -> torch.Tensor:
        return x.t() * x.stride(0)

    compiled = magpy_core.compile(strided, backend="eager", dynamic=True)
    agree(compiled, strided, [(torch.randn(3, 4),)] * 3)
    region = region_of(compiled)
    assert not region.disabled and region.hits and not [f for f in region.findings.values() if f.code == "MP109"]


def test_dynamic_is_none_true_or_false() -> None:
    with pytest.raises(TypeError, match="dynamic"):
        magpy_core.compile(centred, dynamic="yes")  # type: ignore[arg-type]


# -- marks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dims", [0, -2, (0,), [0, -2]])
def test_a_marked_dimension_varies_at_once(backend: str, dims: Any) -> None:
    compiled = magpy_core.compile(centred, backend=backend)
    calls = sizes(6, 3, 7)
    magpy_core.mark_dynamic(calls[0][0], dims)
    assert agree(compiled, centred, calls) == 1
    (capture,) = magpy_core.captures(compiled)
    assert [t.dims for t in capture.trace.tensors] == [{0}]


def test_a_mark_counts_where_dynamic_is_false() -> None:
    compiled = magpy_core.compile(centred, backend="eager", dynamic=False)
    calls = sizes(6, 3, 7)
    magpy_core.mark_dynamic(calls[0][0], 0)
    assert agree(compiled, centred, calls) == 1


def test_a_marked_global() -> None:
    table = torch.randn(5, 4)
    magpy_core.mark_dynamic(table, 0)

    def looked_up(i: torch.Tensor) -> torch.Tensor:
        return table[i] * table.shape[0]

    compiled = magpy_core.compile(looked_up, backend="eager")
    compiled(torch.tensor([1]))
    table = torch.randn(7, 4)
    assert same(compiled(torch.tensor([2])), looked_up(torch.tensor([2])))
    assert len(magpy_core.captures(compiled)) == 1


def test_a_marked_size_of_one_stays() -> None:
    compiled = magpy_core.compile(centred, backend="eager")
    x = torch.randn(1, 4)
    magpy_core.mark_dynamic(x, 0)
    assert agree(compiled, centred, [(x,), *sizes(1, 1)]) == 1
    assert region_of(compiled).hits == 2


def test_a_mark_is_not_seen_and_keeps_nothing_alive() -> None:
    x = torch.randn(3, 4)
    before = pickle.dumps(x)
    magpy_core.mark_dynamic(x, 1)
    assert vars(x) == {} and pickle.dumps(x) == before
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_a_new_tensor_at_the_same_address_is_not_marked() -> None:
    from magpy_core.recording import marks

    for n in range(400):  # also: the table does not grow
        x = torch.randn(3)
        assert not marks.marked(x)
        if n % 2:
            magpy_core.mark_dynamic(x, 0)
            magpy_core.mark_dynamic(x, 0)
            assert marks.marked(x) == {0}
    assert len(marks._marked) <= 256


def test_what_can_be_marked() -> None:
    x = torch.randn(3, 4)
    for dim in (2, -3, (0, 5)):
        with pytest.raises(IndexError):
            magpy_core.mark_dynamic(x, dim)
    for wrong, dim in (([1], 0), (None, 0), (x, "0"), (x, 1.0), (x, True)):
        with pytest.raises(TypeError):
            magpy_core.mark_dynamic(wrong, dim)  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        magpy_core.mark_dynamic(torch.tensor(1.0), 0)


def test_marking_inside_a_region() -> None:
    def marks_it(x: torch.Tensor) -> torch.Tensor:
        magpy_core.mark_dynamic(x, 0)
        return x.sin()

    compiled = magpy_core.compile(marks_it, backend="eager")
    agree(compiled, marks_it, sizes(3, 3, 5, 7))


@pytest.mark.parametrize("backend", ["aot_eager"])
def test_what_a_backend_takes_for_fixed_is_asked_of_the_only_input(backend: str) -> None:
    """The check gets the tensor, and not what indexing the tensor gives."""
    compiled = magpy_core.compile(centred, backend=backend, dynamic=True)
    for args in sizes(6, 3, 7):
        compiled(*args)
    (capture,) = magpy_core.captures(compiled)
    x = torch.randn(9, 3)  # no even number of columns
    assert capture.run((x,), {}) is MISS and capture.run((torch.randn(9, 8),), {}) is not MISS


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "parts",
    [
        lambda x: sum(x.T),
        lambda x: x.view(len(x), 2, -1).unbind(1),
        lambda x: x.chunk(2, dim=1),
        lambda x: torch.meshgrid(x[:, 0], x[0], indexing="ij"),
        lambda x: list(reversed(x.T)),
    ],
)
def test_sizes_vary_where_the_number_of_parts_does_not(backend: str, parts: Callable[..., Any]) -> None:
    compiled = magpy_core.compile(parts, backend=backend)
    assert agree(compiled, parts, sizes(6, 3, 7, 4, 5, 6)) == 2


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "parts, captures",
    [
        (lambda x: [row * i for i, row in enumerate(x)], 4),
        (lambda x: x.T.unbind(1), 4),
        (lambda x: [len(part) for part in x.split(3)], 3),
        (lambda x: len(x.chunk(3)), 3),
    ],
)
def test_the_number_of_parts_is_guarded(backend: str, parts: Callable[..., Any], captures: int) -> None:
    compiled = magpy_core.compile(parts, backend=backend)
    found = agree(compiled, parts, sizes(5, 6, 3, 4, 6, 3, 4, 5))
    assert found == captures if backend == "eager" else found >= captures  # AOTAutograd may fix more sizes


def compared(x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
    """As nn.RNN checks its state."""
    expected = (2, x.size(0), 4)
    if state.size() != expected:
        return x.sum() - state.sum()
    return (x + state).sum() if tuple(x.shape) == (x.size(0), x.size(1)) else x


def states(*counts: tuple[int, int]) -> list[tuple[Any, ...]]:
    return [(torch.randn(n, 4), torch.randn(2, m, 4)) for n, m in counts]


@pytest.mark.parametrize("backend", BACKENDS)
def test_sizes_compared_as_a_whole_stay_dynamic(backend: str) -> None:
    compiled = magpy_core.compile(compared, backend=backend)
    assert agree(compiled, compared, states((3, 3), (5, 5), (7, 7), (4, 4))) == 2
    assert agree(compiled, compared, states((3, 5), (6, 2), (5, 3), (9, 9), (2, 6))) == 3  # unequal: another path
    assert agree(compiled, compared, [(torch.randn(n, 4), torch.randn(2, n)) for n in (3, 5, 6)]) == 4  # of another length


@pytest.mark.parametrize("cell", [nn.RNN, nn.LSTM, nn.GRU])
def test_the_batch_of_a_recurrent_layer_is_dynamic(cell: Callable[..., nn.Module]) -> None:
    net = cell(4, 5, batch_first=True)
    compiled = magpy_core.compile(lambda x: net(x)[0], backend="eager")
    assert agree(compiled, lambda x: net(x)[0], [(torch.randn(n, 3 + n, 4),) for n in (2, 5, 3, 7, 4)]) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("empty_compiler_cache")
@pytest.mark.parametrize("trains", [True, False])
def test_code_that_is_kept_for_some_sizes_is_not_taken_for_others(trains: bool) -> None:
    """Inductor compiles a gate (GLU) for one size only."""
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.GLU(-2))
    for size in ((48, 48), (64, 40), (48, 48)):
        net = copy.deepcopy(plain)
        compiled = magpy_core.compile(net, dynamic=True, wait=True)
        for one in (size, size, (size[0] + 24, size[1]), size):
            x = torch.randn(2, 3, *one)
            results = []
            for model, call in ((plain, plain), (net, compiled)):
                model.zero_grad()
                with torch.set_grad_enabled(trains):
                    y = call(x)
                if trains:
                    y.mean().backward()
                results.append([y, *(parameter.grad for parameter in model.parameters())])
            torch.testing.assert_close(results[1], results[0], rtol=1e-3, atol=1e-5)


class Pooled(nn.Module):
    """Normalized convolutions, with ``head`` over the image that is left."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 12, 3, stride=2, padding=1), nn.BatchNorm2d(12), nn.ReLU(),
        )  # fmt: skip
        self.head = head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.convolutions(x))
        return result


@pytest.mark.slow
@pytest.mark.usefixtures("empty_compiler_cache")
@pytest.mark.parametrize("is_whole_step", [True, False])
def test_convolutions_train_on_images_of_all_sizes(is_whole_step: bool) -> None:
    """Two captures, whose compiled code is valid for every size: in a whole step, and with a backward pass outside."""
    torch.manual_seed(0)
    plain = Pooled(nn.AdaptiveAvgPool2d(2))
    net = copy.deepcopy(plain)
    loss_of = net if is_whole_step else magpy_core.compile(net, wait=True)

    def trainer(model: nn.Module, call: Any) -> Any:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

        def step(x: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()
            loss: torch.Tensor = call(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    expected, step = trainer(plain, plain), trainer(net, loss_of)
    compiled = magpy_core.compile(step, wait=True) if is_whole_step else step
    sizes = [(32, 32), (40, 48), (48, 40), (56, 32), (33, 47), (104, 96), (64, 200), (32, 32)]
    for height, width in sizes:
        x = torch.randn(2, 3, height, width)
        torch.testing.assert_close(compiled(x), expected(x), rtol=1e-3, atol=1e-4)
    for ours, theirs in zip(net.state_dict().values(), plain.state_dict().values(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)
    region = region_of(compiled if is_whole_step else net)
    assert region is not None
    captures = 3 if torch.torch_version.TorchVersion(torch.__version__) < "2.12" else 2  # odd sizes apart
    assert (region.recordings, region.hits) == (captures, len(sizes) - captures), (region.recompiles, region.findings)


class PaddedLoss(nn.Module):
    """As language models have it: labels are shifted after one more was added."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(20, 8), nn.Linear(8, 20)

    def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.embedding(ids))
        labels = nn.functional.pad(labels, (0, 1), value=-100)[..., 1:].contiguous()
        return nn.functional.cross_entropy(logits.reshape(-1, 20), labels.reshape(-1), ignore_index=-100)


@pytest.mark.slow
@pytest.mark.usefixtures("empty_compiler_cache")
def test_a_backward_pass_may_need_a_size_that_none_of_its_tensors_has() -> None:
    """The labels that are saved for it are one longer."""
    torch.manual_seed(0)
    plain = PaddedLoss()
    net = copy.deepcopy(plain)
    compiled = magpy_core.compile(net, wait=True)
    for shape in ((2, 7), (3, 9), (4, 11), (5, 6), (2, 13)):
        ids = torch.randint(20, shape)
        for model, call in ((plain, plain), (net, compiled)):
            model.zero_grad()
            call(ids, ids.clone()).backward()
        for ours, theirs in zip(net.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-5)
    region = region_of(net)
    assert region is not None
    assert (region.recordings, region.hits) == (2, 3), region.findings


class Unrolled(nn.Module):
    """Under autocast, AOTAutograd repeats the cell of a GRU as often as the first sequence is long."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(4, 6, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu"):
            return self.layer(x)[0] * 2  # type: ignore[no-any-return]


def test_sizes_that_the_compiler_fixes_are_not_captured_one_by_one() -> None:
    torch.manual_seed(0)
    module = Unrolled()
    compiled = magpy_core.compile(module, backend="aot_eager", wait=True)
    for length in (5, 5, 7, 7, 9, 9, 11, 11, 7, 5, 9):
        x = torch.randn(2, length, 4)
        torch.testing.assert_close(compiled(x), module(x))
    captures = magpy_core.captures(compiled)
    assert len(captures) == 2 and all(capture.hits >= 2 for capture in captures), "their own lengths are still served"
    assert captures[0].fits_but_for((module, torch.randn(2, 7, 4)), {}) is None
    fixed = captures[0].fits_but_for((module, torch.randn(2, 9, 4)), {})
    assert fixed is not None and fixed.source is not None and (fixed.old, fixed.new) == ("7", "9")
    (found,) = (finding for finding in region_of(compiled).findings.values() if finding.code == "MP203")
    assert "each size of its inputs needs its own code" in found.message


def halved(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Its graph is cut at the branch; the second part has sizes that no input has."""
    y = (x[::2] @ w).relu()
    if y.sum() > -1.0:
        y = y + y[:1]
    return (y.view(y.shape[0] * 2, -1) * y.shape[0]).softmax(0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_later_part_of_a_graph_has_sizes_that_vary(backend: str) -> None:
    torch.manual_seed(0)
    w = torch.randn(4, 4)
    compiled = magpy_core.compile(halved, backend=backend, wait=True)
    calls = [(torch.randn(n, 4), w) for n in (6, 6, 8, 8, 12, 20, 10, 6, 8)]
    assert agree(compiled, halved, calls) == 2
    newest = magpy_core.captures(compiled)[0]
    assert len(newest.segments) == 2 and newest.hits >= 5
    one_row = [(torch.randn(n, 4), w) for n in (2, 2, 1, 2, 14)]  # the second part takes one row
    assert agree(compiled, halved, one_row) <= 4
    assert newest.hits >= 6 and not region_of(compiled).disabled


def counted(x: torch.Tensor, w: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """Its first part writes, and draws random numbers."""
    count.add_(1)
    y = (x[::2] @ w).relu() + torch.rand(())
    if y.sum() > -1.0:
        y = y * 1.5
    return torch.cat([y, y]).view(2, -1, 4).sum(1)


def test_nothing_is_doubled_where_a_later_part_has_other_sizes() -> None:
    w = torch.randn(4, 4)
    compiled = magpy_core.compile(counted, backend="aot_eager", wait=True, same_random=True)
    results = []
    inputs = [torch.randn(n, 4) for n in (6, 6, 8, 8, 12, 8, 14)]
    refused: list[int] = []
    for function in (compiled, counted):
        torch.manual_seed(0)
        count = torch.zeros(())
        results.append([])
        for n, x in enumerate(inputs):
            if function is compiled and n == 4:  # the sizes of its first part let every call pass that the guard lets pass
                names = magpy_core.captures(compiled)[0].namespace
                names["shapes_ok1"] = lambda values: refused.append(1)
            results[-1].append((function(x, w, count), count.clone()))
    for (found, counts), (wanted, wanted_counts) in zip(*results, strict=True):
        torch.testing.assert_close(found, wanted)
        assert counts == wanted_counts
    assert refused, "no later part was reached"


def test_a_number_that_the_compiler_fixes_is_named_with_both_values() -> None:
    """How often to rotate is a decision of torch's own code for the operation."""
    compiled = magpy_core.compile(lambda x, k: torch.rot90(x, k) * 2, backend="aot_eager", wait=True)
    x = torch.arange(6.0).reshape(2, 3)
    for k in (0, 1, 2, 3, 1, 2):
        assert torch.equal(compiled(x, k), torch.rot90(x, k) * 2)
    causes = [(one.name, one.old, one.new) for one in region_of(compiled).log.recompiles]
    assert {name for name, *_ in causes} == {"k"} and [new for *_, new in causes][:: len(causes) - 1] == ["1", "3"]
