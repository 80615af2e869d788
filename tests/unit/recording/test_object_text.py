"""Text that native code makes of an object without a ``__repr__`` holds its address: another object is another text."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

import magpy_core


class Tag:
    pass


class Pair(list):  # type: ignore[type-arg]
    pass


WAYS: dict[str, Callable[[Any], str]] = {
    "str": str,
    "percent": lambda tag: "%s" % tag,  # noqa: UP031
    "format": lambda tag: "{}".format(tag),  # noqa: UP032
    "f-string": lambda tag: f"{tag}",
    "map": lambda tag: " ".join(map(str, [tag])),
    "list": lambda tag: str([tag]),
    "list in an f-string": lambda tag: f"{[(tag,)]}",
    "dict": lambda tag: repr({"a": {tag: 1}}),
    "deque": lambda tag: str(deque([tag])),
    "subclass of list": lambda tag: str(Pair([tag])),
    "format_map": lambda tag: "{a}".format_map({"a": tag}),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_text_is_that_of_the_object_there_is_now(way: str) -> None:
    holder = [Tag()]

    def region(x: torch.Tensor) -> tuple[torch.Tensor, str]:
        return x * 2, WAYS[way](holder[0])

    compiled = magpy_core.compile(region, backend="eager")
    kept = []
    for _ in range(3):
        holder[0] = Tag()
        kept.append(holder[0])  # so that no two have the same address
        assert compiled(torch.ones(1))[1] == region(torch.ones(1))[1]
