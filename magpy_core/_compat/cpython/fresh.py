"""Private copies of numbers and texts: equal value, same type, distinct object.

CPython shares small ints (-5..256) and constants, so ``id`` can't distinguish a number read from outside from an equal
constant. The program gets a private copy instead, which no Python operation except ``is`` can distinguish from the original.
Depends on the layout of ``PyLongObject`` in CPython 3.11 to 3.14, which ``supports_fresh_int`` checks at first use.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys

from magpy_core._compat.versions import PY312, PYTHON_VERSIONS

_HEADER = object.__basicsize__  # ob_refcnt + ob_type
_LARGE = 1 << 29


def fresh_float(value: float) -> float:
    """A new float object with the same bits."""
    out: float = struct.unpack("d", struct.pack("d", value))[0]
    return out


def fresh_text(value: str) -> str:
    """A new object equal to ``value``, for which `supports_fresh_text` holds. CPython shares texts of one character."""
    return "".join((value[:1], value[1:])) if len(value) > 1 else _new_character(value)


def supports_fresh_text(value: str) -> bool:
    """Whether there can be a second object equal to ``value``."""
    return len(value) > 1 or (len(value) == 1 and value.isascii() and _supports_fresh_character())


def _new_character(value: str) -> str:
    new = ctypes.pythonapi.PyUnicode_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_ssize_t, ctypes.c_uint32]
    out: str = new(1, 127)
    ctypes.c_uint8.from_address(id(out) + sys.getsizeof("") - 1).value = ord(value)  # before a final zero
    return out


@functools.cache
def _supports_fresh_character() -> bool:
    """Whether private copies of single characters behave like the shared ones (a probe)."""
    if sys.version_info[:2] not in PYTHON_VERSIONS:
        return False
    return all(map(_is_like_shared, map(chr, range(32, 127))))


def _is_like_shared(shared: str) -> bool:
    copy = _new_character(shared)
    same = copy is not shared and copy == shared and hash(copy) == hash(shared) and repr(copy) == repr(shared)
    same = same and len(copy) == 1 and copy.isascii() and copy.encode() == shared.encode()
    same = same and {shared: 1}.get(copy) == 1 and {copy: 1}.get(shared) == 1 and copy + "b" == shared + "b"
    return same and f"{copy:>3}" == f"{shared:>3}" and copy in shared and shared in copy and copy.upper() == shared.upper()


def _new_small(value: int) -> int:
    new = ctypes.pythonapi._PyLong_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_ssize_t]
    out: int = new(1)
    head = id(out) + _HEADER
    ctypes.c_uint32.from_address(head + 8).value = abs(value)
    size = ctypes.c_ssize_t.from_address(head)
    if PY312:  # lv_tag: digits << 3 | sign (0 positive, 1 zero, 2 negative)
        size.value = 1 if value == 0 else (8 | (2 if value < 0 else 0))
    else:  # ob_size: signed number of digits
        size.value = 0 if value == 0 else (-1 if value < 0 else 1)
    return out


def fresh_int(value: int) -> int:
    """A new int object equal to ``value``. Raises RuntimeError if the interpreter's int layout is unknown."""
    if -_LARGE < value < _LARGE:
        if not supports_fresh_int():
            raise RuntimeError("this interpreter's int layout is unknown")
        return _new_small(value)
    negative = -value
    return -negative  # an operation on a large int creates a new object


@functools.cache
def supports_fresh_int() -> bool:
    """Whether private copies of small ints behave like the shared ones (a probe)."""
    if sys.version_info[:2] not in PYTHON_VERSIONS:
        return False
    for v in (0, 1, -1, -5, 256, 255, 12345, -98765):
        copy = _new_small(v)
        shared = int(str(v))
        ok = copy == shared and type(copy) is int and hash(copy) == hash(shared) and repr(copy) == repr(shared)
        ok = ok and copy + 1 == shared + 1 and -copy == -shared and {shared: 1}.get(copy) == 1 and bool(copy) is bool(shared)
        ok = ok and (copy is not shared) and copy * 3 == shared * 3 and divmod(copy, 7) == divmod(shared, 7)
        if not ok:
            return False
    return True
