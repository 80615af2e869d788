"""Programs about side effects: what replay must do again. See tests/soundness/harness/world.py."""

# ruff: noqa
import collections
import copy
import logging
import warnings

import torch
from torch import nn


def args(i):
    return (torch.ones(2, 3) * (i + 1),)


# === attr_write_tensor
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        self.last = self.lin(x)
        return self.last * 2


region = M()


# === attr_write_new_and_delete
class O:
    pass


o = O()
o.old = 1


def region(x):
    o.y = x * 2
    o.z = o.y
    if hasattr(o, "old"):
        del o.old
    return o.y


def change_old():
    o.old = 2


# === item_writes
d = {"a": 1, "b": 2}
l = [1, 2, 3]


def region(x):
    d["c"] = x.shape[0]
    d["a"] = x
    del d["b"]
    l[1] = d
    l[-1] = "last"
    d["b"] = 3
    return x * 1


def change_l():
    l.append(4)


# === slice_writes
l = [1, 2, 3, 4, 5]


def region(x):
    l[1:3] = [7]
    del l[-1]
    l.insert(1, 9)
    l.append(5)
    l[::2] = [0] * len(l[::2])
    return x + len(l)


def change_l():
    l.append(1)


# === global_writes
count = 0
latest = None


def region(x):
    global latest, fresh
    latest = x + 1
    fresh = [latest]
    return latest * 2


# === global_delete
tmp = 1


def region(x):
    global tmp
    tmp = 2
    y = x * tmp
    del tmp
    return y


def change_tmp():
    global tmp
    tmp = 5


# === list_mutators
l = [3, 1, 2]


def region(x):
    l.sort()
    l.reverse()
    l.extend([5])
    v = l.pop(0)
    l.remove(5)
    l += [v]
    l *= 1
    return x * v


def change_l():
    l[0] = 7


# === dict_mutators
d = {"a": 1, "b": [1]}


def region(x):
    d.setdefault("b", []).append(2)
    d.setdefault("n", []).append(3)
    d.update(c=4)
    d.update({"e": x})
    d.pop("a", None)
    d |= {"q": 1}
    last = d.popitem()
    return x + len(last)


def change_clear():
    d.clear()


def change_a():
    d["a"] = 9


# === set_mutators
s = {1, 2}
t = frozenset([5])


def region(x):
    s.add(3)
    s.discard(1)
    s.update(t)
    s.__ior__({9})
    y = s | {7}
    s.symmetric_difference_update({2})
    return x * len(s), y


def change_s():
    s.add(100)


# === deque_mutators
q = collections.deque([1, 2, 3], maxlen=4)


def region(x):
    q.append(x.shape[0])
    q.appendleft(0)
    q.rotate(1)
    v = q.popleft()
    return x * (v + 1)


def change_q():
    q.append(9)


# === deque_window
q = collections.deque(maxlen=3)


def region(x):
    q.append(x.sum())
    return sum(q)


# === ordered_dict
od = collections.OrderedDict(a=1, b=2, c=3)


def region(x):
    od.move_to_end("a")
    od["d"] = x
    od.popitem(last=False)
    return x, list(od)


def change_od():
    od["z"] = 5


# === lru_ordered_dict
od = collections.OrderedDict()
keys = ["a", "b"]


def region(x):
    k = keys[0]
    if k in od:
        od.move_to_end(k)
    od[k] = x * 2
    while len(od) > 2:
        od.popitem(last=False)
    return od[k]


def change_key():
    keys[0] = "b" if keys[0] == "a" else "c"


# === defaultdict_
dd = collections.defaultdict(list)


def region(x):
    dd["a"].append(x)
    dd["b"]
    n = len(dd["a"])
    return x * 2


# === defaultdict_read
dd = collections.defaultdict(float, a=2.0)
k = "a"


def region(x):
    return x * (dd[k] + 1)


def change_k():
    global k
    k = "zz"


def change_factory():
    dd.default_factory = lambda: 5.0
    global k
    k = "yy"


# === counter_
c = collections.Counter("aab")


def region(x):
    c["a"] += 1
    c.update("zz")
    return x * c["b"], c["zzz"]


# === cell_write
def make():
    best = None
    history = []

    def f(x):
        nonlocal best
        best = x.sum()
        history.append(best)
        return best * 2

    return f, lambda: (best, history)


region, peek = make()


# === objects_created
class Node:
    def __init__(self, v, next=None):
        self.v = v
        self.next = next


def region(x):
    a = Node(x)
    b = Node(x * 2, a)
    a.next = b
    return a, {"b": b, "t": (a, b)}, [a, [a]], collections.deque([b], 2), {1, 2}


# === subclass_objects
class L(list):
    tag = 1


class D(dict):
    def __init__(self, **k):
        super().__init__(**k)
        self.extra = 1


def region(x):
    l = L([x, 1])
    l.name = "n"
    d = D(a=x)
    e = collections.OrderedDict(b=1)
    f = collections.defaultdict(list, z=[2])
    return l, d, e, f


# === model_output
class Output(collections.OrderedDict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name)


def region(x):
    o = Output()
    o["logits"] = x * 2
    return o


# === internal_stored_outside
class Cache:
    def __init__(self):
        self.items = []


cache = Cache()


def region(x):
    entry = {"k": x * 2, "v": [x]}
    cache.items.append(entry)
    cache.last = entry
    return entry["k"]


# === aliasing_result
state = {"buf": []}


def region(x):
    y = x * 2
    state["y"] = y
    state["z"] = [y, y]
    return y, state["z"], x, state


# === aliasing_input_output
def region(x):
    return x, x.view(-1), [x]


# === aliasing_args
def region(a, b):
    a.append(1)
    return len(b), a is b


def args(i):
    v = [1]
    return (v, v) if i % 3 == 2 else (v, [1])


# === aliasing_tensor_args
def region(a, b):
    a.add_(1)
    return a * b


def args(i):
    t = torch.ones(3)
    return (t, t) if i % 3 == 2 else ((t, torch.ones(3)) if i % 3 else (t, t.view(3)))


# === overlapping_storage
base = torch.zeros(6)


def region(a, b):
    a.mul_(2).add_(1)
    return b + 1


def args(i):
    t = torch.ones(6)
    return [(t[:3], t[3:]), (t[:3], t[2:5]), (t[:3], t[:3]), (t[:3], torch.ones(3))][i % 4]


# === alias_is_checks
class O:
    pass


a, b = O(), O()
a.v = b.v = [1]


def region(x):
    if a.v is b.v:
        return x + 1
    return x * 5


def change_split():
    b.v = [1]


def change_join():
    b.v = a.v


# === alias_state_write
a = [0]
b = a


def region(x):
    a[0] = x.shape[0]
    return x * b[0]


def change_split():
    global b
    b = [7]


# === mutate_input
def region(x):
    x.mul_(2)
    x[0] = 5
    x.add_(x)
    return x.sum()


# === mutate_input_view
def region(x):
    v = x[0]
    v.fill_(3)
    x.t().mul_(2)
    return v, x * 1


# === mutate_buffers
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(1))
        self.register_buffer("avg", torch.zeros(3))

    def forward(self, x):
        self.n += 1
        self.avg = self.avg * 0.9 + x.detach().mean(0) * 0.1
        return x - self.avg * self.n


region = M()


def change_buffer():
    region.n.fill_(10)


def change_replace():
    region.avg = torch.ones(3)


# === tensor_item_assign
buf = torch.zeros(4, 3)


def region(x):
    buf[1] = x[0].detach()
    buf[:, 0] += 1
    return buf * 2


# === prints
tag = "x"


def region(x):
    print("start", tag, x.shape[0], sep=":")
    y = x * 2
    print("end", {"a": [1, 2.5, None]}, end="!\n")
    print()
    return y


def change_tag():
    global tag
    tag = "it's"


# === print_container_mutated_later
l = [1]


def region(x):
    m = [1, 2]
    print(m)
    m.append(3)
    print(m)
    return x, m


# === print_then_effect_order
log = []


def region(x):
    print(len(log) >= 0)
    log.append("a")
    print("after")
    return x + 1


# === print_tensor: refused
def region(x):
    print(x)
    return x * 2


# === logs
logger = logging.getLogger("soundness.corpus")


def region(x):
    logger.info("shape %s", list(x.shape))
    logger.debug("plain")
    logger.warning("values %d %s", 3, {"a": 1})
    return x * 2


# === log_levels
logger = logging.getLogger("soundness.levels")
logger.setLevel(logging.WARNING)


def region(x):
    if logger.isEnabledFor(logging.INFO):
        x = x + 1
    logger.info("quiet")
    logger.error("loud")
    return x


def change_level():
    import logging

    logging.getLogger("soundness.levels").setLevel(logging.WARNING)


# === warns
def region(x):
    warnings.warn("careful")
    warnings.warn("old", DeprecationWarning, stacklevel=1)
    return x * 2


# === warn_stacklevel
def helper(x):
    warnings.warn("caller's fault", stacklevel=2)
    return x + 1


def region(x):
    return helper(x)


# === exception_caught_object
last = []


def region(x):
    try:
        raise ValueError("kept", 3)
    except ValueError as e:
        last.append(str(e))
        y = len(e.args)
    return x * y


# === exception_effects_before: nograd
state = {"n": 0, "t": None}


def region(x):
    state["t"] = x * 2
    state["k"] = "set"
    if flag:
        raise RuntimeError(f"bad {state['k']}")
    return x


flag = True


def change_flag():
    global flag
    flag = not flag


# === exception_new_each_time: nograd
class E(Exception):
    pass


err = E("kept outside")


def region(x):
    raise E("fresh", 1)


# === exception_outside_object: nograd
class E(Exception):
    pass


err = E("kept outside")


def region(x):
    raise err


# === exception_tensor_op_effects: nograd
log = []


def region(x, w):
    log.append("before")
    y = x @ w
    log.append("after")
    return y


def args(i):
    return torch.ones(2, 3), torch.ones(3 if i % 2 == 0 else 4, 2)


# === index_error_data: nograd
emb = nn.Embedding(4, 2)
log = []


def region(x):
    log.append("in")
    return emb(x)


def args(i):
    return (torch.tensor([1, 2 if i != 3 else 9]),)


# === inplace_then_error: nograd
emb = nn.Embedding(4, 2)


def region(x, t):
    t.add_(1)
    y = emb(x)
    t.add_(10)
    return y


def args(i):
    return torch.tensor([1, 2 if i not in (2, 4) else 9]), torch.zeros(2)


# === deep_copy_state
state = {"a": [1, {"b": 2}]}


def region(x):
    s = copy.deepcopy(state)
    s["a"].append(3)
    t = copy.copy(state["a"])
    return x * len(s["a"]), s, t


def change_state():
    state["a"].append(5)


# === write_back_same
class O:
    def __init__(self):
        self.k = 2
        self.l = [1]


o = O()


def region(x):
    o.k = o.k
    o.l = o.l
    o.l[0] = 1
    return x * 2


def change_k():
    o.k = 5


def change_l():
    o.l = [4]


# === write_constant
class O:
    v = 0


o = O()
o.v = 1


def region(x):
    o.v = 1
    return x + 1


def change_v():
    o.v = 100


# === swap_attrs
class O:
    pass


o = O()
o.a, o.b = [1], [2, 2]


def region(x):
    o.a, o.b = o.b, o.a
    return x * len(o.a)


# === list_of_tensors_state
class Cache:
    def __init__(self):
        self.keys = []


c = Cache()


def region(x):
    c.keys.append(x * 2)
    if len(c.keys) > 2:
        c.keys.pop(0)
    return torch.stack(c.keys).sum()


# === kv_cache
class Cache:
    def __init__(self):
        self.k = None


c = Cache()


def region(x):
    c.k = x if c.k is None else torch.cat([c.k, x])
    return c.k.sum(0)


def change_reset():
    c.k = None


# === nested_containers
tree = {"a": [(1, {"b": [0]})]}


def region(x):
    tree["a"][0][1]["b"][0] = x.shape[0]
    tree["a"][0][1]["b"].append(x)
    return x + 1


def change_inner():
    tree["a"][0] = (2, {"b": [5]})


# === container_in_itself
l = []
l.append(l)


def region(x):
    l.append(1)
    return x * 2


# === returns_outside_objects
class O:
    pass


o = O()
o.l = [1]


def region(x):
    return o, o.l, o.l


def change_l():
    o.l = [2]


# === returns_bound_method
class O:
    def f(self):
        return 1


o = O()


def region(x):
    return o.f, [o.f], x


# === returns_closure: refused
def region(x):
    k = x.shape[0]
    return lambda v: v * k


# === returns_generator: refused
def region(x):
    return (v for v in [1, 2])


# === iterator_from_outside: refused
it = iter(range(100))


def region(x):
    return x * next(it)


# === iterator_list_outside
data = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
it = iter(data)


def region(x):
    return x * next(it)


# === count_outside
import itertools

it = itertools.count()


def region(x):
    return x + next(it)


# === cycle_outside
import itertools

it = itertools.cycle([1.0, 2.0, 3.0])


def region(x):
    return x * next(it)


# === copied_config
import copy

config = {"scale": 2.0, "sizes": [1, 2], "more": [1, 2], "names": ("a", {"b"})}
kept = []


def region(x):
    mine = copy.deepcopy(config)
    mine["sizes"].append(7)
    mine["scale"] += 1
    kept.append(mine)
    return x * mine["scale"] + len(mine["more"])


def change_alias():
    config["more"] = config["sizes"]


def change_scale():
    config["scale"] = 5.0


def change_nested():
    config["names"][1].add("c")


def change_object():
    config["more"] = [torch.ones(1)]


# === bytearray_state
b = bytearray(b"ab")


def region(x):
    b.append(1)
    return x * 2


# === class_attr_write
class K:
    n = 0


def region(x):
    K.n = x.shape[0]
    return x + K.n


# === class_attr_counter
class K:
    n = 0

    def __init__(self):
        K.n += 1


def region(x):
    K()
    return x + 1


# === function_attr_write
def helper(x):
    helper.calls = x.shape[0]
    return x


helper.calls = 0


def region(x):
    return helper(x) + helper.calls


# === tensor_attr_write
w = nn.Parameter(torch.ones(3))


def region(x):
    w.tag = "seen"
    return x * w


# === dict_attr_access
class O:
    def __init__(self):
        self.a = 1


o = O()


def region(x):
    o.__dict__["b"] = 2
    vars(o)["c"] = 3
    o.__dict__.update(d=4)
    return x * o.b


def change_a():
    o.a = 3


# === setattr_dynamic
class O:
    pass


o = O()
names = ["p", "q"]


def region(x):
    for i, n in enumerate(names):
        setattr(o, n, x * i)
        setattr(o, n + "_n", i)
    return getattr(o, names[0]) + 1


def change_names():
    names.append("r")


# === module_attr_containers
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.stats = {"calls": []}
        self.outs = []

    def forward(self, x):
        y = self.lin(x)
        self.stats["calls"].append(x.shape[0])
        self.outs = [y.detach()]
        return y


region = M()


def change_stats():
    region.stats = {"calls": [1]}


# === parameter_swap_inside
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)

    def forward(self, x):
        self.a, self.b = self.b, self.a
        return self.a(x)


region = M()


# === user_list_subclass
class Log(list):
    def append(self, v):
        super().append(("entry", v))


log = Log()


def region(x):
    log.append(x.shape[0])
    return x + 1


# === user_dict_subclass
class Reg(dict):
    def __setitem__(self, k, v):
        super().__setitem__(k.lower(), v)

    def __missing__(self, k):
        return 7.0


reg = Reg(a=1.0)


def region(x):
    reg["KEY"] = x.shape[0]
    return x * reg["nope"] + reg["a"]


def change_a():
    dict.__setitem__(reg, "a", 5.0)


def change_nope():
    reg["nope"] = 1.0


# === userdict_
class U(collections.UserDict):
    pass


u = U(a=1.0)


def region(x):
    u["b"] = 2.0
    return x * u["a"]


def change_a():
    u["a"] = 3.0


# === chainmap_
a, b = {"k": 1.0}, {"k": 2.0, "z": 3.0}
cm = collections.ChainMap(a, b)


def region(x):
    cm["new"] = x.shape[0]
    return x * cm["k"] + cm["z"]


def change_a():
    a.pop("k", None)


def change_b():
    b["z"] = 9.0


# === exception_raised_while_handling: nograd
class E(Exception):
    pass


def inner(x):
    raise E("inside")


def region(x):
    try:
        inner(x)
    except E:
        raise KeyError("again") from None


# === exception_attribute_error: nograd
class O:
    pass


o = O()


def region(x):
    return x * o.missing


def change_add():
    o.missing = 2.0


# === exception_group: nograd
def region(x):
    raise ExceptionGroup("both", [ValueError(1), KeyError("k")])


# === exception_stored
kept = []


def region(x):
    try:
        {}["k"]
    except KeyError as e:
        kept.append(e)
    kept.append(ValueError("never raised"))
    return x * 2


# === exception_os_error: nograd
def region(x):
    raise FileNotFoundError(2, "no such file", "a.txt")


# === tuple_cycle
def region(x):
    l = []
    t = (l, x)
    l.append(t)
    return t


# === exception_chain_handling: nograd handling
def low(x):
    raise KeyError("deep")


def region(x):
    try:
        low(x)
    except KeyError as e:
        raise RuntimeError("outer") from e


# === exception_plain_handling: nograd handling
def region(x):
    raise ValueError("plain")


# === print_nested_mutated
import collections


def region(x):
    m = {"a": [1], "t": ([2],)}
    print(m, m["a"])
    m["a"].append(3)
    m["t"][0].clear()
    c = collections.Counter("aab")
    print(c, collections.deque([m["a"]]))
    c.clear()
    return x, m


# === log_mutated
logger = logging.getLogger("soundness.mutated")


def region(x):
    m = [1]
    logger.info("m %s", m)
    m.append(2)
    return x * len(m)


# === iterator_replaced
class Feed:
    def __init__(self):
        self.data = [torch.ones(3), torch.zeros(3), torch.arange(3.0), torch.ones(3) * 4, torch.ones(3) * 5, torch.ones(3)]
        self.it = iter(self.data)


feed = Feed()


def region(x):
    return x * next(feed.it)


def change_iterator():
    feed.it = iter(feed.data)


def change_item():
    feed.data[3] = torch.ones(3) * 7


def change_grown():
    feed.data.append(torch.ones(3) * 9)


# === iterator_two_steps: refused
it = iter(range(200))


def region(x):
    first = next(it)
    second = next(it)
    return x * first + second


# === iterators_one_or_two
class Pair:
    def __init__(self):
        self.a = iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0] * 4)
        self.b = iter([10.0, 20.0, 30.0, 40.0, 50.0, 60.0] * 4)


pair = Pair()


def region(x):
    return x * next(pair.a) + next(pair.b)


def change_same():
    pair.b = pair.a


def change_apart():
    pair.b = iter([10.0, 20.0, 30.0, 40.0, 50.0, 60.0] * 4)


# === iterator_ends
it = iter([1.0, 2.0, 3.0])


def region(x):
    try:
        return x * next(it)
    except StopIteration:
        return x


# === iterator_default
it = iter([1.0, 2.0])


def region(x):
    return x * next(it, 5.0)


# === iterator_over_changed_list
items = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
it = iter(items)


def region(x):
    items.append(2.0)
    items[-1] = 3.0
    return x * next(it)


# === iterator_dunder_and_branch: refused
it = iter([1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6])


def region(x):
    n = it.__next__()
    if n > 0:
        return x + n
    return x - n


# === native_hash_object
# what a C object has been fed is in the object alone: no attribute shows it, and no difference finds it
import hashlib

fed = hashlib.sha256()


def region(x):
    fed.update(b"x")
    return x * fed.digest()[0]


def change_fed():
    fed.update(b"y")


# === native_compressor
import zlib

squeezer = zlib.compressobj()


def region(x):
    return x * len(squeezer.compress(bytes(range(250)) * 400))


# === native_writer
import csv
import io

text = io.StringIO()
table = csv.writer(text)


def region(x):
    table.writerow(["a", 1])
    return x * 2


# === native_tree
import xml.etree.ElementTree as ElementTree

tree = ElementTree.Element("a")


def region(x):
    return x * len(tree) + len(list(tree))


def change_tree():
    tree.append(ElementTree.Element("b"))


# === thread_started
# threading's Python is watched like any other: starting a thread is refused, never dropped
import threading

heard = []


def region(x):
    worker = threading.Thread(target=heard.append, args=(1,))
    worker.start()
    worker.join()
    return x * len(heard)


# === event_flag
import threading

event = threading.Event()


def region(x):
    return x * 2 if event.is_set() else x


def change_event():
    event.clear() if event.is_set() else event.set()


# === semaphore_counts: refused
import threading

free = threading.Semaphore(100)


def region(x):
    free.acquire()
    return x * free._value


# === new_lock_each_call
import threading

locks = []


def region(x):
    locks.append(threading.Lock())
    return x * len(set(map(id, locks)))


# === weak_value_dictionary
import weakref


class Value:
    pass


values = [Value() for _ in range(3)]
weak = weakref.WeakValueDictionary(a=values[0])


def region(x):
    return x * len(weak) + ("b" in weak)


def change_weak():
    weak["b"] = values[1]


# === weak_key_dictionary
import weakref


class Key:
    pass


keys = [Key() for _ in range(3)]
marks = weakref.WeakKeyDictionary({keys[0]: 2})


def region(x):
    return x * marks.get(keys[0], 7) + len(marks)


def change_marks():
    marks[keys[0]] = marks.get(keys[0], 0) + 1


def change_keys():
    marks[keys[1]] = 5


# === weak_set
import weakref


class Member:
    pass


members = [Member() for _ in range(3)]
club = weakref.WeakSet(members[:1])


def region(x):
    return x * 2 if members[1] in club else x + len(club)


def change_club():
    club.add(members[1])


# === data_of_another_shape: calls=6
p = nn.Parameter(torch.zeros(2, 2))
buffer = torch.zeros(4)


def region(x):
    p.data = x.t() * 2
    buffer.data = torch.cat([buffer, x.flatten()])
    return p * 2, buffer.sum(), tuple(p.stride()), buffer.shape[0]


def args(i):
    return (torch.ones(2, 2 + i // 3) * i,)


def change_back():
    global buffer
    buffer = torch.zeros(4)


def change_shared():
    global buffer
    buffer = p.data.view(-1) if p.is_contiguous() else torch.ones(3)


# === data_of_another_shape_then_a_decision: calls=7, refused
p = nn.Parameter(torch.zeros(2, 2))


def region(x):
    p.data = p.data.t() + x
    if (p * 2).sum() > 20:
        p.data = torch.zeros(2, 2)
    return p * 2


def args(i):
    return (torch.arange(4.0).reshape(2, 2) + i,)


# === a_leaf_that_grows: plain calls=4
p = nn.Parameter(torch.zeros(4))


def region(x):
    p.data = torch.cat([p, x.flatten()])
    return p.sum() * 2


# === a_leaf_that_grows_and_is_replaced: plain calls=6


p = nn.Parameter(torch.zeros(4))


def region(x):
    p.data = torch.cat([p, x.flatten()])
    return p.sum() * 2


def args(i):
    global p
    if i:
        p = torch.ones(4 + 6 * i).requires_grad_()
    return (torch.ones(2, 3),)
