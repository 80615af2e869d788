"""Functions of lists of numbers that the region extends, and numbers looked up in lists."""

# ruff: noqa
import collections
import math

import numpy as np
import torch


def args(i):
    return (torch.ones(2) * (i + 0.25), i)


# === mean_of_the_last: calls=9
values = []


def region(x, i):
    values.append(x.sum().item())
    return float(np.mean(values[-3:])), sum(values[-2:]) / len(values[-2:]), max(values[-4:]), np.std(values)


def change_appended():
    values.append(0.1)


def change_text():
    values.append("a")


def change_int():
    values.append(3)


def change_bool():
    values.insert(0, True)


def change_numpy():
    values.append(np.float32(2.5))


def change_nan():
    values.append(float("nan"))


def change_cleared():
    values.clear()


def change_to_deque():
    global values
    values = collections.deque([1.0, 2.0])


def change_to_own_class():
    global values

    class Own(list):
        def __getitem__(self, key):
            print("read")
            return list.__getitem__(self, key)

    values = Own(values)


# === order_statistic: calls=9
values = [0.5]
share = 0.5


def region(x, i):
    values.append(x.sum().item())
    return x + 1, sorted(values)[int(share * (len(values) - 1))], sorted(values)[-1], np.percentile(values, 10)


def change_share():
    global share
    share = 0.9


def change_share_too_large():
    global share
    share = 5


def change_values():
    values[:] = [3.0, 1.0]


def change_mixed():
    values.insert(0, -1)


# === slice_is_kept: calls=9
values = [0.5]


def region(x, i):
    values.append(x.sum().item())
    recent = values[-3:]
    pair = [recent, values[:2]]
    return x + 1, sum(recent) / len(recent), [v * 2 for v in recent], pair


def change_values():
    values[:] = [3.0, 1.0]


def change_appended():
    values.append(8.0)


# === slice_is_iterated: calls=9
values = [0.5]


def region(x, i):
    values.append(x.sum().item())
    total = 0
    for v in values[-3:]:
        total += v
    first, *_ = sorted(values)
    return x + 1, total, first, [*values[-2:]], len(sorted(values)), bool(values[5:])


def change_values():
    values[:] = [3.0, 1.0]


# === deque_of_numbers: calls=9
values = collections.deque(maxlen=4)


def region(x, i):
    values.append(x.sum().item())
    return np.mean(values), sorted(values)[0], math.fsum(values)


def change_values():
    values.extend([3.0, 1.0])


def change_maxlen():
    global values
    values = collections.deque(values, maxlen=2)


# === looked_up_in_list: calls=9
rates = [0.5, 0.25, 0.125, 0.0]
sizes = (1, 2, 3)


def region(x, i):
    return x * rates[i % 4], rates[i % 4] > 0.2, x * sizes[i % 3], rates[-1 - i % 2]


def change_rates():
    rates[1] = 2.0


def change_rates_int():
    rates[2] = 2


def change_rates_text():
    rates[3] = "a"


def change_rates_short():
    del rates[2:]


def change_sizes():
    global sizes
    sizes = (3, 2, 1)


# === looked_up_after_write: calls=9
rates = [0.5, 0.25, 0.125, 0.0]


def region(x, i):
    before = rates[i % 4]
    rates[(i + 1) % 4] = before + 1
    return x * before, rates[i % 4], rates[(i + 1) % 4]


def change_rates():
    rates[1] = 2.0


# === function_replaced: calls=9
values = [0.5]
mean = np.mean


def region(x, i):
    values.append(x.sum().item())
    return x + 1, mean(values[-2:])


def change_function():
    global mean
    mean = np.median


def change_to_python():
    global mean

    def mean(values):
        print(len(values))
        return values[0]


# === sizes_from_list: calls=9
sizes = [2, 3, 4]


def region(x, i):
    return torch.zeros(sizes[i % 3]).sum() + x.sum(), x.repeat(sizes[i % 2])


def change_sizes():
    sizes[0] = 5
