"""Programs about numbers that vary: counters, rates, lengths, thresholds. See tests/soundness/harness/world.py."""

# ruff: noqa
import collections
import math
import random

import torch
from torch import nn


def args(i):
    return (torch.ones(2, 3) * (i + 1),)


# === counter_attr: calls=8
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0

    def forward(self, x):
        self.n += 1
        return x * 2


region = M()


def change_n():
    region.n = 100


# === counter_used: calls=8
class O:
    n = 0


o = O()


def region(x):
    o.n += 1
    return x * o.n + 1 / o.n


# === counter_threshold: calls=9
class O:
    def __init__(self):
        self.n = 0


o = O()


def region(x):
    o.n += 1
    if o.n > 3:
        x = x * 10
    if o.n % 2 == 0:
        x = x + 1
    return x


def change_n():
    o.n = 50


# === counter_entry_value: calls=8
class O:
    def __init__(self):
        self.n = 0


o = O()


def region(x):
    before = o.n
    o.n += 1
    return x * before


# === counter_returned: calls=8
n = 0


def region(x):
    global n
    n = n + 1
    return x, n, [n, n * 2], {"n": n}


# === counter_formatted: calls=5
n = 0


def region(x):
    global n
    n += 1
    return x, f"step {n}"


# === counter_printed: calls=6
n = 0


def region(x):
    global n
    n += 1
    print("step", n)
    return x + n


# === counter_as_key: calls=5
n = 0
d = {}


def region(x):
    global n
    n += 1
    d[n] = x
    return x


# === counter_as_index: calls=5
n = -1
table = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def region(x):
    global n
    n += 1
    return x * table[n]


# === counter_range: calls=4
n = 0


def region(x):
    global n
    n += 1
    for _ in range(n):
        x = x + 1
    return x


# === counter_two_names: calls=7
class O:
    pass


a = O()
a.n = 0
b = a


def region(x):
    a.n += 1
    b.n += 1
    return x * b.n


def change_split():
    global b
    b = O()
    b.n = 10


# === counter_float: calls=7
t = 0.0


def region(x):
    global t
    t += 0.1
    return x * t, t


# === counter_bool_mixed: calls=6
n = True


def region(x):
    global n
    n = n + 1
    return x * n


# === counter_in_dict: calls=7
stats = {"calls": 0, "items": 0}


def region(x):
    stats["calls"] += 1
    stats["items"] += x.shape[0]
    return x / stats["calls"]


def args(i):
    return (torch.ones(2 + i % 2, 3),)


# === counter_in_list: calls=7
c = [0, 0]


def region(x):
    c[0] += 1
    c[1] = c[0] * 2
    return x * c[1]


# === counter_in_cell: calls=7
def make():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x + n

    return f


region = make()

# === counter_small_ints: calls=8
n = -3
ones = [1, 0, -1]


def region(x):
    global n
    n += 1
    k = 1 if n == 0 else 2
    return x * k + (n == 1) + (n is not None), n


# === two_counters_equal: calls=7
class O:
    pass


o = O()
o.a = 0
o.b = 0


def region(x):
    o.a += 1
    o.b += 1
    return x * o.a - x * o.b + (o.a == o.b)


def change_a():
    o.a = 5


# === lr_float: calls=8
lr = 0.1
w = torch.zeros(3)


def region(x):
    w.add_(x.sum(0), alpha=-lr)
    return w * lr


def args(i):
    global lr
    lr = 0.1 * 0.9**i
    return (torch.ones(2, 3),)


# === lr_in_group: calls=8
group = {"lr": 0.1, "betas": (0.9, 0.99)}
w = torch.zeros(3)


def region(x):
    b1, b2 = group["betas"]
    w.mul_(b1).add_(x.sum(0) * group["lr"], alpha=1 - b1)
    return w.clone()


def args(i):
    group["lr"] = 0.1 / (i + 1)
    return (torch.ones(2, 3),)


def change_betas():
    group["betas"] = (0.5, 0.99)


# === lr_formula: calls=8
step = 0


def region(x):
    global step
    step += 1
    lr = 0.5 * (1 + math.cos(math.pi * step / 10)) if step < 10 else 0.0
    return x * lr


# === arg_float: calls=6
def region(x, k):
    return x * k + k**2


def args(i):
    return torch.ones(3), 0.5 * i


# === arg_int_float_switch: calls=6
def region(x, k):
    return x * k


def args(i):
    return torch.ones(3, dtype=torch.int64), [1, 2, 2.0, True, 3, 1.5][i % 6]


# === arg_int_dtype: calls=6
def region(x, k):
    return x + k, x // 2 * k, torch.full((2,), k)


def args(i):
    return torch.ones(3, dtype=torch.int32), i + 1


# === arg_kwarg_scalar: calls=6
def region(x, *, p=1.0):
    return x.clamp(max=p) * p


def args(i):
    return (torch.arange(4.0),), {"p": 0.5 + i}


# === scalar_compare_chain: calls=8
def region(x, k):
    if 0 < k < 3:
        return x * k
    return x - k


def args(i):
    return torch.ones(3), i


# === scalar_minmax: calls=8
def region(x, k):
    return x * min(k, 3) + max(k, 2) + abs(k - 4) + int(k / 2) + round(k * 0.3, 1)


def args(i):
    return torch.ones(3), i


# === scalar_truth: calls=6
def region(x, k):
    if k:
        x = x * k
    return x if not k else x + 1


def args(i):
    return torch.ones(3), (i * 2) % 5


# === scalar_shape: calls=5
def region(x, k):
    return torch.zeros(k, 2) + x.sum(), x.repeat(k, 1)


def args(i):
    return torch.ones(2, 2), i + 1


# === scalar_slice: calls=6
def region(x, k):
    return x[:k].sum(), x[k], x.narrow(0, k, 1)


def args(i):
    return torch.arange(10.0), i + 1


# === scalar_div_zero: nograd calls=6
def region(x, k):
    return x * (1 / k)


def args(i):
    return torch.ones(2), 3 - i


# === scalar_big_int: calls=5
def region(x, k):
    return x, k + 1, k * k, -k


def args(i):
    return torch.ones(2), 10 ** (i * 8) + i


# === scalar_int_overflow_op: nograd calls=5
def region(x, k):
    return x + k


def args(i):
    return torch.ones(2, dtype=torch.int64), 2 ** (i * 20)


# === scalar_is_identity: calls=5
big = 1000


def region(x, k):
    return x, k is big


def args(i):
    return torch.ones(2), big if i % 2 else int("1000")


# === scalar_nan_inf: calls=6
def region(x, k):
    return x * k, k != k, k > 1


def args(i):
    return torch.ones(2), [1.0, 2.0, float("nan"), float("inf"), -0.0, 0.0][i % 6]


# === len_growing: calls=8
log = []


def region(x):
    log.append(x.sum())
    return x * len(log)


# === len_before_append: calls=8
log = []


def region(x):
    n = len(log)
    log.append(1)
    if n > 4:
        return x * 100
    return x * 2


# === append_then_len_threshold: calls=8
log = []


def region(x):
    log.append(x)
    if len(log) >= 4:
        log.clear()
        return x * 10
    return x


# === append_then_index: calls=6
log = []


def region(x):
    log.append(x * 2)
    return log[-1] + log[0]


# === grow_dict_len: calls=6
d = {}


def region(x):
    d[f"k{len(d)}"] = x
    return x * len(d)


def change_first():
    if d:
        del d[next(iter(d))]


# === sum_of_history: calls=5
h = [1.0]


def region(x):
    h.append(float(len(h)))
    return x * sum(h)


# === moving_average_float: calls=8
class O:
    avg = 0.0


o = O()


def region(x):
    o.avg = 0.9 * o.avg + 0.1 * 3.0
    return x * o.avg


# === step_tensor_counter: calls=6
step = torch.tensor(0.0)


def region(x):
    step.add_(1)
    return x / step


# === best_so_far_item: calls=8
best = float("inf")


def region(x):
    global best
    loss = x.sum().item()
    if loss < best:
        best = loss
    return x * 2, best


def args(i):
    return (torch.ones(2) * [5, 4, 6, 3, 3, 9, 1, 2][i % 8],)


# === item_accumulate: calls=8
total = 0.0
n = 0


def region(x):
    global total, n
    total += x.sum().item()
    n += 1
    return total / n, x


# === item_appended: calls=6
losses = []


def region(x):
    y = (x**2).mean()
    losses.append(y.item())
    return y


# === item_in_op: calls=6
def region(x):
    k = x.max().item()
    return x / k + k


# === item_int_index: calls=6
table = [10.0, 20.0, 30.0, 40.0]


def region(x):
    i = int(x.sum().item()) % 4
    return x * table[i]


# === item_types: calls=4
def region(x):
    return x.sum().item(), (x > 1).any().item(), x.long().sum().item(), float(x.mean()), int(x.sum()), x.tolist()


# === item_printed: calls=5
def region(x):
    print("loss", x.sum().item())
    return x * 2


# === item_formatted: calls=5
def region(x):
    return x * 2, f"{x.sum().item():.3f}"


# === branch_item: calls=8
def region(x):
    if x.sum().item() > 10:
        return x * 2
    return x + 1


# === branch_tensor: calls=8
def region(x):
    y = x * 2
    if y.sum() > 20:
        y = y - 1
        if y.max() > 8:
            return y * 3
    return y


# === branch_effects: calls=8
log = []


def region(x):
    log.append("start")
    if (x > 3).any():
        log.append("big")
        print("big")
        x = x * 2
    log.append("end")
    return x


# === branch_inplace_before: calls=8
buf = torch.zeros(3)


def region(x):
    buf.add_(x.sum(0))
    if buf.sum() > 60:
        buf.zero_()
    return buf * 1


# === branch_random_before: calls=8
def region(x):
    y = torch.nn.functional.dropout(x, 0.5)
    if y.sum() > 20:
        return y * 2
    return y + torch.rand(3)


# === while_data: calls=6
def region(x):
    n = 0
    while x.sum() > 4:
        x = x / 2
        n += 1
    return x, n


# === early_exit_net: calls=8
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
        self.exits = []

    def forward(self, x):
        for i, b in enumerate(self.blocks):
            x = torch.relu(b(x)) + 0.5
            if x.mean() > 2.0:
                self.exits.append(i)
                return x
        self.exits.append(-1)
        return x


region = Net()

# === branch_grad: calls=6
w = nn.Parameter(torch.ones(3))


def region(x):
    y = (x * w).sum()
    if y > 20:
        return y * 2
    return y**2


# === tensor_as_bool_ops: calls=6
def region(x):
    m = x.sum() > 8
    a = not m
    b = bool(m) and x.shape[0] == 2
    return x, a, b, 1 if m else 2


# === tensor_in_list: calls=5
def region(x):
    vals = [1.0, 6.0, 12.0]
    return x, x.sum().item() in vals, sorted([x.sum().item(), 3.0])


# === all_close_branch: calls=5
ref = torch.ones(2, 3)


def region(x):
    return x + 1 if torch.allclose(x, ref) else x * 2


def change_ref():
    ref.fill_(2.0)


# === nonzero_shape: calls=6
def region(x):
    i = (x > 2).nonzero()
    return x[x > 2], i


# === unique_len: calls=5
def region(x):
    return x.unique().numel(), x * 2


# === python_random: calls=5
def region(x):
    return x * random.random()


# === torch_rand_item: calls=6
def region(x):
    if torch.rand(1).item() < 0.5:
        return x * 2
    return x


# === layerdrop: calls=8
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def forward(self, x):
        for l in self.layers:
            if self.training and torch.rand([]) < 0.4:
                continue
            x = l(x)
        return x


region = Net()


def change_eval():
    region.eval()


# === varying_batch: calls=7
lin = nn.Linear(3, 4)


def region(x):
    b = x.shape[0]
    y = lin(x).view(b, 2, 2)
    return y.sum((1, 2)) / b, b


def args(i):
    return (torch.ones([4, 5, 6, 7, 1, 2, 4][i % 7], 3),)


# === varying_batch_branch: calls=7
def region(x):
    if x.shape[0] > 5:
        return x[:5] * 2
    if x.size(0) == 1:
        return x + 100
    return x


def args(i):
    return (torch.ones([4, 5, 6, 7, 1, 2, 4][i % 7], 3),)


# === varying_seq_loop: calls=5
def region(x):
    h = torch.zeros(3)
    for t in range(x.shape[0]):
        h = torch.tanh(h + x[t])
    return h


def args(i):
    return (torch.ones(i % 3 + 2, 3),)


# === varying_shape_print: calls=5
def region(x):
    print(tuple(x.shape), len(x), x.numel())
    return x.flatten()


def args(i):
    return (torch.ones(i % 3 + 2, 3),)


# === varying_mask: calls=6
def region(x):
    n = x.size(1)
    m = torch.triu(torch.ones(n, n), 1).bool()
    return x.unsqueeze(1).expand(-1, n, n).masked_fill(m, 0.0)


def args(i):
    return (torch.ones(2, i % 4 + 2),)


# === shape_in_state: calls=5
sizes = []


def region(x):
    sizes.append(x.shape)
    sizes.append(x.shape[0] * 2)
    return x * len(sizes)


def args(i):
    return (torch.ones(i % 3 + 2, 3),)


# === varying_iterated: calls=6
def region(x):
    out = []
    for row in x:
        out.append(row * 2)
    a, *rest = x.unbind(0)
    return out, len(rest), [r for r in reversed(x)]


def args(i):
    return (torch.ones([3, 4, 5, 4, 2, 1][i % 6], 3),)


# === varying_squeeze: calls=7
def region(x):
    y = x.squeeze()
    return y * y.dim(), x.squeeze(0).ndim


def args(i):
    return (torch.ones([3, 4, 5, 1, 2, 1, 6][i % 7], 3),)


# === varying_contiguous: calls=8
def region(x):
    y = x.contiguous()
    z = x.reshape(-1)
    return y, z, y is x, x.is_contiguous(), x.stride(-1)


def args(i):
    n = [3, 4, 5, 6, 7, 4, 6, 3][i % 8]
    return (torch.ones(n, 4) if i not in (4, 5) else torch.ones(4, n).t(),)


# === varying_split: calls=6
def region(x):
    return x.split(2), len(x.chunk(2)), x.nbytes, x.numel() > 9


def args(i):
    return (torch.ones([3, 4, 5, 4, 2, 1][i % 6], 3),)


# === varying_broadcast: nograd calls=7
w = torch.ones(4, 1)


def region(x):
    y = x + w
    return y, y.shape[0] * 2


def args(i):
    return (torch.ones([4, 1, 4, 5, 1, 4, 4][i % 7], 3),)


# === varying_two_inputs: nograd calls=7
def region(x, y):
    if x.shape == y.shape:
        return x + y
    return torch.cat([x, y])


def args(i):
    n = [2, 3, 4, 5, 6, 3, 4][i % 7]
    return torch.ones(n, 2), torch.ones(n if i not in (3, 5) else n + 1, 2)


# === varying_len_used: calls=6
def region(x):
    n = len(x)
    return x.sum() / n, torch.arange(len(x)), n + 1


def args(i):
    return (torch.ones([3, 4, 5, 4, 2, 1][i % 6], 3),)


# === sorted_by_item: calls=7
def region(x):
    rows = [x, x.flip(-1), x * 0.5 + 1]
    return sorted(rows, key=lambda t: t[0].item())[0]


def args(i):
    return (torch.tensor([1.0 + i % 3, 2.0, 2.5 - i % 2]),)


# === list_sort_by_tuple: calls=7
def region(x):
    rows = [x, x.flip(-1), x * 0.5 + 1]
    rows.sort(key=lambda t: (int(t[0].item()), t[1].item()))
    return rows[0]


def args(i):
    return (torch.tensor([1.0 + i % 3, 2.0, 2.5 - i % 2]),)


# === max_of_yielded_tuples: calls=7
def region(x):
    return x * max((v.item(), i) for i, v in enumerate(x))[1]


def args(i):
    return (torch.tensor([1.0 + i % 3, 2.0, 2.5 - i % 2]),)


# === sum_of_map: calls=5
def region(x):
    return x * sum(map(lambda t: t.item(), x)) + sum(list(map(lambda t: t.item(), x))[:1])


def args(i):
    return (torch.tensor([1.0 + i % 3, 2.0, 2.5 - i % 2]),)


# === special_methods_give_items: calls=8
class Box:
    def __init__(self, t):
        self.t = t

    def __len__(self):
        return int(self.t.sum().item())

    def __index__(self):
        return int(self.t.argmax().item())

    def __hash__(self):
        return int(self.t.sum().item())

    def __float__(self):
        return self.t[0].item()

    def __iter__(self):
        return (v.item() for v in self.t)

    def __next__(self):
        return self.t[0].item()


def region(x):
    b = Box(x)
    return x * len(b) + [1.0, 2.0, 3.0][b] + hash(b) % 5 + float(b) + len([0] * b) + sum(b) + next(b), 1 if b else 2


def args(i):
    return (torch.tensor([1.0 + i % 3, 2.0, 2.5 - i % 2]),)


# === iterators_that_judge: calls=8
import itertools


def region(x):
    kept = list(filter(lambda t: t.floor().item() - 1, x))
    first = len(list(itertools.takewhile(lambda t: t.floor().item() - 3, x)))
    groups = 0
    for _ in itertools.groupby(x, key=lambda t: t.floor().item()):
        groups += 1
    return x * len(kept) + first, groups


def args(i):
    return (torch.tensor([1.0 + i % 3, 2.0, 2.5 - i % 2]),)


# === keys_of_items: calls=7
def region(x):
    return x * len(set(map(lambda t: t.floor().item(), x))) + len(dict((t.floor().item(), 1) for t in x))


def args(i):
    return (torch.tensor([1.0 + i % 3, 2.0, 2.5 - i % 2]),)


# === identity_of_small_numbers: calls=8
config = {"padding": 0, "mode": "same", "scale": 1000, "eps": 0.5}


def region(x):
    if config["padding"] is not 0:
        x = x + 1
    if config["mode"] is "same":
        x = x * 2
    if config["scale"] is 1000:
        x = x - 1
    return x


def change_padding():
    config["padding"] += 1


def change_back():
    config["padding"] -= 1


def change_mode_to_equal_text():
    config["mode"] = "".join(["sa", "me"])


def change_scale():
    config["scale"] = int("1000")


# === identity_of_an_item: calls=8
def region(x):
    n = int(x.sum().item())
    return (x if n is 3 else x * 2), n is int(x.sum().item())


def args(i):
    return (torch.tensor([float(i % 2), 1.0, 1.0 + i % 3]),)


# === identity_of_made_text: refused
def region(x, a):
    return x if (a + "e") is "same" else x * 2


def args(i):
    return torch.ones(2) * i, "sam"


# === tensor_number_taken_by_native_code: nograd calls=8
import math
import operator


def region(x):
    total = x.sum()
    return math.sqrt(total), "%d" % total, "%.2f and %d" % (total, x.max()), math.floor(total), "%(n)d" % {"n": total}


def args(i):
    return (torch.full((3,), float(i // 2)),)


# === tensor_number_as_a_key: nograd calls=8
def region(x, y):
    first = sorted([x, y], key=torch.Tensor.item)
    second = max([x, y], key=operator.methodcaller("item"))
    third = sorted([x[None], y[None]], key=torch.Tensor.tolist)
    return first[0] * 2, second * 3, third[1] + 1, list(map(float, [x, y]))


def args(i):
    return torch.tensor(float(i // 2)), torch.tensor(float(4 - i // 2))


# === tensor_number_in_text: nograd calls=8
def region(x):
    total, kept = x.sum(), []
    for value in (total, x.long().max(), total > 3, total * float("nan")):
        kept.append(f"{value}")
    return f"{total:.2f}!", "{:d}".format(x.long().sum()), kept, format(total, "g")


def args(i):
    return (torch.full((3,), float(i // 2)),)


# === text_of_a_check: calls=10
def check(cond, text):
    if not cond:
        raise ValueError(text)


def region(x):
    n = (x > 1).sum()
    check(n * 2 >= 2, f"too few: {n}")
    return x * 2


def args(i):
    return (torch.arange(4.0) * (1 if i % 5 != 4 else 0) + (i % 3 == 2),)


# === text_of_no_number: plain calls=4
def region(x):
    return f"{x}", f"{x[None]}", "%s" % x[0]


# === tensor_number_encoded: nograd calls=8, refused_before=14
import json


def region(x):
    n = x.sum().item()
    return json.dumps({"total": n, "parts": [x.max().item()]}), json.JSONEncoder(indent=1).encode([n])


def args(i):
    return (torch.full((3,), float(i // 2)),)


# === tensor_number_kept_by_native_object: nograd calls=8
import functools
import operator


def region(x):
    n = int(x.max()) % 2
    scaled = functools.partial(operator.mul, n)
    return operator.itemgetter(n)([x * 2, x * 3]), scaled(x), operator.methodcaller("sum", n - 1)(x[None])


def args(i):
    return (torch.full((3,), float(i // 2)),)


# === sum_of_a_views_numbers: calls=8
rates = {"a": 1.0, "b": 2.0}


def region(x):
    return x * sum(rates.values()), x + math.fsum(rates.values()), x - max(v for _, v in rates.items())


def change_rate():
    rates["a"] += 1.5


# === sum_of_a_queues_numbers: calls=8
window = collections.deque([1.0, 2.0], maxlen=3)


def region(x):
    return x * (sum(window) / len(window))


def change_window():
    window.append(window[-1] * 1.5)


# === unused_number_that_raises: calls=9
rate = 4.0


def region(x):
    share, root = 1.0 / rate, math.sqrt(rate)
    return x + 1, type(root)


def change_to_zero():
    global rate
    rate = 0.0


def change_to_negative():
    global rate
    rate = -2.0


def change_to_another():
    global rate
    rate += 1.5


# === unused_number_of_data_that_raises: nograd calls=9
seen = torch.zeros(1)


def region(x):
    total = x.sum().item()
    mean = 1.0 / total
    seen.add_(1)
    math.log(total)
    return x + 1


def args(i):
    return (torch.full((2,), (1.0, 2.0, 3.0, 0.0, 4.0, -1.0)[i % 6]),)


# === sign_of_a_zero_key
table = {0.0: "zero", 1.0: "one"}
kinds = {0.0, 2.0}


def region(x):
    return [x * math.copysign(1.0, key) for key in (*table, *kinds)]


def args(i):
    return (torch.ones(2),)


def change_key():
    table.clear()
    table.update({-0.0: "zero", 1.0: "one"})


def change_element():
    kinds.clear()
    kinds.update({-0.0, 2.0})


# === dropout_whose_rate_starts_at_zero: calls=8
rate = 0.0


def region(x):
    y = torch.nn.functional.dropout(x, rate)
    return y * 2, y is x


def args(i):
    global rate
    rate = (0.0, 0.0, 0.1, 0.2, 0.5, 0.0, 0.3, 0.0)[i]
    torch.manual_seed(i)
    return (torch.ones(40),)


def change_rate():
    global rate
    rate = 0.4


# === dimensions_that_flatten_nothing: calls=8
first = 1


def region(x):
    y = x.flatten(first, 2)
    y = y.mul_(2) if y is x else y * 3
    return y, x


def args(i):
    global first
    first = (2, 2, 1, 0, 2, 1, 2, 0)[i]
    return (torch.ones(2, 3, 4),)


# === sizes_that_pass_a_window: calls=12
import torch.nn.functional as F


def region(x):
    head, tail, pooled = x[:, :5], x[:, -5:], F.max_pool1d(x, 3, 2, 1, ceil_mode=True)
    wave = torch.fft.hfft(x)
    return f"{tuple(head.shape)} {tail.shape[1]} {pooled.shape[1]} {wave.shape[1]}", head.sum() * tail.shape[
        1
    ] + pooled.sum()


def args(i):
    n = (3, 4, 5, 6, 7, 2, 9, 31, 8, 1, 12, 4)[i]
    return (torch.arange(2.0 * n).view(2, n),)


# === layouts_that_hang_on_sizes: calls=10
def region(x):
    band = x.diagonal(2)
    turned = x[:, 2:].t()
    return (
        band.is_contiguous(),
        turned.is_contiguous(),
        turned.contiguous() is turned,
        len(torch.unbind_copy(band)),
        band * 2,
    )


def args(i):
    n = (4, 5, 3, 6, 3, 7, 4, 3, 8, 4)[i]
    return (torch.arange(float(n * n)).view(n, n),)


# === numbers_in_a_tuple: calls=10
group = {"betas": (0.9, 0.99), "kept": None}


def region(x):
    first, second = group["betas"]
    group["kept"] = group["betas"]
    return x * first + second, group["kept"] is group["betas"]


def args(i):
    group["betas"] = (0.9 - 0.01 * i, 0.99)
    return (torch.ones(2, 3) * (i + 1),)


def change_second():
    group["betas"] = (group["betas"][0], 0.5)


def change_length():
    group["betas"] = (0.5, 0.25, 0.125)


def change_kind():
    group["betas"] = [0.5, 0.25]


# === number_among_milestones: calls=14
import bisect


class Schedule:
    def __init__(self):
        self.epoch = 0
        self.milestones = collections.Counter([3, 6, 6])
        self.bounds = [2, 5, 9]
        self.some = {1, 8}


schedule = Schedule()


def region(x):
    schedule.epoch += 1
    if schedule.epoch in schedule.milestones:
        x = x * 10 ** schedule.milestones[schedule.epoch]
    if schedule.epoch in schedule.some or schedule.epoch in (4, 7.0):
        x = x + 0.5
    place = bisect.bisect_right(schedule.bounds, schedule.epoch)
    return x * (place + 1) + bisect.bisect_left(schedule.bounds, schedule.epoch)


def change_milestones():
    schedule.milestones[schedule.epoch + 1] += 1


def change_bounds():
    schedule.bounds[1] = 6


def change_some():
    schedule.some.add(schedule.epoch + 1)


def change_epoch():
    schedule.epoch = 0


# === number_passed_on: calls=8
import typing


class O:
    rate, check = 0.5, staticmethod(torch.is_tensor)


o = O()


def region(x):
    o.rate *= 0.9
    rate = typing.cast(float, o.rate)
    return x * rate if not torch.is_tensor(rate) and callable(o.check) else x


def change_rate():
    o.rate = torch.tensor(0.25)


def change_check():
    o.check = 3


# === counter_in_a_named_tuple: calls=8
from typing import NamedTuple


class State(NamedTuple):
    step: int = 0
    rate: float = 0.5
    scale: torch.Tensor = torch.ones(2)
    name: str = "first"

    def half(self):
        return self.rate / 2


state = State()
seen = []


def region(x):
    global state
    old = state
    state = state._replace(step=state.step + 1, rate=state.half())
    if state.step == 4:
        state = state._replace(name="later", scale=state.scale * 2)
    seen.append(state is old)
    return x * state.step * state.rate + state.scale, state[0], state


def change_step():
    global state
    state = state._replace(step=40)


def change_type():
    global state
    state = state._replace(step=1.5)


def change_name():
    global state
    state = state._replace(name="other")


def change_fields():
    global state
    state = state._replace(rate=True)


# === replaced_fields_of_a_named_tuple: calls=8
from collections import namedtuple

Place = namedtuple("Place", "at width")


class Own(Place):
    def _replace(self, **given):
        return Place(7, given["at"])


place, own = Place(0, 3.0), Own(1, 2)
made = []


def args(i):
    return torch.ones(2) * i, i % 5 == 4


def region(x, wrong):
    global place, own
    place = place._replace(at=place.at + 1)
    made.append(own._replace(at=place.at)._replace(width=place.width))
    local = Place(place.at, 2)._replace(at=place.at * 2)
    try:
        place._replace(**{"other" if wrong else "width": place.width + 1})
    except (TypeError, ValueError) as error:
        return x, str(error)
    return x * local.at * local.width, place.width


def change_make():
    Place._make = classmethod(lambda cls, fields: tuple.__new__(cls, [9, 9]))


def change_place():
    global place
    place = Own(5, 6)


def change_replace():
    Place._replace = lambda self, **given: Place(3, 4)


# === a_number_in_a_tensor_from_outside: calls=9
place = torch.zeros(1, dtype=torch.long)
alias = place.view(1)
queue = torch.zeros(2, 12)


def region(x):
    at = int(place)
    queue[:, at : at + 2] = x
    place[0] = (at + 2) % 12
    after = place.item()
    alias.add_(0)
    return queue.sum() * at, after, queue[:, alias.item()] * 2


def args(i):
    return (torch.ones(2, 2) * i,)


def change_place():
    place.fill_(6)


def change_dtype():
    global place
    place = torch.tensor([2.0])


def change_size():
    global place
    place = torch.tensor([2, 4])


def change_kind():
    global place
    place = torch.tensor([True])


def change_alias():
    global alias
    alias = torch.tensor([3])


# === a_number_in_a_tensor_that_decides: calls=8
turn = torch.tensor(0)


def region(x):
    number = turn.item()
    if number % 3 == 1:
        x = x * 2
    turn.add_(1)
    return x * number + turn.item(), f"turn {number}", [number, turn.item()]


def change_turn():
    turn.fill_(7)


def change_view():
    global turn
    turn = torch.arange(4)[2]


def change_gradient():
    global turn
    turn = torch.tensor(3.0, requires_grad=True)
