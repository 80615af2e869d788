"""Calls that are one node of the graph, and the calls refused there; each tracker alone."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest
import torch

from magpy_core.recording.access.globals import Globals
from magpy_core.recording.access.unobserved import UnobservedCode
from magpy_core.recording.call_stack import Consumer
from magpy_core.recording.nodes.caches import Caches
from magpy_core.recording.nodes.checkpoints import Checkpoints
from magpy_core.recording.nodes.constructors import Constructors
from magpy_core.recording.nodes.one_node import OneNode
from magpy_core.recording.nodes.scripts import Scripts
from tests.unit.recording.help import World, site

rate = 2.0
table = [1]
weight = torch.ones(1)


def helper(g: Any) -> Any:
    return torch.mul(g, rate)


def reads_constants(ctx: Any, g: Any) -> Any:
    return helper(g) * math.pi * len("ab")


def has_a_variable_named_grad(ctx: Any, grad: Any) -> Any:
    return grad * rate


def reads_a_gradient(ctx: Any, g: Any) -> Any:
    return g + ctx.parameter.grad


def reads_a_list(ctx: Any, g: Any) -> Any:
    return g * table[0]


def reads_a_tensor(ctx: Any, g: Any) -> Any:
    return g * weight


def prints(ctx: Any, g: Any) -> Any:
    print(g)
    return g


def writes_a_global(ctx: Any, g: Any) -> Any:
    global rate
    rate = 3.0
    return g


def imports(ctx: Any, g: Any) -> Any:
    import math as other

    return g * other.pi


@functools.wraps(torch.relu)
def named_after_torch(x: Any) -> Any:
    return x * table[0]


def calls_what_is_named_after_torch(ctx: Any, g: Any) -> Any:
    return named_after_torch(g)


def closure(factor: Any) -> Any:
    return lambda ctx, g: g * factor


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * 2


class Counted:
    def __hash__(self) -> int:
        table.append(1)
        return 1


class Reading(Doubled):
    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * table[0]


class World1(World):
    """A world in which nothing is inside a node."""

    def __init__(self, active: Any = None) -> None:
        super().__init__()
        self.context.one_node = type("One", (), {"active": active, "apply": self.above.apply})()


# -- code that no event shows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "guarded"),
    [
        (reads_constants, True), (has_a_variable_named_grad, True), (reads_a_gradient, False), (staticmethod(helper), True),
        (None, True), (reads_a_list, False),
        (reads_a_tensor, False), (prints, False),
        (writes_a_global, False), (imports, False), (closure(2.0), True), (closure(helper), True),
        (closure([2.0]), False), (len, False),
        (calls_what_is_named_after_torch, False),
    ],
)  # fmt: skip
def test_code_that_runs_unobserved(fn: Any, guarded: bool) -> None:
    world = World()
    unobserved = world.build(UnobservedCode, globals=world.build(Globals))
    assert unobserved.guard(fn, site()) is guarded
    assert unobserved.guard(fn, site()) is guarded  # the answer is remembered


def test_all_that_it_reads_is_guarded() -> None:
    world = World()
    world.build(UnobservedCode, globals=world.build(Globals)).guard(reads_constants, site())
    assert {"is helper", "is helper.__code__", "eq rate", "is torch", "is math", "absent len"} <= set(world.guards)


# -- custom functions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cls", "codes"), [(Doubled, []), (Reading, ["MP107"])])
def test_a_custom_function_reads_nothing_that_can_change(cls: Any, codes: list[str]) -> None:
    world = World()
    unobserved = world.build(UnobservedCode, globals=world.build(Globals))
    at = site()
    world.stack.enter(at, Consumer.PYTHON)
    world.build(OneNode, unobserved=unobserved).call_function_class(at, cls, (torch.ones(1),), {})
    assert world.codes == codes


def test_a_custom_function_reached_by_a_library_is_refused() -> None:
    world = World()
    world.build(OneNode).function_apply(None)
    assert world.codes == ["MP107"]


# -- caches ------------------------------------------------------------------------------------------------------------


def caches(world: World) -> Caches:
    return world.build(Caches)


def test_a_cached_result_is_guarded_with_the_caches_state() -> None:
    cached = functools.lru_cache(lambda n: (n, n))
    cached(3)
    world, at = World1(), site()
    world.stack.enter(at, Consumer.PYTHON)
    caches(world).call(at, cached, (3,), {})
    call = world.stack.frames[-1]
    assert call.returned is not None
    call.returned(cached(3))
    assert world.status == "open"
    assert any("misses" in str(read.expected) for read in world.ledger.refgraph.reads)


@pytest.mark.parametrize(("maxsize", "status"), [(8, "skipped"), (1, "refused")])
def test_a_call_that_fills_a_cache(maxsize: int, status: str) -> None:
    cached = functools.lru_cache(maxsize=maxsize)(lambda n: n)
    cached(1)
    world, at = World1(), site()
    world.stack.enter(at, Consumer.PYTHON)
    caches(world).call(at, cached, (2,), {})
    call = world.stack.frames[-1]
    assert call.returned is not None
    call.returned(cached(2))
    assert world.status == status


@pytest.mark.parametrize(("arg", "codes"), [(torch.ones(1), ["MP106"]), (Counted(), ["MP111"])])
def test_arguments_that_no_cache_may_keep(arg: Any, codes: list[str]) -> None:
    world, at = World1(), site()
    world.stack.enter(at, Consumer.PYTHON)
    caches(world).call(at, functools.lru_cache(lambda n: n), (arg,), {})
    assert world.codes == codes


# -- constructors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "args", "target"),
    [(torch.Tensor, (2, 3), torch.empty), (torch.Tensor, ([1.0],), torch.tensor),
     (torch.LongTensor, ((1, 2),), torch.tensor),
     (torch.Tensor, (torch.ones(1),), torch.ops.aten.alias.default)],
)  # fmt: skip
def test_a_constructor_is_recorded_as_what_it_means(cls: Any, args: Any, target: Any) -> None:
    world = World1()
    world.build(Constructors).constructor_call(site(), cls, args, {})
    assert [called[1] for called in world.called("apply")] == [target]


@pytest.mark.parametrize(
    ("cls", "args", "codes"),
    [(torch.nn.Parameter, (torch.ones(1),), ["MP118"]), (torch.autograd.Variable, (torch.ones(1),), []),
     (torch.autograd.Variable, (torch.ones(1), True), ["MP118"])],
)  # fmt: skip
def test_a_leaf_made_inside_is_refused(cls: Any, args: Any, codes: list[str]) -> None:
    world = World1()
    world.build(Constructors).made_by_constructor(site(), cls, args, {})
    assert world.codes == codes


# -- scripts and checkpoints -------------------------------------------------------------------------------------------


def test_what_torch_jit_has_compiled_is_refused() -> None:
    world, at = World1(), site()
    world.stack.enter(at, Consumer.KEEPS)
    scripts = world.build(Scripts)
    scripts.call(at, torch.jit.script(helper_of_tensors))
    scripts.restore_modes()
    assert world.status == "refused"


def helper_of_tensors(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@pytest.mark.parametrize(
    ("options", "codes"),
    [({"use_reentrant": False}, []), ({"use_reentrant": True}, ["MP107"]), ({}, ["MP107"]),
     ({"use_reentrant": False, "preserve_rng_state": False}, ["MP107"]),
     ({"use_reentrant": False, "debug": True}, ["MP107"])],
)  # fmt: skip
def test_kinds_of_checkpoints(options: dict[str, Any], codes: list[str]) -> None:
    import torch.utils.checkpoint as checkpoint

    world, at = World(), site()
    world.stack.enter(at, Consumer.PYTHON)
    writes = type("Writes", (), {"events": 0, "existing": None})()
    world.build(Checkpoints, writes=writes).begin(at, checkpoint.checkpoint, (helper, torch.ones(1)), options)
    assert world.codes == codes


def test_a_checkpoint_with_effects_is_refused() -> None:
    import torch.utils.checkpoint as checkpoint

    world, at = World(), site()
    world.stack.enter(at, Consumer.PYTHON)
    writes = type("Writes", (), {"events": 0, "existing": None})()
    checkpoints = world.build(Checkpoints, writes=writes)
    checkpoints.begin(at, checkpoint.checkpoint, (helper, torch.ones(1)), {"use_reentrant": False})
    assert world.pauses.in_checkpoint
    writes.events += 1
    call = world.stack.frames[-1]
    assert call.returned is not None
    call.returned(torch.ones(1))
    assert world.codes == ["MP107"]
    assert not world.pauses.in_checkpoint
