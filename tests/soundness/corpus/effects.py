"""Side effects that are easily dropped, doubled or put in another order: files, finalizers, weak references, generators,
context managers left early. See tests/soundness/harness/world.py."""

# ruff: noqa
import collections
import contextlib
import contextvars
import decimal
import io
import threading
import weakref

import torch
from torch import nn


def args(i):
    return (torch.ones(2, 3) * (i + 1),)


# === file_like_text: plain calls=4
f = io.StringIO()


def region(x):
    f.write("one\n")
    f.write(str(x.shape[0]))
    return x * 2, f.tell()


def change_seek():
    f.seek(0)


# === file_like_bytes: plain calls=4
f = io.BytesIO(b"abcdef")


def region(x):
    return x * len(f.read(2))


def change_seek():
    f.seek(0)


# === file_like_printed: plain calls=4
f = io.StringIO()


def region(x):
    print("step", x.shape[0], file=f)
    return x * 2


def change_file():
    global f
    f = io.StringIO()


# === file_like_own: plain calls=4
class Log:
    def __init__(self):
        self.lines = []
        self.flushed = 0

    def write(self, text):
        self.lines.append(text)

    def flush(self):
        self.flushed += 1


f = Log()


def region(x):
    print("a", x.shape[0], file=f, end="|", flush=True)
    f.write("b")
    return x + len(f.lines)


# === generator_half_consumed: plain calls=6
def numbers():
    n = 0
    try:
        while True:
            n += 1
            yield n
    finally:
        log.append("closed")


log = []
g = numbers()


def region(x):
    return x * next(g)


def change_advance():
    next(g)


def change_close():
    g.close()


# === generator_zipped: plain calls=4
g = (i * 2 for i in range(100))


def region(x):
    return [x * v for v, _ in zip(g, range(3))]


# === generator_left_early: calls=4
log = []


def steps():
    try:
        for i in range(5):
            log.append(i)
            yield i
    finally:
        log.append("end")


def region(x):
    for i in steps():
        if i == 2:
            break
        x = x + i
    return x


# === generator_kept: plain calls=4
kept = []


def steps(x):
    yield x * 2
    yield x * 3


def region(x):
    g = steps(x)
    kept.append(g)
    return next(g)


# === iterator_shared_by_two: calls=5
values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
it = iter(values)
pair = [it, it]


def region(x):
    return x * next(pair[0]) + next(pair[1])


def change_split():
    pair[1] = iter(values)


# === enumerate_outside: plain calls=5
e = enumerate([10.0, 20.0, 30.0, 40.0, 50.0, 60.0])


def region(x):
    i, v = next(e)
    return x * v + i


# === map_outside: plain calls=4
seen = []
m = map(seen.append, range(100))


def region(x):
    next(m)
    return x * len(seen)


# === reversed_and_zip_outside: plain calls=4
r = reversed([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
z = zip("abcdef", range(6))


def region(x):
    return x * next(r), next(z)


# === finalizer_inside: plain calls=4
log = []


class Temp:
    def __init__(self, n):
        self.n = n

    def __del__(self):
        log.append(("del", self.n))


def region(x):
    t = Temp(x.shape[0])
    y = x * t.n
    del t
    log.append("after")
    return y


# === finalizer_of_a_variable_of_a_closure: plain calls=4
log = []


class Temp:
    def __init__(self, n):
        self.n = n

    def __del__(self):
        log.append(("del", self.n))


spare = Temp(2)


def made():
    held = Temp(1)

    def region(x):
        nonlocal held
        y = x * held.n
        held = spare
        log.append("after")
        return y

    return region


region = made()


# === finalizer_of_what_is_replaced: plain calls=4
log = []


class Temp:
    def __init__(self, n):
        self.n = n

    def __del__(self):
        log.append(("del", self.n))


class Holder:
    pass


h = Holder()
h.t = Temp(0)


def region(x):
    log.append("before")
    h.t = Temp(x.shape[1])
    log.append("after")
    return x * h.t.n


# === finalizer_of_what_is_popped: plain calls=6
log = []


class Temp:
    def __init__(self, n):
        self.n = n

    def __del__(self):
        log.append(("del", self.n))


queue = [Temp(i) for i in range(8)]


def region(x):
    queue.pop()
    log.append(len(queue))
    return x * 2


# === finalizer_of_what_is_dropped: plain calls=6
log = []


class Temp:
    def __init__(self, n):
        self.n = n

    def __del__(self):
        log.append(("del", self.n))


window = collections.deque((Temp(i) for i in range(3)), maxlen=3)
fresh = [Temp(100 + i) for i in range(8)]


def region(x):
    window.append(fresh.pop())
    log.append("appended")
    return x * len(window)


# === finalizer_resurrects: plain calls=4
saved = []


class Phoenix:
    def __del__(self):
        saved.append(self)


def region(x):
    Phoenix()
    return x * len(saved)


# === weakref_dies: calls=5
class Obj:
    scale = 2.0


strong = [Obj()]
r = weakref.ref(strong[0])


def region(x):
    o = r()
    return x if o is None else x * o.scale


def change_drop():
    strong.clear()


# === weakref_callback: plain calls=5
log = []


class Obj:
    pass


strong = [Obj(), Obj(), Obj(), Obj(), Obj(), Obj()]
refs = [weakref.ref(o, lambda r: log.append("dead")) for o in strong]
o = None


def region(x):
    strong.pop()
    return x * len([r for r in refs if r() is not None])


# === weakref_made_inside: plain calls=4
class Obj:
    pass


strong = Obj()
refs = []


def region(x):
    refs.append(weakref.ref(strong))
    return x * weakref.getweakrefcount(strong)


# === weak_value_dictionary: calls=5, refused_before=14
class Obj:
    def __init__(self, n):
        self.n = n


strong = [Obj(1.0), Obj(2.0)]
table = weakref.WeakValueDictionary({"a": strong[0], "b": strong[1]})


def region(x):
    return x * sum(o.n for o in table.values()), len(table), sorted(table)


def change_drop():
    strong.pop()


# === weak_key_dictionary: plain calls=5
class Obj:
    pass


strong = [Obj(), Obj()]
table = weakref.WeakKeyDictionary({strong[0]: 1.0})


def region(x):
    table[strong[1]] = table.get(strong[1], 0.0) + 1.0
    return x * table[strong[0]], len(table)


def change_drop():
    global strong
    strong = [strong[0], Obj()]


# === weak_set: plain calls=4
class Obj:
    pass


strong = [Obj(), Obj()]
group = weakref.WeakSet(strong)


def region(x):
    group.add(strong[0])
    return x * len(group)


def change_drop():
    strong.pop()


# === finalize_registered: plain calls=4
log = []


class Obj:
    pass


def region(x):
    o = Obj()
    weakref.finalize(o, log.append, "gone")
    y = x * 2
    del o
    return y, len(log)


# === manager_left_by_return: calls=4
log = []


class Managed:
    def __enter__(self):
        log.append("enter")
        return self

    def __exit__(self, *exc):
        log.append(("exit", exc[0]))
        return False


def region(x):
    for i in range(3):
        with Managed():
            log.append(i)
            if i == 1:
                return x * i
    return x


# === manager_left_by_break: calls=4
log = []


@contextlib.contextmanager
def managed(name):
    log.append("enter " + name)
    try:
        yield name
    finally:
        log.append("exit " + name)


def region(x):
    while True:
        with managed("a"), managed("b") as b:
            x = x * len(b)
            break
    return x


# === manager_swallows: calls=4
log = []


class Quiet:
    def __enter__(self):
        log.append("in")

    def __exit__(self, tp, value, tb):
        log.append(str(value))
        return True


def region(x):
    with Quiet():
        log.append("before")
        raise ValueError(x.shape[0])
    log.append("after")
    return x * len(log)


# === exit_stack_callbacks: calls=4
log = []


def region(x):
    with contextlib.ExitStack() as stack:
        for i in range(3):
            stack.callback(log.append, i)
        log.append("body")
        if x.shape[0] == 2:
            return x * 2
    return x


# === manager_from_outside: refused calls=4
lock = threading.Lock()
state = {"held": []}


def region(x):
    with lock:
        state["held"].append(lock.locked())
    return x * 2, lock.locked()


# === manager_kept_open: plain calls=4
log = []


@contextlib.contextmanager
def managed():
    log.append("enter")
    yield
    log.append("exit")


open_ = []


def region(x):
    m = managed()
    m.__enter__()
    open_.append(m)
    return x * len(log)


# === exception_after_effects_in_manager: nograd calls=4
log = []
d = {}


@contextlib.contextmanager
def transaction():
    before = dict(d)
    try:
        yield
    except ValueError:
        d.clear()
        d.update(before)
        log.append("rolled back")
        raise


def region(x):
    with transaction():
        d["k"] = x.shape[0]
        log.append("written")
        raise ValueError("no")


# === descriptor_with_effects: calls=4
class Counted:
    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, cls):
        obj.reads += 1
        return obj.__dict__[self.name]

    def __set__(self, obj, value):
        obj.writes.append(value)
        obj.__dict__[self.name] = value

    def __delete__(self, obj):
        obj.writes.append("deleted")


class Obj:
    value = Counted()

    def __init__(self):
        self.reads = 0
        self.writes = []
        self.value = 1.0


o = Obj()


def region(x):
    o.value = o.value + 1.0
    del o.value
    return x * o.value


def change_reads():
    o.reads = 100


# === property_setter_with_effects: calls=4
class Obj:
    def __init__(self):
        self.log = []
        self._v = 1

    @property
    def v(self):
        self.log.append("get")
        return self._v

    @v.setter
    def v(self, value):
        self.log.append(("set", value))
        self._v = value


o = Obj()


def region(x):
    o.v = o.v
    o.v += 1
    return x * o.v


# === class_attribute_of_base: plain calls=5
class Base:
    count = 0
    items = []


class Child(Base):
    pass


def region(x):
    Child.count += 1
    Base.items.append(Child.count)
    return x * Base.count + Child.count


def change_base():
    Base.count = 7


# === nested_containers_deep: calls=4
tree = {"a": [{"b": ({"c": [1]}, {2, 3})}], "q": collections.deque([[0]], maxlen=2)}


def region(x):
    inner = tree["a"][0]["b"]
    inner[0]["c"].append(x.shape[0])
    inner[1].add(len(inner[0]["c"]))
    tree["q"].append(inner[0]["c"][:2])
    tree["q"][0].append(9)
    tree.setdefault("new", {}).setdefault("x", []).append(inner)
    return x * len(inner[1])


def change_alias():
    tree["q"][0] = tree["a"][0]["b"][0]["c"]


# === same_list_twice: calls=4
row = [0]
grid = [row, row, [0]]


def region(x):
    for r in grid:
        r.append(len(r))
    return x * len(row)


def change_split():
    grid[1] = list(row)


# === deque_both_ends: calls=5
d = collections.deque([1, 2, 3], maxlen=3)


def region(x):
    d.appendleft(x.shape[1])
    d.append(len(d))
    d.rotate(1)
    return x * d[0]


def change_content():
    d.extend([7, 8])


# === ordered_dict_moves: calls=5
od = collections.OrderedDict(a=1, b=2, c=3)


def region(x):
    od.move_to_end("a")
    od.move_to_end("c", last=False)
    return x * next(iter(od.values()))


def change_order():
    od.move_to_end("b", last=False)


# === default_dict_read_inserts: calls=5
made = []


def factory():
    made.append(1)
    return [len(made)]


dd = collections.defaultdict(factory)


def region(x):
    dd["a"]
    dd[x.shape[0]].append(1)
    return x * len(dd)


def change_drop():
    dd.pop("a", None)


# === closures_share_a_cell: calls=5
def make():
    n = 0
    log = []

    def up():
        nonlocal n
        n += 1
        log.append(n)

    def down():
        nonlocal n
        n -= 2
        return n

    return up, down, log


up, down, log = make()


def region(x):
    up()
    d = down()
    up()
    return x * d


# === contextvar_read: calls=4
v = contextvars.ContextVar("v", default=1.0)


def region(x):
    return x * v.get()


def change_set():
    v.set(v.get() + 1.0)


# === contextvar_set: plain calls=4
v = contextvars.ContextVar("v", default=0)


def region(x):
    v.set(v.get() + 1)
    return x * v.get()


# === thread_local: plain calls=4
local = threading.local()
local.n = 1.0


def region(x):
    local.n += 1.0
    return x * local.n


def change_n():
    local.n = 5.0


# === decimal_context: plain calls=4
def region(x):
    return x * float(decimal.Decimal(1) / decimal.Decimal(7)), str(decimal.Decimal(1) / decimal.Decimal(7))


# === recursion_limit_read: refused calls=3
import sys


def region(x):
    return x * (sys.getrecursionlimit() > 10)


# === thread_identity: plain calls=3
def region(x):
    threading.current_thread().seen = x.shape[0]
    return x * (threading.get_ident() == threading.main_thread().ident)


# === library_attribute_replaced: calls=4
import types

library = types.SimpleNamespace()
library.scale = lambda v: v * 2


def region(x):
    return library.scale(x)


def change_patch():
    library.scale = lambda v: v * 3


# === event_is_set: calls=4
stop = threading.Event()


def region(x):
    return x if stop.is_set() else x * 2


def change_set():
    stop.set()


# === comparing_sets: calls=4
a, b, c = {1, 2}, {1, 2, 3}, {9}
order = [[1], [2]]
one = [1]


def region(x):
    return x * sum([a.issubset(b), b.issuperset(a), a.isdisjoint(c), order.index(one), order.count(one), one in order])


def change_b():
    b.discard(2)


def change_c():
    c.add(1)


def change_one():
    one[0] = 2


# === set_arithmetic: calls=5
s, t = {1, 2, 3, 4}, {3}


def region(x):
    s.difference_update(t)
    s.intersection_update({1, 2, *t})
    u = s.symmetric_difference(t) | (s ^ t) | (t - s) | (s & t)
    return x * len(u)


def change_t():
    t.clear()
    t.add(1)


# === effects_and_exception_in_finally: nograd calls=4
log = []


def region(x):
    try:
        log.append("body")
        raise KeyError("first")
    finally:
        log.append("finally")
        if x.shape[0] == 2:
            raise IndexError("second")


# === exception_in_the_middle_of_effects: nograd calls=5
a, b, n = [], {}, 0


def region(x):
    global n
    n += 1
    a.append(n)
    b[n] = a[-1]
    [][n]


def change_n():
    global n
    n = 10


# === iteration_changes_what_it_reads: calls=4
todo = [1, 2, 3]
done = []


def region(x):
    while todo:
        v = todo.pop(0)
        done.append(v)
        if v == 2 and len(done) < 6:
            todo.append(9)
    return x * len(done)


def change_refill():
    todo.extend([2, 2])


# === sort_with_effects: calls=4
log = []
data = [3, 1, 2]


def key(v):
    log.append(v)
    return -v


def region(x):
    data.sort(key=key)
    return x * data[0]


def change_data():
    data.append(7)


# === setdefault_and_update: calls=4
d = {"k": 1}


def region(x):
    d.setdefault("s", []).append(x.shape[0])
    d.update(k=d["k"] + 1, z=2)
    d.update([("w", 1)])
    return x * d.pop("z")


def change_z():
    d["z"] = 5


# === set_operations: calls=4
s = {1, 2, 3}
t = {3, 4}


def region(x):
    s.symmetric_difference_update(t)
    t.add(len(s))
    s.discard(1)
    return x * len(s)


def change_s():
    s.add(1)


# === bytearray_and_memoryview: plain calls=4
b = bytearray(b"abc")
m = memoryview(b)


def region(x):
    m[0] = 65 + x.shape[0]
    return x * b[0]


def change_b():
    b[0] = 3


# === set_up_once: calls=8
class Net(nn.Module):
    made = 0

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)
        self.ready = False
        self.scale = 2.0
        self.log = []

    def forward(self, x):
        if not self.ready:
            Net.made += 1
            self.ready = True
            self.double = lambda y: y * self.scale
            self.inner.register_forward_hook(lambda m, a, out: out + 1)
        return self.double(self.inner(x))


net = Net()


def region(x):
    return net(x), Net.made


def args(i):
    return (torch.full((2, 3), float(i)),)


def change_again():
    net.ready = False
    net.inner._forward_hooks.clear()


# === set_up_at_every_call: refused calls=6
class Count:
    made = ""


def region(x):
    Count.made += "a"
    return x * 2, Count.made


def args(i):
    return (torch.full((3,), float(i)),)


# === set_by_code_that_raises: calls=6
class Picky:
    def __init__(self):
        self.__dict__.update(kept=1, limit=3, v=0)

    def __setattr__(self, name, value):
        if value >= self.limit:
            raise ValueError(name)
        self.__dict__[name] = value


class Checked:
    def __init__(self):
        self.__dict__["v"] = 1

    @property
    def v(self):
        return self.__dict__["v"]

    @v.setter
    def v(self, value):
        if value > 3:
            raise ValueError("v")
        self.__dict__["v"] = value


p, c = Picky(), Checked()


def region(x, n):
    for o in (p, c):
        try:
            o.v = n
        except ValueError as error:
            x = x + len(error.args)
    return x


def args(i):
    return torch.ones(2), 5 if i < 4 else 1


def change_kept():
    p.__dict__["v"] = None
    c.__dict__["v"] = None


# === written_again_where_it_was_missing: calls=6
class Kept:
    pass


d = {"a": 1, "c": 2}
o = Kept()
o.a = 1
o.c = 2


def region(x):
    d["c"] = o.c = 2
    d["a"] = o.a = x
    return x * 1, list(d), list(vars(o))


def change_missing():
    d.clear()
    vars(o).clear()


# === type_of_a_tensor_in_the_text_of_an_error: calls=5
class Plain(torch.Tensor):
    pass


def args(i):
    return (torch.ones(2) if i < 3 else torch.ones(2).as_subclass(Plain),)


def region(x):
    try:
        return x * None
    except TypeError as error:
        return str(error)


# === weak_reference_to_what_is_gone: refused
class Held:
    def __init__(self):
        self.k = 1


def region(x):
    o = Held()
    r = weakref.ref(o)
    o.k = 2
    del o
    return x * (2 if r() is None else 3)


# === equal_keys_of_other_types
d = {1: 2.0, "n": 0}


def region(x):
    d["n"] = 1
    d[1.0] += 1
    return x * d[True]


def change_key():
    d.clear()
    d.update({1.0: 5.0, "n": 0})


# === object_in_a_set
class Element:
    pass


first, second = Element(), Element()
members = {first}
current = first


def region(x):
    return x * 2 if current in members else x * 3


def change_current():
    global current
    current = second


# === list_as_a_key: calls=4
table = {"a": 1}


def region(x, key=[1]):
    try:
        return x * table[key]
    except TypeError:
        table.setdefault("b", 2)
        return x * 3


# === attribute_without_a_setter
class ReadOnly:
    def __init__(self):
        self.__dict__["k"] = 1

    k = property(lambda self: 5)


o = ReadOnly()


def region(x):
    try:
        o.k = 3
    except AttributeError:
        return x * 2
    return x * 3


def change_instance():
    o.__dict__["k"] = 9


def change_nothing_left():
    o.__dict__.pop("k", None)


# === module_attribute_deleted
m = nn.Linear(3, 3)


def region(x):
    try:
        del m.extra
    except AttributeError:
        return x * 3
    return x * 2


def change_parameter():
    m.extra = nn.Parameter(torch.ones(1))


def change_plain():
    m.extra = 4


# === attribute_without_a_setter_set_past_setattr: calls=6
class Doubling:
    def __init__(self):
        self.__dict__["k"] = 1

    k = property(lambda self: 5)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2)


o = Doubling()


def region(x):
    try:
        o.k = 3
    except AttributeError:
        return x * 2
    return x * 3


def args(i):
    o.__dict__["k"] = (1, 1, True, 9, 2.5, 1)[i]
    return (torch.ones(2),)


def change_property():
    del Doubling.k
