"""Objects whose dicts tell by their version tags that nothing was written: every way to write to them, or to replace them. See tests/soundness/harness/world.py."""

# ruff: noqa
from collections import OrderedDict

import torch
from torch import nn


def args(i):
    return (torch.arange(4.0) + i,)


# === watched_settings
class Settings:
    pass


class Holder:
    pass


holder = Holder()
holder.settings = Settings()
holder.settings.scale = 2
holder.settings.name = "a"
holder.settings.table = {"k": 3, "j": 4}


def region(x):
    s = holder.settings
    out = x * s.scale
    if s.name == "a":
        out = out + s.table["k"]
    if hasattr(s, "extra"):
        out = out - s.extra
    for key in s.table:
        out = out + len(key) * (2 if key == "k" else 3)
    return out


def change_number():
    holder.settings.scale += 1


def change_text():
    holder.settings.name = "b" if holder.settings.name == "a" else "a"


def change_entry():
    holder.settings.table["k"] += 2


def change_order():
    holder.settings.table["k"] = holder.settings.table.pop("k")


def change_extra():
    if hasattr(holder.settings, "extra"):
        del holder.settings.extra
    else:
        holder.settings.extra = 5


def change_vars():
    vars(holder.settings).update(scale=holder.settings.scale + 7)


def change_namespace():
    holder.settings.__dict__ = {**holder.settings.__dict__, "scale": holder.settings.scale + 11}


def change_object():
    old = holder.settings
    holder.settings = Settings()
    holder.settings.__dict__.update(old.__dict__, scale=old.scale + 1)


def change_table():
    holder.settings.table = {**holder.settings.table, "new": 1}


def change_root():
    global holder
    settings = holder.settings
    holder = Holder()
    holder.settings = Settings()
    vars(holder.settings).update(vars(settings), scale=settings.scale * 2)


# === watched_class
class Up:
    def go(self, x):
        return x + self.by


class Down:
    def go(self, x):
        return x - self.by


class Keep:
    pass


keep = Keep()
keep.part = Up()
keep.part.by = 2


def region(x):
    return keep.part.go(x)


def change_class():
    keep.part.__class__ = Down if type(keep.part) is Up else Up


def change_method():
    keep.part.go = lambda x: x * 10


def change_number():
    keep.part.by += 1


# === watched_module: nograd
net = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.0)), nn.Linear(4, 2))


def args(i):
    return (torch.arange(8.0).view(2, 4) * (i + 1),)


def region(x):
    return net(x)


def change_parameter():
    net[0]._parameters["weight"] = nn.Parameter(net[0].weight.detach() * 2)


def change_module():
    new = nn.Linear(4, 4)
    with torch.no_grad():
        new.weight.fill_(0.5), new.bias.zero_()
    net[1]._modules["0"] = new


def change_hook():
    net[1][0].register_forward_hook(lambda m, args, out: out + 1)


def change_forward():
    net[2].forward = lambda x: x * 3


def change_training():
    net.train(not net.training)


def change_bias():
    net[2].bias = None


def change_longer():
    net.append(nn.Sigmoid())


def change_data():
    net[0].weight.data = net[0].weight.data * 3


# === watched_counter
class Counter_:
    def __init__(self):
        self.n = 0
        self.by = 2
        self.last = None


counter = Counter_()


def region(x):
    counter.n += 1
    counter.last = counter.by
    return x * counter.by


def change_by():
    counter.by += 1


def change_count():
    counter.n = 100


# === watched_elements
class Part:
    def __init__(self, by):
        self.by = by
        self.table = {"k": by}


parts = [Part(1), Part(2), Part(3)]


def region(x):
    for part in parts:
        x = x * part.by + part.table["k"]
    return x


def change_one():
    parts[1].by += 1


def change_element():
    parts[2] = Part(7)


def change_order():
    parts.reverse()


def change_fewer():
    parts.pop()


def change_entry():
    parts[0].table["k"] += 5


# === watched_argument
class Option:
    def __init__(self, by):
        self.by = by
        self.inner = {"a": by}


shared = Option(2)


def args(i):
    return (torch.arange(4.0) + i, shared if i % 3 else Option(3))


def region(x, option):
    return x * option.by + option.inner["a"]


def change_shared():
    shared.by += 1


def change_inner():
    shared.inner["a"] = 9


# === watched_order


class Ordered:
    pass


ordered = Ordered()
ordered.table = OrderedDict(a=1, b=2, c=3)


def region(x):
    out = x
    for i, key in enumerate(ordered.table):
        out = out + (i + 1) * ordered.table[key]
    return out


def change_order():
    ordered.table.move_to_end("a")


def change_entry():
    ordered.table["b"] += 4


def change_new():
    ordered.table["d"] = 1


# === watched_gone
class Inner:
    pass


class Outer:
    pass


outer = Outer()
outer.inner = Inner()
outer.inner.by = 2
outer.others = []


def region(x):
    return x * outer.inner.by if hasattr(outer, "inner") else x


def change_gone():
    if hasattr(outer, "inner"):
        del outer.inner
    else:
        outer.inner = Inner()
        outer.inner.by = 3


def change_reborn():
    # most likely at the same address
    if hasattr(outer, "inner"):
        del outer.inner
    outer.inner = Inner()
    outer.inner.by = 5


# === watched_property
class Guarded:
    def __init__(self):
        self._by = 2
        self.part = nn.Linear(2, 2)

    @property
    def by(self):
        return self._by * 2


guarded = Guarded()


def region(x):
    return x * guarded.by


def change_by():
    guarded._by += 1


def change_property():
    Guarded.by = 7


# === watched_two_names
class Node:
    pass


one, two = Node(), Node()
one.by, two.by = 1, 2
pair = Node()
pair.left, pair.right = one, two


def region(x):
    same = pair.left is pair.right
    return (x + 1 if same else x * 2) * pair.left.by


def change_same():
    pair.right = one


def change_swap():
    pair.left, pair.right = pair.right, pair.left


def change_by():
    one.by += 1


# === factory_of_a_defaultdict: calls=6
import collections

dd = collections.defaultdict(list)


def region(x):
    dd["a"].append(x)
    dd["b"]
    return x * len(dd["a"])


def change_factory_to_none():
    dd.default_factory = None


def change_factory_and_content():
    dd.default_factory = tuple
    dd.clear()


def change_content():
    dd.pop("b", None)
