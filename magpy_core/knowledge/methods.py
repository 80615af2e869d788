"""Methods: one entry for each method of a builtin container, and facts about other methods written in C, by name.

Key types: Method, NumberUse. Key function: container_method.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class NumberUse(Enum):
    """What a method does with dynamic numbers in its container and arguments."""

    ESCAPE = auto()  # it may use all of them
    KEEP = auto()  # it moves the container's elements and uses its arguments
    STORE = auto()  # it moves the elements and stores its arguments
    STORE_BY_KEY = auto()  # it moves the elements, uses its first argument and stores the others


@dataclass(frozen=True, slots=True)
class Method:
    """Facts about a container's method. One that neither reads nor looks up a key changes the container."""

    reads: bool = False  # it reads the content
    looks_up: bool = False  # it looks up its first argument and changes nothing
    levels: int | None = 1  # how many levels of nested containers it reads in its arguments; None: it doesn't read them
    numbers: NumberUse = NumberUse.ESCAPE
    by_key: bool = False  # its first argument is a key
    compares: bool = False  # it compares elements with its argument, which may read anything in them

    @property
    def writes(self) -> bool:
        return not (self.reads or self.looks_up)

    @property
    def moves_elements(self) -> bool:
        """Whether it passes elements on by identity."""
        return self.numbers is not NumberUse.ESCAPE


_READ = Method(reads=True)
_COMPARE = Method(reads=True, compares=True)
_REPEAT = Method(reads=True, levels=None, numbers=NumberUse.KEEP)
_TAKE = Method(levels=None, numbers=NumberUse.KEEP)
_STORE = Method(levels=None, numbers=NumberUse.STORE)
_EXTEND = Method(levels=0, numbers=NumberUse.STORE)
_INSERT = Method(levels=None, numbers=NumberUse.STORE_BY_KEY)
_SET_ITEM = Method(levels=None, numbers=NumberUse.STORE_BY_KEY, by_key=True)
_GET_ITEM = Method(looks_up=True, levels=None, numbers=NumberUse.KEEP, by_key=True)
_UNKNOWN = Method()

METHODS: dict[str, Method] = {
    "index": _COMPARE, "count": _COMPARE, "__eq__": _COMPARE, "__ne__": _COMPARE, "__lt__": _COMPARE, "__le__": _COMPARE,
    "__gt__": _COMPARE, "__ge__": _COMPARE, "remove": Method(compares=True),
    "__contains__": Method(reads=True, looks_up=True, by_key=True, compares=True),
    "copy": _REPEAT, "__copy__": _REPEAT, "keys": _REPEAT, "values": _REPEAT, "items": _REPEAT, "__len__": _REPEAT,
    "__iter__": _REPEAT, "__reversed__": _REPEAT, "__mul__": _REPEAT, "__rmul__": _REPEAT,
    "__add__": Method(reads=True, numbers=NumberUse.KEEP), "__sizeof__": Method(reads=True, levels=None),
    "__or__": _READ, "__ror__": _READ, "__and__": _READ, "__rand__": _READ, "__sub__": _READ, "__rsub__": _READ,
    "__xor__": _READ, "__rxor__": _READ, "union": _READ, "intersection": _READ, "difference": _READ,
    "symmetric_difference": _READ, "issubset": _READ, "issuperset": _READ, "isdisjoint": _READ, "__repr__": _READ,
    "__str__": _READ, "__format__": _READ, "__reduce__": _READ, "__reduce_ex__": _READ, "__hash__": _READ,
    "get": _GET_ITEM, "__getitem__": _GET_ITEM, "__setitem__": _SET_ITEM, "setdefault": _SET_ITEM,
    "__delitem__": Method(levels=None, by_key=True), "pop": Method(levels=None, numbers=NumberUse.KEEP, by_key=True),
    "append": _STORE, "appendleft": _STORE, "add": _INSERT, "insert": _INSERT, "discard": Method(levels=None),
    "extend": _EXTEND, "extendleft": _EXTEND, "__iadd__": _EXTEND,
    "update": Method(numbers=NumberUse.STORE), "__ior__": Method(numbers=NumberUse.STORE),
    "popleft": _TAKE, "popitem": _TAKE, "clear": _TAKE, "reverse": _TAKE, "rotate": _TAKE, "move_to_end": _TAKE,
    "__init__": Method(numbers=NumberUse.KEEP), "sort": Method(levels=None), "__imul__": Method(levels=None),
}  # fmt: skip


def container_method(name: str) -> Method:
    """The facts about a container's method; an unknown one may do anything."""
    return METHODS.get(name, _UNKNOWN)


ERROR_WRITES = frozenset({"add_note", "with_traceback", "__setstate__"})
"""Methods of exceptions, written in C, that change them."""

STATE_READS = frozenset({"__reduce_ex__", "__reduce__", "__getstate__"})
"""Methods of ``object`` that read the whole state of an object."""

PICKLE_HOOKS = ("__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs_ex__", "__getnewargs__")
"""Methods that pickling and copying look up in a class."""

WITHOUT_EFFECT = frozenset({"__init__", "__init_subclass__", "__new__", "__class__"})
"""Methods of ``object`` that read and change nothing."""

LOCK_METHODS = frozenset({
    "__enter__", "__exit__", "_acquire_restore", "_is_owned", "_recursion_count", "_release_save", "acquire", "acquire_lock",
    "locked", "locked_lock", "release", "release_lock",
})  # fmt: skip
"""Methods of locks that take, release or examine them."""

CLASS_METHODS = frozenset({
    "__new__", "fromkeys", "fromhex", "from_bytes", "maketrans", "__subclasscheck__", "__instancecheck__", "mro",
    "__prepare__", "__init_subclass__", "__subclasshook__", "from_iterable", "__class_getitem__",
})  # fmt: skip
"""Native class methods that read only their arguments."""
