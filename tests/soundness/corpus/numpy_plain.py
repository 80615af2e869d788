"""NumPy arrays that a region makes of plain numbers and gives away: made again at each replay."""

# ruff: noqa
import numpy as np
import torch


def args(i):
    return (torch.arange(3.0) + i,)


# === plain_array_returned: refused calls=6
k = 2


def region(x):
    return x * k, np.array([k, 1.5, k * 2])


def change_k():
    global k
    k += 1


# === plain_array_in_containers: refused calls=6
store = {}


def region(x):
    a = np.arange(6).reshape(2, 3)
    store["a"] = a
    store["b"] = [a, a[0], a.T]
    return x + 1, a.base is not None, a.flags.owndata


def change_written():
    if store:
        store["a"][0, 0] = 100


# === plain_array_views_share: refused calls=6
def region(x):
    a = np.zeros((3, 4))
    b = a[1:, ::2]
    b[0, 0] = 5
    return x * 2, b, a, a[::-1]


def change_nothing():
    pass


# === plain_array_fortran: refused calls=6
def region(x):
    a = np.asfortranarray(np.ones((2, 3), dtype="int16"))
    b = np.broadcast_to(np.arange(2), (2, 2))
    return x, a, b, a[:, 1:]


# === plain_array_becomes_data: calls=6, refused
def region(x):
    a = np.zeros(3, dtype="float32")
    before = a.copy()
    a[:] = x.numpy()
    return x * 2, a, before


# === plain_array_shared_with_tensor: refused calls=6
def region(x):
    a = np.zeros(3, dtype="float32")
    t = torch.from_numpy(a)
    t.add_(x)
    return t, a


# === plain_array_printed_then_changed: refused calls=6
def region(x):
    a = np.zeros(3)
    print(a)
    a[1] = 2
    print(a)
    return x + 1, a


# === plain_array_of_times: refused calls=6
def region(x):
    return np.array(["2020-01-01", "2021-02-03"], dtype="datetime64[D]"), np.array(["ab", "c"]), x * 2


# === plain_array_of_objects: refused calls=6
def region(x):
    return np.array([x, None], dtype=object), x * 2


# === plain_array_structured: refused calls=6
def region(x):
    a = np.zeros(2, dtype=[("a", "f4"), ("b", "i8")])
    a["b"][1] = 3
    return a, a["a"], x * 2


# === plain_array_random: calls=6
def region(x):
    return np.random.rand(3), x * 2


# === plain_array_number_varies: calls=8
n = 0


def region(x):
    global n
    n += 1
    return np.array([n, n + 1]), x * n
