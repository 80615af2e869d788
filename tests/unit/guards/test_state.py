"""Guards on state Python hides: train/eval, grad mode, autocast, hooks, parameters, aliasing, tensors' metadata."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import code_of, pair, plainly, same

X = torch.arange(6.0).reshape(2, 3)


def compiled(target: Any) -> Any:
    return magpy_core.compile(target, backend="eager")


def hits(target: Any) -> int:
    return int(region_of(target).hits)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.drop(self.first(x)))


def test_train_and_eval_are_two_captures() -> None:
    plain, net = Net(), Net()
    c = compiled(net)
    for mode in (True, False, True, False, False):
        plain.train(mode)
        c.train(mode)
        torch.manual_seed(1)
        want = plain(X)
        torch.manual_seed(1)
        assert same(c(X), want)
        assert same(net.state_dict(), plain.state_dict())  # running statistics too
    assert len(magpy_core.captures(c)) == 2
    assert hits(c) == 3


def test_the_mode_of_an_inner_module_is_guarded() -> None:
    net = Net().eval()
    c = compiled(net)
    c(X)
    net.drop.train()
    failures = code_of(c).guards.explain((net, X), {})
    assert [(f.name, f.old, f.new) for f in failures] == [("self.drop.training", "False", "True")]
    assert failures[0].location is not None and failures[0].location.function == "Net.forward"  # the user's own line


def test_grad_mode_is_guarded_and_kept() -> None:
    w = nn.Parameter(torch.ones(3))
    c = compiled(lambda x: x * w)
    assert c(X).requires_grad
    with torch.no_grad():
        assert not c(X).requires_grad
        assert not c(X).requires_grad
    with torch.inference_mode():
        assert c(X).is_inference()
        assert c(X).is_inference()
    assert c(X).requires_grad
    assert hits(c) == 3
    with torch.no_grad():
        newest = code_of(c)
        names = [f.name for f in newest.guards.explain((X,), {}, global_ok=newest.globals_hold())]
        assert any("torch's" in n for n in names)


def test_no_grad_inside_the_region() -> None:
    w = nn.Parameter(torch.ones(3))

    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.no_grad():
            a = x * w
        return a, x * w

    c = compiled(f)
    for _ in range(3):
        a, b = c(X)
        assert not a.requires_grad and b.requires_grad
    assert hits(c) == 2


def test_autocast_is_guarded() -> None:
    w = torch.ones(3, 3)
    c = compiled(lambda x: x @ w)
    assert c(X).dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert c(X).dtype is torch.bfloat16
        assert c(X).dtype is torch.bfloat16
    assert c(X).dtype is torch.float32
    assert hits(c) == 2


def test_autocast_inside_the_region() -> None:
    w = torch.ones(3, 3)

    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            a = x @ w
        return a, x @ w

    c = compiled(f)
    for _ in range(3):
        a, b = c(X)
        assert (a.dtype, b.dtype) == (torch.bfloat16, torch.float32)
    assert hits(c) == 2


def test_the_default_dtype_is_guarded() -> None:
    c = compiled(lambda x: torch.zeros(2))
    c(X)
    torch.set_default_dtype(torch.float64)
    try:
        assert c(X).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("where", ["outer", "inner"])
def test_a_hook_added_later_runs(where: str) -> None:
    net = Net().eval()
    c = compiled(net)
    want = c(X)
    c(X)
    seen: list[int] = []
    module = net if where == "outer" else net.first

    def hook(m: Any, args: Any, out: torch.Tensor) -> torch.Tensor:
        seen.append(1)
        return out + 1

    handle = module.register_forward_hook(hook)
    for n in range(1, 4):
        assert not same(c(X), want)
        assert len(seen) == n
    handle.remove()
    assert same(c(X), want)
    assert len(seen) == 3


def test_a_forward_pre_hook_and_a_global_hook() -> None:
    net = Net().eval()
    c = compiled(net)
    c(X)
    want = net(X * 2)
    handle = net.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    assert same(c(X), want)
    handle.remove()
    names: list[str] = []
    handle = nn.modules.module.register_module_forward_hook(lambda m, a, o: names.append(type(m).__name__))
    c(X)
    handle.remove()
    assert names == ["Linear", "Dropout", "BatchNorm1d", "Net"]


def test_an_instance_forward_set_later() -> None:
    net = Net().eval()
    c = compiled(net)
    c(X)
    net.first.forward = lambda x: x * 0  # type: ignore[method-assign]
    assert same(c(X), plainly(net, X))


def test_a_parameter_updated_or_replaced_needs_no_new_capture() -> None:
    net = Net().eval()
    c = compiled(net)
    c(X)
    with torch.no_grad():
        net.first.weight.mul_(3)
    assert same(c(X), plainly(net, X))
    net.first.weight = nn.Parameter(torch.full((3, 3), 0.25))
    assert same(c(X), plainly(net, X))
    net.load_state_dict({k: v + 1 for k, v in net.state_dict().items()})
    assert same(c(X), plainly(net, X))
    assert len(magpy_core.captures(c)) == 1
    assert hits(c) == 3


def test_a_submodule_replaced_is_seen() -> None:
    net = Net().eval()
    c = compiled(net)
    c(X)
    net.first = nn.Linear(3, 3)
    assert same(c(X), plainly(net, X))
    net.first = nn.Identity()  # type: ignore[assignment]
    assert same(c(X), plainly(net, X))


def test_a_bias_removed_and_a_frozen_parameter() -> None:
    net = Net().eval()
    c = compiled(net)
    c(X)
    net.first.bias = None  # type: ignore[assignment]
    assert same(c(X), plainly(net, X))
    net.first.weight.requires_grad_(False)
    net.norm.weight.requires_grad_(False)
    net.norm.bias.requires_grad_(False)
    assert not c(X).requires_grad


# -- aliasing -----------------------------------------------------------------------------------------------------------


def add_in_place(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a.add_(1)
    return a + b


def test_two_tensors_that_become_one_and_back() -> None:
    p = pair(add_in_place)
    p(torch.zeros(3), torch.ones(3))
    shared = torch.zeros(3)
    p(shared, shared)
    p(torch.zeros(3), torch.ones(3))
    shared = torch.zeros(3)
    p(shared, shared)
    assert p.counts == (2, 2)


def test_two_views_of_one_storage() -> None:
    p = pair(add_in_place)
    p(torch.zeros(3), torch.ones(3))
    base = torch.arange(6.0)
    p(base[:3], base[3:])
    base = torch.arange(6.0)
    p(base[1:4], base[2:5])
    p(torch.zeros(3), torch.ones(3))


def test_two_lists_that_become_one_and_back() -> None:
    def f(x: torch.Tensor, a: list[Any], b: list[Any]) -> tuple[torch.Tensor, int]:
        a.append("new")
        return x + 1, len(b)

    p = pair(f)
    p(X, [], [])
    one: list[Any] = []
    p(X, one, one)
    p(X, [], [])
    one = []
    p(X, one, one)
    assert p.region.hits >= 1


def test_identity_tests_are_guarded_both_ways() -> None:
    def f(x: torch.Tensor, a: list[Any], b: list[Any]) -> torch.Tensor:
        return x + 1 if a is b else x - 1

    p = pair(f)
    one: list[Any] = []
    p.calls((X, [], []), (X, one, one), (X, [], []), (X, one, one))
    assert p.counts == (2, 2)


def test_a_tensor_given_as_argument_may_be_a_parameter() -> None:
    w = nn.Parameter(torch.ones(3))

    def f(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x is w else x - 1

    c = compiled(f)
    assert torch.equal(c(torch.zeros(3)), torch.full((3,), -1.0))
    assert torch.equal(c(w), w + 1)
    assert torch.equal(c(torch.zeros(3)), torch.full((3,), -1.0))


def test_an_operation_that_gives_its_own_input_back() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.5, training=False)

    c = compiled(f)
    for _ in range(3):
        t = torch.ones(2)
        assert c(t) is t


# -- tensors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        torch.ones(2, 3, dtype=torch.float64),
        torch.ones(3, 2).t(),
        torch.ones(2, 3, requires_grad=True),
        torch.ones(1, 2, 3),
        torch.ones(2, 6)[:, ::2],
        nn.Parameter(torch.ones(2, 3)),
        torch.ones(2, 3).to_sparse(),
    ],
    ids=["dtype", "strides", "requires_grad", "rank", "step", "parameter", "sparse"],
)
def test_another_kind_of_tensor_is_a_miss(other: torch.Tensor) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    c = compiled(f)
    c(X)
    capture = code_of(c)
    assert capture.matches((X,), {})
    assert not capture.matches((other,), {})
    assert capture.guards.explain((other,), {})
    want, got = f(other), c(other)
    assert (got.dtype, got.shape, got.requires_grad, got.layout) == (want.dtype, want.shape, want.requires_grad, want.layout)
    assert c(X).dtype is torch.float32


def test_a_varying_dimension_becomes_dynamic_and_a_third_size_is_a_hit() -> None:
    w = torch.ones(3, 4)
    p = pair(lambda x: torch.relu(x @ w).sum(0) / x.shape[0])
    p.calls(*[(torch.randn(n, 3),) for n in (2, 5, 7, 9, 2, 64)])
    assert p.counts == (2, 4)
    assert p.codes.count("MP205") == 1
    assert p.region.captures[0].trace.dims


def test_two_dimensions_vary_one_after_the_other() -> None:
    p = pair(lambda x: x.reshape(x.shape[0] * x.shape[1]) + x.numel())
    p.calls(*[(torch.randn(*s),) for s in ((2, 3), (4, 3), (4, 5), (6, 7), (8, 9))])
    assert len(p.region.captures) == 3
    assert p.region.hits == 2


def test_python_that_depends_on_a_varying_size() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, str, int]:
        y = x * 2 if x.shape[0] > 4 else x * 3
        return y, "many" if len(x) > 4 else "few", x.size(0) + 1

    pair(f).calls(*[(torch.randn(n, 3),) for n in (2, 3, 4, 5, 6, 2, 9, 4)])


def test_a_size_turned_into_text_is_never_stale() -> None:
    pair(lambda x: (x + 1, f"{x.shape[0]}", str(tuple(x.shape)))).calls(*[(torch.randn(n, 3),) for n in (2, 3, 4, 5)])


def test_a_loop_over_a_varying_size() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        total = x[0] * 0
        for i in range(x.shape[0]):
            total = total + x[i] * i
        for row in x:
            total = total + row
        return total

    pair(f).calls(*[(torch.randn(n, 3),) for n in (2, 3, 4, 3)])


def _set_cudnn(name: str, value: bool) -> Any:
    setattr(torch.backends.cudnn, name, value)


@pytest.mark.parametrize(
    ("read", "change"),
    [
        (lambda: torch.backends.cudnn.enabled, lambda on: _set_cudnn("enabled", on)),
        (lambda: torch.backends.cudnn.benchmark, lambda on: _set_cudnn("benchmark", on)),
        (lambda: torch._C._get_cudnn_deterministic(), lambda on: _set_cudnn("deterministic", on)),
        (torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.enable_flash_sdp),
        (lambda: torch.backends.mkldnn.enabled, lambda on: torch.backends.mkldnn.set_flags(on)),
    ],
    ids=["enabled", "benchmark", "deterministic", "flash", "mkldnn"],
)
def test_settings_of_torch(read: Any, change: Any) -> None:
    """What torch is set to, which its own global guard does not watch."""

    def f(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if read() else x - 1

    before = read()
    c = compiled(f)
    try:
        for on in (True, False, True, False):
            change(on)
            torch.testing.assert_close(c(X), X * 2 if on else X - 1)
        assert hits(c) == 2
    finally:
        change(before)
