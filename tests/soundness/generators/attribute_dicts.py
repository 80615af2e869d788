"""Attribute dicts: classes whose attributes are found in a dict in other ways than Python's, times uses, times changes.

``class Config(dict): __getattr__ = dict.__getitem__``, ``self.__dict__ = self`` and their kin: what C code looks up shows no
event, and must be guarded all the same. Key function: used. `python -m tests.soundness.generators.attribute_dicts`.
"""

from __future__ import annotations

import collections
import copy
import functools
import json
import operator
import string
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import magpy_core
from tests.soundness.harness.families import Family, difference, main


def _classes() -> dict[str, Any]:
    """Made anew for each region: some changes change the class."""

    class Items(dict):  # type: ignore[type-arg]
        __getattr__ = dict.__getitem__
        __setattr__ = dict.__setitem__  # type: ignore[assignment]
        __delattr__ = dict.__delitem__  # type: ignore[assignment]

    class Get(dict):  # type: ignore[type-arg]
        __getattr__ = dict.get
        __setattr__ = dict.__setitem__  # type: ignore[assignment]

    class SetDefault(dict):  # type: ignore[type-arg]
        __getattr__ = dict.setdefault

    class Slots(dict):  # type: ignore[type-arg]
        __slots__ = ()
        __getattr__ = dict.__getitem__
        __setattr__ = dict.__setitem__  # type: ignore[assignment]

    class Ordered(collections.OrderedDict):  # type: ignore[type-arg]
        __getattr__ = collections.OrderedDict.__getitem__

    class Partial(dict):  # type: ignore[type-arg]
        __getattr__ = functools.partialmethod(dict.get, 5)

    class Lambda(dict):  # type: ignore[type-arg]
        __getattr__ = lambda s, n: operator.getitem(s, n)  # noqa: E731

    class Python(dict):  # type: ignore[type-arg]
        def __getattr__(self, name: str) -> Any:
            return self[name]

        def __setattr__(self, name: str, value: Any) -> None:
            self[name] = value

    class Itself(dict):  # type: ignore[type-arg]
        k = 10

        def __init__(self, **entries: Any) -> None:
            super().__init__(**entries)
            self.__dict__ = self

    class OrderedAttributes:
        def __init__(self, **entries: Any) -> None:
            self.__dict__ = collections.OrderedDict(entries)

    class DefaultAttributes:
        k = 7

        def __init__(self, **entries: Any) -> None:
            self.__dict__ = collections.defaultdict(int, entries)

    class Fallback(nn.Module):
        def __init__(self, **entries: Any) -> None:
            super().__init__()
            self.__dict__.update(entries)
            self.lin = nn.Linear(2, 2)

        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                return len(name)

    return {
        c.__name__: c
        for c in (Items, Get, SetDefault, Slots, Ordered, Partial, Lambda, Python, Itself, OrderedAttributes,
                  DefaultAttributes, Fallback)
    }  # fmt: skip


CLASSES = tuple(_classes())


def _write(c: Any) -> Any:
    c.n = 3
    c.v = c.v + 1
    return c.v, c.n


def _delete(c: Any) -> Any:
    c.t = 1
    del c.t
    return hasattr(c, "t")


def _delete_if_there(c: Any) -> Any:
    if hasattr(c, "v"):
        del c.v
        return True
    return False


def _count(c: Any) -> Any:
    c.q = getattr(c, "q", 0) + 1
    return c.q


def _made(c: Any) -> Any:
    made = type(c)(v=c.v, w=1)
    made.z = 9
    return made.v, made.z, made.w


def _plain(c: Any) -> Any:
    return c if isinstance(c, dict) else vars(c)


def _matched(c: Any) -> Any:
    match c:
        case {"v": v}:
            return v
        case object(v=v):
            return v


def _augmented(c: Any) -> Any:
    c.v += 1
    return c.v


def _written_in_vars(c: Any) -> Any:
    vars(c)["vv"] = vars(c).get("vv", 0) + 1
    return getattr(c, "vv", None)


def _set_by_object(c: Any) -> Any:
    object.__setattr__(c, "ov", 3)
    return getattr(c, "ov", None)


def _keywords(**entries: Any) -> Any:
    return sorted(entries.items(), key=str)


class _Wrapping:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


USES: dict[str, Callable[[Any], Any]] = {
    "read": lambda c: c.v,
    "read what is not there": lambda c: c.nope,
    "ask": lambda c: (getattr(c, "nope", 4), hasattr(c, "v"), hasattr(c, "nope")),
    "read of the class": lambda c: getattr(c, "k", None),
    "contains": lambda c: ("v" in _plain(c), len(vars(c))),
    "read, then walk": lambda c: (c.v, sorted(map(str, c.items())) if isinstance(c, dict) else sorted(c.__dict__)),
    "write": _write,
    "delete": _delete,
    "delete what may be there": _delete_if_there,
    "count": _count,
    "make": _made,
    "keywords": lambda c: _keywords(**_plain(c)),
    "merge": lambda c: {**_plain(c)},
    "dict": lambda c: dict(_plain(c)),
    "or": lambda c: dict(_plain(c) | {"q": 1}),
    "copy": lambda c: copy.copy(c).v,
    "deep copy": lambda c: copy.deepcopy(c).v,
    "json": lambda c: json.dumps(_plain(c)) if not isinstance(c, nn.Module) else 0,
    "percent": lambda c: "%(v)s" % _plain(c),  # noqa: UP031
    "format": lambda c: "{v}".format(**_plain(c)),
    "format, attribute": lambda c: f"{c.v}",
    "format_map": lambda c: "{v}".format_map(_plain(c)),
    "template": lambda c: string.Template("$v").substitute(_plain(c)),
    "equal": lambda c: c == {"v": 2},
    "match": _matched,
    "itemgetter": lambda c: operator.itemgetter("v")(_plain(c)),
    "attrgetter": lambda c: operator.attrgetter("v")(c),
    "map of get": lambda c: list(map(_plain(c).get, ["v", "nope"])),
    "map of getattr": lambda c: list(map(getattr, [c], ["v"])),
    "wrapped": lambda c: _Wrapping(c).v,
    "sorted": lambda c: sorted(_plain(c)) if isinstance(c, dict) else 0,
    "walk": lambda c: list(c) if isinstance(c, dict) else list(vars(c)),
    "sum of values": lambda c: sum(c.values()) if isinstance(c, dict) else 0,
    "repr": lambda c: repr(c) if isinstance(c, dict) else 0,
    "setdefault": lambda c: (_plain(c).setdefault("s", 3), len(_plain(c))),
    "update": lambda c: (_plain(c).update(u=1), sorted(_plain(c))),
    "__dict__": lambda c: c.__dict__.get("v", 0),
    "write in vars": _written_in_vars,
    "object.__getattribute__": lambda c: object.__getattribute__(c, "v"),
    "object.__setattr__": _set_by_object,
    "dict.__getitem__": lambda c: dict.__getitem__(_plain(c), "v"),
    "augmented": _augmented,
    "fromkeys": lambda c: sorted(type(c).fromkeys(["a"])),
    "any": lambda c: (bool(c), any(_plain(c).values())),
    "dir": lambda c: "v" in dir(c),
}


def _delete_entry(c: Any) -> None:
    if isinstance(c, dict):
        del c["v"]
    else:
        del c.v


CHANGES: dict[str, Callable[[Any], Any]] = {
    "item": lambda c: operator.setitem(c, "v", 50),
    "attribute": lambda c: setattr(c, "v", 60),
    "new attribute": lambda c: setattr(c, "nope", 9),
    "new parameter": lambda c: setattr(c, "nope", nn.Parameter(torch.ones(2))),
    "deleted": _delete_entry,
    "over the class": lambda c: setattr(c, "k", 77),
    "class attribute": lambda c: setattr(type(c), "k", 99),
}


def _tried(make: Callable[[], Any]) -> Any:
    try:
        return repr(make())
    except Exception as error:  # the program's own: it must be the same
        return type(error).__name__


def _life(name: str, use: str, change: str, compiled: bool) -> list[Any]:
    obj = _classes()[name](v=2)

    def region(x: torch.Tensor) -> Any:
        return x + 1, USES[use](obj)

    target = magpy_core.compile(region, backend="eager") if compiled else region
    seen = []
    for call in range(7):
        if call == 4:
            seen.append(_tried(lambda: CHANGES[change](obj)))
        seen.append(_tried(lambda: target(torch.ones(2))))
    if not isinstance(obj, nn.Module):
        held = obj if isinstance(obj, dict) else obj.__dict__
        seen.append(repr(dict.items(held)))
    return seen


def used(name: str, use: str, change: str) -> str | None:
    """How a region that uses such an object differs from eager mode, a change of the object between its calls."""
    return difference(_life, name, use, change)


FAMILY = Family.product(used, name=CLASSES, use=USES, change=CHANGES)


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))
