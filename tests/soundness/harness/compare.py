"""Deep comparison of two worlds: values, types, order, and which names are one object.

``differences(a, b)`` walks two object graphs in step and keeps a bijection of the mutable objects and of tensor storages met
on the way, so that two lists that are one object on one side must be one object on the other. Nothing is tolerated except
what ``close`` allows for floating-point tensors (compiled backends reorder sums; the eager backend must be exact).
Key function: differences.
"""

from __future__ import annotations

import collections
import enum
import functools
import io
import sys
import types
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from magpy_core._compat.torch.module_calls import COMPILED_CALL
from tests.soundness.harness.world import slots_of

_ATOMS = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented), torch.dtype, torch.device,
          torch.layout, torch.memory_format, range, enum.Enum)  # fmt: skip
# The last two are what autograd.Function hangs on classes for itself.
_SKIPPED_CLASS_NAMES = frozenset({"__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "_abc_impl",
                                 "_autograd_function_id", "_backward_cls"})  # fmt: skip
_PLAIN = frozenset({int, str, bool, bytes, type(None)})
_HOLDERS = frozenset({dict, list, set, collections.OrderedDict, collections.deque})
_LIMIT = 20


def is_a(value: Any, classes: Any) -> bool:
    """``isinstance`` that never looks at ``value.__class__``: that would run a program's own ``__getattribute__``."""
    return issubclass(type(value), classes)


def _shown(tensor: torch.Tensor, name: str) -> Any:
    """A view made in inference mode, whose base was written since, shows no history: it raises."""
    try:
        return getattr(tensor, name)
    except RuntimeError as error:
        return str(error)


class Walk:
    """One comparison. ``out`` collects the differences as text, each with the access path."""

    def __init__(
        self, modules: tuple[types.ModuleType, types.ModuleType] | None, close: bool, gradients: bool = True
    ) -> None:
        self.gradients = gradients
        self.modules = modules
        self.close = close
        self.out: list[str] = []
        self.left: dict[int, int] = {}
        self.right: dict[int, int] = {}
        self.storages: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self.keep: list[Any] = []
        self.slots: dict[type, list[str]] = {}  # of the classes met; nothing changes them during a comparison

    def say(self, path: str, text: str) -> None:
        if len(self.out) < _LIMIT:
            self.out.append(f"{path}: {text}")

    def bound(self, path: str, a: Any, b: Any) -> bool:
        """Whether the pair was met before; a broken bijection is a difference."""
        ka, kb = self.left.get(id(a)), self.right.get(id(b))
        if ka is None and kb is None:
            self.left[id(a)], self.right[id(b)] = id(b), id(a)
            self.keep += [a, b]
            return False
        if ka != id(b) or kb != id(a):
            who = "one object on the left, another on the right" if ka is not None else "a new object on the left only"
            self.say(path, f"identity differs ({type(a).__name__}: {who})")
        return True

    def values(self, path: str, a: Any, b: Any) -> None:
        if len(self.out) >= _LIMIT:
            return
        tp = type(a)
        if tp is type(b):  # the shortest way for most of what there is
            if tp in _PLAIN:
                if a != b:
                    self.say(path, f"{a!r} != {b!r}")
                return
            if tp in _HOLDERS:
                if not self.bound(path, a, b) and a is not b:
                    self.contents(path, a, b)
                    self.attributes(path, a, b)
                return
        if type(a) is not type(b) and not self.same_class(type(a), type(b)):
            self.say(path, f"type {type(a).__qualname__} != {type(b).__qualname__} ({short(a)} != {short(b)})")
            return
        if is_a(a, enum.Enum):
            if a.name != b.name:
                self.say(path, f"{a} != {b}")
            return
        if is_a(a, _ATOMS):
            same = repr(a) == repr(b) if is_a(a, (float, complex)) else a == b
            if not same:
                self.say(path, f"{a!r} != {b!r}")
            return
        if is_a(a, np.generic):  # a number, which has no identity that counts
            if a.dtype != b.dtype or repr(a) != repr(b):
                self.say(path, f"{a!r} != {b!r}")
            return
        if is_a(a, types.ModuleType):
            if self.modules is None or a is not self.modules[0] or b is not self.modules[1]:
                if a is not b and not self.own_modules(path, a, b):
                    self.say(path, "different modules")
            return
        if a is b and is_a(a, (types.BuiltinFunctionType, type, types.CodeType)):
            return
        if is_a(a, tuple) and not a and not b:
            return  # the empty tuple is one object
        if is_a(a, (types.CodeType, types.MethodWrapperType, types.MethodDescriptorType, types.GenericAlias)):
            if is_a(a, types.CodeType) and a.co_qualname != b.co_qualname:
                self.say(path, f"code {a.co_qualname} != {b.co_qualname}")
            return
        if not is_a(a, (types.BuiltinFunctionType, types.MethodType, tuple, frozenset)) and self.bound(path, a, b):
            return
        if is_a(a, tuple) and (id(a) in self.left or id(b) in self.right):
            if self.bound(path, a, b):
                return
        if a is not b:  # a shared object (a logger, a function of a library) can't differ from itself
            self.inside(path, a, b)

    def own_modules(self, path: str, a: Any, b: Any) -> bool:
        """Modules that the programs made are compared like other objects; those that are imported are shared."""
        if a.__name__ != b.__name__ or sys.modules.get(a.__name__) in (a, b):
            return False
        if not self.bound(path, a, b):
            self.dicts(path, vars(a), vars(b))
        return True

    def same_class(self, a: type, b: type) -> bool:
        return (
            a.__qualname__ == b.__qualname__
            and a.__module__ == b.__module__
            and a is not b
            and not a.__module__ == "builtins"
        )

    def inside(self, path: str, a: Any, b: Any) -> None:
        if is_a(a, torch.Tensor):
            self.tensors(path, a, b)
            return
        if is_a(a, np.ndarray):
            self.arrays(path, a, b)
            return
        if is_a(a, type):
            self.classes(path, a, b)
            return
        if is_a(a, types.FunctionType):
            self.functions(path, a, b)
            return
        if is_a(a, types.CellType):
            self.values(path + ".cell", cell(a), cell(b))
            return
        if is_a(a, types.MethodType):
            self.values(path + ".__func__", a.__func__, b.__func__)
            self.values(path + ".__self__", a.__self__, b.__self__)
            return
        if is_a(a, types.BuiltinFunctionType):
            if a.__name__ != b.__name__:
                self.say(path, f"{a.__name__} != {b.__name__}")
            elif not is_a(a.__self__, (types.ModuleType, type)):
                self.values(path + ".__self__", a.__self__, b.__self__)
            return
        if is_a(a, (staticmethod, classmethod)):
            self.values(path + ".__func__", a.__func__, b.__func__)
            return
        if is_a(a, property):
            for name in ("fget", "fset", "fdel"):
                self.values(f"{path}.{name}", getattr(a, name), getattr(b, name))
            return
        if is_a(a, functools.partial):
            self.values(path + ".func", a.func, b.func)
            self.values(path + ".args", a.args, b.args)
            self.values(path + ".keywords", a.keywords, b.keywords)
        if is_a(a, weakref.ref):
            self.values(path + "()", a(), b())
            return
        if is_a(a, types.GeneratorType):
            self.generators(path, a, b)
            return
        if is_a(a, torch.Generator):
            self.values(path + ".state", a.get_state(), b.get_state())
            return
        if is_a(a, io.StringIO):
            texts = [(one.closed or (io.StringIO.getvalue(one), io.StringIO.tell(one))) for one in (a, b)]
            self.values(path + ".text", *texts)
        if is_a(a, BaseException):
            self.errors(path, a, b)
        self.contents(path, a, b)
        self.attributes(path, a, b)

    def contents(self, path: str, a: Any, b: Any) -> None:
        if is_a(a, (list, tuple, collections.deque)):
            xs, ys = items(a), items(b)
            if len(xs) != len(ys):
                self.say(path, f"length {len(xs)} != {len(ys)} ({short(a)} != {short(b)})")
                return
            if is_a(a, collections.deque) and a.maxlen != b.maxlen:
                self.say(path, "maxlen differs")
            for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
                self.values(f"{path}[{i}]", x, y)
        elif is_a(a, (dict, types.MappingProxyType)):
            self.dicts(path, a, b)
        elif is_a(a, (set, frozenset)):
            self.sets(path, a, b)
        elif is_a(a, memoryview | bytearray):
            if bytes(a) != bytes(b):
                self.say(path, "bytes differ")
        elif hasattr(type(a), "__next__") and not hasattr(type(a), "__dict__"):
            try:
                left, right = a.__reduce__(), b.__reduce__()
            except TypeError:
                return
            self.values(path + ".__reduce__()", left, right)
        if is_a(a, collections.defaultdict):
            self.values(path + ".default_factory", a.default_factory, b.default_factory)

    def dicts(self, path: str, a: Any, b: Any) -> None:
        kind = mapping_of(a)
        if kind is not mapping_of(b):
            self.say(path, f"{type(a).__name__} != {type(b).__name__}")
            return
        ka, kb = list(kind.__iter__(a)), list(kind.__iter__(b))
        if len(ka) != len(kb):
            extra = (
                [short(k) for k in ka if not kind.__contains__(b, k)][:4],
                [short(k) for k in kb if not kind.__contains__(a, k)][:4],
            )
            self.say(path, f"{len(ka)} keys != {len(kb)} keys (only left {extra[0]}, only right {extra[1]})")
            return
        for x, y in zip(ka, kb, strict=True):
            name = short(x)
            if not (type(x) is type(y) is str and x == y):
                self.values(f"{path} key {name}", x, y)
            self.values(f"{path}[{name}]", kind.__getitem__(a, x), kind.__getitem__(b, y))

    def sets(self, path: str, a: Any, b: Any) -> None:
        if len(a) != len(b):
            self.say(path, f"{len(a)} elements != {len(b)} elements")
            return
        atoms = [v for v in a if is_a(v, _ATOMS)]
        if len(atoms) == len(a):
            if sorted(map(repr, a)) != sorted(map(repr, b)):
                self.say(path, f"{a} != {b}")
            return
        known = {id(v) for v in b}
        for v in a:
            partner = self.left.get(id(v))
            if partner is not None and partner not in known:
                self.say(path, f"{short(v)} is in the left set only")

    def attributes(self, path: str, a: Any, b: Any) -> None:
        da, db = instance_dict(a), instance_dict(b)
        if db is not None and COMPILED_CALL in db and COMPILED_CALL not in (da or {}):
            db = {name: value for name, value in db.items() if name != COMPILED_CALL}  # compiled in place
        if da is not None and db is not None:
            self.dicts(path + ".__dict__", da, db)
        names = self.slots.get(type(a))
        if names is None:
            names = self.slots[type(a)] = slots_of(type(a))
        for name in names:
            self.values(f"{path}.{name}", slot(a, name), slot(b, name))

    def arrays(self, path: str, a: Any, b: Any) -> None:
        if (a.dtype, a.shape, a.strides) != (b.dtype, b.shape, b.strides):
            self.say(path, f"{a.dtype}{a.shape} with strides {a.strides} != {b.dtype}{b.shape} with strides {b.strides}")
        elif a.dtype.hasobject:
            self.values(path + ".tolist()", a.tolist(), b.tolist())
        elif not (np.allclose(a, b, equal_nan=True) if self.close and a.dtype.kind in "fc" else a.tobytes() == b.tobytes()):
            self.say(path, f"arrays differ: {a.tolist()!s:.60} != {b.tolist()!s:.60}")

    def errors(self, path: str, a: BaseException, b: BaseException) -> None:
        self.values(path + ".args", a.args, b.args)
        if str(a) != str(b):
            self.say(path, f"{a} != {b}")
        for name in ("__cause__", "__context__"):
            links = (getattr(a, name), getattr(b, name))
            if any(is_a(link, RecursionError) for link in links):
                continue  # where the limit is met depends on how deep the caller is
            self.values(f"{path}.{name}", getattr(a, name), getattr(b, name))
        if a.__suppress_context__ != b.__suppress_context__:
            self.say(path, "__suppress_context__ differs")

    def generators(self, path: str, a: Any, b: Any) -> None:
        fa, fb = a.gi_frame, b.gi_frame
        if (fa is None) != (fb is None):
            self.say(path, "one generator is exhausted, the other is not")
        elif fa is not None:
            if fa.f_lineno != fb.f_lineno:
                self.say(path, f"generator at line {fa.f_lineno} != {fb.f_lineno}")
            self.dicts(
                path + ".locals", *({k: v for k, v in f.f_locals.items() if not k.startswith("magpy ")} for f in (fa, fb))
            )

    def functions(self, path: str, a: Any, b: Any) -> None:
        if a.__qualname__ != b.__qualname__:
            self.say(path, f"function {a.__qualname__} != {b.__qualname__}")
            return
        self.values(path + ".__defaults__", a.__defaults__, b.__defaults__)
        self.values(path + ".__kwdefaults__", a.__kwdefaults__, b.__kwdefaults__)
        if "_torchdynamo_orig_callable" in a.__dict__ and "_torchdynamo_orig_callable" in b.__dict__:
            inner = [f.__dict__["_torchdynamo_orig_callable"] for f in (a, b)]
            self.values(path + ".__wrapped__", *inner)  # the wrapper itself is torch.compile's own
            return
        self.dicts(path + ".__dict__", a.__dict__, b.__dict__)
        ca, cb = a.__closure__ or (), b.__closure__ or ()
        if len(ca) != len(cb):
            self.say(path, "different closures")
            return
        for name, x, y in zip(a.__code__.co_freevars, ca, cb, strict=True):
            if a is b and x is y:
                continue
            self.values(f"{path} cell {name}", x, y)

    def classes(self, path: str, a: type, b: type) -> None:
        if a is b:
            return
        if a.__qualname__ != b.__qualname__:
            self.say(path, f"class {a.__qualname__} != {b.__qualname__}")
            return
        self.values(path + ".__bases__", a.__bases__, b.__bases__)
        names = [n for n in a.__dict__ if n not in _SKIPPED_CLASS_NAMES]
        others = [n for n in b.__dict__ if n not in _SKIPPED_CLASS_NAMES]
        if names != others:
            self.say(path, f"class attributes {set(names) ^ set(others)} differ")
            return
        for name in names:
            x, y = a.__dict__[name], b.__dict__[name]
            if not is_a(x, (types.MemberDescriptorType, types.GetSetDescriptorType)):
                self.values(f"{path}.{name}", x, y)

    def tensors(self, path: str, a: torch.Tensor, b: torch.Tensor) -> None:
        for name in ("dtype", "device", "layout", "shape", "requires_grad", "is_leaf"):
            x, y = _shown(a, name), _shown(b, name)
            if x != y:
                self.say(path, f"{name} {x} != {y}")
                return
        with torch.no_grad(), torch._C.DisableTorchFunctionSubclass():
            if a.layout is torch.strided:
                placed = self.close and path.endswith(".grad")  # where a gradient begins in its storage
                if a.stride() != b.stride() or (a.storage_offset() != b.storage_offset() and not placed):
                    self.say(path, f"layout {a.stride()}+{a.storage_offset()} != {b.stride()}+{b.storage_offset()}")
                self.storage(path, a, b)
                x, y = a.detach(), b.detach()
                if not self.equal(x, y):
                    self.say(path, f"values differ: {x.flatten()[:4].tolist()} != {y.flatten()[:4].tolist()}")
        if (_shown(a, "grad_fn") is None) != (_shown(b, "grad_fn") is None):
            self.say(path, "only one has a grad_fn")
        if _shown(a, "is_leaf") is True and self.gradients:
            self.values(path + ".grad", a.grad, b.grad)
        if a.__dict__ or b.__dict__:
            self.dicts(path + ".__dict__", a.__dict__, b.__dict__)

    def equal(self, x: torch.Tensor, y: torch.Tensor) -> bool:
        if x.is_meta:
            return True
        if torch.equal(x, y) or (x.dtype.is_floating_point and torch.allclose(x, y, rtol=0, atol=0, equal_nan=True)):
            return True
        return self.close and x.dtype.is_floating_point and torch.allclose(x, y, rtol=1e-4, atol=1e-5, equal_nan=True)

    def storage(self, path: str, a: torch.Tensor, b: torch.Tensor) -> None:
        """Tensors share memory on both sides or on neither."""
        x, y = a.untyped_storage()._cdata, b.untyped_storage()._cdata
        left, right = self.storages
        if left.setdefault(x, y) != y or right.setdefault(y, x) != x:
            self.say(path, "shares memory with other tensors on one side only")
        self.keep += [a.untyped_storage(), b.untyped_storage()]


def short(value: Any) -> str:
    if is_a(value, (str, int, float)):
        return repr(value)[:60]
    if is_a(value, (list, tuple, set, dict)):
        return f"{type(value).__name__} of {len(value)}"
    return type(value).__name__


def told(found: Sequence[str | None], calls: int) -> int:
    """Print what a product's regions of so many calls showed; the exit status."""
    for line in filter(None, found):
        print(line)
    print(f"{len(found)} regions of {calls} calls, {sum(line is not None for line in found)} differ")
    return 1 if any(found) else 0


def items(value: Any) -> tuple[Any, ...]:
    """What a list, tuple or deque holds, whatever its class says."""
    base = next(kind for kind in (list, tuple, collections.deque) if is_a(value, kind))
    return tuple(base.__iter__(value))


def mapping_of(value: Any) -> Any:
    """The class whose own methods show what a dict or mapping proxy holds, whatever its class says."""
    tp = type(value)
    return tp if tp is dict else next((kind for kind in (collections.OrderedDict, dict) if issubclass(tp, kind)), tp)


def cell(c: Any) -> Any:
    try:
        return c.cell_contents
    except ValueError:
        return "<empty cell>"


def slot(obj: Any, name: str) -> Any:
    for k in type(obj).__mro__:
        member = k.__dict__.get(name)
        if is_a(member, types.MemberDescriptorType):
            try:
                return member.__get__(obj, type(obj))
            except AttributeError:
                return "<empty slot>"
    return "<empty slot>"


def instance_dict(obj: Any) -> dict[str, Any] | None:
    try:
        d = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None
    return d if type(d) is dict else None


def differences(
    a: Any,
    b: Any,
    modules: tuple[types.ModuleType, types.ModuleType] | None = None,
    *,
    close: bool = False,
    gradients: bool = True,
) -> list[str]:
    """How ``b`` differs from ``a``; empty when it doesn't."""
    walk = Walk(modules, close, gradients)
    walk.values("world", a, b)
    return walk.out
