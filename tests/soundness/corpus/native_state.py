"""Programs that use objects whose state is in C: subclasses of numbers and text, ranges, slices, views, matches."""

# ruff: noqa
import collections
import datetime
import decimal
import enum
import functools
import io
import operator
import re
import types
import weakref

import torch
from torch import nn


def args(i):
    return (torch.ones(2, 3) * (i + 1),)


# === number_of_a_subclass: calls=7 plain
class Steps(int):
    pass


class Rate(float):
    def __init__(self, value):
        self.unit = "per second"


def region(x, n, r):
    y = x * n + r
    return y if n > 2 else y[:n], n.bit_length(), [1, 2, 3, 4, 5, 6][n], f"{r:.2f} {r.unit}", len(range(n))


def args(i):
    return torch.ones(2, 3), Steps(i // 3 + 1), Rate(0.5 * (i // 2))


# === text_of_a_subclass: calls=6 plain
class Name(str):
    __slots__ = ()


modes = {"mean": 1.0, "sum": 2.0}


def region(x, mode):
    y = getattr(x, mode)() * modes[mode]
    return x * y, mode + "!", mode == "sum", f"{mode:>6}", mode.upper(), len(mode)


def args(i):
    return torch.ones(2, 3), Name("sum" if i in (2, 3) else "mean")


# === kept_number_of_a_subclass
class Scale(float):
    pass


config = {"scale": Scale(2.0), "name": "a"}


def region(x):
    return x * config["scale"] if config["scale"] > 1 else x


def change_scale():
    config["scale"] = Scale(config["scale"] - 1.5)


# === bytes_and_complex_of_subclasses: nograd plain
class Raw(bytes):
    pass


class Turn(complex):
    pass


def region(x, b, c):
    return x * b[0] + len(b), (x * c).real, b"b" in b


def args(i):
    return torch.ones(2), Raw(b"ab"[i // 3 :]), Turn(0, 1 + i // 2)


# === range_argument: calls=8
def region(x, r):
    out = [x * i for i in r]
    return out, 1 in r, len(r), r[0] if r else None, r == range(2), r.stop


def args(i):
    return torch.ones(2), (range(2), range(2), range(3), range(0), range(1, 3), range(2), range(0, 4, 2), range(0, 3, 2))[i]


# === slice_argument: calls=7
rows = [slice(0, 2)]


def region(x, s):
    return x[s], x[rows[0]] * 2, s.stop, [1, 2, 3, 4][s]


def args(i):
    return torch.arange(12.0).view(4, 3), (slice(2), slice(2), slice(1, 3), slice(None, None, 2))[i // 2]


def change_rows():
    rows[0] = slice(1, 4)


# === partial_argument: calls=7
def scaled(x, by, plus=0.0):
    return x * by + plus


def region(x, f):
    return f(x), [y for y in map(f, [x, x + 1])], f.args, dict(f.keywords)


def args(i):
    return torch.ones(2), functools.partial(scaled, by=2 + i // 3, plus=float(i // 2))


# === partial_kept
def scaled(x, by, plus=0.0):
    return x * by + plus


f = functools.partial(scaled, by=2.0)


def region(x):
    return list(map(f, [x, x + 1]))


def change_keyword():
    f.keywords["plus"] = f.keywords.get("plus", 0.0) + 1.0


def change_partial():
    global f
    f = functools.partial(scaled, by=3.0)


# === method_argument: calls=6
class Layer:
    def __init__(self, k):
        self.k = k

    def apply(self, x):
        return x * self.k


first, second = Layer(2.0), Layer(3.0)


def region(x, m):
    return list(map(m, [x])), m == first.apply, m.__self__.k, {first.apply: "first"}.get(m)


def args(i):
    return torch.ones(2), (first if i % 3 else second).apply


# === exception_kept: nograd
class Trouble(ValueError):
    pass


trouble = Trouble("a", 1)


def region(x):
    return x * len(trouble.args), str(trouble), repr(trouble)


def change_args():
    trouble.args = (*trouble.args, "more")


# === exception_argument: calls=6 plain
def region(x, e):
    return x * 2, str(e), isinstance(e, KeyError), e.args


def args(i):
    return torch.ones(2), (ValueError("a"), KeyError("b"))[i // 3]


# === mapping_proxy_from_outside: plain
table = {"a": 2.0}
view = types.MappingProxyType(table)


def region(x):
    y = x * view["a"] * len(view)
    return y if "b" in view else y + 1, view.get("c"), list(view), [k for k, v in view.items()]


def change_value():
    table["a"] += 1.0


def change_key():
    table["b"] = 1.0


def change_other():
    table["c"] = 5


# === proxy_len_only: plain
table = {"a": 2.0}
view = types.MappingProxyType(table)


def region(x):
    return x * len(view)


def change_key():
    table["k" + str(len(table))] = 1.0


# === dict_views_from_outside: plain
table = {"a": 2.0}
keys, values, items = table.keys(), table.values(), table.items()


def region(x):
    y = x * len(keys)
    return y if "b" in keys else y + 1, list(values), sorted(items), items == {("a", 2.0)}


def change_value():
    table["a"] += 1.0


def change_key():
    table["b"] = 1.0


# === stream_of_a_subclass: plain
class Log(io.StringIO):
    pass


log = Log()


def region(x):
    return x * (1 + log.tell()), log.getvalue()


def change_text():
    log.write("more")


# === bytes_of_a_subclass: plain
class Buffer(bytearray):
    pass


buffer = Buffer(b"ab")


def region(x):
    return x * buffer[0]


def change_byte():
    buffer[0] += 1


# === match_argument: calls=6
found = [re.match("(a+)(b*)", t) for t in ("aab", "ab")]


def region(x, m):
    return x * len(m.group(1)), m[2], m.span()


def args(i):
    return torch.ones(2), found[i // 3]


# === decimal_of_a_subclass: calls=6 plain
class Money(decimal.Decimal):
    pass


def region(x, m):
    return x * float(m) if m > 1 else x, m.is_zero() if hasattr(m, "is_zero") else None


def args(i):
    return torch.ones(2), Money(i // 2)


# === dates: calls=6 plain
class Day(datetime.date):
    pass


def region(x, d, e):
    return x * d.day, str(e), e.month


def args(i):
    return torch.ones(2), datetime.date(2000, 1, 1 + i // 2), Day(2000, 1 + i // 3, 1)


# === weak_reference_of_a_subclass: calls=6 plain
class Box:
    def __init__(self, v):
        self.v = v


class Named(weakref.ref):
    __slots__ = ("name",)


boxes = [Box(1.0), Box(2.0)]


def region(x, r):
    return x * r().v, r.name


def args(i):
    r = Named(boxes[i // 3])
    r.name = f"n{i // 2}"
    return torch.ones(2), r


# === getters: calls=6
class Box:
    v = 3.0


getters = [operator.itemgetter(0), operator.itemgetter(1)]
methods = [operator.methodcaller("sin"), operator.methodcaller("cos")]


def region(x, g, m):
    return x * g([2.0, 5.0]), m(x)


def args(i):
    return torch.ones(2), getters[i // 3], methods[i // 2 % 2]


# === named_tuple_fields: calls=7
Size = collections.namedtuple("Size", "rows scale t", defaults=(None,))


class Pair(collections.namedtuple("Pair", "a b")):
    @property
    def total(self):
        return self.a + self.b


def region(x, s, p):
    y = x[: s.rows] * s.scale * p.total
    return (y if s.t is None else y + s.t), getattr(p, "a"), s._replace(rows=0), p._asdict()


def args(i):
    return (
        torch.ones(3, 2),
        Size(1 + i // 4, 1.0 + i // 3, torch.ones(2) * i if i > 4 else None),
        Pair(1.0, float(i // 2)),
    )


# === named_tuple_kept
State = collections.namedtuple("State", "step items")
state = State(1.0, [1, 2])


def region(x):
    return x * state.step * len(state.items)


def change_items():
    state.items.append(3)


def change_state():
    global state
    state = state._replace(step=state.step + 1)


# === property_in_c: plain
class Box:
    def __init__(self, v):
        self.v = v

    w = property(operator.attrgetter("v"))


box = Box(2.0)


def region(x):
    return x * box.w


def change_v():
    box.v += 1.0


# === identity_of_carried_numbers: calls=8 plain
limit = 1000


def region(x, k, f):
    same = k is limit
    big = k * 1
    return x * k, same, k is k, big is k, (f + 0.0) is f, f is limit


def args(i):
    return torch.ones(2), limit if i % 2 else int("1000"), 0.5 * i


def change_limit():
    global limit
    limit += 1


# === class_whose_module_is_no_text
class Meta(type):
    __module__ = None


class Odd(metaclass=Meta):
    __module__ = 5
    k = 2


odd = Odd()


def region(x):
    odd.n = getattr(odd, "n", 0) + 1
    return x * odd.k + odd.n, isinstance(x, Odd), isinstance(odd, Odd)


# === counts_of_a_cache
import functools


@functools.lru_cache
def twice(n):
    return n * 2


def region(x):
    return x * twice(3), twice.cache_info().hits


# === bound_before: calls=9
import itertools
import keyword

history = []
note = history.append
fresh = itertools.count().__next__
known = keyword.iskeyword


def region(x):
    note(len(history))
    return x + fresh(), known("if"), history[-1]


# === weak_reference_to_what_has_no_hash
import weakref

m = nn.Linear(2, 2)


class Table(dict):
    pass


table = Table(a=1)
ref = weakref.ref(table)


def region(x):
    return m(x[:, :2]) * ref()["a"]


# === special_methods_of_another_object
import functools
import operator

entries = [1, 2, 3]


class Front:
    __len__ = entries.__len__
    __getitem__ = functools.partial(operator.getitem, entries)
    __hash__ = entries.__len__
    __int__ = entries.__len__


class Named(dict):
    __missing__ = {"a": 1}.get


front, named = Front(), Named()


def region(x):
    return x * len(front) + front[0], int(front), hash(front), named["a"], [*front]


def change_entries():
    entries.insert(0, 9)


# === cache_whose_order_counts: calls=12
log = []


class A:
    @functools.lru_cache(maxsize=2)
    def w(self, n):
        log.append(n)
        return float(n) + 1


a = A()


def region(x):
    return x * a.w(2) * a.w(3)


info = []


def args(i):
    info.append(tuple(A.w.cache_info()))
    if i > 4 and i % 2:
        a.w(10 + i % 3)
    return (torch.ones(2, 3) * (i + 1),)


# === cache_asked_twice: calls=6
@functools.lru_cache(maxsize=4)
def w(n):
    return float(n) + 1


def region(x):
    return x * w(2) * w(2)


info = []


def args(i):
    info.append(tuple(w.cache_info()))
    return (torch.ones(2, 3) * (i + 1),)


# === cached_method_of_a_module: calls=8
class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)

    @functools.lru_cache(maxsize=1)
    def mask(self, n):
        return torch.ones(n, 3)

    def forward(self, x):
        return self.l(x) * self.mask(x.shape[0])


torch.manual_seed(0)
region = N()
info = []


def args(i):
    info.append(tuple(N.mask.cache_info()))
    return (torch.ones(2 + (i // 3) % 2, 3) * (i + 1),)


# === cached_function_compiled: calls=8
@functools.lru_cache(maxsize=2)
def region(n):
    return torch.ones(2) * n


w = region
info = []


def args(i):
    info.append(tuple(w.cache_info()))
    return (1,)


# === cached_method_compiled: calls=8
class A:
    @functools.lru_cache(maxsize=2)
    def w(self, n):
        return torch.ones(2) * n


a = A()
region = a.w
info = []


def args(i):
    info.append(tuple(A.w.cache_info()))
    return (1 + i % 2,)


# === cache_that_evicts: calls=10
class A:
    @functools.lru_cache(maxsize=1)
    def w(self, n):
        return torch.full((3,), float(n))


a = A()


def region(x, n):
    return x * a.w(n)


info = []
kept = []


def args(i):
    info.append(tuple(A.w.cache_info()))
    kept.append(a.w(1)) if i % 4 == 3 else None
    return (torch.ones(2, 3) * (i + 1), [1, 1, 1, 2, 2, 2, 1, 1, 2, 2][i])


# === cache_of_several_instances: calls=10
class A:
    def __init__(self, k):
        self.k = k

    @functools.lru_cache(maxsize=1)
    def w(self, n):
        return torch.full((3,), float(n) * self.k)


a, b = A(1), A(2)


def region(x, o):
    return x * o.w(2)


info = []


def args(i):
    info.append(tuple(A.w.cache_info()))
    return (torch.ones(2, 3) * (i + 1), [a, a, a, b, b, b, a, a, b, a][i])


# === cache_cleared_and_filled: calls=10
@functools.lru_cache(maxsize=3)
def w(n):
    return float(n)


def region(x):
    return x * sum(w(i) for i in range(3))


info = []


def args(i):
    info.append(tuple(w.cache_info()))
    if i == 3:
        w.cache_clear()
    if i == 6:
        w(9)
    return (torch.ones(2, 3) * (i + 1),)
