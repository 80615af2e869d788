"""``itertools.count`` objects from outside."""

# ruff: noqa
import itertools

import torch


def args(i):
    return (torch.ones(2) * (i + 0.25),)


# === counter_advanced: calls=10
steps = itertools.count()


class Shown:
    """The position of the counter, which no attribute shows."""

    def __repr__(self):
        return repr(steps)


def region(x):
    n = next(steps)
    if n % 4 == 3:
        return x * n, next(steps)
    return x + n, n, f"{n}"


def change_advanced():
    next(steps)


def change_replaced():
    global steps
    steps = itertools.count(100)


def change_to_floats():
    global steps
    steps = itertools.count(0.5)


def change_step():
    global steps
    steps = itertools.count(0, 5)


def change_large():
    global steps
    steps = itertools.count(2**63 - 2)


def change_negative():
    global steps
    steps = itertools.count(-3)


def change_to_list():
    global steps
    steps = iter([1, 2, 3])


# === counter_in_an_object: calls=8
holder = {"ids": itertools.count(1), "last": 0}


def region(x):
    holder["last"] = next(holder["ids"])
    second = next(holder["ids"], None)
    return x * holder["last"], second


def change_object():
    holder["ids"] = itertools.count(50)


# === counter_used_by_others: calls=5
steps = itertools.count()


def region(x):
    first = next(steps)
    pairs = list(zip("ab", steps))
    return x, first, pairs


# === counter_looped_over: calls=5
steps = itertools.count()


def region(x):
    for n in steps:
        if n % 3 == 2:
            break
    return x * n


# === counter_made_inside: calls=5
def region(x):
    own = itertools.count(3)
    return x * next(own) + next(own)


# === counter_of_floats: calls=5
steps = itertools.count(0.5)


def region(x):
    return x * next(steps)


# === counter_of_exact_numbers: calls=6
steps = itertools.count()
values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def region(x):
    return x * values[next(steps)]


# === counter_by_map: calls=5
steps = itertools.count()


def region(x):
    return x, list(map(next, [steps, steps])), steps.__next__()


# === counter_then_an_error: calls=6
steps = itertools.count()


def region(x):
    n = next(steps)
    if n == 2:
        raise ValueError(n)
    return x * n
