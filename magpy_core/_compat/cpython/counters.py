"""What code counts up: `n += 1`, `self.n += 1`, `n[0] += 1`. Key functions: counted_names, counts_item, count_also,
stored_keys."""

from __future__ import annotations

import dis
import weakref
from types import CodeType

from magpy_core._compat.cpython.weak_caches import by_object

_SWAPS = ("SWAP", "ROT_TWO")  # before an attribute is stored
_STORES = ("STORE_DEREF", "STORE_GLOBAL", "STORE_NAME")


_also: weakref.WeakKeyDictionary[CodeType, frozenset[str]] = weakref.WeakKeyDictionary()


def counted_names(code: CodeType) -> frozenset[str]:
    """Of variables that outlive a call, and attributes, which ``code`` changes by an augmented assignment, and those given
    to `count_also`."""
    return _augmented(code) | _also.get(code, frozenset())


def count_also(code: CodeType, names: frozenset[str]) -> None:
    """``code`` is the body of a loop, which gives these ``names`` other values each time."""
    _also[code] = names


def counts_item(code: CodeType, line: int, column: int) -> bool:
    """Whether the item at this place (1-based line, 0-based column in UTF-8 bytes) is changed by an augmented assignment."""
    return (line, column) in _augmented_items(code)


@by_object
def stored_keys(code: CodeType) -> frozenset[str]:
    """The strings that ``code`` itself names as keys of items that it sets: ``group["lr"] = rate``."""
    found = set()
    key, copies = None, 0
    for now in dis.get_instructions(code):
        if now.opname == "CACHE":
            continue
        if now.opname == "COPY" and key is not None:
            copies += 1  # an augmented assignment copies the container and the key
            continue
        if key is not None and (now.opname == "STORE_SUBSCR" or (_is_subscript(now) and copies == 2)):
            found.add(key)
        key, copies = now.argval if now.opname == "LOAD_CONST" and type(now.argval) is str else None, 0
    return frozenset(found)


@by_object
def _augmented_items(code: CodeType) -> frozenset[tuple[int, int]]:
    found = set()
    seen: list[dis.Instruction] = []
    for now in dis.get_instructions(code):
        if now.opname == "CACHE":
            continue
        if now.opname == "STORE_SUBSCR" and len(seen) > 2 and _is_augmented(seen[-3]):
            place = now.positions
            if place is not None and place.lineno is not None and place.col_offset is not None:
                found.add((place.lineno, place.col_offset))
        seen = [*seen[-2:], now]
    return frozenset(found)


@by_object
def _augmented(code: CodeType) -> frozenset[str]:
    found = set()
    last: list[dis.Instruction] = []
    for now in dis.get_instructions(code):
        if now.opname == "CACHE":
            continue
        if last and (now.opname in _STORES or (now.opname == "STORE_ATTR" and last[-1].opname in _SWAPS)):
            operation = last[-2] if now.opname == "STORE_ATTR" and len(last) > 1 else last[-1]
            if _is_augmented(operation):
                found.add(str(now.argval))
        last = [*last[-1:], now]
    return frozenset(found)


def _is_subscript(operation: dis.Instruction) -> bool:
    # from 3.14 on it is a binary operation
    return operation.opname == "BINARY_SUBSCR" or (operation.opname == "BINARY_OP" and operation.argrepr == "[]")


def _is_augmented(operation: dis.Instruction) -> bool:
    return operation.opname.startswith("INPLACE_") or (operation.opname == "BINARY_OP" and operation.argrepr.endswith("="))
