"""Texts, unseen functions, lifetimes, imports and modules, each tracker alone."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from typing import Any

import pytest
import torch
from torch import nn

from magpy_core.recording.access.texts import Texts
from magpy_core.recording.facts.unseen import Unseen
from magpy_core.recording.imports import Imports
from magpy_core.recording.journal import Aborted
from magpy_core.recording.lifetimes import Lifetimes
from magpy_core.recording.modules import ModuleCalls
from magpy_core.recording.nodes.parallel import ParallelCalls
from magpy_core.recording.pauses import Pauses
from tests.unit.recording.help import World, site


class Plain:
    pass


class Finalized:
    def __del__(self) -> None: ...


def outer(factor: float) -> Any:
    def inner(x: Any) -> Any:
        return x * factor

    return inner


# -- texts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outside", "codes"), [(True, []), (False, ["MP103"])])
def test_the_default_text_of_an_object_is_its_address(outside: bool, codes: list[str]) -> None:
    world, obj = World(), Plain()
    if outside:
        world.outside(obj)
    world.build(Texts).formatted(obj, site())
    assert world.codes == codes
    assert any(guard == "identity x" for guard in world.guards) is outside


@pytest.mark.parametrize("value", [3, "a", [1, {"a": 2}], None])
def test_the_text_of_plain_values_is_their_values(value: Any) -> None:
    world = World()
    world.build(Texts).formatted(value, site())
    assert (world.calls, world.status) == ([], "open")


def test_the_text_of_a_class_has_its_name() -> None:
    world = World()
    world.build(Texts).formatted(Plain, site())
    assert any("__qualname__" in guard or "__name__" in guard for guard in world.guards)


# -- functions that no event named -------------------------------------------------------------------------------------


def test_a_function_is_found_by_its_frame() -> None:
    world, made = World(), [outer(2.0), outer(3.0)]
    gc.collect(0)  # they are older than the recording
    frame: Any = types.SimpleNamespace(f_code=made[1].__code__, f_locals={"x": 1, "factor": 3.0})
    world.build(Unseen).called(frame)
    assert sum("__code__" in guard for guard in world.guards) == 1


def test_the_code_of_a_comprehension_has_no_function() -> None:
    world = World()
    code = next(c for c in (lambda: (i for i in ())).__code__.co_consts if isinstance(c, types.CodeType))
    world.build(Unseen).called(types.SimpleNamespace(f_code=code, f_locals={}))
    assert world.guards == []


# -- lifetimes ---------------------------------------------------------------------------------------------------------


def test_an_object_with_a_finalizer_ends_the_recording() -> None:
    world = World()
    with pytest.raises(Aborted):
        world.build(Lifetimes).constructed(Finalized, (), site())
    assert world.status == "aborted"


def test_a_weak_reference_with_a_callback_is_refused() -> None:
    world = World()
    lifetimes = world.build(Lifetimes, age=world.above)
    lifetimes.constructed(weakref.ref, (Plain(), None), site())
    assert world.status == "open"
    with pytest.raises(Aborted):
        lifetimes.constructed(weakref.ref, (Plain(), print), site())
    assert world.codes == ["MP110"]


def test_a_weak_reference_made_inside_ends_the_recording_when_it_is_read() -> None:
    world, obj = World(), Plain()
    with pytest.raises(Aborted):
        world.build(Lifetimes).call_weakref(site(), weakref.ref(obj))
    assert world.codes == ["MP111"]


def test_what_a_weak_reference_from_outside_refers_to_is_guarded() -> None:
    world, obj = World(), Plain()
    reference = weakref.ref(obj)
    world.outside(reference)
    world.build(Lifetimes).call_weakref(site(), reference)
    assert any("()" in guard or "x" in guard for guard in world.guards)
    assert world.ledger.refgraph.node(obj) is not None


def test_an_object_that_only_a_snapshot_holds() -> None:
    world, obj = World(), Plain()
    values = [obj]
    world.ledger.refgraph.snapshot(world.outside(values))
    lifetimes = world.build(Lifetimes)
    assert not lifetimes.held_only_by_snapshots(obj)
    values.clear()
    assert lifetimes.held_only_by_snapshots(obj)


# -- imports -----------------------------------------------------------------------------------------------------------


def test_an_import_is_what_sys_modules_has() -> None:
    world = World()
    world.build(Imports, pauses=Pauses(world.journal)).import_name(site(), "os.path")
    assert [read.expected for read in world.ledger.refgraph.reads] == [sys.modules["os"], sys.modules["os.path"]]


def test_a_module_that_could_not_be_imported_must_still_be_missing() -> None:
    world = World()
    imports = world.build(Imports, pauses=Pauses(world.journal))
    imports.import_name(site(), "there_is_no_such_module")
    imports.imports_failed()
    assert [guard.partition(" ")[0] for guard in world.guards] == ["absent"]


# -- modules -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hook", "observed"), [(None, False), ("forward", True)])
def test_a_module_without_hooks_is_one_guard(hook: str | None, observed: bool) -> None:
    world, module = World(), nn.Linear(2, 2)
    if hook:
        module.register_forward_hook(lambda *args: None)
    world.outside(module)
    assert world.build(ModuleCalls).module_summary(module, site()) is observed
    assert any(guard.startswith("plain_module") for guard in world.guards) is not observed


def test_backward_hooks_are_refused() -> None:
    world, module = World(), nn.Linear(2, 2)
    module.register_full_backward_hook(lambda *args: None)
    world.outside(module)
    assert world.build(ModuleCalls).module_summary(module, site())
    assert world.codes == ["MP118"]


def test_global_hooks_are_read_once() -> None:
    world, modules = World(), [nn.ReLU(), nn.ReLU()]
    calls = world.build(ModuleCalls)
    for i, module in enumerate(modules):
        world.outside(module, i, f"m{i}")
        calls.module_summary(module, site())
    assert sum("_global_forward_hooks" in guard for guard in world.guards) == 1


def test_what_data_parallel_does_around_its_module_is_not_monitored() -> None:
    world = World()
    pauses, code = Pauses(world.journal), site.__code__
    calls = world.build(ParallelCalls, pauses=pauses)
    assert not calls.prepares(types.SimpleNamespace(f_code=code, f_locals={}))
    assert pauses.code is code


def test_an_attribute_set_by_nn_module_is_a_write() -> None:
    world, module = World(), nn.ReLU()
    frame = types.SimpleNamespace(f_locals={"self": module, "name": "gain"})
    assert not world.build(ModuleCalls).module_setattr(frame)
    assert [args[:2] for args in world.called("writes.attr")] == [(module, "gain")]


def test_a_module_that_torch_jit_compiled_runs_its_hooks_itself() -> None:
    world = World()
    module = torch.jit.script(nn.ReLU())
    frame = types.SimpleNamespace(f_locals={"self": module})
    assert world.build(ModuleCalls).module_call(frame)
    assert world.status == "open"
