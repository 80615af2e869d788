"""Iterators over lists from outside, from which the region takes elements."""

# ruff: noqa
import itertools
import torch


def args(i):
    return (torch.ones(2) * (i + 0.25),)


def batches(n=4):
    return [(torch.ones(2) * k, k) for k in range(n)]


# === next_of_list: calls=8
data = batches(20)
it = iter(data)


def region(x):
    a, k = next(it)
    b, j = next(it)
    return x * a + b, k, j


def change_skip():
    next(it)


def change_to_tuple():
    global it
    it = iter(tuple(data))


def change_replaced():
    global it
    it = iter(batches(30))


def change_last():
    it.__setstate__(18)


def change_one_left():
    it.__setstate__(19)


def change_exhausted():
    list(it)


def change_elements():
    data[it.__length_hint__() and 20 - it.__length_hint__()] = (torch.zeros(2), 1.5)


def change_to_generator():
    global it
    it = (pair for pair in batches(30))


# === next_restarts: calls=12
data = batches(3)
it = iter(data)


def region(x):
    global it
    try:
        a, k = next(it)
    except StopIteration:
        it = iter(data)
        a, k = next(it)
    return x * a, k


def change_longer():
    data.append((torch.ones(2) * 7, 7))


def change_exhausted():
    list(it)


def change_shared():
    global other
    other = it


# === next_of_cycle: refused calls=6
it = itertools.cycle(batches(3))


def region(x):
    return x * next(it)[0]


# === next_of_numbers: calls=9
it = iter([0.5, 0.25, 0.125, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0])


def region(x):
    return x * next(it)


def change_kind():
    global it
    it = iter([1, 2, 3, 4, 5, 6, 7, 8, 9])


# === next_with_default: refused calls=6
it = iter(batches(3))


def region(x):
    pair = next(it, None)
    return x if pair is None else x * pair[0]


# === next_of_changed_list: refused calls=6
data = batches(20)
it = iter(data)


def region(x):
    data.append(1)
    return x * next(it)[0]


# === next_then_changed_list: calls=6
data = batches(20)
it = iter(data)


def region(x):
    a, k = next(it)
    data[k] = (x, k)
    return x * a


# === loop_over_iterator: refused calls=6
it = iter(batches(20))


def region(x):
    for a, k in it:
        return x * a


# === next_stops: calls=6
it = iter(batches(3))


def region(x):
    return x * next(it)[0]


# === next_of_two_on_one_list: calls=6
data = batches(20)
first, second = iter(data), iter(data)


def region(x):
    return x * next(first)[0] + next(second)[0], next(first)[1]


def change_one():
    next(first)


# === next_of_one_or_two: calls=8
first, second = iter(batches(20)), iter(batches(30))


def region(x):
    return x * next(first)[0] + next(second)[0]


def change_to_one():
    global second
    second = first


def change_apart():
    global second
    second = iter(batches(30))
