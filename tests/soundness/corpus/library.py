"""Programs that use the standard library: what its functions read of a program's objects may change like everything else."""

# ruff: noqa
import abc
import asyncio
import bisect
import collections
import contextlib
import contextvars
import copy
import dataclasses
import enum
import functools
import heapq
import itertools
import json
import operator
import os
import pathlib
import pickle
import statistics
import string
import struct
import sys
import types
import typing
import weakref

import torch
from torch import nn


def args(i):
    return (torch.ones(2, 3) * (i + 1),)


# === operator_getters: refused
class Box:
    def __init__(self, v):
        self.v = v

    def get(self):
        return self.v


a, b = Box(2.0), Box(3.0)
nested = types.SimpleNamespace(box=a)
by_v = operator.attrgetter("v")


def region(x):
    order = [o.v for o in sorted([a, b], key=by_v)]
    boxes = [a, b]
    boxes.sort(key=operator.attrgetter("v"), reverse=True)
    deep = operator.attrgetter("box.v")(nested)
    called = operator.methodcaller("get")(a)
    return x * sum(map(by_v, [a, b])), order, boxes[0] is a, deep, called, max([a, b], key=by_v) is b


def change_v():
    a.v += 2.0


def change_method():
    Box.get = lambda self: 10.0


def change_box():
    nested.box = b


# === getter_over_a_generator: plain
class Box:
    def __init__(self, v):
        self.v = v


boxes = [Box(2.0), Box(3.0)]


def region(x):
    return x * sum(map(operator.attrgetter("v"), (o for o in boxes))), list(map(getattr, boxes, ["v", "v"]))


def change_v():
    boxes[0].v += 1.0


# === simple_namespaces
n = types.SimpleNamespace(a=1.0, b=2)


def region(x):
    return x * n.a, n == types.SimpleNamespace(a=1.0, b=2), repr(n), hasattr(n, "c")


def change_a():
    n.a += 1.0


def change_c():
    n.c = 3


# === abstract_classes: refused
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...


class Square:
    pass


@typing.runtime_checkable
class HasArea(typing.Protocol):
    def area(self): ...


s, t = Square(), Square()


def region(x):
    y = x * 2 if isinstance(s, Shape) else x
    return y, isinstance(s, HasArea), isinstance(s, (int, collections.abc.Sized)), issubclass(Square, Shape)


def change_register():
    Shape.register(Square)


def change_instance():
    s.area = lambda: 1


def change_class():
    Square.__len__ = lambda self: 1


def change_mark_of_the_protocol():
    HasArea._is_protocol = not HasArea._is_protocol


def change_method_of_the_protocol():
    HasArea.area = None


def change_instance_to_none():
    s.area = None


# === imports_inside
sys.modules["library_made_up"] = types.ModuleType("library_made_up")
sys.modules["library_made_up"].scale = 2.0
sys.modules.pop("library_missing", None)


def region(x):
    import library_made_up
    from library_made_up import scale

    try:
        import library_missing

        y = x * 3
    except ImportError:
        y = x
    return y * library_made_up.scale * scale


def change_module():
    other = types.ModuleType("library_made_up")
    other.scale = 5.0
    sys.modules["library_made_up"] = other


def change_scale():
    sys.modules["library_made_up"].scale = 9.0


# === single_dispatch: plain
@functools.singledispatch
def kind(v):
    return 1.0


@kind.register
def _(v: int):
    return 2.0


class Layer:
    @functools.singledispatchmethod
    def scale(self, v):
        return 3.0

    @scale.register
    def _(self, v: int):
        return 4.0


layer = Layer()


def region(x):
    return x * kind(1) * kind(1.0) * layer.scale(1) * layer.scale("a")


def change_float():
    kind.register(float, lambda v: 5.0)


def change_int():
    kind.register(int, lambda v: 6.0)


def change_method():
    Layer.__dict__["scale"].register(str, lambda self, v: 7.0)


# === partial_methods_and_cached_properties
class Layer:
    def base(self, x, by=1.0):
        return x * by

    twice = functools.partialmethod(base, by=2.0)

    @functools.cached_property
    def kept(self):
        return self.k + 1.0


layer = Layer()
layer.k = 1.0


def region(x):
    return layer.twice(x) * layer.kept


def change_keyword():
    Layer.__dict__["twice"].keywords["by"] = 3.0


def change_partial():
    Layer.twice = functools.partialmethod(Layer.base, by=4.0)


def change_cache():
    layer.__dict__.pop("kept", None)
    layer.k += 1.0


# === dataclasses_of_all_kinds: nograd
@dataclasses.dataclass(slots=True)
class Slotted:
    a: int = 1
    b: float = 2.0


@dataclasses.dataclass(order=True, unsafe_hash=True)
class Ordered:
    a: int = 1
    items: tuple = (1, 2)


@dataclasses.dataclass
class Made:
    items: list = dataclasses.field(default_factory=lambda: [1.0])
    total: float = dataclasses.field(init=False, default=0.0)

    def __post_init__(self):
        self.total = sum(self.items)


s, o = Slotted(), Ordered()


def region(x):
    m = Made()
    y = x * s.a * s.b * m.total
    return (
        y,
        dataclasses.replace(s, a=5),
        dataclasses.asdict(s),
        dataclasses.astuple(o),
        o < Ordered(2),
        {o: 1}.get(Ordered()),
    )


def change_b():
    s.b += 1.0


def change_a():
    o.a += 1


def change_default():
    Made.__post_init__ = lambda self: setattr(self, "total", 9.0)


# === enums_and_flags: calls=6
class Color(enum.Flag):
    R = enum.auto()
    G = enum.auto()
    B = enum.auto()


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Mode(str, enum.Enum):
    A = "a"
    B = "b"

    @property
    def scale(self):
        return 2.0 if self is Mode.A else 3.0


def region(x, c, level, mode):
    y = x * level * mode.scale
    return (y if Color.R in c else -y), mode == "a", f"{mode.value}", Level(level).name, len(Color)


def args(i):
    return torch.ones(2), Color.R | Color.G if i < 3 else Color.G, Level.LOW if i % 2 else Level.HIGH, Mode("ab"[i // 4])


def change_member():
    Mode.A.extra = 1


def change_property():
    Mode.scale = property(lambda self: 5.0)


# === exit_stack_and_managers
log = []
k = {"n": 2, "v": 1.0}


@contextlib.contextmanager
def opened(i):
    log.append(i)
    try:
        yield i * k["v"]
    finally:
        log.append(-i)


def region(x):
    with contextlib.ExitStack() as stack:
        values = [stack.enter_context(opened(i)) for i in range(k["n"])]
        stack.callback(log.append, "end")
        with contextlib.suppress(ZeroDivisionError):
            values.append(1 / (k["n"] - 3))
        return x * (1 + sum(values)), contextlib.nullcontext(k["n"]).__enter__()


def change_n():
    k["n"] += 1


def change_v():
    k["v"] += 1.0


# === asyncio_run: plain
k = {"v": 1.0}


async def work(x):
    await asyncio.sleep(0)
    return x * k["v"]


def region(x):
    async def both():
        return await work(x) + await work(x * 2)

    return asyncio.run(both())


def change_v():
    k["v"] += 1.0


# === coroutine_by_hand
k = {"v": 1.0}


async def work(x):
    return x * k["v"]


def region(x):
    c = work(x)
    try:
        c.send(None)
    except StopIteration as stop:
        return stop.value


def change_v():
    k["v"] += 1.0


# === itertools_recipes: nograd
items = [1, 2, 3]


def region(x):
    pairs = list(itertools.pairwise(items))
    groups = [(key, list(g)) for key, g in itertools.groupby(items, key=lambda v: v % 2)]
    total = list(itertools.accumulate(items))[-1]
    n = sum(1 for _ in itertools.product(items, items))
    cut = list(itertools.takewhile(lambda v: v < 3, items)), list(itertools.islice(items, 1, None, 2))
    return x * total, n, pairs, groups, cut, list(itertools.zip_longest(items, [0])), list(itertools.chain(items, items))


def change_append():
    items.append(len(items) + 1)


def change_first():
    items[0] = 7


# === paths: nograd
class Place:
    def __init__(self, text):
        self.text = text

    def __fspath__(self):
        return self.text


folder, place = "runs/./first", Place("a/../b")


def region(x):
    whole = os.path.normpath(folder)
    return (
        x * len(whole),
        whole,
        os.path.normpath(place),
        os.path.splitext(os.path.join("/data", place)),
        os.path.split(folder),
    )


def change_folder():
    global folder
    folder = "runs/second//"


def change_place():
    place.text = "/c/./d.txt"


# === texts: nograd
t = string.Template("$a is $b")
k = {"a": 1, "b": 2.0}


def region(x):
    return (
        x * len(t.substitute(k)),
        "{a:>3}".format_map(k),
        "%(b).2f" % k,
        "{b}".format(**k),
        json.dumps(k),
        struct.unpack("<i", struct.pack("<i", k["a"])),
        pathlib.PurePosixPath("a", str(k["a"])).name,
    )


def change_template():
    t.template = "$a or $b"


def change_a():
    k["a"] += 1


# === sorted_structures: nograd plain
items, heap = [1, 4, 6], [2, 5, 9]


def region(x):
    i = bisect.bisect(items, 4)
    bisect.insort(items, 3)
    heapq.heappush(heap, 4)
    return x * i, heapq.heappop(heap), heapq.nlargest(2, heap), statistics.mean(items), items[-1]


def change_items():
    items.insert(0, 0)


def change_heap():
    heap.append(11)


# === copies_and_pickles: nograd
class Box:
    def __init__(self):
        self.items = [1.0]
        self.t = torch.ones(2, 3)


box = Box()


def region(x):
    shallow, deep = copy.copy(box), copy.deepcopy(box.items)
    again = pickle.loads(pickle.dumps(box.items))
    return x * len(shallow.items) * sum(deep), again, shallow.items is box.items


def change_items():
    box.items.append(2.0)


def change_t():
    box.t = box.t * 2


# === weak_containers: plain
class Key:
    pass


a, b = Key(), Key()
a.v, b.v = 2.0, 3.0
values, keys, members = weakref.WeakValueDictionary({"a": a}), weakref.WeakKeyDictionary({a: 2.0}), weakref.WeakSet([a])
proxy = weakref.proxy(a)


def region(x):
    y = x * values["a"].v * keys[a] * len(members) * proxy.v
    return y if b in members else -y, values.get("b") is None, len(keys)


def change_value():
    values["a"] = b


def change_other():
    values["b"] = b


def change_key():
    keys[a] += 1.0


def change_members():
    members.add(b)


def change_v():
    a.v += 1.0


# === user_containers
chain = collections.ChainMap({"a": 2.0}, {"b": 3.0})
table, items, text = collections.UserDict(a=2.0), collections.UserList([1]), collections.UserString("ab")
counter, ordered = collections.Counter("aab"), collections.OrderedDict(a=1, b=2)


def region(x):
    y = x * chain["b"] * table["a"] * len(items) * len(text) * counter["a"] * next(iter(ordered.values()))
    return y, "c" in chain, list(reversed(ordered)), counter.most_common(1), counter["zz"], chain.new_child({"b": 0})["a"]


def change_chain():
    chain.maps[1]["b"] += 1.0


def change_table():
    table["a"] += 1.0


def change_items():
    items.append(2)


def change_counter():
    counter.update("aaa")


def change_order():
    ordered.move_to_end("a")


def change_text():
    text.data = "abc"


# === context_variables
level = contextvars.ContextVar("level", default=1.0)


def region(x):
    token = level.set(5.0)
    y = x * level.get()
    level.reset(token)
    return y * level.get() * contextvars.copy_context().run(level.get)


def change_level():
    level.set(level.get() + 1.0)


# === exception_groups
k = {"n": 2, "text": "a"}


def region(x):
    try:
        raise ExceptionGroup("g", [ValueError(i) for i in range(k["n"])])
    except* ValueError as group:
        n = len(group.exceptions)
    try:
        try:
            raise KeyError(k["text"])
        except KeyError as first:
            first.add_note(k["text"])
            raise RuntimeError("b") from first
    except RuntimeError as second:
        return x * n, repr(second.__cause__), second.__cause__.__notes__


def change_n():
    k["n"] += 1


def change_text():
    k["text"] += "b"


# === module_containers
layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
named = nn.ModuleDict({"a": nn.Linear(3, 3)})
scales = nn.ParameterList([nn.Parameter(torch.ones(3))])


def region(x):
    y = layers(x) * len(layers) + sum(m(x) for m in named.values()) + sum(p * x for p in scales)
    names = [n for n, _ in layers.named_parameters()], list(layers.state_dict()), [type(c).__name__ for c in layers]
    return y, names, "b" in named, sum(p.numel() for p in layers.parameters()), repr(layers)


def change_layers():
    torch.manual_seed(0)
    layers.append(nn.Linear(3, 3))


def change_named():
    torch.manual_seed(0)
    named["b"] = nn.Linear(3, 3)


def change_scales():
    scales.append(nn.Parameter(torch.ones(3) * 2))


# === context_read_as_a_mapping: plain
settings = contextvars.ContextVar("settings")
values = {"rate": 1.0}
settings.set(values)


def region(x):
    held = contextvars.copy_context()[settings]
    held["rate"] += 1.0
    return x * held["rate"]


def change_rate():
    values["rate"] = 5.0


# === data_of_a_package: refused calls=3
import importlib.util
import os
import tempfile


def __package():
    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, "__init__.py"), "w") as file:
        file.write("scale = 1.0\n")
    spec = importlib.util.spec_from_file_location("a_package", os.path.join(folder, "__init__.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


__a_package = __package()
__loader, __path = __a_package.__spec__.loader, __a_package.__file__


def region(x):
    text = __loader.get_data(__path) + b"".join(map(__loader.get_data, [__path]))
    return x * len(text) + len(__loader.get_source("a_package")) + __loader.path_stats(__path)["size"]


def change_file():
    with open(__path, "a") as file:
        file.write("more = 2.0\n")


# === spec_of_a_module: calls=4
import colorsys
import importlib.util


def region(x):
    spec = importlib.util.find_spec("colorsys")
    return x * (1.0 if spec.loader is None else 2.0)


def change_spec():
    colorsys.__spec__ = importlib.machinery.ModuleSpec("colorsys", None)


# === spec_of_no_module: refused calls=3
import importlib.util


def region(x):
    return x * (1.0 if importlib.util.find_spec("a_module_to_come") is None else 2.0)


def change_module():
    module = sys.modules["a_module_to_come"] = types.ModuleType("a_module_to_come")
    module.__spec__ = importlib.machinery.ModuleSpec("a_module_to_come", None)


# === line_of_a_file: refused calls=3
import linecache

linecache.cache["a file"] = (1, None, ["1.0\n"], "a file")


def region(x):
    return x * float(linecache.getline("a file", 1))


def change_line():
    linecache.cache["a file"] = (1, None, ["2.0\n"], "a file")


# === name_of_the_caller: refused calls=3
import inspect


def region(x):
    return x * len(inspect.currentframe().f_code.co_name)
