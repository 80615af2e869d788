"""What is in force around a call: replaced functions are seen, with version tags of the tables and without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from magpy_core._compat.cpython import dict_tags
from magpy_core._compat.torch import surroundings


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
