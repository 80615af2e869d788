"""What inspect and typing read of annotations: those of functions and classes, and the names in those that are texts."""

# ruff: noqa
import functools
import inspect
import typing

import torch


def args(i):
    return (torch.ones(2, 3) * (i + 1), i)


# === annotations_in_signatures
T = int


class Box:
    def __init__(self, a: T, b: T = 2):
        pass

    def method(self, c: T) -> T:
        return c


def f(a: T, b: T = 3) -> T:
    return a


def g(*args, **kwargs):
    return f(*args, **kwargs)


functools.update_wrapper(g, f)
box = Box(1)
part = functools.partial(f, 2)


def region(x, i):
    total = 0
    for what in (Box, box.method, part, g):
        for p in inspect.signature(what).parameters.values():
            total += 2 if p.annotation is int else 5
    return x * total


def change_init():
    Box.__init__.__annotations__["a"] = float


def change_init_whole():
    Box.__init__.__annotations__ = {"b": float}


def change_method():
    Box.method.__annotations__ = {"c": float}


def change_f():
    f.__annotations__ = {"b": float}


def change_wrapper():
    g.__annotations__ = {"b": float}


# === annotations_as_text_in_signatures
T = int


def f(a: "T"):
    return a


def region(x, i):
    return x * (2 if inspect.signature(f, eval_str=True).parameters["a"].annotation is int else 3)


def change_t():
    global T
    T = float


# === annotations_as_text_in_hints
T = int


def f(a: "T"):
    return a


def region(x, i):
    return x * (2 if typing.get_type_hints(f)["a"] is int else 3)


def change_t():
    global T
    T = float


# === annotations_of_a_class_by_inspect
class Box:
    a: int


def region(x, i):
    return x * (2 if inspect.get_annotations(Box)["a"] is int else 3)


def change_t():
    Box.__annotations__ = {"a": float}


def change_u():
    Box.__annotations__["a"] = float


# === annotations_as_text_in_generics
T = int


def f(a: "list[T]", b: typing.Optional["T"] = None):
    return a


class Box:
    c: typing.List["T"]


def region(x, i):
    hints = typing.get_type_hints(f)
    own = typing.get_type_hints(Box)
    return x * (2 if hints["a"] == list[int] else 3) * (5 if own["c"] == typing.List[int] else 7), str(hints["b"])


def change_what_they_name():
    global T
    T = float


# === signature_of_a_callable_object
class Called:
    def __call__(self, a: int):
        return a


class Meta(type):
    def __call__(cls, b: int):
        return super().__call__()


class Made(metaclass=Meta):
    pass


called = Called()


def region(x, i):
    kinds = [p.annotation for what in (called, Made) for p in inspect.signature(what).parameters.values()]
    return x * sum(2 if kind is int else 3 for kind in kinds)


def change_call():
    Called.__call__.__annotations__ = {"a": float}


def change_meta():
    Meta.__call__.__annotations__ = {"b": float}
