"""``copy.copy`` and ``copy.deepcopy`` of objects, containers, tensors and modules, made inside the region."""

# ruff: noqa
import copy
import torch
from torch import nn


class Plain:
    def __init__(self, a):
        self.a = a
        self.items = [a, [2]]
        self.again = self.items


class Own:
    def __init__(self, inner):
        self.inner = inner
        self.count = 1

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        made = memo[id(self)] = Own.__new__(Own)
        for k, v in self.__dict__.items():
            setattr(made, k, copy.deepcopy(v, memo))
        return made

    def __copy__(self):
        made = Own(self.inner)
        made.count = self.count + 1
        return made


class Slots:
    __slots__ = ("a", "b", "__dict__")

    def __init__(self):
        self.a, self.b, self.c = 1, [2], 3


plain = Plain(3)
own = Own(plain)
slots = Slots()
tensor = torch.arange(6.0)
tree = {"a": [tensor, tensor.view(2, 3)], "b": (plain, [plain])}
layer = nn.Linear(3, 3)
norm = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))


def args(i):
    return (torch.arange(6.0).reshape(2, 3) + i,)


def change_numbers():
    plain.a += 1
    plain.items.append(plain.a)
    own.count += 1
    slots.a += 1
    slots.b.append(slots.a)


def change_aliases():
    plain.again = list(plain.items)


def change_shared():
    tree["b"] = (plain, [Plain(3)])


def change_memory():
    tree["a"][1] = tree["a"][1].clone()


def change_tensor():
    tensor.add_(1)


def change_attribute():
    tensor.note = [1]


def change_gradient():
    tensor.grad = torch.ones(6)
    layer.weight.grad = torch.ones(3, 3)


def change_tie():
    norm[0].weight = layer.weight


def change_method():
    Own.__deepcopy__ = lambda self, memo: self


def change_dispatch():
    Plain.__reduce__ = lambda self: (Plain, (7,))


# === copy_object
def region(x):
    one = copy.copy(plain)
    one.items.append(1)
    one.b = x
    return one, x * one.a + len(plain.items)


# === copy_object_deeply
def region(x):
    one = copy.deepcopy(plain)
    one.items.append(x)
    return one, one.again is one.items, x * len(plain.items)


# === copy_own_methods: refused
def region(x):
    one, two = copy.deepcopy([own, own]), copy.copy(own)
    one[0].count += 1
    return one, two, one[0] is one[1], x * own.count


# === copy_slots_deeply
def region(x):
    one = copy.deepcopy(slots)
    one.b.append(5)
    return x * one.a + len(one.b) + one.c, one.b is slots.b


# === copy_tensors_deeply: refused
def region(x):
    one = copy.deepcopy(tree)
    one["a"][0].add_(1)
    one["b"][0].items.append(2)
    return one, one["a"][1] * 2, one["b"][0] is one["b"][1][0]


# === copy_tensor_argument: refused
def region(x):
    one = copy.deepcopy(x)
    one.mul_(2)
    return one, x + 1


# === copy_tensor_not_a_leaf: refused
def args(i):
    return (torch.arange(6.0).requires_grad_(i % 2 == 1) * (1.0 if i == 3 else 1),)


def region(x):
    return copy.deepcopy(x) + 1


# === copy_with_memo: refused
def region(x):
    memo = {}
    one = copy.deepcopy(plain, memo)
    two = copy.deepcopy([plain, plain.items], memo)
    return one, two[0] is one, two[1] is one.items, x + len(two)


# === copy_module: calls=8, refused
def region(x):
    made = copy.deepcopy(layer)
    return made(x) + layer(x)


# === copy_module_with_statistics: calls=8, refused
def region(x):
    made = copy.deepcopy(norm)
    return made(x).sum() + made(x * 2).mean() + norm(x).sum()


# === copy_module_list: refused
def region(x):
    for one in nn.ModuleList([copy.deepcopy(layer) for _ in range(2)]):
        x = one(x)
    return x


# === copy_module_kept: refused
class Averaged(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Linear(3, 3)
        self.target = None

    def forward(self, x):
        if self.target is None:
            self.target = copy.deepcopy(self.online)
        with torch.no_grad():
            for a, b in zip(self.target.parameters(), self.online.parameters()):
                a.mul_(0.9).add_(b, alpha=0.1)
        return self.target(x) - self.online(x)


region = Averaged()


def change_online():
    with torch.no_grad():
        region.online.weight.add_(1)


def change_target():
    region.target = None


# === copy_module_made_later
class Late(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)

    def forward(self, x):
        if not hasattr(self, "second"):
            self.second = copy.copy(self.first)
        return self.second(x) + self.first(x)


region = Late()


# === copy_state_dict: refused
def region(x):
    state = copy.deepcopy(layer.state_dict())
    state["weight"].add_(x.sum())
    return state["weight"], list(state)


# === copy_between_decisions: refused
def region(x):
    one = copy.deepcopy(tree)
    if one["a"][0].sum() + x.sum() > 40:
        return one["a"][0] * 2
    two = copy.deepcopy(tree)
    return one["a"][0] + two["a"][0]


# === address_in_own_dict: refused
def region(x):
    a, b = [x], [x]
    seen = {}
    seen[id(a)] = 2
    return x * seen[id(a)] if id(a) in seen and id(b) not in seen else x


# === address_leaves: refused
def region(x):
    return x, id([x]) * 0


# === address_decides: refused
def region(x):
    return x * 2 if id([x]) % 8 == 0 else x * 3


# === address_kept_outside: refused
seen = {}


def region(x):
    one = [x]
    seen[id(one)] = 1
    return x + seen.pop(id(one))
