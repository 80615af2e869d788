"""Changes that fit any program: everything a call could have read, changed between two calls.

One function per kind of change, registered for the objects it fits; ``generic_changes`` finds the places in a world.
Changes of the arguments last until the next one of their kind undoes them; ``ambient`` ones are in that file.
Key functions: generic_changes, argument_changes.
"""

from __future__ import annotations

import collections
import collections.abc
import copy
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch
from torch import nn

from tests.soundness.harness.world import Arguments, Change, World, cell_is_full, reachable, slot_value, slots_of

Act = Callable[[Any], Any]
"""Changes one object; False when there was nothing to change."""

_KINDS: list[tuple[str, Callable[[Any], bool], Act]] = []


def change(name: str, fits: Callable[[Any], bool]) -> Callable[[Act], Act]:
    def register(act: Act) -> Act:
        _KINDS.append((name, fits, act))
        return act

    return register


def a(*classes: type) -> Callable[[Any], bool]:
    """Whether an object's real class is one of these."""
    return lambda v: issubclass(type(v), classes)


def _is_object(v: Any) -> bool:
    """An instance of a class of the program, or a module."""
    return not issubclass(type(v), (type, types.FunctionType, types.CellType, torch.Tensor, collections.abc.Iterator))


def generic_changes(world: World) -> list[Change]:
    """Every generic change that fits some object of the world, and those of its names and arguments."""
    out: list[Change] = []
    for path, v in reachable(world):
        for name, fits, act in _KINDS:
            if fits(v):
                out.append(Change(f"{name} at {path}", functools.partial(_at, path, fits, act), name))
    return [*out, *_global_changes(world), *argument_changes()]


def _at(path: str, fits: Callable[[Any], bool], act: Act, world: World) -> bool:
    for where, v in reachable(world):
        if where == path:
            return fits(v) and act(v) is not False
    return False


def bumped(value: Any) -> Any:
    """Another value of the same type; None when there is none."""
    if type(value) is bool:
        return not value
    if type(value) is int:
        return value + 1
    if type(value) is float:
        return value * 1.5 + 0.25
    if type(value) is complex:
        return value + 1j
    if type(value) is str:
        return value + "_"
    if type(value) is torch.dtype:
        return torch.float64 if value is not torch.float64 else torch.float32
    if type(value) is tuple and value and bumped(value[0]) is not None:
        return (bumped(value[0]), *value[1:])
    if type(value) is range:
        return range(value.start, value.stop + 1, value.step)
    if type(value) is slice:
        return slice(value.start, (value.stop or 0) + 1, value.step)
    for base in (int, float, str):  # an instance of a subclass
        if issubclass(type(value), base) and type(value).__new__ is base.__new__ and type(value).__module__ != "numpy":
            return type(value)(bumped(base(value)))
    return None


def subclassed(value: Any) -> Any:
    """The same number or text as an instance of a subclass; None for anything else."""
    for base, cls in ((int, _Int), (float, _Float), (str, _Text)):
        if type(value) is base:
            return cls(value)
    return None


def retyped(value: Any) -> Any:
    """An equal or similar value of another type; None when there is none."""
    if type(value) is bool:
        return int(value)
    if type(value) is int:
        return bool(value) if value in (0, 1) else float(value)
    if type(value) is float:
        return numpy.float64(value)
    if type(value) is str:
        return _Text(value)
    if type(value) is list:
        return tuple(value)
    if type(value) is tuple:
        return list(value)
    if type(value) is dict:
        return collections.OrderedDict(value)
    return None


class _Text(str):
    """A str that is not quite one."""

    __slots__ = ()


class _Int(int):
    """An int that is not quite one."""


class _Float(float):
    """A float that is not quite one."""


# -- tensors ---------------------------------------------------------------------------------------------------


@change("scale in place", a(torch.Tensor))
def _scale(t: torch.Tensor) -> Any:
    if not t.is_floating_point() or t.is_inference():
        return False
    with torch.no_grad():
        t.mul_(1.25)


@change("toggle requires_grad", a(torch.Tensor))
def _toggle_grad(t: torch.Tensor) -> Any:
    if not (t.is_leaf and t.is_floating_point()):
        return False
    t.requires_grad_(not t.requires_grad)


@change("cast in place", a(torch.Tensor))
def _cast(t: torch.Tensor) -> Any:
    if not t.is_floating_point():
        return False
    t.data = t.data.double() if t.dtype is not torch.float64 else t.data.float()


@change("resize in place", a(torch.Tensor))
def _resize(t: torch.Tensor) -> Any:
    if t.dim() == 0:
        return False
    t.data = torch.cat([t.data, t.data[:1]])


@change("stride in place", a(torch.Tensor))
def _stride(t: torch.Tensor) -> Any:
    if t.dim() < 2:
        return False
    t.data = t.data.transpose(0, -1).contiguous().transpose(0, -1)


@change("set grad", a(torch.Tensor))
def _set_grad(t: torch.Tensor) -> Any:
    if not (t.is_leaf and t.requires_grad):
        return False
    t.grad = torch.ones_like(t) if t.grad is None else None


@change("add tensor hook", a(torch.Tensor))
def _tensor_hook(t: torch.Tensor) -> Any:
    if not t.requires_grad:
        return False
    t.register_hook(_triple)


@change("add attribute of a tensor", a(torch.Tensor))
def _tensor_attribute(t: torch.Tensor) -> None:
    t.added = 1  # type: ignore[attr-defined]


@change("class of a tensor", a(torch.Tensor))
def _tensor_class(t: torch.Tensor) -> Any:
    if type(t) is not torch.Tensor:
        return False
    t.__class__ = _Doubling  # type: ignore[assignment]


class _Doubling(torch.Tensor):
    """A tensor whose sums are doubled."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = super().__torch_function__(func, types, args, kwargs or {})
        return out * 2 if func is torch.Tensor.add else out


def _triple(grad: torch.Tensor) -> torch.Tensor:
    return grad * 3


# -- lists, dicts, sets, deques, iterators ---------------------------------------------------------------------


@change("swap ends", a(list, collections.deque))
def _swap(v: Any) -> Any:
    if len(v) < 2:
        return False
    v[0], v[-1] = v[-1], v[0]


@change("duplicate last", a(list, collections.deque))
def _duplicate(v: Any) -> Any:
    if not len(v):
        return False
    v.append(v[-1])


@change("drop last", a(list, collections.deque))
def _drop(v: Any) -> Any:
    if not len(v):
        return False
    v.pop()


@change("bump first item", a(list, collections.deque))
def _bump_first(v: Any) -> Any:
    if not len(v) or bumped(v[0]) is None:
        return False
    v[0] = bumped(v[0])


@change("retype first item", a(list))
def _retype_first(v: list[Any]) -> Any:
    if not v or retyped(v[0]) is None:
        return False
    v[0] = retyped(v[0])


@change("alias items", a(list))
def _alias_items(v: list[Any]) -> Any:
    if len(v) < 2 or v[0] is v[-1] or (type(v[0]) is str and v[0] == v[-1]):  # which text it is, is nobody's business
        return False
    v[-1] = v[0]


@change("clear", a(list, dict, set, collections.deque))
def _clear(v: Any) -> Any:
    if not len(v):
        return False
    v.clear()


@change("add element", a(set))
def _add_element(v: set[Any]) -> Any:
    v.add("added")


@change("drop elements", a(set))
def _drop_element(v: set[Any]) -> Any:
    same = [x for x in v if type(x) in (int, str)]
    if not same:
        return False
    v.discard(min(same, key=repr))


@change("add key", a(dict))
def _add_key(v: dict[Any, Any]) -> None:
    v["added"] = 1


@change("drop key", a(dict))
def _drop_key(v: dict[Any, Any]) -> Any:
    if not v:
        return False
    del v[next(iter(v))]


@change("reverse order", a(dict))
def _reverse(v: dict[Any, Any]) -> Any:
    if len(v) < 2:
        return False
    items = list(v.items())[::-1]
    v.clear()
    v.update(items)


@change("bump value of a key", a(dict))
def _bump_dict(v: dict[Any, Any]) -> Any:
    for k, x in v.items():
        if bumped(x) is not None:
            v[k] = bumped(x)
            return True
    return False


@change("retype value of a key", a(dict))
def _retype_dict(v: dict[Any, Any]) -> Any:
    for k, x in v.items():
        if retyped(x) is not None:
            v[k] = retyped(x)
            return True
    return False


@change("equal keys of another type", a(dict))
def _retype_keys(v: dict[Any, Any]) -> Any:
    ints = [k for k in v if type(k) is int]
    if not ints:
        return False
    items = [(float(k) if type(k) is int else k, x) for k, x in v.items()]
    v.clear()
    v.update(items)


@change("default factory", a(collections.defaultdict))
def _factory(v: Any) -> None:
    v.default_factory = None if v.default_factory is not None else list


@change("advance", a(collections.abc.Iterator))
def _advance(v: Iterator[Any]) -> Any:
    try:
        next(v)
    except (StopIteration, ValueError):
        return False


# -- functions, cells, classes ---------------------------------------------------------------------------------


@change("bump cell", a(types.CellType))
def _bump_cell(c: Any) -> Any:
    if not cell_is_full(c) or bumped(c.cell_contents) is None:
        return False
    c.cell_contents = bumped(c.cell_contents)


@change("retype cell", a(types.CellType))
def _retype_cell(c: Any) -> Any:
    if not cell_is_full(c) or retyped(c.cell_contents) is None:
        return False
    c.cell_contents = retyped(c.cell_contents)


@change("empty cell", a(types.CellType))
def _empty_cell(c: Any) -> Any:
    if not cell_is_full(c):
        return False
    del c.cell_contents


@change("wrap function in a cell", a(types.CellType))
def _wrap_cell(c: Any) -> Any:
    if not cell_is_full(c) or type(c.cell_contents) is not types.FunctionType:
        return False
    c.cell_contents = wrapped(c.cell_contents)


@change("bump defaults", a(types.FunctionType))
def _bump_defaults(f: Any) -> Any:
    if not any(bumped(x) is not None for x in f.__defaults__ or ()):
        return False
    f.__defaults__ = tuple(x if bumped(x) is None else bumped(x) for x in f.__defaults__)


@change("bump keyword defaults", a(types.FunctionType))
def _bump_kwdefaults(f: Any) -> Any:
    if not any(bumped(x) is not None for x in (f.__kwdefaults__ or {}).values()):
        return False
    f.__kwdefaults__ = {k: x if bumped(x) is None else bumped(x) for k, x in f.__kwdefaults__.items()}


@change("drop defaults", a(types.FunctionType))
def _drop_defaults(f: Any) -> Any:
    if not f.__defaults__:
        return False
    f.__defaults__ = None


@change("edit code", a(types.FunctionType))
def _edit_code(f: Any) -> Any:
    """What a reloader does: the same function with other constants."""
    code = f.__code__
    consts = tuple(bumped(x) if type(x) is float else x for x in code.co_consts)
    if consts == code.co_consts:
        return False
    f.__code__ = code.replace(co_consts=consts)


@change("add function attribute", a(types.FunctionType))
def _function_attribute(f: Any) -> None:
    f.added = 1


@change("bump function attribute", a(types.FunctionType))
def _bump_function_attribute(f: Any) -> Any:
    return _bump_dict(f.__dict__)


@change("rename", a(types.FunctionType, type))
def _rename(v: Any) -> None:
    v.__name__ = v.__name__ + "_"


@change("another documentation", a(types.FunctionType, type))
def _document(v: Any) -> None:
    v.__doc__ = (v.__doc__ or "") + "More."


@change("bump class attribute", a(type))
def _bump_class(cls: Any) -> Any:
    for k, x in list(cls.__dict__.items()):
        if not k.startswith("__") and bumped(x) is not None:
            setattr(cls, k, bumped(x))
            return True
    return False


@change("add class attribute", a(type))
def _add_class_attribute(cls: Any) -> None:
    cls.added = 1


@change("drop class attribute", a(type))
def _drop_class_attribute(cls: Any) -> Any:
    names = [k for k, x in cls.__dict__.items() if not k.startswith("_") and not isinstance(x, types.MemberDescriptorType)]
    if not names:
        return False
    delattr(cls, names[0])


def _methods(cls: type) -> list[str]:
    return [k for k, x in cls.__dict__.items() if type(x) is types.FunctionType and k not in _DELICATE]


_DELICATE = ("__init__", "__new__", "__init_subclass__", "__setattr__", "__delattr__", "__getattribute__", "__hash__",
             "__eq__", "__repr__", "__torch_function__", "__del__")  # fmt: skip


@change("replace method", a(type))
def _replace_method(cls: Any) -> Any:
    names = _methods(cls)
    if not names:
        return False
    setattr(cls, names[0], wrapped(cls.__dict__[names[0]]))


@change("replace last method", a(type))
def _replace_last_method(cls: Any) -> Any:
    names = _methods(cls)
    if len(names) < 2:
        return False
    setattr(cls, names[-1], wrapped(cls.__dict__[names[-1]]))


@change("method becomes static", a(type))
def _static_method(cls: Any) -> Any:
    names = [n for n in _methods(cls) if not n.startswith("__")]
    if not names:
        return False
    setattr(cls, names[0], staticmethod(functools.partial(cls.__dict__[names[0]], None)))


@change("insert base class", a(type))
def _insert_base(cls: Any) -> Any:
    try:
        cls.__bases__ = (_Mixin, *cls.__bases__) if cls.__bases__ != (object,) else (_Mixin, _Root)
    except TypeError:
        return False


@change("insert base of other values", a(type))
def _insert_shadowing_base(cls: Any) -> Any:
    """What the class inherits of its own bases is found in another one first: other numbers and texts, methods replaced."""
    inherited: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        if base.__flags__ & (1 << 9) and not base.__module__.startswith(("torch", "collections", "abc", "enum", "typing")):
            inherited |= {n: v + (1 if type(v) is not str else "_") for n, v in base.__dict__.items() if _plain(n, v)}
            inherited |= {n: wrapped(base.__dict__[n]) for n in _methods(base) if not n.startswith("__")}
    if not inherited:
        return False
    try:
        cls.__bases__ = (type("Shadow", (_Root,), inherited), *cls.__bases__)
    except TypeError:
        return False


def _plain(name: str, value: Any) -> bool:
    return type(value) in (int, float, str) and not name.startswith("__")


class _Root:
    pass


class _Mixin:
    """A base that answers for every module's ``forward`` first."""

    added_by_mixin = 1

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return double(super().forward(*args, **kwargs))  # type: ignore[misc]


@change("add __getattribute__", a(type))
def _add_getattribute(cls: Any) -> Any:
    if "__getattribute__" in cls.__dict__ or issubclass(cls, (type, BaseException, tuple)):
        return False
    cls.__getattribute__ = _bumping_getattribute


def _bumping_getattribute(self: Any, name: str) -> Any:
    value = object.__getattribute__(self, name)
    return value * 2 if type(value) is float else value


@change("add __getattr__", a(type))
def _add_getattr(cls: Any) -> Any:
    if any("__getattr__" in k.__dict__ for k in cls.__mro__) or issubclass(cls, (type, BaseException)):
        return False
    cls.__getattr__ = _found_getattr


def _found_getattr(self: Any, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return 0.5


@change("add __bool__", a(type))
def _add_bool(cls: Any) -> Any:
    if "__bool__" in cls.__dict__ or issubclass(cls, (type, int, float)):
        return False
    cls.__bool__ = lambda self: False


@change("add __setattr__", a(type))
def _add_setattr(cls: Any) -> Any:
    if "__setattr__" in cls.__dict__ or issubclass(cls, (type, BaseException, nn.Module)):
        return False
    cls.__setattr__ = _doubling_setattr


def _doubling_setattr(self: Any, name: str, value: Any) -> None:
    object.__setattr__(self, name, value * 2 if type(value) is float else value)


@change("property over an attribute", _is_object)
def _property(v: Any) -> Any:
    own = _plain_names(v, (int, float))
    cls = type(v)
    if not own or cls.__module__.startswith("torch") or issubclass(cls, (dict, list, set)):
        return False
    name = own[0]
    setattr(cls, name, property(lambda self: self.__dict__[name] * 2, lambda self, x: self.__dict__.update({name: x})))


# -- instances -------------------------------------------------------------------------------------------------


def _dict(obj: Any) -> dict[str, Any]:
    try:
        return object.__getattribute__(obj, "__dict__")  # type: ignore[no-any-return]
    except AttributeError:
        return {}


def _plain_names(obj: Any, classes: Any = (object,)) -> list[str]:
    return [k for k, x in _dict(obj).items() if not k.startswith("_") and k != "training" and isinstance(x, classes)]


@change("bump attribute", _is_object)
def _bump_attribute(obj: Any) -> Any:
    for k, x in list(_dict(obj).items()):
        if not k.startswith("_") and k != "training" and bumped(x) is not None:
            _dict(obj)[k] = bumped(x)
            return True
    return False


@change("bump last attribute", _is_object)
def _bump_last_attribute(obj: Any) -> Any:
    names = [k for k in _plain_names(obj) if bumped(_dict(obj)[k]) is not None]
    if len(names) < 2:
        return False
    _dict(obj)[names[-1]] = bumped(_dict(obj)[names[-1]])


@change("retype attribute", _is_object)
def _retype_attribute(obj: Any) -> Any:
    for k in _plain_names(obj):
        if retyped(_dict(obj)[k]) is not None:
            _dict(obj)[k] = retyped(_dict(obj)[k])
            return True
    return False


@change("attribute to an instance of a subclass", _is_object)
def _subclass_attribute(obj: Any) -> Any:
    for k in _plain_names(obj):
        if (new := subclassed(_dict(obj)[k])) is not None:
            _dict(obj)[k] = new
            return True
    return False


@change("attributes in another order", _is_object)
def _reorder_attributes(obj: Any) -> Any:
    names = _plain_names(obj)
    if len(names) < 2 or type(obj).__dictoffset__ == 0:
        return False
    _dict(obj)[names[0]] = _dict(obj).pop(names[0])


@change("attribute to None", _is_object)
def _none_attribute(obj: Any) -> Any:
    names = _plain_names(obj)
    if not names:
        return False
    _dict(obj)[names[0]] = None


@change("attribute to a tensor", _is_object)
def _tensor_attribute_of(obj: Any) -> Any:
    names = _plain_names(obj, (int, float))
    if not names:
        return False
    _dict(obj)[names[0]] = torch.tensor(_dict(obj)[names[0]])


@change("attribute to an equal copy", _is_object)
def _copy_attribute(obj: Any) -> Any:
    names = _plain_names(obj, (list, dict, set, collections.deque))
    if not names:
        return False
    _dict(obj)[names[0]] = copy.copy(_dict(obj)[names[0]])


@change("drop attribute", _is_object)
def _drop_attribute(obj: Any) -> Any:
    names = _plain_names(obj)
    if not names:
        return False
    del _dict(obj)[names[0]]


@change("add attribute", _is_object)
def _add_attribute(obj: Any) -> Any:
    if not hasattr(type(obj), "__dict__") or type(obj).__dictoffset__ == 0:
        return False
    object.__setattr__(obj, "added", 1)


@change("bump slot", _is_object)
def _bump_slot(obj: Any) -> Any:
    for name in slots_of(type(obj)):
        if (new := bumped(slot_value(obj, name))) is not None:
            object.__setattr__(obj, name, new)
            return True
    return False


@change("empty slot", _is_object)
def _empty_slot(obj: Any) -> Any:
    for name in slots_of(type(obj)):
        try:
            object.__delattr__(obj, name)
        except AttributeError:
            continue
        return True
    return False


@change("method of an instance", _is_object)
def _shadow_method(obj: Any) -> Any:
    for k in type(obj).__mro__:
        for name in _methods(k):
            if not name.startswith("__") and not k.__module__.startswith(("torch", "builtins", "collections")):
                if type(obj).__dictoffset__ == 0:
                    return False
                obj.__dict__[name] = types.MethodType(wrapped(k.__dict__[name]), obj)
                return True
    return False


@change("class of an instance", _is_object)
def _swap_class(obj: Any) -> Any:
    cls = type(obj)
    if cls.__module__.startswith(("builtins", "collections")):
        return False
    try:
        attributes = {k: bumped(v) for k, v in cls.__dict__.items() if not k.startswith("_") and bumped(v) is not None}
        obj.__class__ = type(cls)(cls.__name__, (cls,), {"__module__": cls.__module__, **attributes})
    except TypeError:
        return False


def double(out: Any) -> Any:
    # not by an operator: that is one of the functions which are replaced
    return torch.mul(out, 2) if isinstance(out, torch.Tensor) else out * 2 if isinstance(out, float) else out


def wrapped(f: Callable[..., Any]) -> Callable[..., Any]:
    """A replacement that calls the original and doubles what it gives."""

    @functools.wraps(f)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        return double(f(*args, **kwargs))

    return replacement


# -- names of the program's module -----------------------------------------------------------------------------

_BUILTINS = ("len", "range", "isinstance", "sum", "max", "min", "zip", "enumerate", "float", "int", "print", "sorted", "abs",
             "getattr", "next", "list", "dict", "str", "any", "all")  # fmt: skip


def _global_changes(world: World) -> Iterator[Change]:
    def at(kind: str, key: str, make: Callable[[Any], Any]) -> Change:
        def apply(w: World) -> bool:
            new = make(w.namespace.get(key))
            if new is None:
                return False
            w.namespace[key] = new
            return True

        return Change(f"{kind} {key}", apply, kind)

    for key, value in list(world.namespace.items()):
        if key.startswith("__"):
            continue
        if bumped(value) is not None:
            yield at("bump global", key, bumped)
        if retyped(value) is not None:
            yield at("retype global", key, retyped)
        if subclassed(value) is not None:
            yield at("subclass of global", key, subclassed)
        if type(value) in (list, dict, set):
            yield at("equal copy of global", key, lambda v: copy.copy(v) if type(v) in (list, dict, set) else None)
        if type(value) is types.FunctionType and key not in ("args", "region") and not key.startswith("change_"):
            yield at("replace global function", key, lambda v: wrapped(v) if type(v) is types.FunctionType else None)
        if issubclass(type(value), torch.Tensor):
            yield at("replace global tensor", key, lambda v: _other_tensor(v))
        if key not in ("args", "region", "torch", "nn") and not key.startswith("change_"):
            yield _deletion(key)
    for name in _BUILTINS:
        if name in world.program.source:
            yield _shadowed(name)


def _other_tensor(t: Any) -> Any:
    return t.detach().clone().requires_grad_(t.requires_grad) if isinstance(t, torch.Tensor) else None


def _deletion(key: str) -> Change:
    def apply(w: World) -> bool:
        return w.namespace.pop(key, None) is not None

    return Change(f"delete global {key}", apply, "delete global")


def _shadowed(name: str) -> Change:
    import builtins

    original = getattr(builtins, name)

    def apply(w: World) -> bool:
        if name in w.namespace:
            del w.namespace[name]
        else:
            w.namespace[name] = functools.partial(_as_builtin, original)
        return True

    return Change(f"shadow builtin {name}", apply, "shadow builtin")


def _as_builtin(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    out = original(*args, **kwargs)
    return out * 2 if type(out) is float else out


# -- arguments -------------------------------------------------------------------------------------------------


def argument_changes() -> list[Change]:
    """Changes of what is passed; each lasts until it comes again, and they add up."""
    return [
        Change(
            f"arguments {f.__name__.strip('_').replace('_', ' ')}",
            functools.partial(_rewriting, f),
            "arguments: " + f.__name__,
        )
        for f in _REWRITES
    ]


def _rewriting(rewrite: Callable[[World, Arguments], Arguments], world: World) -> bool:
    name = rewrite.__name__
    if name in world.rewrite:
        del world.rewrite[name]
    else:
        world.rewrite[name] = functools.partial(rewrite, world)
    return True


def _mapped(made: Arguments, act: Callable[[Any], Any], cls: Any = torch.Tensor) -> Arguments:
    """Arguments with ``act`` applied to every value of a class, in lists, tuples and dicts too."""

    def visit(v: Any) -> Any:
        if isinstance(v, cls) and not isinstance(v, bool):
            return act(v)
        if type(v) in (list, tuple):
            return type(v)(map(visit, v))
        return {k: visit(x) for k, x in v.items()} if type(v) is dict else v

    args, kwargs = made
    return tuple(map(visit, args)), {k: visit(v) for k, v in kwargs.items()}


def _tensors(act: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[World, Arguments], Arguments]:
    return lambda world, made: _mapped(made, act)


def _floats(act: Callable[[torch.Tensor], Any]) -> Callable[[World, Arguments], Arguments]:
    return lambda world, made: _mapped(made, lambda t: act(t) if t.is_floating_point() else t)


def _named(name: str, f: Callable[[World, Arguments], Arguments]) -> Callable[[World, Arguments], Arguments]:
    f.__name__ = name
    return f


def _by_keyword(world: World, made: Arguments) -> Arguments:
    args, kwargs = made
    region = world.namespace["region"]
    try:
        names = list(inspect.signature(getattr(region, "forward", region)).parameters)
    except (TypeError, ValueError):
        return made
    if not args or len(args) > len(names):
        return made
    return args[:-1], {**kwargs, names[len(args) - 1]: args[-1]}


def _one_object(world: World, made: Arguments) -> Arguments:
    known: dict[Any, torch.Tensor] = {}
    return _mapped(made, lambda t: known.setdefault((t.shape, t.dtype), t))


def _one_memory(world: World, made: Arguments) -> Arguments:
    known: dict[Any, torch.Tensor] = {}

    def view(t: torch.Tensor) -> torch.Tensor:
        base = known.setdefault((t.shape, t.dtype), t)
        return t if base is t else base.detach().view(base.shape)

    return _mapped(made, view)


def _last_none(world: World, made: Arguments) -> Arguments:
    return ((*made[0][:-1], None), made[1]) if made[0] else made


def _fewer(world: World, made: Arguments) -> Arguments:
    return made[0][:-1], made[1]


def _more(world: World, made: Arguments) -> Arguments:
    return (*made[0], 1.5), made[1]


def _numbers(world: World, made: Arguments) -> Arguments:
    return _mapped(made, bumped, (int, float))


def _retyped_numbers(world: World, made: Arguments) -> Arguments:
    return _mapped(made, retyped, (int, float))


def _subclassed_numbers(world: World, made: Arguments) -> Arguments:
    return _mapped(made, lambda v: v if subclassed(v) is None else subclassed(v), (int, float, str))


def _inference(world: World, made: Arguments) -> Arguments:
    with torch.inference_mode():
        return _mapped(made, torch.clone)


class _Plain(torch.Tensor):
    """A subclass that changes nothing but the type."""


def _offset(t: torch.Tensor) -> torch.Tensor:
    return torch.cat([t.new_zeros(1), t.detach().flatten()])[1:].view(t.shape)


def _strided(t: torch.Tensor) -> torch.Tensor:
    return t.detach().transpose(0, -1).contiguous().transpose(0, -1) if t.dim() > 1 else t


def _leaf(t: torch.Tensor) -> torch.Tensor:
    return t if t.requires_grad or not t.is_leaf else t.requires_grad_()


def _spoiled(t: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.arange(t.numel()).view(t.shape) == 0, float("nan"), t.detach())


_REWRITES = [
    _named("double", _floats(lambda t: t.double())),
    _named("bfloat16", _floats(lambda t: t.bfloat16())),
    _named("integers", _floats(lambda t: t.detach().long())),
    _named("requiring_grad", _floats(_leaf)),
    _named("not_leaves", _floats(lambda t: _leaf(t) * 1.0)),
    _named("strided", _tensors(_strided)),
    _named("with_an_offset", _tensors(_offset)),
    _named("twice_as_long", _tensors(lambda t: torch.cat([t, t]) if t.dim() else t)),
    _named("one_row", _tensors(lambda t: t[:1] if t.dim() else t)),
    _named("no_rows", _tensors(lambda t: t[:0] if t.dim() else t)),
    _named("one_dimension_more", _tensors(lambda t: t[None])),
    _named("of_no_dimension", _floats(lambda t: t.sum())),
    _named("expanded", _tensors(lambda t: t[:1].expand_as(t) if t.dim() else t)),
    _named("with_nan", _floats(_spoiled)),
    _named("parameters", _floats(lambda t: nn.Parameter(t.detach()))),
    _named("of_a_subclass", _tensors(lambda t: t.as_subclass(_Plain))),
    _named("arrays", _floats(lambda t: t.detach().numpy())),
    _named("negative_views", _floats(lambda t: torch._neg_view(t))),
    _by_keyword, _one_object, _one_memory, _last_none, _fewer, _more, _numbers, _retyped_numbers, _subclassed_numbers,
    _inference,
]  # fmt: skip
