"""Context variables that a region sets, and abstract classes that it asks."""

# ruff: noqa
import collections
import contextvars
from collections.abc import Mapping, Sequence

import torch


def args(i):
    return (torch.ones(2) * (i + 0.25), i)


# === context_counter: calls=8
current = contextvars.ContextVar("current")
current.set(0)


class World:
    """The variable is no object of the world: this is."""

    @property
    def value(self):
        return current.get()


def region(x, i):
    current.set(current.get() + 1)
    return x * current.get(), current.get()


def change_value():
    current.set(10)


def change_to_float():
    current.set(0.5)


def change_to_bool():
    current.set(True)


def change_to_text():
    current.set("a")


# === context_of_objects: calls=8
current = contextvars.ContextVar("current", default=None)
seen = []


def region(x, i):
    seen.append(current.get())
    current.set({"step": i, "loss": x.sum().item()})
    return x, current.get()["step"]


def change_to_none():
    current.set(None)


# === context_reset_inside: calls=6
current = contextvars.ContextVar("current", default=1)


def region(x, i):
    token = current.set(i)
    y = x * current.get()
    current.reset(token)
    return y * current.get()


def change_value():
    current.set(3)


# === context_reset_of_two: calls=6
current = contextvars.ContextVar("current", default=1)


def region(x, i):
    current.set(i)
    token = current.set(i + 1)
    current.reset(token)
    return x * current.get(), current.get(7)


# === context_token_from_outside: calls=6
current = contextvars.ContextVar("current", default=1)
tokens = [current.set(2)]


def region(x, i):
    if tokens:
        current.reset(tokens.pop())
    else:
        tokens.append(current.set(i))
    return x * current.get()


# === context_token_leaves: calls=5
current = contextvars.ContextVar("current", default=1)


def region(x, i):
    token = current.set(i)
    return token.old_value is contextvars.Token.MISSING, x


# === context_unset_at_first: calls=6
current = contextvars.ContextVar("current")


def region(x, i):
    before = current.get(-1)
    current.set(before + 1)
    return x * before


# === context_of_another_context: calls=6
current = contextvars.ContextVar("current", default=0)


def inner(x):
    current.set(current.get() + 1)
    return x * current.get()


def region(x, i):
    return contextvars.copy_context().run(inner, x), current.get()


# === abstract_class_of_what_varies: calls=8
class Own(dict):
    pass


class Loud:
    def __len__(self):
        return 3

    def __getitem__(self, i):
        return i


counts = collections.Counter()
made = {"kind": dict}


def region(x, i):
    counts.update(a=i, b=int(x.sum()))
    batch = made["kind"](i=i, v=x.sum().item())
    if isinstance(batch, Mapping):
        x = x * batch["v"] + batch["i"]
    return x, counts["a"] + counts["b"], isinstance(Loud(), Sequence), isinstance([i], Sequence)


def change_kind():
    made["kind"] = Own


def change_registered():
    Sequence.register(Loud)


def change_counts():
    counts["a"] = 100


def change_counts_to_float():
    counts["b"] = 0.5


def change_counts_cleared():
    counts.clear()
