"""What is in force around a call: replaced functions are seen, with version tags of the tables and without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
import torch

from magpy_core._compat.cpython import dict_tags
from magpy_core._compat.torch import surroundings
from tests.unit.cuda_build import cuda_build


@pytest.fixture(params=["with tags", "without tags"])
def check(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    if request.param == "without tags":
        monkeypatch.setenv("MAGPY_DICT_TAGS", "0")
    surroundings._versions.cache_clear()
    yield surroundings.same_surroundings()
    surroundings._versions.cache_clear()


@pytest.mark.parametrize(
    ("owner", "name"),
    [(torch.Tensor, "add"), (torch.Tensor, "_version"), (torch.nn.Module, "__setattr__"), (torch.nn.functional, "relu")],
)
def test_a_replaced_function_is_seen_until_it_is_put_back(check: Callable[[], bool], owner: Any, name: str) -> None:
    assert check() and check()
    own = name in vars(owner)
    before = getattr(owner, name)
    setattr(owner, name, lambda *args: None)
    try:
        assert not check() and not check()
    finally:
        if own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)
    assert check() and check()


def test_another_name_of_the_table_makes_no_difference(check: Callable[[], bool]) -> None:
    assert check()
    torch.nn.functional.of_a_library = None  # type: ignore[attr-defined]
    try:
        assert check() and check()
    finally:
        del torch.nn.functional.of_a_library  # type: ignore[attr-defined]


def test_the_version_of_a_table() -> None:
    table = {"name": 1}
    view = dict_tags.version_view(table)
    if view is None:
        assert not dict_tags.supported()
        return
    first = view.value
    assert view.value == first
    table["name"] = 2
    assert view.value != first


@pytest.mark.parametrize("selection", ["_cuda_exchangeDevice", "_accelerator_maybeExchangeDevice"])
def test_the_current_device_of_a_selection(selection: str) -> None:
    with cuda_build() as build:
        getter = surroundings.current_device_of(selection)
        assert getter is not None and getter() == 0
        build.now(index=2)
        assert getter() == 2
        with mock.patch.object(torch.cuda, "_initialized", False):
            assert surroundings.current_device_of(selection) is None, "asking would initialize the device"
