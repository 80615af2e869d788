"""Whatever is done with a module around its calls, a compiled one behaves as a plain one does.

Each way makes a model, has it compiled (or not), and tells what it saw. Ways call the model several times before and after
what they do, so that captures exist and must notice.
"""

from __future__ import annotations

import copy
import functools
import gc
import io
import pickle
import typing
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

import magpy_core
from magpy_core.regions.api import region_of

Compile = Callable[[Any], Any]
WAYS: dict[str, Callable[[Compile], Any]] = {}


def way(function: Callable[[Compile], Any]) -> Callable[[Compile], Any]:
    WAYS[function.__name__] = function
    return function


def x(i: int = 0, width: int = 3) -> torch.Tensor:
    return torch.arange(2.0 * width).reshape(2, width) / 7 + i


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.scale = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.lin(x)) * self.scale


class Doubled(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * 2


def ran(net: Any, calls: int = 3, width: int = 3) -> list[torch.Tensor]:
    return [net(x(i, width)).detach().clone() for i in range(calls)]


def made(compiled: Compile, cls: Callable[[], nn.Module] = Net) -> tuple[Any, list[torch.Tensor]]:
    net = compiled(cls())
    return net, ran(net)


# -- what torch does to modules ------------------------------------------------------------------------------------------


@way
def weight_norm(compiled: Compile) -> Any:
    net, first = made(compiled)
    parametrizations.weight_norm(net.lin)
    second = ran(net)
    parametrize.remove_parametrizations(net.lin, "weight")
    return first, second, ran(net), sorted(net.state_dict())


@way
def weight_norm_of_the_compiled_module(compiled: Compile) -> Any:
    net, first = made(compiled, lambda: nn.Linear(3, 3).requires_grad_())
    parametrizations.weight_norm(net)
    second = ran(net), type(net).__name__, sorted(net.state_dict())
    return len(first), second[1:], [y.shape for y in second[0]], torch.equal(ran(net)[0], second[0][0])


@way
def spectral_norm(compiled: Compile) -> Any:
    net, first = made(compiled)
    torch.manual_seed(1)
    parametrizations.spectral_norm(net.lin)
    return first, ran(net), sorted(net.state_dict())


@way
def spectral_norm_of_the_compiled_module(compiled: Compile) -> Any:
    torch.manual_seed(0)
    net = compiled(nn.Linear(3, 3))
    first = ran(net)
    torch.manual_seed(1)
    parametrizations.spectral_norm(net)
    return first, ran(net), net.eval() is net, ran(net), type(net).__name__


class Symmetric(nn.Module):
    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.triu() + weight.triu(1).t()


@way
def parametrized(compiled: Compile) -> Any:
    torch.manual_seed(0)
    net = compiled(nn.Linear(3, 3))
    first = ran(net)
    parametrize.register_parametrization(net, "weight", Symmetric())
    second = ran(net), parametrize.is_parametrized(net), type(net).__name__
    with parametrize.cached():
        third = ran(net)
    parametrize.remove_parametrizations(net, "weight", leave_parametrized=False)
    return first, second, third, ran(net), type(net) is nn.Linear


@way
def pruned(compiled: Compile) -> Any:
    net, first = made(compiled)
    prune.l1_unstructured(net.lin, "weight", amount=2)
    second = ran(net)
    prune.remove(net.lin, "weight")
    return first, second, ran(net)


@way
def fused_for_inference(compiled: Compile) -> Any:
    class Convolution(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.conv, self.norm = nn.Conv1d(2, 3, 1), nn.BatchNorm1d(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(self.conv(x[None]))

    net, first = made(compiled, lambda: Convolution().eval())
    net.conv = nn.utils.fuse_conv_bn_eval(net.conv, net.norm)
    net.norm = nn.Identity()
    return first, ran(net)


@way
def lazy(compiled: Compile) -> Any:
    torch.manual_seed(0)
    net = compiled(nn.Sequential(nn.LazyLinear(4), nn.ReLU()))
    first = ran(net)
    return first, type(net[0]).__name__, ran(net), list(net.state_dict())


@way
def lazy_itself(compiled: Compile) -> Any:
    torch.manual_seed(0)
    net = compiled(nn.LazyLinear(4))
    before = type(net).__name__
    return ran(net), before, type(net).__name__, net.in_features


@way
def graph_module(compiled: Compile) -> Any:
    net = compiled(torch.fx.symbolic_trace(Net()))
    first = ran(net)
    for node in net.graph.nodes:
        if node.op == "output":
            with net.graph.inserting_before(node):
                node.args = (net.graph.call_function(torch.neg, (node.args[0],)),)
    net.recompile()
    return first, ran(net), net.code, ran(copy.deepcopy(net))


@way
def functional(compiled: Compile) -> Any:
    net, first = made(compiled)
    values = {name: torch.zeros_like(p) for name, p in net.named_parameters()}
    return first, torch.func.functional_call(net, values, (x(),)).detach(), ran(net)


@way
def data_parallel_copies(compiled: Compile) -> Any:
    """What ``nn.DataParallel`` makes for each device: another module with a copy of the ``__dict__``."""
    net, first = made(compiled)
    replica = net._replicate_for_data_parallel()
    replica.lin = nn.Linear(3, 3)
    with torch.no_grad():
        replica.lin.weight.fill_(1.0)
        replica.lin.bias.zero_()
    return first, ran(replica), ran(net), type(replica) is type(net)


@way
def data_parallel(compiled: Compile) -> Any:
    net, first = made(compiled)
    return first, ran(nn.DataParallel(net))


@way
def swapped_state(compiled: Compile) -> Any:
    net, first = made(compiled)
    torch.manual_seed(3)
    state = {name: torch.randn_like(v) if v.is_floating_point() else v for name, v in net.state_dict().items()}
    net.load_state_dict(state)
    second = ran(net)
    net.load_state_dict(state, assign=True)
    return first, second, ran(net), net.to(torch.float64).lin.weight.dtype, net(x().double()).detach()


@way
def with_swapped_tensors(compiled: Compile) -> Any:
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        net, first = made(compiled)
        weight = net.lin.weight
        net.load_state_dict({name: v + 1 for name, v in net.state_dict().items()})
        second = ran(net)
        net.double()
        third = net(x().double()).detach()
        net.float()
        torch.utils.swap_tensors(net.lin.weight, nn.Parameter(torch.ones(3, 3)))
        return first, second, third, ran(net), net.lin.weight is weight
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)


@way
def shared_memory(compiled: Compile) -> Any:
    net, first = made(compiled)
    return first, net.share_memory() is net, ran(net), net.lin.weight.is_shared()


@way
def scripted(compiled: Compile) -> Any:
    net, first = made(compiled, lambda: Net().eval())
    traced = torch.jit.trace(net, (x(),))
    return first, ran(traced), ran(torch.jit.script(net)), ran(net)


@way
def averaged(compiled: Compile) -> Any:
    net, first = made(compiled)
    average = torch.optim.swa_utils.AveragedModel(net)
    with torch.no_grad():
        net.lin.weight.mul_(2)
    average.update_parameters(net)
    return first, ran(average), ran(net)


@way
def trained_under_one_name_and_called_under_another(compiled: Compile) -> Any:
    net = Net()
    handle = compiled(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for i in range(4):
        optimizer.zero_grad()
        loss = handle(x(i)).pow(2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, ran(handle), ran(net)


# -- what Python does with objects and classes ---------------------------------------------------------------------------


@way
def registry_of_subclasses(compiled: Compile) -> Any:
    names: list[str] = []

    class Base(Net):
        def __init_subclass__(cls, *, key: str, **kwargs: Any) -> None:
            super().__init_subclass__(**kwargs)
            names.append(key)

    class One(Base, key="one"):
        pass

    net, first = made(compiled, One)
    return first, names, [c.__name__ for c in Base.__subclasses__()], ran(net)


@way
def registry_of_a_metaclass(compiled: Compile) -> Any:
    names: list[str] = []

    class Meta(type):
        def __init__(cls, name: str, bases: Any, namespace: Any) -> None:
            super().__init__(name, bases, namespace)
            names.append(name)

    class One(Net, metaclass=Meta):
        pass

    _, first = made(compiled, One)
    return first, names


@way
def final_class(compiled: Compile) -> Any:
    @typing.final
    class One(Net):
        def __init_subclass__(cls) -> None:
            raise TypeError("final")

    net, first = made(compiled, One)
    return first, type(net) is One


@way
def slots(compiled: Compile) -> Any:
    class One(Net):
        __slots__ = ("extra",)
        extra: float

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) * self.extra

    def make() -> nn.Module:
        one = One()
        one.extra = 2.0
        return one

    net, first = made(compiled, make)
    net.extra = 3.0
    return first, ran(net)


@way
def exact_type(compiled: Compile) -> Any:
    net, first = made(compiled)
    return first, type(net) is Net, net.__class__ is Net, isinstance(net, Net), type(net).__mro__ == Net.__mro__


@way
def single_dispatch(compiled: Compile) -> Any:
    @functools.singledispatch
    def kind(m: Any) -> str:
        return "anything"

    @kind.register
    def _(m: nn.Linear) -> str:
        return "linear"

    net = compiled(nn.Linear(3, 3))
    return kind(net), kind(compiled(Net()))


@way
def keys_of_dicts(compiled: Compile) -> Any:
    net = Net()
    names: Any = {net: "net"}
    weak: Any = weakref.WeakKeyDictionary({net: "weak"})
    handle = compiled(net)
    return ran(handle), names[handle], weak[handle], handle in {net}, hash(handle) == hash(net), handle == net


@way
def identity_in_a_hook(compiled: Compile) -> Any:
    net, first = made(compiled)
    seen: list[bool] = []
    hook = net.register_forward_hook(lambda module, args, out: seen.append(module is net))
    second = ran(net)
    hook.remove()
    return first, second, seen, ran(net), seen


@way
def hooks_before_and_after_compiling(compiled: Compile) -> Any:
    net, seen = Net(), []
    net.register_forward_pre_hook(lambda module, args: seen.append(type(module).__name__))
    handle = compiled(net)
    handle.register_forward_hook(lambda module, args, out: out + 1)
    net.register_full_backward_hook(lambda module, gi, go: seen.append("backward"))
    out = handle(x().requires_grad_())
    out.sum().backward()
    return out.detach(), seen, ran(net), seen


@way
def callback_with_a_handle(compiled: Compile) -> Any:
    class Early:
        def __init__(self, model: Any) -> None:
            self.model, self.best = model, []

        def after(self) -> None:
            self.best.append(copy.deepcopy(self.model.state_dict()))
            self.model.scale += 1

    net = Net()
    callback = Early(net)
    handle = compiled(net)
    out = []
    for i in range(5):
        out.append(handle(x(i)).detach())
        callback.after()
    return out, handle.scale, [sorted(b) for b in callback.best]


@way
def dict_replaced(compiled: Compile) -> Any:
    net, first = made(compiled)
    other = Net()
    with torch.no_grad():
        other.lin.weight.zero_()
    net.__dict__ = other.__dict__
    second = ran(net)
    other.scale = 5.0
    return first, second, ran(net), ran(other)


@way
def dict_copied(compiled: Compile) -> Any:
    net, first = made(compiled)
    twin = Doubled.__new__(Doubled)
    twin.__dict__.update(net.__dict__)
    twin.scale = 3.0
    return first, ran(twin), ran(net), ran(twin)


@way
def class_assigned(compiled: Compile) -> Any:
    net, first = made(compiled)
    net.__class__ = Doubled
    second = ran(net)
    net.__class__ = Net
    return first, second, ran(net)


@way
def class_patched(compiled: Compile) -> Any:
    class One(Net):
        pass

    net, first = made(compiled, One)
    type(net).forward = lambda self, x: self.lin(x)
    second = ran(net)
    del type(net).forward
    return first, second, ran(net)


@way
def forward_patched(compiled: Compile) -> Any:
    net, first = made(compiled)
    forward = net.forward
    net.forward = lambda x: forward(x) * 3
    second = ran(net)
    del net.forward
    return first, second, ran(net)


@way
def own_call(compiled: Compile) -> Any:
    class One(Net):
        calls = 0

        def __call__(self, x: torch.Tensor) -> Any:
            self.calls += 1
            return super().__call__(x + 1)

    net, first = made(compiled, One)
    return first, net.calls, ran(net), net.calls


@way
def own_call_without_modules(compiled: Compile) -> Any:
    class One(Net):
        def __call__(self, x: torch.Tensor) -> Any:
            return self.forward(x + 1)

    net, first = made(compiled, One)
    net.scale = 4.0
    return first, ran(net)


@way
def own_getattr(compiled: Compile) -> Any:
    class One(Net):
        def __getattr__(self, name: str) -> Any:
            if name == "offset":
                return 2.0
            return super().__getattr__(name)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) + self.offset

    net, first = made(compiled, One)
    net.offset = 7.0
    return first, ran(net)


@way
def own_getattribute(compiled: Compile) -> Any:
    seen: list[str] = []

    class One(Net):
        def __getattribute__(self, name: str) -> Any:
            if name == "scale":
                seen.append(name)
            return super().__getattribute__(name)

    net, first = made(compiled, One)
    return first, seen, ran(net), seen


@way
def own_setattr(compiled: Compile) -> Any:
    seen: list[str] = []

    class One(Net):
        def __setattr__(self, name: str, value: Any) -> None:
            seen.append(name)
            super().__setattr__(name, value)

    net, first = made(compiled, One)
    net.scale = 2.0
    return first, seen, ran(net)


@way
def copies(compiled: Compile) -> Any:
    net, first = made(compiled)
    deep, shallow = copy.deepcopy(net), copy.copy(net)
    with torch.no_grad():
        net.lin.weight.mul_(2)
    return first, ran(deep), ran(shallow), ran(net), type(deep) is Net, "_compiled_call_impl" in deep.__dict__


@way
def saved(compiled: Compile) -> Any:
    net, first = made(compiled)
    file = io.BytesIO()
    torch.save(net, file)
    size = len(pickle.dumps(net))
    file.seek(0)
    return first, ran(torch.load(file, weights_only=False)), size


@way
def freed(compiled: Compile) -> Any:
    net, first = made(compiled, lambda: nn.Sequential(nn.Linear(3, 3)))
    gc.collect()
    gc.disable()
    try:
        died: list[str] = []
        weakref.finalize(net, died.append, "net")
        weakref.finalize(net[0], died.append, "linear")
        del net
        return len(first), sorted(died)
    finally:
        gc.enable()


# -- modules in modules --------------------------------------------------------------------------------------------------


@way
def child_of_another(compiled: Compile) -> Any:
    inner = Net()
    outer = nn.Sequential(compiled(inner), nn.Tanh())
    first = ran(outer)
    inner.scale = 2.0
    return first, ran(outer), ran(inner), list(outer.state_dict())


@way
def child_of_a_compiled_one(compiled: Compile) -> Any:
    inner = compiled(Net())
    outer = compiled(nn.Sequential(inner, nn.Tanh()))
    first = ran(outer), ran(inner)
    inner.scale = 2.0
    inner.eval()
    return first, ran(outer), ran(inner)


@way
def child_compiled_later(compiled: Compile) -> Any:
    inner = Net()
    outer = compiled(nn.Sequential(inner, nn.Tanh()))
    first = ran(outer)
    compiled(inner)
    second = ran(outer), ran(inner)
    inner.scale = 2.0
    return first, second, ran(outer)


@way
def itself_in_its_forward(compiled: Compile) -> Any:
    class Recursive(Net):
        def forward(self, x: torch.Tensor, depth: int = 2) -> torch.Tensor:
            return super().forward(x) if depth == 0 else self(x + depth, depth - 1)

    net, first = made(compiled, Recursive)
    return first, [net(x(i), 1).detach() for i in range(3)]


@way
def in_containers(compiled: Compile) -> Any:
    blocks = nn.ModuleList([compiled(Net()), compiled(Net()), Net()])

    def total(y: torch.Tensor) -> torch.Tensor:
        for block in blocks:
            y = block(y)
        return y.detach()

    first = [total(x(i)) for i in range(3)]
    blocks[0], blocks[1] = blocks[1], blocks[0]
    blocks[2].scale = 3.0
    return first, [total(x(i)) for i in range(3)]


@way
def modes(compiled: Compile) -> Any:
    net, first = made(compiled)
    second = ran(net.eval())
    third = ran(net.train())
    net.requires_grad_(False)
    fourth = [net(x(i)).requires_grad for i in range(2)]
    with torch.no_grad():
        fifth = ran(net)
    with torch.inference_mode():
        sixth = [t.tolist() for t in ran(net)]
    return first, second, third, fourth, fifth, sixth, net.state_dict()


@way
def named_iteration(compiled: Compile) -> Any:
    net, _ = made(compiled)
    net.extra = nn.Linear(1, 1)
    names = [n for n, _ in net.named_modules()], [n for n, _ in net.named_parameters()], [n for n, _ in net.named_buffers()]
    return names, [type(m).__name__ for m in net.children()], sum(1 for _ in net.modules()), repr(net), dir(net) == dir(net)


NEVER_REPLAYED = {"single_dispatch", "hooks_before_and_after_compiling", "own_call_without_modules"}


def plain(value: Any) -> Any:
    """``value`` in terms that ``==`` compares, tensors by every bit."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.stride(), value.tolist(), value.requires_grad
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def seen(function: Callable[[Compile], Any], compiled: Compile) -> Any:
    torch.manual_seed(7)
    try:
        return plain(function(compiled))
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WAYS)
def test_compiled_as_plain(name: str) -> None:
    regions = []

    def compiled(module: nn.Module) -> nn.Module:
        magpy_core.compile(module, backend="eager")
        regions.append(region_of(module))
        return module

    want = seen(WAYS[name], lambda module: module)
    assert seen(WAYS[name], compiled) == want
    assert type(want) is not tuple, f"the way itself raises: {want}"
    assert sum(region.hits for region in regions) or name in NEVER_REPLAYED, [region.disabled for region in regions]
