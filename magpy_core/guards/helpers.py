"""Functions for the generated code of guards. Key name: HELPERS."""

from __future__ import annotations

from collections import OrderedDict
from operator import is_
from typing import Any

from magpy_core.refgraph import kinds, natives
from magpy_core.refgraph.arrays import are_separate, array_text
from magpy_core.refgraph.counters import position
from magpy_core.refgraph.draws import draw
from magpy_core.refgraph.folds import fold, numbers_in
from magpy_core.refgraph.iterators import remaining, upcoming
from magpy_core.refgraph.kinds import same_scalar
from magpy_core.refgraph.source_kinds import cache_state, dict_entry, namespace, number_in, slot_filled, slot_of
from magpy_core.refgraph.streams import is_closed
from magpy_core.refgraph.weak import is_object

HOOK_DICTS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_CACHED_NAMES = frozenset({"__slotnames__", "__abstractmethods__", "__doc__", "__dict__", "__weakref__", "__annotations__"})
_NATIVE = (dict, set, frozenset, tuple, OrderedDict)


def same_keys(container: Any, expected: tuple[Any, ...]) -> bool:
    """Whether a container has the same keys or elements in the same order, each identical or equal in type and value."""
    if natives.length(container) != len(expected):
        return False
    if type(container) in _NATIVE and all(map(is_, container, expected)):
        return True
    return all(is_object(a, b) or (type(a) is type(b) and kinds.kind_of(a) == kinds.SCALAR and same_scalar(a, b))
               for a, b in zip(natives.elements(container), expected, strict=True))  # fmt: skip


def names_changed(namespace: Any, state: list[Any]) -> bool:
    """Whether a class gained or lost an attribute. Names that Python itself caches on classes (``__abstractmethods__``,
    pickle's ``__slotnames__``) don't count; later calls compare with the new names first."""
    if not same_names(namespace, state[1]):
        return True
    state[0] = tuple(namespace)
    return False


def same_names(namespace: Any, expected: frozenset[str]) -> bool:
    different = expected.symmetric_difference(namespace)
    # reading `__annotations__` of a class that has none creates an empty dict
    return all(n in _CACHED_NAMES for n in different) and not (
        "__annotations__" in different and namespace.get("__annotations__")
    )


HELPERS: dict[str, Any] = {
    "same": same_scalar, "is_object": is_object,
    "same_keys": same_keys, "same_elements": same_keys, "names_changed": names_changed,
    "nth": natives.nth, "slot_of": slot_of, "slot_filled": slot_filled,
    "draw": draw, "fold": fold, "position": position, "cache_state": cache_state,
    "numbers_in": numbers_in, "is_closed": is_closed, "upcoming": upcoming, "remaining": remaining, "array_text": array_text,
    "are_separate": are_separate,
    "number_in": number_in, "namespace": namespace,
    "dict_getitem": dict.__getitem__, "dict_entry": dict_entry, "dict_has": dict.__contains__,
    "native_len": natives.length, "native_item": natives.item, "native_values": natives.values,
    "list_getitem": list.__getitem__, "getattr": getattr, "type": type, "len": len,
    "id": id, "tuple": tuple, "map": map, "dict": dict, "list": list, "set": set, "bool": bool, "int": int,
    "float": float, "str": str,
}  # fmt: skip
