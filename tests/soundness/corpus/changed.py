"""Programs that random changes of the world found wrong once, or nearly. See tests/soundness/harness/world.py."""

# ruff: noqa
import torch
from torch import nn


def args(i):
    return (torch.ones(2, 3) * (i + 1),)


# === varying_size_then_no_dimension: nograd calls=8
def region(x):
    rows = [r * 2 for r in x]
    return len(x), rows, x.sum()


def args(i):
    return (torch.ones(i + 2, 3) if i != 4 else torch.tensor(1.0),)


# === varying_size_then_scalar: calls=8
def region(x):
    return x * x.numel() + len(x.shape)


def args(i):
    return (torch.ones(i + 2, 3) if i % 4 != 3 else torch.tensor(float(i)),)


# === varying_size_of_a_warned_output: calls=6
out = torch.zeros(7, 3)


def region(x):
    n = x.shape[0]
    return torch.add(x, 1, out=out), n


def args(i):
    return (torch.ones(i + 2, 3),)


# === empty_slot_filled
class Box:
    __slots__ = ("a", "b")


o = Box()
o.b = 2.0


def region(x):
    if hasattr(o, "a"):
        return x * o.a
    return x * getattr(o, "a", o.b)


def change_fill():
    o.a = 5.0


def change_empty():
    del o.b


# === slot_behind_getattribute: calls=7
class Twice:
    __slots__ = ("n", "scale")

    def __getattribute__(self, name):
        value = object.__getattribute__(self, name)
        return value * 2 if name == "scale" else value


o = Twice()
o.n, o.scale = 0, 1.5


def region(x):
    o.n += 1
    return x * o.scale + o.n


def change_scale():
    o.scale = object.__getattribute__(o, "scale") + 1.0


# === slot_behind_setattr: calls=7
class Kept:
    __slots__ = ("log", "value")

    def __setattr__(self, name, value):
        if name == "value":
            self.log.append(name)
            value = value + 10
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        self.log.append("del " + name)
        object.__delattr__(self, name)


o = Kept()
o.log = []
o.value = 1


def region(x):
    o.value = x.shape[0]
    y = x * o.value
    del o.value
    o.value = 3
    return y


def change_value():
    o.value = 5


# === slot_deleted
class Holder:
    __slots__ = ("v",)


h = Holder()
h.v = 1.0


def region(x):
    if hasattr(h, "v"):
        del h.v
        return x
    return x * 2


def change_fill():
    h.v = 2.0


# === tensor_of_numpy_numbers
import numpy

values = [1.0, 2.0]
one = 3.0


def region(x):
    return torch.tensor(values), torch.tensor([(one, one)]), x + torch.as_tensor(one)


def change_first():
    values[0] = numpy.float64(1.0)


def change_inner():
    global one
    one = numpy.float32(3.0)


# === transformer_fast_path: nograd
m = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()


def region(x):
    with torch.no_grad():
        return m(x)


def args(i):
    return (torch.linspace(-1, 1, 48).view(2, 3, 8) * (i + 1),)


def change_mode():
    m.train(not m.training)


# === attention_fast_path: nograd
m = nn.MultiheadAttention(8, 2, batch_first=True).eval()


def region(x):
    with torch.no_grad():
        return m(x, x, x, need_weights=False)[0]


def args(i):
    return (torch.linspace(-1, 1, 48).view(2, 3, 8) * (i + 1),)


def change_grad():
    m.requires_grad_(False)


# === alias_two_written
a = [1.0]
b = [2.0]


def region(x):
    a.append(x.shape[0])
    b[:] = [3.0]
    return x * 2


def change_join():
    global b
    b = a


def change_split():
    global b
    b = list(a)


# === alias_memory_of_arguments
base = torch.zeros(6)
u, v = base[:3].clone(), base[3:].clone()


def region(x):
    u.add_(x)
    return v * 2


def args(i):
    return (torch.full((3,), float(i)),)


def change_share():
    global v
    v = u.detach()


# === moved_key
d = {"a": 1, "b": 2, "c": 3}


def region(x):
    d["a"] = d.pop("a")
    return x * 2


def change_order():
    d["b"] = d.pop("b")


# === branch_inplace_after: calls=8
total = torch.zeros(3)


def region(x):
    y = x * 2
    if y.sum() > 3:
        total.add_(1)
        return y
    return y - 1


def args(i):
    return (torch.full((3,), float(i % 2)),)


# === getattr_after_getattribute
class Proxy:
    def __getattribute__(self, name):
        return object.__getattribute__(self, name)

    def __getattr__(self, name):
        return 2.0


o = Proxy()


def region(x):
    return x * o.missing


def change_fallback():
    Proxy.__getattr__ = lambda self, name: 5.0


# === compared_with_nested: calls=4
rows = [[1, 2], [3]]


def region(x):
    return x * rows.index([3]) + rows.count([1, 2]) + ([1, 2] in rows)


def args(i):
    return (torch.ones(2) * i,)


def change_inner():
    rows[0][0] = 5


def change_back():
    rows[0][0] = 1


# === state_in_a_dict_of_another_class: calls=6
class Table(dict):
    pass


class Holder:
    pass


holder = Holder()
holder.__dict__ = Table(scale=2.0, name="a")


def region(x):
    return x * holder.scale + len(holder.name)


def change_scale():
    holder.scale = 3.5


def change_name():
    holder.name = "abc"


def change_table():
    holder.__dict__ = Table(scale=7.0, name="")
