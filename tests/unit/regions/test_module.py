"""An nn.Module is compiled in place: it stays the same object, and `disabled` and `uncompile` reach its plain behaviour."""

from __future__ import annotations

import copy
import functools
import io
import pickle
import weakref
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.regions.api import region_of
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


def test_it_is_the_module_itself() -> None:
    net = Net()
    shown = repr(net)
    assert magpy_core.compile(net, backend="eager") is net
    assert type(net) is Net and repr(net) == shown


def test_disabled_and_uncompiled() -> None:
    net, c = make()
    net.eval()
    want = [c(X), c(X)]
    with magpy_core.disabled():
        want.append(c(X))
        assert region_of(c).calls == 2
    want.append(c(X))
    assert region_of(c).calls == 3
    assert magpy_core.uncompile(net) is net and magpy_core.uncompile(net) is net
    assert all(same(net(X), y) for y in want)
    with pytest.raises(TypeError, match=r"magpy_core\.compile"):
        magpy_core.captures(net)


def test_disabled_may_be_nested_and_is_left_on_errors() -> None:
    net, _ = make()
    with pytest.raises(ZeroDivisionError), magpy_core.disabled():
        with magpy_core.disabled():
            pass
        net(X)
        assert region_of(net).calls == 0
        1 / 0  # noqa: B018
    net(X)
    assert region_of(net).calls == 1


def test_functions_are_uncompiled_too() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    compiled = magpy_core.compile(f, backend="eager")
    assert magpy_core.uncompile(compiled) is f and magpy_core.uncompile(f) is f

    @functools.wraps(compiled)
    def around(x: torch.Tensor) -> torch.Tensor:
        return compiled(x) + 1

    assert magpy_core.uncompile(around) is around, "a wrapper that copied the attributes is not what was compiled"
    assert magpy_core.compile(around, backend="eager")(torch.ones(1)).item() == 3
    with magpy_core.disabled():
        compiled(X)
    assert region_of(compiled).calls == 0, "the call that `around` made is part of its region"


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


def _through_pickle(net: Any) -> Any:
    return pickle.loads(pickle.dumps(net))


def _through_torch_save(net: Any) -> Any:
    file = io.BytesIO()
    torch.save(net, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


class OwnState(Net):
    """Its pickles and copies have the whole ``__dict__``."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__


@pytest.mark.parametrize("cls", [Net, OwnState])
@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, _through_pickle, _through_torch_save])
def test_copies_are_plain_modules(cls: type[Net], copied: Any) -> None:
    net = magpy_core.compile(cls().eval(), backend="eager")
    want = net(X)
    twin = copied(net)
    assert type(twin) is cls and same(twin(X), want)
    if copied is not copy.copy or cls is Net:  # that one shares what the module's __dict__ holds
        with pytest.raises(TypeError, match=r"magpy_core\.compile"):
            magpy_core.captures(twin)
    with torch.no_grad():
        twin.lin.weight += 1
    shared = copied is copy.copy
    assert same(net(X), twin(X)) == shared and same(net(X), want) != shared
    assert region_of(net).hits


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


def test_compiling_again_replaces_the_options() -> None:
    net, c = make()
    c(X)
    again = magpy_core.compile(c, backend="aot_eager", name="again")
    assert again is net and magpy_core.captures(again) == []
    assert region_of(net).name == "again" and region_of(net).options.backend == "aot_eager"
    assert same(again(X).shape, X.new_empty(2, 4).shape)
    f = magpy_core.compile(magpy_core.compile(lambda x: x + 1, backend="eager"), backend="aot_eager")
    f(X), f(X)
    assert region_of(f).options.backend == "aot_eager" and region_of(f).hits == 1


def test_a_compiled_module_is_freed_at_once() -> None:
    net, _ = make()
    dead = weakref.ref(net)
    del net, _
    assert dead() is None


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
    assert region_of(c).hits == 3
