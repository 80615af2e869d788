"""Custom autograd functions that read globals and call helpers: replay runs them again, and must see what they saw."""

# ruff: noqa
import torch


def args(i):
    return (torch.arange(4.0).requires_grad_(True),)


SCALE = 2.0
LIMIT = 10.0
calls = []


def helper(x, power=2):
    return x**power * SCALE


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return helper(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.clip(max=LIMIT) * 2


def region(x):
    calls.append(len(calls))
    return Scaled.apply(x) + len(calls)


# === function_helper_and_numbers
def change_scale():
    global SCALE
    SCALE += 1


def change_limit():
    global LIMIT
    LIMIT = 1.0


def change_helper():
    global helper
    helper = lambda x: x.double()


def change_code():
    helper.__code__ = (lambda x, power=2: (x * power)[:2]).__code__


def change_defaults():
    helper.__defaults__ = (3,)


# === function_reads_what_was_written
def region(x):
    global SCALE
    SCALE = SCALE + 1
    return Scaled.apply(x)


# === function_written_afterwards
def region(x):
    global SCALE
    y = Scaled.apply(x)
    SCALE = SCALE + 1
    return y * SCALE


# === function_reads_a_container
factors = [1.0, 2.0]


def helper(x):
    return x * factors[0] * len(factors)


def region(x):
    factors.append(0.5)
    factors[0] += 1
    return Scaled.apply(x)


# === function_shape_from_a_global
COUNT = 2


class Head(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x[:COUNT] * 1.0

    @staticmethod
    def backward(ctx, grad):
        return torch.cat([grad, grad.new_zeros(4 - len(grad))])


def region(x):
    calls.append(1)
    y = Head.apply(x)
    return y, y.shape[0] * 10


def change_count():
    global COUNT
    COUNT = COUNT % 3 + 1


# === code_of_a_module_as_a_function
import types

count = 0
counting = types.FunctionType(compile("count = count + 1\nprint(count)", "<string>", "exec"), globals())
showing = types.FunctionType(compile("count * 2", "<string>", "single"), globals())


def region(x):
    counting()
    showing()
    return x + count


# === cached_with_keywords_and_tuples
import functools


@functools.lru_cache
def table(size, device, scale=1.0, dtype=None):
    return torch.full(size, scale, device=device, dtype=dtype)


def region(x):
    return x * table((4,), x.device, scale=SCALE) + table(x.shape, x.device, dtype=torch.float64)


def change_clear():
    table.cache_clear()


def change_scale():
    global SCALE
    SCALE += 1


# === cached_by_tensor: refused
import functools


@functools.lru_cache(maxsize=1)
def weights(shape, mask, normalize=False):
    w = mask.cumsum(0)
    return w / w[-1] if normalize else w


mask = torch.ones(4)


def region(x):
    kept = weights(x.shape, mask, normalize=True)
    again = weights(x.shape, mask, normalize=True)
    fresh = weights(x.shape, mask * 2)
    return x * kept + fresh, kept is again


def change_mask():
    global mask
    mask = torch.rand(4)


def change_mask_in_place():
    mask[0] += 1


def change_clear():
    weights.cache_clear()


# === cached_by_tensor_reads_globals: refused
import functools


@functools.lru_cache
def scaled(mask):
    return mask * SCALE


kept = torch.ones(4)


def region(x):
    calls.append(1)
    return x * scaled(kept)


def change_scale():
    global SCALE
    SCALE += 1


def change_clear():
    scaled.cache_clear()


# === deepcopy_of_objects
import copy


class Part:
    def __init__(self, name):
        self.name = name
        self.sizes = [1, 2]


class Config:
    def __init__(self):
        self.rate = 0.5
        self.one = Part("one")
        self.other = Part("one")
        self.both = {"a": self.one, "b": (self.other, "text", 300)}
        self.me = self


config = Config()
made = []


def region(x):
    own = copy.deepcopy(config)
    own.one.sizes.append(3)
    same = own.one is own.other, own.both["a"] is own.one, own.me is own, own.both["b"][0] is own.other
    made.append(own)
    return x * own.rate + len(own.other.sizes), same, own.both["b"][1:]


def change_shared():
    config.other = config.one


def change_shared_inside():
    config.both["b"] = (config.one, "text", 300)


def change_unshared():
    config.one = Part("two")


def change_rate():
    config.rate += 1


def change_sizes():
    config.other.sizes.append(9)


# === deepcopy_with_a_memo
import copy


class Part:
    def __init__(self):
        self.size = 1


part = Part()


def region(x):
    memo = {}
    own = copy.deepcopy(part, memo)
    return x * own.size, len(memo), sorted(memo) == sorted(memo)


# === deepcopy_memo_shown: refused
import copy

shown = []


class Part:
    def __init__(self):
        self.size = 1

    def __deepcopy__(self, memo):
        shown.append(len(memo))
        new = Part()
        memo[id(self)] = new
        return new


parts = [Part(), {"size": 1}]
parts.append(parts[0])


def region(x):
    own = copy.deepcopy(parts)
    return x * len(own), own[0] is own[2]


# === deepcopy_by_reduce
import copy


class Part:
    def __init__(self, size):
        self.size = size

    def __reduce__(self):
        return Part, (self.size + 1,)


class Stateful:
    def __init__(self):
        self.items = [1]

    def __getstate__(self):
        return {"items": self.items, "copied": True}


part, other = Part(1), Stateful()


def region(x):
    own, second = copy.deepcopy((part, other))
    second.items.append(2)
    return x * own.size, second.copied, second.items, other.items


def change_size():
    part.size += 1


def change_items():
    other.items.append(5)


# === function_of_a_size_from_data: calls=10
class Positive(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x[x > 2] * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        out = torch.zeros_like(x)
        out[x > 2] = g * 2
        return out


def region(x):
    y = Positive.apply(x)
    return y * 2, y.shape[0]


def args(i):
    return ((torch.arange(4.0) + i // 2 % 3).requires_grad_(True),)


# === function_of_a_dtype_from_data: calls=10
class Widened(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.double() if x.sum() > 8 else x * 2

    @staticmethod
    def backward(ctx, g):
        return g.float()


def region(x):
    y = Widened.apply(x)
    return y * 2 if y.dtype == torch.float64 else y * 3


def args(i):
    return ((torch.arange(4.0) + i // 2 % 3).requires_grad_(True),)


# === function_that_gives_a_number: calls=10
class Counted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x.max().item()

    @staticmethod
    def backward(ctx, g, n):
        return g * 2


def region(x):
    y, n = Counted.apply(x)
    return y, n + 1


def args(i):
    return ((torch.arange(4.0) + i // 2 % 3).requires_grad_(True),)


# === function_that_fills_a_list: refused calls=6
class Filling(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, log):
        log.append(x.sum().item())
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


def region(x):
    log = []
    y = Filling.apply(x, log)
    return y * log[0]


# === function_that_computes_in_numpy: calls=8
import decimal

import numpy as np


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        m, e = np.frexp(x.detach().numpy())
        parts = [decimal.Decimal(float(v) * 16).quantize(decimal.Decimal(1), rounding=decimal.ROUND_HALF_UP) for v in m]
        return torch.from_numpy(np.array([int(v) for v in parts]) * 2.0**e)

    @staticmethod
    def backward(ctx, g):
        return g.float()


def region(x):
    return Rounded.apply(x) + 1


def args(i):
    return ((torch.arange(4.0) / 3 + i // 2 % 3).requires_grad_(True),)


# === function_given_a_module: calls=8, refused
class Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, net, scale):
        ctx.save_for_backward(x)
        ctx.net, ctx.scale = net, scale
        return net(x) * scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            torch.autograd.backward(ctx.net(x), g * ctx.scale)
        return x.grad, None, None


inner = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.5))
holder = [inner]


def region(x):
    return Through.apply(x, holder[0], 2.0) + 1


def args(i):
    return ((torch.arange(4.0)[None] + i).requires_grad_(True),)


def change_module():
    holder[0] = torch.nn.Linear(4, 3)


def change_mode():
    inner.train(not inner.training)


def change_weight():
    with torch.no_grad():
        inner[0].weight += 1


# === function_given_a_changed_module: calls=6
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, net):
        ctx.scale = net.scale
        return x * net.scale

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale, None


net = torch.nn.Identity()
net.scale = 1.0


def region(x):
    net.scale += 1
    return Scaled.apply(x, net)


# === function_that_draws: refused calls=6
import random


class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * random.random() + float(np.random.rand())

    @staticmethod
    def backward(ctx, g):
        return g


import numpy as np


def region(x):
    return random.random(), Noisy.apply(x), random.random()
