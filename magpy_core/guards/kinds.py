"""The kinds of guard, one class each: its generated check, failure, text, and whether dict version tags cover it.

To add a kind, write its class here and create one object of it. Imported as ``guard``:
``refgraph.read(source, guard.EQUAL, value, site)``. Key names: EQUAL, IS, TYPE and the other constants.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar

import torch

from magpy_core._compat.cpython.dict_tags import type_is_fixed
from magpy_core.guards.helpers import HOOK_DICTS, same_keys, same_names
from magpy_core.opgraph.scalars import Sym
from magpy_core.refgraph.failure import Failure
from magpy_core.refgraph.guard_kind import CheckWriter, FirstLevel, GuardKind, Read
from magpy_core.refgraph.kinds import (
    NUMBER_TYPES,
    NUMPY_FLOATS,
    SCALAR,
    bounded_repr,
    is_a,
    kind_of,
    released,
    same_scalar,
)
from magpy_core.refgraph.lookup import MODULE_TABLES, overrides
from magpy_core.refgraph.shown import shown
from magpy_core.refgraph.source import Source
from magpy_core.refgraph.source_kinds import dict_entry
from magpy_core.refgraph.weak import ObjectRef, is_object

Now = Callable[[Source], Any]

_SINGLETONS = (None, True, False)
_INTERNED = (bool, torch.dtype, torch.layout, torch.memory_format)  # equal values of these types are the same object
_PLAIN_DICTS = (dict, OrderedDict, defaultdict, Counter)


def _failure(read: Read, new: str, old: str | None = None) -> Failure:
    old = shown(read.source, read.expected) if old is None else old
    return Failure("MP201", read.source.describe(), old, new, source=read.source)


class _OfValue(GuardKind):
    """A guard on the value at the source only."""

    @abstractmethod
    def fits(self, value: Any, expected: Any) -> bool: ...

    def failure(self, read: Read, now: Now) -> Failure | None:
        value = now(read.source)
        return None if self.fits(value, read.expected) else _failure(read, shown(read.source, value))

    def covered_by_tag(self, level: FirstLevel, read: Read) -> bool:
        return level.held(read.source)


class Absent(GuardKind):
    """The key, attribute or name at the source does not exist."""

    name = "absent"
    template = "{source} is absent"

    def code(self, writer: CheckWriter, read: Read) -> None:
        source = read.source
        key = writer.key(source)
        base = writer.var(source.parent)
        plain = source.parent.kind == "dict" or writer.type_of(source.parent) in _PLAIN_DICTS
        writer.fail_if(f"{key} in {base}" if plain else f"dict_has({base}, {key})", read.site)

    def entry_test(self, writer: CheckWriter, read: Read, own: bool) -> str | None:
        source = read.source
        return f"{source.key!r} in d" if own or source.parent.key in MODULE_TABLES else None

    def failure(self, read: Read, now: Now) -> Failure | None:
        source = read.source
        key = now(source.key) if isinstance(source.key, Source) else source.key
        container = now(source.parent)
        if not (dict.__contains__(container, key) if is_a(container, dict) else key in container):
            return None
        value = dict_entry(container, key) if is_a(container, dict) else container[key]
        return _failure(read, shown(source, value), "absent")

    def covered_by_tag(self, level: FirstLevel, read: Read) -> bool:
        source = read.source
        return source.base is not None and is_plain_key(source.key) and level.contents(source.base)


class Type(_OfValue):
    """The value is of exactly this type."""

    name = "type"
    of_object = True

    def text(self, read: Read) -> str:
        name = type.__dict__["__name__"].__get__(read.expected)  # a metaclass may override `__name__`
        return f"type({read.source.describe()}) is {name}"

    def fits(self, value: Any, expected: Any) -> bool:
        return type(value) is expected

    def code(self, writer: CheckWriter, read: Read) -> None:
        writer.fail_if(f"type({writer.var(read.source)}) is not {writer.const(read.expected)}", read.site)

    def failure(self, read: Read, now: Now) -> Failure | None:
        found = type(now(read.source))
        return None if found is read.expected else _failure(read, _one(found), _one(read.expected))

    def covered_by_tag(self, level: FirstLevel, read: Read) -> bool:
        source = read.source
        return (level.held(source) and type_is_fixed(level.value(source))) or level.watched(source)


class Tensor(Type):
    """The value is a tensor; the native check of all tensors at once compares its other properties."""

    name = "tensor"

    def text(self, read: Read) -> str:
        return f"{read.source.describe()} is a tensor"

    def code(self, writer: CheckWriter, read: Read) -> None:
        writer.var(read.source)

    def failure(self, read: Read, now: Now) -> Failure | None:
        value = now(read.source)
        return None if is_a(value, torch.Tensor) else _failure(read, bounded_repr(value), "a Tensor")

    def covered_by_tag(self, level: FirstLevel, read: Read) -> bool:
        return level.held(read.source)


class Shape(_OfValue):
    """The value is this shape of an array."""

    name = "shape"

    def text(self, read: Read) -> str:
        return f"{read.source.describe()} == {read.expected}"

    def fits(self, value: Any, expected: Any) -> bool:
        return bool(value == expected)

    def code(self, writer: CheckWriter, read: Read) -> None:
        writer.fail_if(f"{writer.var(read.source)} != {writer.const(read.expected)}", read.site)

    def failure(self, read: Read, now: Now) -> Failure | None:
        shape = now(read.source)
        if shape == read.expected:
            return None
        same_rank = len(shape) == len(read.expected)
        dims = tuple(d for d, (a, b) in enumerate(zip(shape, read.expected, strict=True)) if a != b) if same_rank else ()
        return replace(_failure(read, str(shape), str(read.expected)), dims=dims)


class Is(_OfValue):
    """The value is this object."""

    name = "is"

    def released(self, expected: Any) -> Any:
        return released(expected)

    def fits(self, value: Any, expected: Any) -> bool:
        return is_object(value, expected)

    def code(self, writer: CheckWriter, read: Read) -> None:
        found, expected = writer.var(read.source), read.expected
        wanted = writer.object_const(expected) if type(expected) in (int, str) else writer.const(expected)
        owned = type(expected) is not ObjectRef
        writer.fail_if(f"{found} is not {wanted}" if owned else f"not is_object({found}, {wanted})", read.site)

    def entry_test(self, writer: CheckWriter, read: Read, own: bool) -> str | None:
        source = read.source
        if not own or writer.has(source) or source.kind not in ("dict_item", "attr") or type(read.expected) is ObjectRef:
            return None
        return f"d[{source.key!r}] is not {writer.const(read.expected)}"


class Identity(Is):
    """Like ``Is``, if the program itself used the object's identity."""

    name = "identity"
    reported = True


class Equal(_OfValue):
    """The value equals this scalar and has its type; for floats, 0.0 and -0.0 differ and NaN equals NaN."""

    name = "eq"
    template = "{source} == {expected}"
    reported = True

    def fits(self, value: Any, expected: Any) -> bool:
        return same_scalar(value, expected)

    def code(self, writer: CheckWriter, read: Read) -> None:
        name, expected, tp = writer.var(read.source), read.expected, type(read.expected)
        c = writer.const(expected)
        if expected is None or expected is Ellipsis or tp in _INTERNED:
            test = f"{name} is not {c}"
        elif tp in (float, complex) or tp in NUMPY_FLOATS:
            test = f"{name} is not {c} and not same({name}, {c})"
        elif tp is int:
            test = f"type({name}) is not {writer.const(tp)} or {name} != {c}"
        else:
            # usually it is the same object; otherwise, one of the right type is compared by value
            t = writer.const(tp)
            key = writer.object_const(expected)
            test = f"{name} is not {key} and (type({name}) is not {t} or {name} != {key})"
        writer.fail_if(test, read.site)

    def entry_test(self, writer: CheckWriter, read: Read, own: bool) -> str | None:
        return IS.entry_test(writer, read, own) if any(read.expected is s for s in _SINGLETONS) else None

    def failure(self, read: Read, now: Now) -> Failure | None:
        value = now(read.source)
        if self.fits(value, read.expected):
            return None
        number = type(value) is type(read.expected) and type(value) in NUMBER_TYPES
        return replace(_failure(read, shown(read.source, value)), number=number)

    def covered_by_tag(self, level: FirstLevel, read: Read) -> bool:
        return level.held(read.source) and kind_of(read.expected) == SCALAR


class Truth(GuardKind):
    """The container is not empty (``expected`` is True) or empty."""

    name = "truth"
    of_object = True
    reported = True

    def text(self, read: Read) -> str:
        return f"{read.source.describe()} is {_fullness(read.expected)}"

    def code(self, writer: CheckWriter, read: Read) -> None:
        name = writer.var(read.source)
        writer.fail_if(f"not {name}" if read.expected else name, read.site)

    def failure(self, read: Read, now: Now) -> Failure | None:
        full = bool(now(read.source))
        return None if full is read.expected else _failure(read, _fullness(full), _fullness(read.expected))

    def covered_by_tag(self, level: FirstLevel, read: Read) -> bool:
        return read.source.kind != "dict" and level.table(read.source, keys=False)


class Keys(GuardKind):
    """The dict has these keys in this order."""

    name = "keys"
    template = "keys of {source} are {expected}"
    of_object = True
    reported = True

    def released(self, expected: Any) -> Any:
        return tuple(map(released, expected))

    def code(self, writer: CheckWriter, read: Read) -> None:
        source, expected = read.source, read.expected
        own = any(overrides(writer.type_of(source), name) for name in ("__iter__", "__len__"))
        if all(type(k) is str for k in expected) and len(expected) < 200 and not own:
            writer.fail_if(f"tuple({writer.var(source)}) != {writer.const(expected)}", read.site)
        else:
            writer.fail_if(f"not same_keys({writer.var(source)}, {writer.const(expected)})", read.site)
        writer.types_of_values(source)

    def failure(self, read: Read, now: Now) -> Failure | None:
        value = now(read.source)
        if same_keys(value, read.expected):
            return None
        return _failure(read, f"the keys {_listed(value)}", f"the keys {_listed(read.expected)}")

    def covered_by_tag(self, level: FirstLevel, read: Read) -> bool:
        return read.source.kind != "dict" and level.table(read.source)


class Elements(Keys):
    """The set has these elements, in this iteration order."""

    name = "elements"
    template = "elements of {source} are {expected}"

    def code(self, writer: CheckWriter, read: Read) -> None:
        writer.fail_if(f"not same_elements({writer.var(read.source)}, {writer.const(read.expected)})", read.site)

    def failure(self, read: Read, now: Now) -> Failure | None:
        value = now(read.source)
        return None if same_keys(value, read.expected) else _failure(read, bounded_repr(value))

    def covered_by_tag(self, level: FirstLevel, read: Read) -> bool:
        return False


class Names(GuardKind):
    """The namespace of a class has these names, apart from those that Python itself caches there."""

    name = "names"
    template = "names of {source} are {expected}"

    def code(self, writer: CheckWriter, read: Read) -> None:
        name = writer.var(read.source)
        state = writer.const([(), read.expected])
        writer.fail_if(f"tuple({name}) != {state}[0] and names_changed({name}, {state})", read.site)

    def failure(self, read: Read, now: Now) -> Failure | None:
        value = now(read.source)
        if same_names(value, read.expected):
            return None
        changed = sorted(str(n) for n in read.expected.symmetric_difference(value))
        return _failure(read, "with other attributes", f"without a change of {', '.join(changed[:3])}")

    def covered_by_tag(self, level: FirstLevel, read: Read) -> bool:
        source = read.source
        return source.kind == "dict" and source.base is not None and level.fixed_names(source.base)


class PlainModule(GuardKind):
    """The module has no hooks and no ``forward`` on the instance, which is all that ``nn.Module.__call__`` itself reads."""

    name = "plain_module"
    template = "{source} has no hooks and no forward on the instance"
    of_object = True

    def code(self, writer: CheckWriter, read: Read) -> None:
        def entries() -> None:
            for test in (*(f"d[{name!r}]" for name in HOOK_DICTS), "'forward' in d"):
                writer.entry(writer.dict_of(read.source), test)
            writer.checks += 1

        writer.deferred.append(entries)

    def failure(self, read: Read, now: Now) -> Failure | None:
        d = now(read.source).__dict__
        if "forward" in d:
            return _failure(read, "with a forward on the instance", "without one")
        return _failure(read, "with hooks", "without hooks") if any(d[name] for name in HOOK_DICTS) else None

    def covered_by_tag(self, level: FirstLevel, read: Read) -> bool:
        return level.hooks(read.source)


class SameAs(GuardKind):
    """The value is the object at another source, ``expected``."""

    name = "is_source"
    same: ClassVar[bool] = True

    def text(self, read: Read) -> str:
        return f"{read.source.describe()} is {'' if self.same else 'not '}{read.expected.describe()}"

    def code(self, writer: CheckWriter, read: Read) -> None:
        found = writer.var(read.source)
        writer.fail_if(f"{found} is {'not ' if self.same else ''}{writer.var(read.expected)}", read.site)

    def failure(self, read: Read, now: Now) -> Failure | None:
        if (now(read.source) is now(read.expected)) is self.same:
            return None
        same, other = f"the same object as {read.expected.describe()}", "another object"
        return _failure(read, other, same) if self.same else _failure(read, same, other)

    def covered_by_tag(self, level: FirstLevel, read: Read) -> bool:
        return level.held(read.source) and level.held(read.expected)


class NotSameAs(SameAs):
    """The value is not the object at another source."""

    name = "is_not_source"
    same = False

    def check(self, expected: Any) -> str:
        return f"{self.name}:{id(expected)}"

    def covered_by_tag(self, level: FirstLevel, read: Read) -> bool:
        return level.is_stable(read.source) and level.is_stable(read.expected)


class Outcome(GuardKind):
    """A symbolic scalar has this value: ``expected`` is the symbol and the value; the source is a constant for it."""

    name = "sym"
    reported = True

    def check(self, expected: Any) -> str:
        return f"{self.name}:{expected[1]!r}"

    def subject(self, read: Read) -> tuple[str, str]:
        sym, outcome = read.expected
        return sym.describe(), bounded_repr(outcome)

    def text(self, read: Read) -> str:
        return " is ".join(self.subject(read))

    def code(self, writer: CheckWriter, read: Read) -> None:
        sym, outcome = read.expected
        expr = writer.scalar(sym)
        if type(outcome) is bool:
            writer.fail_if(f"not ({expr})" if outcome else expr, read.site)
        else:
            writer.fail_if(f"not same({expr}, {writer.const(outcome)})", read.site)

    def failure(self, read: Read, now: Now) -> Failure | None:
        sym, outcome = read.expected
        if any(leaf.payload.kind == "draw" for leaf in sym.leaves()):
            return None  # drawing again would return another number
        found = _sym_value(sym, now)
        return None if same_scalar(found, outcome) else Failure("MP201", sym.describe(), repr(outcome), repr(found))


def is_plain_key(key: Any) -> bool:
    """Whether the key of a step is fixed, and looking it up runs no user code."""
    return type(key) in (str, int, bool, type(None))


def _sym_value(sym: Any, now: Now) -> Any:
    """A symbolic scalar's value now (sources only)."""
    return sym.value(now) if isinstance(sym, Sym) else sym


def _one(cls: type) -> str:
    return f"{'an' if cls.__name__[:1] in 'AEIOUaeiou' else 'a'} {cls.__name__}"


def _fullness(full: bool) -> str:
    return "not empty" if full else "empty"


def _listed(keys: Iterable[Any]) -> str:
    """The first few keys of a dict as text."""
    texts = [bounded_repr(k, 30) for k in itertools.islice(keys, 5)]
    return ", ".join(texts[:4]) + (", ..." if len(texts) > 4 else "") if texts else "of an empty dict"


ABSENT = Absent()
TYPE = Type()
TENSOR = Tensor()
SHAPE = Shape()
IS = Is()
IDENTITY = Identity()
EQUAL = Equal()
TRUTH = Truth()
KEYS = Keys()
ELEMENTS = Elements()
NAMES = Names()
PLAIN_MODULE = PlainModule()
SAME_AS = SameAs()
NOT_SAME_AS = NotSameAs()
OUTCOME = Outcome()
