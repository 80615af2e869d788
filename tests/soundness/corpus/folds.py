"""Sums, extremes and lengths of lists and deques that the region extends, and of numbers of which some vary."""

# ruff: noqa
import collections

import numpy as np
import torch


def args(i):
    return (torch.ones(2) * (i + 0.25), i)


# === fold_of_growing_list: calls=8
values = []


def region(x, i):
    values.append(x.sum().item())
    return sum(values) / len(values), max(values), min(values)


def change_appended():
    values.append(0.1)


def change_appended_int():
    values.append(3)


def change_appended_bool():
    values.append(True)


def change_appended_text():
    values.append("a")


def change_appended_numpy():
    values.append(np.float64(2.5))


def change_appended_nan():
    values.insert(0, float("nan"))


def change_appended_infinity():
    values.extend([float("inf"), float("-inf")])


def change_cleared():
    values.clear()


def change_replaced():
    global values
    values = [1e100, 1.0, -1e100]


def change_to_tuple():
    global values
    values = (1.0,)


def change_to_subclass():
    global values

    class Loud(list):
        def __iter__(self):
            return iter([100.0])

        def __len__(self):
            return 7

    values = Loud([1.0, 2.0])


def change_order():
    values.reverse()


def change_to_small():
    values[:] = [0.1] * 10 + [-0.0]


# === fold_of_ints: calls=8
counts = [1]


def region(x, i):
    counts.append(i)
    return sum(counts), max(counts), x * min(counts)


def change_to_float():
    counts.append(0.5)


def change_to_large():
    counts.append(10**40)


# === fold_of_bounded_deque: calls=10
recent = collections.deque(maxlen=4)


def region(x, i):
    recent.append(x.sum().item())
    return sum(recent) / len(recent), max(recent) - min(recent)


def change_appended():
    recent.append(100.0)


def change_bound():
    global recent
    recent = collections.deque([1.0, 2.0, 3.0], maxlen=2)


def change_unbounded():
    global recent
    recent = collections.deque([1.0, 2.0])


def change_to_list():
    global recent
    recent = [5.0]


def change_cleared():
    recent.clear()


def change_left():
    recent.appendleft(50.0)


# === fold_of_deque_of_one: calls=6
recent = collections.deque([1.0], maxlen=1)


def region(x, i):
    recent.append(x.sum().item())
    recent.append(float(i))
    return sum(recent), len(recent)


def change_bound():
    global recent
    recent = collections.deque([1.0, 2.0, 3.0], maxlen=3)


# === length_of_bounded_deque: calls=8
recent = collections.deque(maxlen=3)


def region(x, i):
    before = len(recent)
    recent.append(i)
    return before, len(recent), x * len(recent)


def change_bound():
    global recent
    recent = collections.deque(recent, maxlen=5)


def change_cleared():
    recent.clear()


# === length_of_deque_of_nothing: calls=4
recent = collections.deque(maxlen=0)


def region(x, i):
    recent.append(i)
    return len(recent)


def change_bound():
    global recent
    recent = collections.deque(maxlen=2)


# === fold_after_other_writes: calls=8
values = [3.0, 1.0, 2.0]


def region(x, i):
    values.append(x.sum().item())
    values[0] = 0.5
    first = sum(values)
    values.insert(0, 7.0)
    second = max(values)
    values.pop()
    values.append(1.0)
    return first, second, sum(values)


def change_first():
    values[0] = 100.0


# === fold_after_a_read: calls=8
values = [3.0, 1.0]


def region(x, i):
    last = values[-1]
    values.append(x.sum().item())
    return last, sum(values), values[-1], values[-2:], values[-1:]


def change_appended():
    values.append(2.0)


# === fold_of_two_names: calls=8
a = [1.0]
b = a


def region(x, i):
    a.append(x.sum().item())
    return sum(b), sum(a)


def change_apart():
    global b
    b = [10.0]


# === fold_with_options: calls=6
values = [1.0]


def region(x, i):
    values.append(x.sum().item())
    return sum(values, 1.0), max(values, default=0), max(values, key=lambda v: -v), max(*values), max(values[-1], 2.0)


# === fold_of_inside: calls=8
def region(x, i):
    parts = x.tolist() + [float(i), 2.0]
    mixed = [i, x.sum().item()]
    return sum(parts), max(parts), min(tuple(parts)), sum(collections.deque(parts)), sum(mixed), max(mixed), sum([i, i, 1])


# === fold_of_generator: calls=8
def region(x, i):
    numbers = [i, 2 * i]
    total = sum(v.item() for v in x)
    tensors = sum(v * 2 for v in x)
    mixed = sum(v for v in [i, x.sum()])
    nested = sum(max(a, b) for a, b in zip(numbers, [2, 3]))
    return total, tensors, mixed, nested, max(n + 1 for n in numbers), min((n for n in numbers), default=3)


# === fold_of_generator_that_stops: calls=8
def parts(i):
    yield i
    if i == 3:
        raise ValueError(i)
    yield 2


def region(x, i):
    try:
        return x * sum(parts(i))
    except ValueError:
        return x


# === fold_of_slices: calls=8
values = []


def region(x, i):
    values.extend(x.tolist())
    return max(values[-2:]), sum(values[-1:]), values[-2:], sum(values[:1]), sum(values[-3:])


def change_appended():
    values.append(9.0)


# === fold_decides: calls=10
values = [0.0]


def region(x, i):
    values.append(x.sum().item())
    if sum(values) / len(values) > 3:
        return x * 2
    return x * max(values)


def change_last():
    values[-1] = 100.0


# === fold_of_nested: calls=8
history = [[1.0, 2.0], [2.0, 3.0]]


def region(x, i):
    ratios = [a / b for a, b in zip(history[-1], history[-2])]
    history.append(x.tolist())
    return [r / sum(ratios) for r in ratios]


def change_to_zero():
    history[-2][0] = 0.0


def change_last():
    history.append([5.0])


# === matched_numbers: calls=10
state = {"kind": "a", "n": 0}


def region(x, i):
    state["n"] += 1
    match {"kind": state["kind"], "n": state["n"], "more": [i, 2]}:
        case {"kind": "b", "n": n}:
            return x * n
        case {"n": 3 | 5}:
            return x
        case {"n": n, "more": [first, *rest]} if first % 3 == 1:
            return x * n + first, rest
        case {"more": [int(k), _]}:
            return x - k
    return x


def change_kind():
    state["kind"] = "b"


def change_number():
    state["n"] = 2


def change_to_float():
    state["n"] = 0.5


# === matched_from_outside: calls=8
state = {"n": 0, "pair": (1, 2)}
number = 0


def region(x, i):
    global number
    number += 1
    state["n"] += 1
    match state:
        case {"n": 4, **rest}:
            return x * 2, rest
        case {"n": n, "pair": (a, b)}:
            x = x * n + a
    match number, i:
        case 2, _:
            return x
        case m, k:
            return x + m - k


def change_pair():
    state["pair"] = (5, 6)


def change_pair_length():
    state["pair"] = (5, 6, 7)


# === warns_once
import warnings

warned = False


def region(x, i):
    global warned
    if not warned:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.warn("small", stacklevel=2)
        warned = True
    return x * 2


def change_again():
    global warned
    warned = False


# === warns_always_inside
import warnings


def region(x, i):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("small", stacklevel=2)
    return x * 2


# === truth_of_what_was_written: calls=8
import collections

values, recent = [], collections.deque(maxlen=2)


def region(x, i):
    if i > 1:
        values.append(i)
        recent.append(i)
    kept = bool(values), 1 if values else 2, not recent
    if values:
        values[0] = values[0]
    return kept, 3 if values else 4, len(values), len(recent)


def change_cleared():
    values.clear()
    recent.clear()
