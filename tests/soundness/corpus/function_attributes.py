"""Attributes of functions: counters and caches kept on a function, read and written inside the region."""

# ruff: noqa
import functools
import torch


def helper(x):
    helper.calls += 1
    return x * helper.calls


helper.calls = 0


def plain(x):
    return x + 1


def args(i):
    return (torch.arange(6.0).reshape(2, 3) + i,)


def change_calls():
    helper.calls += 5


def change_kind():
    helper.calls = float(helper.calls)


def change_scale():
    plain.scale = getattr(plain, "scale", 1) + 1


def change_no_scale():
    if hasattr(plain, "scale"):
        del plain.scale


def change_helper():
    global plain
    old = plain
    plain = lambda x: old(x) * 2


# === function_counter: calls=8
def region(x):
    return helper(x)


# === function_counter_twice
def region(x):
    helper(x)
    before = helper.calls
    return helper(x) + before


# === function_own_attribute
def region(x):
    region.calls = getattr(region, "calls", 0) + 1
    return x * region.calls


# === function_attribute_absent
def region(x):
    return plain(x) * (plain.scale if hasattr(plain, "scale") else 1)


# === function_attribute_tensor
def region(x):
    if getattr(plain, "last", None) is not None:
        x = x + plain.last
    plain.last = x * 0.5
    return x


# === function_attribute_list
plain.log = []


def region(x):
    plain.log.append(len(plain.log))
    plain.copy = plain.log
    return x + len(plain.copy)


# === function_attribute_deleted
def region(x):
    plain.scale = 3
    y = x * plain.scale
    del plain.scale
    return y


# === function_made_inside
def region(x):
    def inner(y):
        inner.calls += 1
        return y * inner.calls

    if not hasattr(inner, "calls"):
        inner.calls = 0
    wrapped = functools.wraps(plain)(lambda y: plain(y))
    return inner(x) + inner(x) + getattr(wrapped, "scale", 2)


# === function_name_changed: refused
def region(x):
    plain.__name__ = "other"
    return x + 1


# === defaults_looked_into
def scale(x, options={"rate": 2.0}):
    return x * options["rate"]


def region(x):
    options = scale.__defaults__[0]
    options["calls"] = options.get("calls", 0.0) + 1.0
    return x * options["rate"]


def change_rate():
    scale.__defaults__[0]["rate"] = 5.0


def change_defaults():
    scale.__defaults__ = ({"rate": 7.0},)
