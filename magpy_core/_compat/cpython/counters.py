"""Names that code counts up: `n += 1`, `self.n += 1`. Key function: counted_names."""

from __future__ import annotations

import dis
import functools
from types import CodeType

_SWAPS = ("SWAP", "ROT_TWO")  # before an attribute is stored
_STORES = ("STORE_DEREF", "STORE_GLOBAL", "STORE_NAME")


@functools.lru_cache(maxsize=1024)
def counted_names(code: CodeType) -> frozenset[str]:
    """Of variables that outlive a call, and attributes, which an augmented assignment changes."""
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


def _is_augmented(operation: dis.Instruction) -> bool:
    return operation.opname.startswith("INPLACE_") or (operation.opname == "BINARY_OP" and operation.argrepr.endswith("="))
