"""Programs about the Python language: what the monitor must pass through unchanged. See tests/soundness/harness/world.py."""

# ruff: noqa
import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import math
import operator
import typing

import torch
import torch.nn.functional as F
from torch import nn


def args(i):
    return (torch.ones(2, 3) * (i + 1),)


# === generator_inside
def gen(x, n):
    for i in range(n):
        yield x * i


n = 3


def region(x):
    return sum(gen(x, n)) + sum(v for v in gen(x, 2))


def change_n():
    global n
    n += 1


# === generator_send
def averager():
    total, count, avg = 0.0, 0, None
    while True:
        v = yield avg
        total, count = total + v, count + 1
        avg = total / count


def region(x):
    g = averager()
    next(g)
    g.send(x)
    out = g.send(x * 3)
    g.close()
    return out


# === generator_try_finally
log = []


def gen(x):
    try:
        yield x
        yield x + 1
    finally:
        log.append("closed")


def region(x):
    g = gen(x)
    first = next(g)
    g.close()
    return first * 2


# === yield_from
scales = [1.0, 2.0]


def inner(x):
    got = []
    for s in scales:
        got.append((yield x * s))
    return got


def outer(x):
    r = yield from inner(x)
    yield x - len(r)


def region(x):
    return torch.stack(list(outer(x)))


def change_scale():
    scales[1] = 5.0


def change_longer():
    scales.append(0.5)


# === closure_cell
def make(k):
    def f(x):
        return x * k

    def set_k(v):
        nonlocal k
        k = v

    return f, set_k


region, set_k = make(2.0)


def change_k():
    set_k(3.5)


def change_k_int():
    set_k(3)


def change_k_bool():
    set_k(True)


# === closure_deep
def level1(a):
    b = [a]

    def level2():
        def level3(x):
            return x * a + b[0]

        return level3

    return level2(), b


fn, b = level1(2.0)


def helper(x):
    return fn(x)


def region(x):
    return helper(x) + 1


def change_b():
    b[0] = 7.0


# === closure_nonlocal_write
def make():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n

    return f


region = make()

# === class_inside: refused
factor = 2


def region(x):
    class Scaler:
        def __init__(self, k):
            self.k = k

        def __call__(self, v):
            return v * self.k

    return Scaler(factor)(x)


def change_factor():
    global factor
    factor = 5


# === class_inside_inherits: refused
class Base:
    gain = 2.0

    def go(self, x):
        return x * self.gain


def region(x):
    class Sub(Base):
        def go(self, x):
            return super().go(x) + 1

    return Sub().go(x)


def change_gain():
    Base.gain = 4.0


# === comprehensions
weights = {"a": 1.0, "b": 2.0}


def region(x):
    d = {k: x * v for k, v in weights.items()}
    s = {len(k) for k in weights}
    l = [d[k] for k in sorted(d) if weights[k] > 0.5]
    return torch.stack(l).sum(0) * len(s), [k for k in d]


def change_value():
    weights["a"] = 0.1


def change_key():
    weights["cc"] = 3.0


def change_order():
    weights["a"] = weights.pop("a")


# === context_manager_class
class Scope:
    def __init__(self):
        self.depth = 0
        self.log = []

    def __enter__(self):
        self.depth += 1
        return self

    def __exit__(self, *exc):
        self.depth -= 1
        self.log.append(exc[0].__name__ if exc[0] else None)
        return exc[0] is ValueError


scope = Scope()


def region(x):
    with scope as s:
        x = x + s.depth
    with scope:
        raise ValueError("swallowed")
    return x


# === contextlib_managers
events = []


@contextlib.contextmanager
def section(name):
    events.append("in " + name)
    try:
        yield name
    finally:
        events.append("out " + name)


def region(x):
    with section("a") as n, contextlib.suppress(KeyError):
        x = x * len(n)
        {}["missing"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(section("b"))
        stack.callback(events.append, "called")
        with contextlib.nullcontext(3) as k:
            x = x + k
    return x


# === exception_caught
table = {"scale": 2.0}
key = "scale"


def region(x):
    try:
        return x * table[key]
    except KeyError as e:
        return x - len(e.args)
    finally:
        x = x + 1


def change_key():
    global key
    key = "none" if key == "scale" else "scale"


def change_table():
    table.clear()


# === exception_raised: nograd
class Custom(ValueError):
    def __init__(self, msg, code):
        super().__init__(msg)
        self.code = code


limit = 2


def region(x):
    if limit > 1:
        raise Custom("too large", limit)
    return x * 2


def change_limit():
    global limit
    limit = 3 - limit


# === exception_chain: nograd
seen = []


def low(x):
    raise KeyError("deep")


def region(x):
    seen.append("start")
    try:
        low(x)
    except KeyError as e:
        seen.append("caught")
        raise RuntimeError("outer") from e


# === exception_context: nograd
def region(x):
    try:
        [][1]
    except IndexError:
        raise ValueError("second")


# === exception_from_torch: nograd
n = [0]


def region(x):
    n[0] += 1
    return x @ x


# === exception_finally_return
hits = []


def region(x):
    for i in range(3):
        try:
            if i == 1:
                continue
            if i == 2:
                break
            x = x + 1
        finally:
            hits.append(i)
    else:
        x = x * 100
    return x


# === exception_group_try_else
def region(x):
    try:
        y = x.sum()
    except RuntimeError:
        y = x
    else:
        y = y * 2
    return y


# === super_chain
class A:
    def f(self, x):
        return x + 1


class B(A):
    def f(self, x):
        return super().f(x) * 2


class C(A):
    def f(self, x):
        return super().f(x) * 3


class D(B, C):
    def f(self, x):
        return super().f(x) - 1


obj = D()


def region(x):
    return obj.f(x)


def change_c():
    C.f = lambda self, x: x * 10


def change_a():
    A.f = lambda self, x: x


# === properties
class Box:
    def __init__(self):
        self._v = 2.0
        self.reads = 0

    @property
    def v(self):
        self.reads += 1
        return self._v

    @v.setter
    def v(self, new):
        self._v = new * 2


box = Box()


def region(x):
    y = x * box.v
    box.v = 1.5
    return y + box.v


def change_property():
    Box.v = property(lambda self: 9.0, lambda self, v: None)


def change_value():
    box._v = 11.0


# === descriptors
class Clamp:
    def __init__(self, lo):
        self.lo = lo

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return self if obj is None else max(self.lo, obj.__dict__[self.name])

    def __set__(self, obj, value):
        obj.__dict__[self.name] = value


class T:
    k = Clamp(1.0)

    def __init__(self):
        self.k = 3.0


t = T()


def region(x):
    return x * t.k


def change_lo():
    T.__dict__["k"].lo = 5.0


def change_value():
    t.k = 4.0


# === nondata_descriptor
class Lazy:
    def __init__(self, fn):
        self.fn = fn

    def __get__(self, obj, owner):
        value = self.fn(obj)
        obj.__dict__["cfg"] = value
        return value


class H:
    def __init__(self):
        self.base = 2.0

    @Lazy
    def cfg(self):
        return self.base * 2


h = H()


def region(x):
    return x * h.cfg


def change_reset():
    h.__dict__.pop("cfg", None)
    h.base = 8.0


# === cached_property
class H:
    def __init__(self):
        self.n = 3

    @functools.cached_property
    def weights(self):
        return [float(i) for i in range(self.n)]


h = H()


def region(x):
    return x * h.weights[1] + len(h.weights)


def change_reset():
    h.__dict__.pop("weights", None)
    h.n = 5


# === getattr_hook
class Proxy:
    def __init__(self, target):
        self.target = target

    def __getattr__(self, name):
        return getattr(self.target, name)


class Real:
    k = 2.0


real = Real()
p = Proxy(real)


def region(x):
    return x * p.k


def change_shadow():
    p.k = 3.0


def change_real():
    real.k = 7.0


def change_class():
    Real.k = 8.0


# === getattribute_hook
class Spy:
    def __init__(self):
        object.__setattr__(self, "count", [])
        object.__setattr__(self, "k", 2.0)

    def __getattribute__(self, name):
        object.__getattribute__(self, "count").append(name)
        return object.__getattribute__(self, name)


s = Spy()


def region(x):
    return x * s.k


def change_k():
    object.__setattr__(s, "k", 4.0)


# === setattr_hook
class Rec:
    def __init__(self):
        object.__setattr__(self, "names", [])

    def __setattr__(self, name, value):
        self.names.append(name)
        object.__setattr__(self, name, value)


r = Rec()


def region(x):
    r.last = x.shape[0]
    r.other = "t"
    return x * r.last


# === getattr_default
class O:
    pass


o = O()


def region(x):
    k = getattr(o, "k", 2.0)
    if hasattr(o, "flag"):
        x = x + 1
    return x * k


def change_k():
    o.k = 3.0


def change_flag():
    o.flag = False


def change_class_flag():
    O.flag = 1


# === dataclasses_
@dataclasses.dataclass
class Cfg:
    scale: float = 2.0
    names: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Out:
    y: torch.Tensor
    cfg: Cfg


cfg = Cfg()


def region(x):
    c = dataclasses.replace(cfg, scale=cfg.scale + 1)
    return Out(x * c.scale, c)


def change_scale():
    cfg.scale = 5.0


def change_names():
    cfg.names.append("n")


# === dataclass_slots
@dataclasses.dataclass(slots=True)
class P:
    a: float
    b: int = 1


p = P(2.0)


def region(x):
    p.b += 1
    return P(p.a, p.b), x * p.a


def change_a():
    p.a = 3.0


# === namedtuples
Point = collections.namedtuple("Point", "x y")


class Typed(typing.NamedTuple):
    out: torch.Tensor
    n: int = 1


pt = Point(2.0, [1.0])


def region(x):
    return Typed(x * pt.x + pt.y[0]), pt._replace(x=3)


def change_pt():
    global pt
    pt = Point(4.0, [1.0])


def change_inner():
    pt.y[0] = 2.0


# === enums
class Mode(enum.Enum):
    ADD = 1
    MUL = 2


class Flag(enum.IntFlag):
    A = 1
    B = 2


mode = Mode.ADD
flags = Flag.A


def region(x):
    if mode is Mode.ADD:
        x = x + mode.value
    elif mode == Mode.MUL:
        x = x * 3
    if flags & Flag.B:
        x = x - 1
    return x, mode


def change_mode():
    global mode
    mode = Mode.MUL if mode is Mode.ADD else Mode.ADD


def change_flags():
    global flags
    flags |= Flag.B


# === star_args
def f(a, *rest, k=1.0, **kw):
    return a * k + sum(rest) + len(kw)


opts = {"k": 2.0}
extra = [1.0, 2.0]


def region(x):
    return f(x, *extra, **opts)


def change_opts():
    opts["k"] = 3.0


def change_opts_new():
    opts["z"] = 3.0


def change_extra():
    extra.append(4.0)


def change_kwdefaults():
    f.__kwdefaults__["k"] = 9.0


# === call_shapes
def region(x, y=2.0, *rest, scale=1.0, **kw):
    return x * y * scale + len(rest) + sum(kw.values())


def args(i):
    x = torch.ones(2)
    return [
        ((x,), {}),
        ((x, 3.0), {}),
        ((x, 3.0, 1, 2), {}),
        ((x,), {"scale": 2.0}),
        ((x,), {"y": 3.0, "a": 1}),
        ((x,), {"a": 1, "y": 3.0}),
    ][i % 6]


# === defaults_mutable
def region(x, acc=[]):
    acc.append(len(acc))
    return x * len(acc)


# === defaults_changed
def helper(x, k=2.0):
    return x * k


def region(x):
    return helper(x)


def change_default():
    helper.__defaults__ = (3.0,)


def change_code():
    helper.__code__ = (lambda x, k=1.0: x + k).__code__


# === recursion
depth = 3


def down(x, n):
    return x if n == 0 else down(x * 2, n - 1)


def region(x):
    return down(x, depth)


def change_depth():
    global depth
    depth = depth % 4 + 1


# === recursive_modules
class Node(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.w = nn.Linear(3, 3)
        self.child = Node(depth - 1) if depth else None

    def forward(self, x):
        x = self.w(x)
        return x if self.child is None else self.child(x)


region = Node(3)


def change_cut():
    region.child.child = None


# === wraps_decorator
calls = []


def logged(fn):
    @functools.wraps(fn)
    def wrapper(*a, **k):
        calls.append(fn.__name__)
        return fn(*a, **k)

    return wrapper


@logged
def inner(x):
    return x * 2


@logged
def region(x):
    return inner(x) + 1


# === lru_cache_
k = 2


@functools.lru_cache(maxsize=None)
def table(n):
    return [float(i) for i in range(n)]


def region(x):
    return x + table(k)[-1]


def change_k():
    global k
    k = 4


def change_cached_value():
    table(k)[-1] = 9.0


def change_clear():
    table.cache_clear()


# === lru_cache_impure
scale = 2.0


@functools.lru_cache(maxsize=None)
def get(n):
    return n * scale


def region(x):
    return x * get(3)


def change_scale_and_clear():
    global scale
    scale = 5.0
    get.cache_clear()


def change_scale_only():
    global scale
    scale = 7.0


# === partials
def f(a, b, k=1.0):
    return a * k + b


p = functools.partial(f, b=2.0)
q = functools.partial(p, k=3.0)


def region(x):
    return q(x) + functools.partial(f, x, k=2.0)(1.0)


def change_keywords():
    q.keywords["k"] = 4.0


# === partialmethod_
class A:
    def __init__(self):
        self.k = 2.0

    def set(self, v):
        self.k = v
        return v

    three = functools.partialmethod(set, 3.0)


a = A()


def region(x):
    y = x * a.k
    a.three()
    return y


# === operators_user
class V:
    def __init__(self, t):
        self.t = t

    def __add__(self, o):
        return V(self.t + (o.t if isinstance(o, V) else o))

    __radd__ = __add__

    def __mul__(self, k):
        return V(self.t * k)

    def __neg__(self):
        return V(-self.t)

    def __getitem__(self, i):
        return self.t[i]

    def __len__(self):
        return 3

    def __bool__(self):
        return True

    def __eq__(self, o):
        return isinstance(o, V)

    def __call__(self, z):
        return self.t + z

    def __contains__(self, z):
        return z == 1


def region(x):
    v = 1 + V(x) + V(x) * 2
    v = -v
    if v and v == V(x) and 1 in v:
        return v(1)[0] * len(v)
    return x


def change_mul():
    V.__mul__ = lambda self, k: V(self.t * k * 2)


def change_bool():
    V.__bool__ = lambda self: False


# === iter_protocol
class Steps:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        self.i = 0
        return self

    def __next__(self):
        self.i += 1
        if self.i > self.n:
            raise StopIteration
        return self.i


steps = Steps(3)


def region(x):
    for s in steps:
        x = x + s
    return x


def change_n():
    steps.n = 2


# === itertools_
ks = [1.0, 2.0, 3.0]


def region(x):
    y = x
    for a, b in itertools.product(ks, repeat=2):
        y = y + a * b
    for a, b in zip(ks, itertools.count(1)):
        y = y * a - b
    return torch.cat(list(itertools.chain([y], (x for _ in range(2))))), list(itertools.accumulate(ks))


def change_ks():
    ks[0] = 4.0


# === map_filter_sorted
ks = [3.0, 1.0, 2.0]
key = {"rev": False}


def region(x):
    a = sorted(ks, key=lambda v: -v, reverse=key["rev"])
    b = list(map(lambda v: x * v, filter(lambda v: v > 1.5, a)))
    return functools.reduce(operator.add, b), max(ks), min(ks, key=lambda v: -v)


def change_rev():
    key["rev"] = not key["rev"]


def change_ks():
    ks[1] = 9.0


# === string_building
name = "m"


def region(x):
    s = f"{name}-{x.shape[0]:>3}" + "%s" % name + "{}".format(len(name)) + name.upper() + "|".join([name, name])
    return x * len(s), s


def change_name():
    global name
    name = 'model\'s "x" \\ \n'


# === walrus_match
cmd = ("scale", 2.0)


def region(x):
    match cmd:
        case ("scale", k) if k > 1:
            y = x * k
        case ("add", k):
            y = x + k
        case {"op": op, **rest}:
            y = x - len(rest)
        case [a, *more]:
            y = x * len(more)
        case _:
            y = x
    if (n := len(cmd)) > 1:
        y = y + n
    return y


def change_add():
    global cmd
    cmd = ("add", 3.0)


def change_map():
    global cmd
    cmd = {"op": 1, "z": 2}


def change_list():
    global cmd
    cmd = [1, 2, 3]


# === unpacking
pair = [1.0, [2.0, 3.0]]


def region(x):
    a, (b, *c) = pair
    first, *rest = [x, x + a, x * b]
    return [*rest, first], {**{"a": a}, "c": c}


def change_pair():
    pair[1].append(4.0)


# === global_function_replaced
def f(x):
    return x + 1


def g(x):
    return f(x) * 2


def region(x):
    return g(x)


def change_f():
    global f
    f = lambda x: x * 10


def change_g():
    global g
    g = lambda x: x


# === method_replaced
class A:
    def f(self, x):
        return x + 1


a = A()


def region(x):
    return a.f(x)


def change_class():
    A.f = lambda self, x: x * 2


def change_instance():
    a.f = lambda x: x * 3


def change_object():
    global a

    class B(A):
        def f(self, x):
            return x * 4

    a = B()


def change_reclass():
    class B(A):
        def f(self, x):
            return x * 5

    a.__class__ = B


# === staticmethods
class A:
    k = 2.0

    @staticmethod
    def s(x):
        return x + 1

    @classmethod
    def c(cls, x):
        return x * cls.k


class B(A):
    k = 3.0


def region(x):
    return A.s(x) + B.c(x) + B().c(x)


def change_k():
    B.k = 5.0


def change_static():
    A.s = staticmethod(lambda x: x * 7)


# === metaclass
class Meta(type):
    def __call__(cls, *a):
        obj = super().__call__(*a)
        obj.made = Meta.tag
        return obj

    tag = 1


class A(metaclass=Meta):
    def __init__(self, k):
        self.k = k


def region(x):
    a = A(2.0)
    return x * a.k + a.made


def change_tag():
    Meta.tag = 4


# === new_and_slots
class S:
    __slots__ = ("a", "b")
    made = []

    def __new__(cls, *args):
        self = super().__new__(cls)
        self.b = 1
        return self

    def __init__(self, a):
        self.a = a


s = S(2.0)


def region(x):
    t = S(s.a + 1)
    s.b += 1
    return t, x * t.a


def change_a():
    s.a = 5.0


# === isinstance_types
v = 1


def region(x):
    if isinstance(v, bool):
        return x + 100
    if isinstance(v, int):
        return x + v
    if isinstance(v, (float, str)):
        return x * 2
    return x


def change_bool():
    global v
    v = True


def change_float():
    global v
    v = 1.0


def change_str():
    global v
    v = "1"


def change_none():
    global v
    v = None


# === type_dispatch
handlers = {int: lambda x: x + 1, float: lambda x: x * 2}
v = 1


@functools.singledispatch
def act(v, x):
    return x


@act.register
def _(v: int, x):
    return x + 5


def region(x):
    return handlers[type(v)](x) + act(v, x)


def change_type():
    global v
    v = 2.0


def change_handler():
    handlers[int] = lambda x: x * 9


# === lambda_default_capture
fs = [lambda x, k=k: x * k for k in (1.0, 2.0)]


def region(x):
    return sum(f(x) for f in fs)


def change_f():
    fs[0] = lambda x: x + 100


# === exec_math
a = 2.0


def region(x):
    return x * math.sqrt(a) + math.pi + math.floor(a) + divmod(7, int(a))[1] + abs(-a) + round(a, 1)


def change_a():
    global a
    a = 6.25


# === float_edge
v = 0.0


def region(x):
    if math.copysign(1.0, v) < 0:
        return x * 2
    if v != v:
        return x * 3
    return x + v


def change_negzero():
    global v
    v = -0.0


def change_nan():
    global v
    v = float("nan")


# === weakref_read
import weakref


class O:
    k = 2.0


o = O()
r = weakref.ref(o)


def region(x):
    t = r()
    return x if t is None else x * t.k


def change_die():
    global o
    o = None


# === inspect_names
def region(x):
    def f(a, b=2):
        return a

    return x * f.__code__.co_argcount + len(f.__name__) + len(type(x).__name__)


# === with_statement_reraise: nograd
log = []


@contextlib.contextmanager
def cm():
    try:
        yield
    except ValueError as e:
        log.append(str(e))
        raise RuntimeError("wrapped") from e


def region(x):
    with cm():
        raise ValueError("in")


# === async_run_inside
async def work(x):
    return x * 2


def region(x):
    c = work(x)
    try:
        c.send(None)
    except StopIteration as e:
        return e.value


# === dict_dispatch_bound
class A:
    def __init__(self):
        self.k = 2.0
        self.table = {"m": self.mul, "a": self.add}

    def mul(self, x):
        return x * self.k

    def add(self, x):
        return x + self.k


a = A()


def region(x):
    return a.table["m"](x) + a.table["a"](x)


def change_swap():
    a.table["m"] = a.add


def change_k():
    a.k = 3.0


# === bound_method_region
class A:
    def __init__(self):
        self.k = 2.0

    def run(self, x):
        self.k = self.k + 1.0
        return x * self.k


a = A()
region = a.run


def change_k():
    a.k = 100.0


# === typing_cast_assert: nograd
flag = True


def region(x):
    y = typing.cast(torch.Tensor, x)
    assert flag, "flag is off"
    return y + 1


def change_flag():
    global flag
    flag = not flag


# === abc_isinstance
import abc


class I(abc.ABC):
    @abc.abstractmethod
    def f(self, x): ...


class J(I):
    def f(self, x):
        return x * 2


j = J()


def region(x):
    if isinstance(j, I) and issubclass(J, I) and isinstance([], collections.abc.Sequence):
        return j.f(x)
    return x


# === environ_read
import os


def region(x):
    return x * float(os.environ.get("MAGPY_TEST_SCALE", "2"))


def change_env():
    import os

    os.environ["MAGPY_TEST_SCALE"] = "3"


# === clock
import time


def region(x):
    t = time.perf_counter()
    return x * (t > 0)
