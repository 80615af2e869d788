"""Programs that look at classes, functions and modules as objects, and at what the language reads of them by itself."""

# ruff: noqa
import collections
import dataclasses
import enum
import functools
import inspect
import sys
import types
import typing

import torch
from torch import nn


def args(i):
    return (torch.ones(2, 3) * (i + 1),)


# === class_attribute_absent
class Base:
    pass


class Config(Base):
    pass


def region(x):
    return x * getattr(Config, "scale", 1.0) if not hasattr(Config, "off") else x


def change_scale():
    Config.scale = 5.0


def change_base():
    Base.off = True


# === class_names
class Config:
    """Doc."""


def region(x):
    c = Config()
    return x * len(Config.__name__), Config.__qualname__, type(c).__name__, f"{Config}", Config.__module__, Config.__doc__


def change_name():
    Config.__name__ = Config.__name__ + "_"


def change_qualname():
    Config.__qualname__ = "Outer.Config"


def change_module():
    Config.__module__ = "elsewhere"


# === class_tree: nograd
class Base:
    pass


class Other:
    pass


class Config(Base):
    pass


def region(x):
    return x * len(Config.__mro__), [b.__name__ for b in Config.__bases__], issubclass(Config, Other)


def change_bases():
    Config.__bases__ = (Base, Other)


def change_back():
    Config.__bases__ = (Base,)


# === class_namespace
class Config:
    scale = 2.0


def region(x):
    return x * Config.__dict__.get("scale", 1.0), "extra" in Config.__dict__


def change_scale():
    Config.scale += 1.0


def change_extra():
    Config.extra = 1


# === metaclass_members
class Meta(type):
    factor = 2.0

    @property
    def scale(cls):
        return 3.0

    def get(cls, k):
        return k + 1

    def __len__(cls):
        return 2

    def __iter__(cls):
        return iter([1.0, 2.0])

    def __contains__(cls, v):
        return v == 1

    def __getitem__(cls, k):
        return k * 2

    def __bool__(cls):
        return True

    def __call__(cls, *args):
        return 4.0

    def __instancecheck__(cls, v):
        return True

    def __str__(cls):
        return "config"

    def __eq__(cls, other):
        return True

    def __hash__(cls):
        return 7


class Config(metaclass=Meta):
    own = 1.0


def region(x):
    y = x * Config.factor * Config.scale * Config.get(1) * len(Config) * sum(Config) * Config[2] * Config() * Config.own
    return y if Config else -y, 2 in Config, isinstance(x, Config), str(Config), Config == 3


def change_factor():
    Meta.factor += 1.0


def change_property():
    Meta.scale = property(lambda cls: 5.0)


def change_shadow():
    Meta.own = property(lambda cls: 6.0)


def change_methods():
    Meta.get = lambda cls, k: k + 2
    Meta.__len__ = lambda cls: 3
    Meta.__getitem__ = lambda cls, k: k * 3


def change_tests():
    Meta.__bool__ = lambda cls: False
    Meta.__contains__ = lambda cls, v: True
    Meta.__instancecheck__ = lambda cls, v: False


def change_others():
    Meta.__call__ = lambda cls: 8.0
    Meta.__str__ = lambda cls: "other"
    Meta.__eq__ = lambda cls, other: False
    Meta.__iter__ = lambda cls: iter([3.0])


# === metaclass_getattr
class Meta(type):
    def __getattr__(cls, name):
        return 2.0


class Config(metaclass=Meta):
    pass


def region(x):
    return x * Config.anything


def change_getattr():
    Meta.__getattr__ = lambda cls, name: 3.0


def change_name():
    Config.anything = 4.0


# === class_of_items
class Boxed:
    def __class_getitem__(cls, k):
        return k + 1.0


def region(x):
    return x * Boxed[2]


def change_getitem():
    Boxed.__class_getitem__ = classmethod(lambda cls, k: k * 5.0)


# === shadowed_default
class Config:
    n = 0.0


c = Config()
c.n = 3.0


def region(x):
    c.n += 1.0
    return x * c.n


def change_to_property():
    Config.n = property(lambda self: self.__dict__["n"] * 2, lambda self, v: self.__dict__.update(n=v))


def change_to_plain():
    Config.n = 1.0


# === class_names_of_one_count
class Config:
    used = 1.0
    spare = 2.0


c = Config()
c.k = 3.0


def region(x):
    return x * c.k * getattr(c, "extra", 1.0)


def change_spare_for_getattribute():
    if "spare" in Config.__dict__:
        del Config.spare
        Config.__getattribute__ = lambda self, n: object.__getattribute__(self, n) if n != "k" else 7.0


def change_used_for_extra():
    if "used" in Config.__dict__:
        del Config.used
        Config.extra = 9.0


# === function_fields: nograd
def helper(x, k=2.0, *, plus: float = 1.0):
    """Doc."""
    return x * k + plus


def region(x):
    names = helper.__name__, helper.__doc__, helper.__module__, helper.__qualname__, helper.__code__.co_name
    return (
        x * helper.__defaults__[0],
        helper.__kwdefaults__["plus"],
        names,
        getattr(helper, "tag", None),
        f"{helper.__name__!r}",
    )


def change_name():
    helper.__name__ = helper.__name__ + "_"


def change_doc():
    helper.__doc__ = "Other."


def change_defaults():
    helper.__defaults__ = (3.0,)


def change_keyword_default():
    helper.__kwdefaults__ = {"plus": 4.0}


def change_tag():
    helper.tag = "a"


def change_code():
    helper.__code__ = (lambda x, k=2.0, *, plus=1.0: x).__code__


# === signature_of_a_function
def helper(x, k=2.0):
    return x * k


def region(x):
    return x * len(inspect.signature(helper).parameters)


def change_code():
    helper.__code__ = (lambda x, k, j=2.0: x * j).__code__


# === module_names
library = types.ModuleType("library_of_a_program")
library.scale = 2.0


def region(x):
    y = x * library.scale
    return y if hasattr(library, "extra") else y + 1, "other" in library.__dict__, getattr(library, "tag", 0)


def change_scale():
    library.scale += 1.0


def change_extra():
    library.extra = 1


def change_other():
    library.other = 1


def change_tag():
    library.tag = 2


# === module_getattr
library = types.ModuleType("library_of_a_program")
library.__getattr__ = lambda name: 2.0


def region(x):
    return x * library.scale


def change_getattr():
    library.__getattr__ = lambda name: 3.0


def change_scale():
    library.scale = 4.0


# === descriptor_methods
class Twice:
    def __get__(self, obj, cls):
        return 2.0 if obj is None else obj.n * 2

    def __set__(self, obj, value):
        obj.n = value


class Lazy:
    def __get__(self, obj, cls):
        return 5.0


class Config:
    d = Twice()
    e = Lazy()


c = Config()
c.d = 3.0


def region(x):
    c.d = 4.0
    return x * c.d * c.e * Config.e


def change_get():
    Twice.__get__ = lambda self, obj, cls: 7.0


def change_set():
    Twice.__set__ = lambda self, obj, value: setattr(obj, "n", value + 1)


def change_lazy():
    Lazy.__get__ = lambda self, obj, cls: 8.0


def change_lazy_to_data():
    c.__dict__["e"] = 9.0
    Lazy.__set__ = lambda self, obj, value: None


# === set_name_and_init_subclass
registry = []


class Field:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, cls):
        return getattr(obj, self.name)


class Base:
    def __init_subclass__(cls, **kwargs):
        registry.append(cls)


class Config(Base):
    a = Field()


c = Config()
c._a, c._b = 2.0, 3.0


def region(x):
    return x * c.a * len(registry)


def change_field():
    Config.__dict__["a"].name = "_b"


def change_registry():
    type("Another", (Base,), {})


# === class_patterns
class Point:
    __match_args__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


p = Point(1.0, 2.0)


def region(x):
    match p:
        case Point(1.0, b):
            y = x * b
        case Point(a, b=3.0):
            y = x + a
        case Point(a=a, c=c):
            y = x - c
        case Point():
            y = -x
    return y


def change_a():
    p.a += 1.0


def change_b():
    p.b += 1.0


def change_c():
    p.c = 5.0


def change_match_args():
    Point.__match_args__ = ("b", "a")


# === mapping_and_sequence_patterns
class Seq(collections.UserList):
    pass


table, items, seq = {"kind": "a", "k": 2.0}, [1, 2.0], Seq([1.0, 2.0])


def region(x):
    match table:
        case {"kind": "a", "k": k, **rest}:
            y = x * k + len(rest)
        case {"k": k}:
            y = x - k
        case _:
            y = x
    match items:
        case [1, k]:
            y = y * k
        case [_, *more]:
            y = y + len(more)
    match seq:
        case [a, b]:
            y = y * a + b
        case [*more]:
            y = y - len(more)
    return y


def change_kind():
    table["kind"] = "b"


def change_rest():
    table["more"] = 1


def change_items():
    items.append(3)


def change_seq():
    seq.append(3.0)


def change_len():
    Seq.__len__ = lambda self: 3


# === special_methods_of_operands
class K:
    def __init__(self):
        self.v = 2

    def __index__(self):
        return self.v

    def __hash__(self):
        return 2

    def __eq__(self, other):
        return other == self.v

    def __radd__(self, other):
        return other + self.v

    def __dir__(self):
        return ["a"] * self.v

    def __lt__(self, other):
        return self.v < other


k = K()


def region(x):
    n = [1, 2, 3, 4, 5][k] + len([1, 2, 3, 4][:k])
    return x * n, {2: "two"}.get(k), sum([k]), len(dir(k)), [1, 2, 3].index(k), min([k, 9]) is k


def change_index():
    K.__index__ = lambda self: 3


def change_equal():
    K.__eq__ = lambda self, other: other == 3


def change_hash():
    K.__hash__ = lambda self: 5


def change_radd():
    K.__radd__ = lambda self, other: 50


def change_dir():
    K.__dir__ = lambda self: []


def change_lt():
    K.__lt__ = lambda self, other: False


def change_v():
    k.v = 3


# === names_of_an_object: refused nograd
class Config:
    pass


c = Config()
c.a = 1


def region(x):
    return x * len([n for n in dir(c) if not n.startswith("_")]), sorted(vars(c))


def change_names():
    c.b = 2


# === writes_through_the_namespace: calls=8
class Config:
    pass


a, b, d = Config(), Config(), Config()
a.k = b.k = d.k = 4


def region(x):
    a.__dict__["k"] = 4
    vars(b).update(k=4)
    d.__dict__.update({"k": 4}, n=1)
    return x


def change_all():
    a.k = b.k = d.k = 5


def change_n():
    d.n = 7


# === attributes_deleted_and_set_again
class Config:
    pass


a, b = Config(), Config()
for o in (a, b):
    o.first, o.second = 1, 2


def region(x):
    del a.first
    a.first = 3
    b.__dict__.pop("first", None)
    b.__dict__["first"] = 4
    return x, list(a.__dict__), list(b.__dict__)


def change_more():
    a.more = b.more = 5


def change_absent():
    vars(b).pop("first", None)


# === attribute_deleted_if_there
class Slotted:
    __slots__ = ("k",)


class Plain:
    pass


s, p = Slotted(), Plain()
s.k = p.k = 1.0


def region(x):
    out = x
    for o in (s, p):
        try:
            del o.k
        except AttributeError:
            out = out * 2
    return out


def change_slot():
    s.k = 1.0


def change_attribute():
    p.k = 1.0


# === namespace_replaced: plain
class Config:
    pass


c = Config()
c.k, c.other = 1.0, 2.0


def region(x):
    c.__dict__ = {"k": 3.0}
    return x * c.k


def change_more():
    c.more = 1


# === super_cell
class Base:
    def f(self, x):
        return x * 2


class Other(Base):
    def f(self, x):
        return x * 3


class Child(Other):
    def f(self, x):
        return super().f(x) + 1


c = Child()


def region(x):
    return c.f(x)


def change_class_cell():
    Child.f.__closure__[0].cell_contents = Other


# === inference_tensors_through_arrays: nograd, refused
def region(x):
    n = x.numpy()
    n[0] = 5.0
    return x * 2


def args(i):
    with torch.inference_mode():
        return (torch.ones(0 if i % 3 == 1 else 2),)


# === nan_by_identity: nograd calls=6
values = [float("nan"), 1.0]


def region(x, k):
    return x, k in values, values.index(k) if k in values else -1, [k] == [values[0]], values.count(k)


def args(i):
    return torch.ones(2), values[0] if i % 2 else 1.0 + i


# === resized_output_refused: calls=5 nograd
import warnings

out = torch.zeros(7, 3)


def region(x):
    return torch.add(x, 1, out=out), x.shape[0]


def args(i):
    return (torch.ones(i + 2, 3),)


# === branch_after_history: calls=8
buf = torch.zeros(3)


def region(x):
    buf.add_(x.sum(0))
    if buf.sum() > 60:
        buf.detach_().zero_()
    return buf * 1


def args(i):
    return (nn.Parameter(torch.ones(2, 3) * i),)


# === functional_replaced_inside
import torch.nn.functional as F


def region(x):
    old = F.relu

    def louder(x, inplace=False):
        return old(x) + 1

    F.relu = louder
    try:
        return F.relu(x), nn.ReLU()(x)
    finally:
        F.relu = old


# === class_of_an_odd_module: calls=6
import collections
import unittest.mock

Pair = collections.namedtuple("Pair", "a b")
Pair.__module__ = unittest.mock.MagicMock(name="module")


def region(x):
    pair = Pair(a=x, b=x + 1)
    return pair.a * 2, len(pair)


# === missing_hook_replaced
class Table(dict):
    def __missing__(self, key):
        return 7.0


table = Table(a=1.0)


def region(x):
    return x * table["nope"] + table["a"]


def change_hook():
    Table.__missing__ = lambda self, key: 9.0


def change_table():
    table["nope"] = 2.0


# === getattr_hook_of_another_name
def found(self, name):
    return 3.0


class Config:
    __getattr__ = found


c = Config()


def region(x):
    return x * c.rate * getattr(c, "scale", 1.0)


def change_hook():
    Config.__getattr__ = lambda self, name: 5.0


# === default_given_later
def helper(x, k):
    return x * k


def region(x):
    return helper(x)


def change_default():
    helper.__defaults__ = (3.0,)


def change_no_default():
    helper.__defaults__ = None


# === keyword_default_given_later
def helper(x, *, k):
    return x * k


def region(x):
    try:
        return helper(x)
    except TypeError:
        return x


def change_default():
    helper.__kwdefaults__ = {"k": 3.0}


# === names_in_texts_of_errors
class Point:
    __match_args__ = ("a",)

    def __init__(self):
        self.a = self.b = 1


class Other:
    def __getitem__(self, i):
        return i


def helper(a):
    return a


world = {"caught": [], "p": Point(), "o": Other()}


def region(x):
    p, o = world["p"], world["o"]
    for attempt in (lambda: p + o, lambda: o < p, lambda: p[0], lambda: len(p), lambda: helper(), lambda: Point(1, 2)):
        try:
            attempt()
        except TypeError as error:
            world["caught"].append(error)
    try:
        match p:
            case Point(1, a=1):
                pass
    except TypeError as error:
        world["caught"].append(str(error))
    try:
        for _ in p:
            pass
    except TypeError as error:
        x = x * len(error.args[0])
    return x


def change_point():
    Point.__name__ = "Place"


def change_other():
    Other.__name__ = "Thing"


def change_helper():
    helper.__qualname__ = "assistant"


def change_init():
    Point.__init__.__qualname__ = "Point.start"


# === name_in_the_text_of_the_error_that_leaves
class Point:
    pass


p = Point()


def region(x):
    return x * 2 + p


def change_name():
    Point.__name__ = "Place"


# === bases_that_are_replaced
class First:
    low = 1.0

    def shift(self, x):
        return x + self.low


class Second:
    low = 5.0

    def shift(self, x):
        return x - self.low


class Item(First):
    pass


item = Item()


def region(x):
    if issubclass(Item, First) and isinstance(item, First):
        x = x * 2
    match item:
        case Second():
            x = x * 3
    return item.shift(x) * Item.low


def change_bases():
    Item.__bases__ = (Second,)


def change_both():
    Item.__bases__ = (Second, First)


# === class_body_with_effects: plain
log = []


def region(x):
    class Local:
        log.append("body")
        scale = len(log)

    return x * Local.scale


# === class_body_reads
GAIN = 2.0
settings = {"a": 1.0}


class Config:
    width = 3.0


config = Config()


def region(x):
    n = x.shape[0] + 1

    class Local(Config):
        gain = GAIN
        size = n
        config = config

        def scale(self):
            return self.gain * self.size * self.width

        @property
        def both(self):
            return self.config.width + GAIN

        class Inner:
            kept = GAIN

    return x * Local().scale() + Local().both * Local.Inner.kept


def change_gain():
    global GAIN
    GAIN = 5.0


def change_width():
    Config.width = 7.0


def change_config():
    config.width = 9.0


# === class_body_computes: refused
GAIN = 2.0
table = {"a": 1.0}


def region(x):
    class Local:
        gain = GAIN * 2 + 1
        text = f"{GAIN}"
        kinds = (int, float)

        @staticmethod
        def scale(y):
            return y * Local.gain

    return Local.scale(x) + len(Local.text)


def change_gain():
    global GAIN
    GAIN = 50.0


# === class_body_reads_data: plain
table = {"a": 1.0}


def region(x):
    class Local:
        gain = table["a"]

    return x * Local.gain


def change_table():
    table["a"] = 4.0


# === partial_compiled
def f(x, k=1.0):
    return x * k


region = functools.partial(f, k=3.0)


def change_k():
    region.keywords["k"] = 5.0


def change_f():
    global f
    f.__defaults__ = (2.0,)


# === partial_with_a_dict
state = {"k": 2.0}


def f(s, x):
    return x * s["k"]


region = functools.partial(f, state)


def change_k():
    state["k"] += 1


def change_state():
    region.__setstate__((f, ({"k": 9.0},), {}, None))


# === partial_that_counts
state = {"k": 2.0}


def f(s, x):
    s["k"] += 1
    return x * s["k"]


region = functools.partial(f, state)


# === partial_of_a_method
class A:
    def __init__(self):
        self.n = 0

    def m(self, x, k):
        self.n += 1
        return x * k * self.n


a = A()
region = functools.partial(a.m, k=2.0)


# === object_compiled
class Obj:
    def __init__(self):
        self.n = 0

    def __call__(self, x):
        self.n += 1
        return x * self.n


region = Obj()


def change_n():
    region.n = 10


def change_call():
    Obj.__call__ = lambda self, x: x * 100


# === object_with_slots_compiled
class Obj:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 0

    def __call__(self, x):
        self.n += 1
        return x * self.n


region = Obj()


def change_n():
    region.n = 10


# === native_method_compiled
l = [1.0]
region = l.append


def args(i):
    return (float(i),)


# === dataclass_compiled
import dataclasses


@dataclasses.dataclass
class P:
    k: float
    seen: list = dataclasses.field(default_factory=list)

    def __call__(self, x):
        self.seen.append(float(self.k))
        self.k += 1
        return x * self.k


region = P(2.0)
