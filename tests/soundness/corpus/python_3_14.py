"""What Python 3.14 has: template strings, annotations that are evaluated when they are asked for, except without parentheses,
``all``, ``any`` and ``tuple`` of a generator as loops."""

# ruff: noqa
import annotationlib
import dataclasses
import inspect
import typing

import torch


def args(i):
    return (torch.ones(2, 3) * (i + 1), i)


# === template_read: since=14
state = {"n": 2}


def shown(t):
    return "".join(p if isinstance(p, str) else format(p.value, p.format_spec) for p in t)


def region(x, i):
    y = x * state["n"]
    t = t"n is {state['n']!r:>{4}} and {y.shape[0]:03}"
    return y + len(t.interpolations), shown(t), t.strings


def change_n():
    state["n"] += 3


# === template_carries_values: since=14
from string.templatelib import Interpolation, Template

scale = 2.0


def region(x, i):
    t = t"{x * scale} by {scale}"
    return t.interpolations[0].value + t.values[1], t.interpolations[1].expression


def change_scale():
    global scale
    scale += 1


# === template_returned: since=14 plain
scale = 2.0


def region(x, i):
    t = t"by {scale}"
    return x * 2, t.strings, str(t.interpolations), type(t + t"!")


def change_scale():
    global scale
    scale += 1


# === template_from_outside: since=14
count = 3
t = t"a {count} b"


def region(x, i):
    return x * t.interpolations[0].value + len(t.strings[0])


def change_template():
    global t, count
    count += 1
    t = t"longer {count} b"


# === interpolation_that_raises: since=14 calls=6
class Shy:
    def __format__(self, spec):
        raise ValueError(spec)


shy = Shy()
width = 3


def region(x, i):
    t = t"{shy:>{width}}"
    try:
        return x, format(t.interpolations[0].value, t.interpolations[0].format_spec)
    except ValueError as error:
        return x * 2, str(error)


def change_width():
    global width
    width += 1


# === annotations_of_a_function: since=14
T = int


def f(a: T, b: "later" = 3) -> Missing if False else T:
    return a * b


def region(x, i):
    kinds = f.__annotations__
    return f(x, 2) * (2 if kinds["a"] is int else 3), len(kinds), kinds["b"]


def change_what_it_names():  # too late: they have been evaluated
    global T
    T = float


def change_annotations():
    f.__annotations__ = {"a": float, "b": 1}


def change_annotate():
    f.__annotate__ = lambda format: {"a": int, "b": 2, "c": T}


def change_entry():
    f.__annotations__["b"] = "other"


# === annotations_of_a_class: since=14
T = int


class Box:
    a: T
    b: list[T] = 3


def region(x, i):
    kinds = Box.__annotations__
    return x * (2 if kinds["a"] is int else 3), len(kinds), Box.b


def change_what_it_names():
    global T
    T = float


def change_annotations():
    Box.__annotations__ = {"a": float}


def change_annotate():
    Box.__annotate__ = lambda format: {"a": int, "b": 2, "c": T}


def change_entry():
    Box.__annotations__["d"] = "other"


# === annotations_that_can_not_be_evaluated: since=14 calls=6 plain
class Box:
    a: Later


def region(x, i):
    try:
        return x * len(Box.__annotations__)
    except NameError as error:
        return x * 5, str(error)


def change_define():
    global Later
    Later = int


# === annotations_as_text: since=14 plain
T = int


def f(a: T | Later) -> T:
    return a


def region(x, i):
    as_text = annotationlib.get_annotations(f, format=annotationlib.Format.STRING)
    forward = annotationlib.get_annotations(f, format=annotationlib.Format.FORWARDREF)
    return x * len(as_text["a"]), type(forward["a"]).__name__, forward["return"] is int


def change_what_it_names():
    global T
    T = float


def change_define():
    global Later
    Later = int


def change_annotate():
    f.__annotate__ = lambda format: {"a": "much longer", "return": 2}


# === annotations_by_inspect: since=14
T = int


def f(a: T, *, b: T = 2) -> T:
    return a * b


class Box:
    a: T


def region(x, i):
    signature = inspect.signature(f)
    own = inspect.get_annotations(Box)
    return f(x) * len(signature.parameters), signature.return_annotation is int, own["a"] is int


def change_annotations():
    f.__annotations__ = {"a": float, "return": float}


def change_class():
    Box.__annotations__ = {"a": float}


def change_annotate():
    Box.__annotate__ = lambda format: {"a": T}


# === annotations_by_typing: since=14
T = int


class Base:
    a: T


class Box(Base):
    b: T


def region(x, i):
    hints = typing.get_type_hints(Box)
    return x * len(hints), hints["a"] is int


def change_base():
    Base.__annotations__ = {"a": float, "c": int}


def change_annotate():
    Box.__annotate__ = lambda format: {"a": T, "d": T, "e": T}


# === annotations_evaluated_inside: since=14
T = int


def region(x, i):
    def inner(a: T, b: list[T]) -> T:
        return a * 2

    return inner(x, 1), inner.__annotations__["a"] is int, len(inner.__annotations__)


def change_what_it_names():
    global T
    T = float


# === annotations_never_asked_for: since=14
scale = 2


def region(x, i):
    def inner(a: nowhere.to.be["found"], b: 1 / 0 = 3) -> scale:
        c: also.nowhere = a * b
        return c

    return inner(x) * scale


def change_scale():
    global scale
    scale = 4


# === dataclass_made_inside: since=14
T = int


def region(x, i):
    @dataclasses.dataclass
    class Pair:
        a: T
        b: T = 3

    return x * Pair(2).b, len(dataclasses.fields(Pair))


def change_what_it_names():
    global T
    T = typing.ClassVar[int]


# === signatures: since=14
import functools

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


def change_init_annotate():
    Box.__init__.__annotate__ = lambda format: {"a": T}


def change_what_it_names():
    global T
    T = float


def change_method():
    Box.method.__annotate__ = lambda format: {"c": T}


def change_f():
    f.__annotate__ = lambda format: {"b": T}


def change_wrapper():
    g.__annotate__ = lambda format: {"b": T}


# === text_of_a_template: since=14
scale = 2.0


def region(x, i):
    t = t"by {scale} and {i}"
    return x * 2, str(t), f"{t.interpolations[1]!r}"


def change_scale():
    global scale
    scale += 1


# === text_of_a_template_with_a_tensor: since=14 plain
def region(x, i):
    t = t"by {x.sum()}"
    return x * 2, str(t), f"{t.interpolations[0]}"


# === template_compared: since=14
scale = 2


def region(x, i):
    a = t"{scale}"
    b = t"{2}"
    same = a.interpolations[0].value == b.interpolations[0].value
    match b.interpolations[0]:
        case Interpolation(value, "2"):
            x = x + value
    match a.interpolations[0]:
        case Interpolation(value, _, None):
            x = x * value
    return (x * 2 if same else x), [*a][0].value


from string.templatelib import Interpolation


def change_scale():
    global scale
    scale += 1


# === optional_of_a_name: since=14
def region(x, i):
    kind = typing.Optional["nowhere.Found"]
    return x * 2, len(kind.__args__)


# === except_without_parentheses: since=14
limit = 2


def region(x, i):
    try:
        if i > limit:
            raise KeyError(i)
        if i == limit:
            raise ValueError
        return x * 2
    except KeyError, ValueError:
        return x * 3


def change_limit():
    global limit
    limit = 1


# === loops_of_builtins: since=14
values = [1, 2, 3]


def region(x, i):
    a = any(v > 2 for v in values)
    b = all(v > 0 for v in values)
    c = tuple(v * 2 for v in values)
    return x * (2 if a else 3) + (5 if b else 7) + sum(c), c


def change_values():
    values[0] = 9


def change_negative():
    values.append(-4)


def change_none():
    values[:] = [0]


# === loops_of_other_builtins: since=14
values = [1, 2, 3]


def region(x, i):
    return x * (2 if any(v > 2 for v in values) else 3), tuple(v for v in values)


def change_any():
    global any
    any = lambda values: not list(values)


def change_tuple():
    global tuple
    tuple = list


def change_back():
    global any, tuple
    import builtins

    any, tuple = builtins.any, builtins.tuple


# === loop_of_any_over_tensors: since=14
def region(x, i):
    rows = list(x)
    found = any((row.sum() > 5).item() for row in rows)
    return x * 2 if found else x - 1


# === with_blocks: since=14 calls=6
class Manager:
    def __init__(self, value):
        self.value = value
        self.left = []

    def __enter__(self):
        self.value += 1
        return self.value

    def __exit__(self, kind, error, traceback):
        self.left.append(kind)
        return kind is KeyError


class Static:
    @staticmethod
    def __enter__():
        return 7

    @staticmethod
    def __exit__(*args):
        return True


class Computed:
    def __getattribute__(self, name):
        raise AssertionError("special methods are those of the class")

    @property
    def __enter__(self):
        return lambda: 11

    @property
    def __exit__(self):
        return lambda *args: False


class NoManager:
    def __enter__(self):
        return 1


manager = Manager(1)


def region(x, i):
    with manager as v, Static() as s:
        x = x * v + s
    with manager as v:
        x = x + v
        if i % 2:
            raise KeyError
    with Static():
        raise ValueError
    with Computed() as c, torch.no_grad():
        x = x * 2 + c
    try:
        with NoManager():
            pass
    except TypeError as error:
        return x, str(error)


def change_manager():
    manager.value = 20


def change_exit():
    Manager.__exit__ = lambda self, *args: self.left.append(0) or True


def change_enter():
    Static.__enter__ = staticmethod(lambda: 8)


# === returns_in_finally: since=14 calls=5
def region(x, i):
    for _ in range(3):
        try:
            if i == 1:
                raise ValueError
            x = x * 2
            if i == 2:
                return x
        finally:
            if i > 2:
                break
    return x + 1


# === borrowed_locals: since=14
class Cell:
    def __init__(self):
        self.n = 1

    def __add__(self, other):
        global kept
        kept = other
        return self.n


kept = None
cell = Cell()


def region(x, i):
    a = x * 2
    b = cell + (a, a := a + 1)[0]
    c = [a, (a := a * 2), a][0]
    del a
    return b * c, kept


def change_n():
    cell.n += 1
