"""NumPy arrays from outside: what guards check of them. Their numbers vary: a compiled call reads them, and repeats what is
stored into them. Key functions: owner_of, array_text, are_separate.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any


def is_array(value: Any) -> bool:
    """Whether this is a NumPy array, and not of a class derived from it."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray


def owner_of(array: Any) -> Any:
    """The array that owns the memory; None if no array does."""
    while not array.flags.owndata:
        array = array.base
        if not is_array(array):
            return None
    return array


def array_text(array: Any) -> str:
    """Kind of the numbers in an array, its number of dimensions, and whether it can be written. Raises LookupError for what
    is not an array of numbers with memory of its own."""
    if not is_array(array) or array.dtype.kind not in "fiub" or owner_of(array) is None:
        raise LookupError("not an array of numbers with its own memory")
    return f"an array of {array.dtype}, {array.ndim}-dimensional{'' if array.flags.writeable else ', read-only'}"


def are_separate(arrays: Iterable[Any], storages: Iterable[int]) -> bool:
    """Whether no two arrays share memory, and none shares it with a storage that begins at one of these addresses."""
    owners = list(map(owner_of, arrays))
    if len(set(map(id, owners))) != len(owners):
        return False
    begins = set(storages)
    for owner in owners:
        first = owner.__array_interface__["data"][0]
        if any(first <= begin < first + max(1, owner.nbytes) for begin in begins):
            return False
    return True
