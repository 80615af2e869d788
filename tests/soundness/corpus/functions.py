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
