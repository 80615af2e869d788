"""A compiled nn.Module can be used in the module's place."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from tests.unit.engine_pair import same

X = torch.arange(6.0).reshape(2, 3)


class Net(nn.Module):
    scale = 2.0

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x: torch.Tensor, *, twice: bool = False) -> torch.Tensor:
        self.steps += 1
        y = self.norm(self.lin(x)) * self.scale
        return y * 2 if twice else y

    def helper(self) -> str:
        return f"{self.lin.out_features} out"


def make(**options: Any) -> tuple[Net, Any]:
    torch.manual_seed(0)
    net = Net()
    return net, magpy_core.compile(net, **{"backend": "eager", **options})


def test_it_is_a_module_of_the_same_class() -> None:
    net, c = make()
    assert isinstance(c, Net) and isinstance(c, nn.Module) and c is not net
    assert type(c).__name__ == "Net"
    assert repr(c) == repr(net)


def test_calls_replay_and_share_the_state() -> None:
    net, c = make()
    twin = copy.deepcopy(net)
    for _ in range(3):
        assert same(c(X), twin(X))
    assert torch.equal(net.steps, torch.full((1,), 3.0)) and c.steps is net.steps
    assert same(net.state_dict(), twin.state_dict())
    assert len(magpy_core.captures(c)) == 1
    assert same(c(X, twice=True), twin(X, twice=True))


def test_attributes_methods_and_children() -> None:
    net, c = make()
    assert c.lin is net.lin and c.helper() == "4 out" and c.scale == 2.0
    assert list(c.state_dict()) == list(net.state_dict())
    assert [n for n, _ in c.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert [n for n, _ in c.named_modules()] == [n for n, _ in net.named_modules()]
    assert len(list(c.children())) == 2
    c.scale = 3.0
    assert net.scale == 3.0
    net.extra = nn.Linear(1, 1)
    assert "extra" in dict(c.named_children())
    with pytest.raises(AttributeError):
        c.nothing  # noqa: B018


def test_train_eval_to_and_zero_grad_reach_the_module() -> None:
    net, c = make()
    assert c.eval() is c and not net.training and not net.norm.training
    assert c.train() is c and net.norm.training
    c.double()
    assert net.lin.weight.dtype is torch.float64
    c.float()
    c(X).sum().backward()
    assert net.lin.weight.grad is not None
    c.zero_grad()
    assert net.lin.weight.grad is None
    c.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_state_dicts_go_both_ways() -> None:
    net, c = make()
    other = Net()
    other.load_state_dict(c.state_dict())
    assert same(other.state_dict(), net.state_dict())
    changed = {k: v + 1 for k, v in net.state_dict().items()}
    c(X)
    c.load_state_dict(changed)
    c.eval()
    other.load_state_dict(changed)
    assert same(c(X), other.eval()(X))


def test_deepcopy_is_compiled_and_independent() -> None:
    net, c = make()
    c(X)
    twin = copy.deepcopy(c)
    assert isinstance(twin, Net) and twin.lin.weight is not net.lin.weight
    assert magpy_core.captures(twin) == []
    twin.eval()
    twin(X)
    assert len(magpy_core.captures(twin)) == 1
    assert net.training
    with torch.no_grad():
        twin.lin.weight.zero_()
    assert not torch.equal(net.lin.weight, twin.lin.weight)


def test_pickle_and_torch_save() -> None:
    _, c = make()
    c.eval()
    want = c(X)
    again = pickle.loads(pickle.dumps(c))
    assert isinstance(again, Net) and magpy_core.captures(again) == []
    again.eval()
    assert same(again(X), want)
    file = io.BytesIO()
    torch.save(c, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert same(loaded.eval()(X), want)


def test_hooks_of_the_compiled_handle() -> None:
    _, c = make()
    c.eval()
    seen: list[int] = []
    handle = c.register_forward_hook(lambda m, a, o: seen.append(1))
    for _ in range(3):
        c(X)
    assert len(seen) == 3
    handle.remove()
    c(X)
    assert len(seen) == 3


def test_as_a_child_of_another_module() -> None:
    net, c = make()
    outer = nn.Sequential(c, nn.ReLU())
    twin = nn.Sequential(copy.deepcopy(net), nn.ReLU())
    for _ in range(3):
        assert same(outer(X), twin(X))
    assert list(outer.state_dict()) == list(twin.state_dict())


def test_compiling_twice_does_not_stack() -> None:
    net, c = make()
    again = magpy_core.compile(c, backend="eager")
    assert type(again) is type(c) and same(again(X).shape, net(X).shape)
    assert len(magpy_core.captures(again)) == 1


def test_training_a_compiled_module() -> None:
    net, c = make(backend="aot_eager")
    twin = copy.deepcopy(net)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.1) for m in (c, twin)]
    for step in range(4):
        losses = []
        for m, optimizer in zip((c, twin), optimizers, strict=True):
            optimizer.zero_grad()
            loss = m(X + step).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        assert torch.allclose(losses[0], losses[1], rtol=1e-5)
    assert c.__magpy_region__.hits == 3
