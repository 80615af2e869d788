"""The wrong results of an earlier system, each a rule for this one (shared state, aliasing, type confusion, snapshots, modes)."""

# ruff: noqa
import enum

import torch
from torch import nn


def args(i):
    return (torch.ones(2, 3) * (i + 1),)


# === inlined_callee_guards
cfg = {"a": {"b": [2.0]}}


class In:
    def __init__(self):
        self.k = 3.0


obj = In()


def level3(x):
    return x * obj.k + cfg["a"]["b"][0]


def level2(x):
    return level3(x) + 1


def region(x):
    return level2(x)


def change_attr():
    obj.k = 5.0


def change_item():
    cfg["a"]["b"][0] = 7.0


def change_dict():
    cfg["a"] = {"b": [1.0]}


# === alias_lists
a = [1]
b = [1]


def region(x):
    a.append(2)
    return x * len(b)


def change_join():
    global b
    b = a


def change_split():
    global b
    b = list(a)


# === alias_tensors_inplace
u = torch.ones(3)
v = torch.ones(3)


def region(x):
    u.add_(1)
    return x + v


def change_join():
    global v
    v = u


def change_view():
    global v
    v = u.view(3)


def change_split():
    global v
    v = u.clone()


# === unknown_write
class Weird:
    __slots__ = ("v",)


w = Weird()
w.v = 1


def region(x):
    w.v = x.shape[0]
    object.__setattr__(w, "v", 5)
    return x * w.v


# === small_int_patch
n = 1
one = 1


def region(x):
    global n
    n += one
    return x * one + n - n + 1, one


# === bool_is_not_int
flag = 1


def region(x):
    return x + 1 if flag is True else x * 2


def change_true():
    global flag
    flag = True


def change_one():
    global flag
    flag = 1


# === quote_in_string
s = 'it\'s "quoted" \\ {brace} %s \n'


def region(x):
    return x * len(s), {s: 1}, s


def change_s():
    global s
    s = "'); raise SystemExit #"


# === nan_guard
v = float("nan")


def region(x):
    return x * 1 if v != v else x * v


def change_v():
    global v
    v = 2.0


# === enum_member_guard
class E(enum.Enum):
    A = 1
    B = 2


e = E.A


def region(x):
    return x * e.value


def change_e():
    global e
    e = E.B


# === user_getitem
class Seq:
    def __init__(self, v):
        self.v = v

    def __getitem__(self, i):
        return self.v[i] * 2


s = Seq([1.0, 2.0])


def region(x):
    return x * s[1]


def change_inner():
    s.v[1] = 5.0


def change_method():
    Seq.__getitem__ = lambda self, i: 100.0


# === lost_mutators
s = set()
l = [1]
d = {}


def region(x):
    s.add("k")
    l.insert(0, x.shape[1])
    d.update(z=1)
    print("done")
    return x + 1


# === snapshot_after_mutation
l = [1, 2]


def region(x):
    l.append(3)
    l.pop()
    l.pop()
    return x * len(l)


def change_l():
    l.extend([5, 6])


# === modes_unguarded
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = nn.Dropout(0.5)

    def forward(self, x):
        return self.d(x) + torch.zeros(3)


region = M()


def change_train():
    region.train(not region.training)


def change_hook():
    region.d.register_forward_hook(lambda m, a, o: o + 1)


# === strides_forced
def region(x):
    y = x * 1
    return y, y.stride()


def args(i):
    t = torch.ones(4, 6)
    return (t.t() if i % 2 else t[:, ::2],)


# === op_returns_its_input
def region(x):
    y = nn.functional.dropout(x, 0.5, training=False)
    y.add_(1)
    return x


# === raises_into_user
class Odd:
    def __getattr__(self, n):
        raise AttributeError("no " + n)


o = Odd()


def region(x):
    try:
        return x * o.missing
    except AttributeError as e:
        return x + len(str(e))


# === len_after_append
names = []


def region(x):
    names.append("n")
    if len(names) > 3:
        return x * 100
    return x


# === read_after_write_depends_on_entry
class O:
    pass


o = O()
o.n = 0


def region(x):
    o.n += 1
    return x * o.n


def change_n():
    o.n = 41


# === identity_of_rebuilt_list
l = [1, 2]
alias = l


def region(x):
    l[:] = [9]
    l.append(x.shape[0])
    return x + 1, l


def change_l():
    l.extend([4, 4])
