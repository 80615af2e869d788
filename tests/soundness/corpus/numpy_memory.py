"""NumPy inside regions: what is made of plain numbers is constant; memory from outside, or shared, is never frozen."""

# ruff: noqa
import numpy as np
import torch


def args(i):
    return (torch.ones(2, 3) * (i + 1),)


# === array_operator
A = np.arange(4.0)


def region(x):
    return x * float((A + 1)[0])


def change_it():
    A[...] += 1


# === array_negated
A = np.arange(4.0)


def region(x):
    return x * float((-A)[1])


def change_it():
    A[...] += 1


# === array_product: refused
A = np.arange(4.0)


def region(x):
    return x * float(A @ A)


def change_it():
    A[...] += 1


# === array_truth: refused
A = np.arange(1.0)


def region(x):
    return x + (1 if A else 0)


def change_it():
    A[...] += 1


# === array_compared
A = np.arange(4.0)


def region(x):
    return x + int((A > 1.5).sum())


def change_it():
    A[...] += 1


# === array_contains: refused
A = np.arange(2.0)


def region(x):
    return x + (1 if 1.0 in A else 0)


def change_it():
    A[...] += 1


# === array_unpacked: plain
A = np.arange(3.0)


def region(x):
    a, b, c = A
    return x * float(a)


def change_it():
    A[...] += 1


# === array_view_of_bytes: refused
A = np.arange(3.0)


def region(x):
    return x * memoryview(A)[0]


def change_it():
    A[...] += 1


# === array_in_a_list: plain
A = [np.arange(3.0)]


def region(x):
    return x + torch.from_numpy(np.stack(A)[0]).sum()


def change_it():
    A[0][...] += 1


# === array_copied
A = np.arange(3.0)


def region(x):
    return x + torch.from_numpy(np.array(A)).sum()


def change_it():
    A[...] += 1


# === array_written_into: refused
A = np.arange(3.0)


def region(x):
    a = np.zeros(3)
    a[:] = A
    return x + torch.from_numpy(a).sum()


def change_it():
    A[...] += 1


# === array_added_to: refused
A = np.arange(3.0)


def region(x):
    a = np.zeros(3)
    a += A
    return x + torch.from_numpy(a).sum()


def change_it():
    A[...] += 1


# === array_tensor_of_outside
A = np.arange(3.0)


def region(x):
    return x + torch.from_numpy(A).sum() + torch.tensor(A).sum()


def change_it():
    A[...] += 1


# === array_constants
def region(x):
    a = np.zeros((2, 3))
    a[0] = x.shape[1]
    b = torch.tensor(a).float()
    c = torch.from_numpy(np.arange(6).reshape(2, 3).astype(np.float32))
    c.add_(1)
    d = torch.as_tensor(np.linspace(0, 1, 3), dtype=torch.float32)
    m = torch.from_numpy(np.triu(np.ones((2, 2)), k=1).astype("uint8")) == 0
    return b, c, d, m, x * np.float64(2.0) + np.sqrt(x.shape[1])


# === array_of_a_number
k = 3


def region(x):
    return x + torch.from_numpy(np.full(3, k, dtype=np.float32))


def change_k():
    global k
    k += 1


# === array_by_callbacks: plain
count = [0]


def step(v):
    count[0] += 1
    return v + count[0]


def region(x):
    a = np.vectorize(step)(np.zeros(3))
    b = np.apply_along_axis(lambda row: row * count[0], 0, np.ones(3))
    return x + torch.from_numpy(a).float() + torch.from_numpy(b).float()


# === array_gets_a_tensors_number: refused
def region(x):
    a = np.zeros(3)
    a[1] = x.sum().item()
    return x + torch.from_numpy(a)


# === array_gets_it_flat: plain
def region(x):
    a = np.zeros(3)
    a.flat[1] = x.sum().item()
    return x + torch.from_numpy(a)


# === array_changed_after_sharing: plain
def region(x):
    a = np.zeros(3)
    b = a[:]
    t = torch.from_numpy(a)
    b += 2
    return x + t


# === array_item_set_after_sharing: plain
def region(x):
    a = np.zeros(3)
    t = torch.as_tensor(a)
    a[0] = 5
    return x + t


# === array_read_after_sharing: plain
def region(x):
    a = np.zeros(3, dtype=np.float32)
    t = torch.from_numpy(a)
    t += x[0]
    return x * float(a[0])


# === array_base_changed_after_sharing: plain
def region(x):
    a = np.zeros(3)
    t = torch.from_numpy(a.reshape(3, 1))
    a[0] = 7
    return x + t.flatten()


# === array_bytes_written_after_sharing: plain
def region(x):
    a = np.zeros(3)
    m = memoryview(a)
    t = torch.from_numpy(a)
    m[0] = 7.0
    return x + t


# === array_copied_then_changed
def region(x):
    a = np.zeros(3)
    t = torch.tensor(a)
    a[0] = 5
    return x + t + torch.tensor(a)


# === tensor_as_array_shape
def region(x):
    y = x.detach().numpy()
    return x * y.shape[1] + y.ndim, torch.ones(y.shape), y.dtype == np.float32


# === tensor_as_array_stored: refused
kept = []


def region(x):
    kept.append(x.numpy())
    return x + 1


# === tensor_as_array_sum
def region(x):
    y = x.numpy()
    return x + 1, repr(y.sum())


# === tensor_as_array_item
def region(x):
    y = x.numpy()
    return x + 1, repr(y[0, 0])


# === tensor_as_array_loop: plain
def region(x):
    y = x.numpy()
    return x + 1, repr([v for v in y])


# === tensor_as_array_float
def region(x):
    y = x.numpy()
    return x + 1, repr(y.mean())


# === tensor_as_array_add: plain
def region(x):
    y = x.numpy()
    return x + 1, repr((y + 1))


# === tensor_as_array_func: plain
def region(x):
    y = x.numpy()
    return x + 1, repr(np.tanh(y))


# === tensor_as_array_view: plain
def region(x):
    y = x.numpy()
    return x + 1, repr(y.T[0])


# === tensor_as_array_builtin: plain
def region(x):
    y = x.numpy()
    return x + 1, repr(sum(y[0]))


# === tensor_as_array_largest: plain
def region(x):
    y = x.numpy()
    return x + 1, repr(max(y.flat))


# === tensor_as_array_text: plain
def region(x):
    y = x.numpy()
    return x + 1, repr(f"{y}")


# === tensor_as_array_memory: plain
def region(x):
    y = x.numpy()
    return x + 1, repr(y.data[0, 0])


# === tensor_as_array_interface: plain
def region(x):
    y = x.numpy()
    return x + 1, bool(y.__array_interface__["data"][0])


# === tensor_as_array_unpacked: plain
def region(x):
    y = x.numpy()
    return x + 1, repr([*y])


# === tensor_as_array_truth
def region(x):
    y = x.numpy()
    return x + 1, repr((1 if y.any() else 0))


# === tensor_as_array_contains: refused
def region(x):
    y = x.numpy()
    return x + 1, repr((1.0 in y))


# === tensor_as_array_mapped: plain
def region(x):
    y = x.numpy()
    return x + 1, repr(list(map(abs, y)))


# === tensor_as_array_back: refused
def region(x):
    y = x.numpy()
    return x + torch.from_numpy(y)


# === tensor_as_array_compared: plain
def region(x):
    y = x.numpy()
    return x + 1, repr((y > 1))


# === tensor_as_array_pointer: plain
def region(x):
    y = x.numpy()
    return x + 1, bool(y.ctypes.data)


# === view_of_made_array
# an index with None and slices gives views of an array that the region made: as plain as the array itself


def region(x):
    t, d = x.shape
    angles = np.arange(t)[:, None] / np.power(100.0, np.arange(d)[None, :] / d)
    shared = torch.from_numpy(angles[:, :1].astype(np.float32))
    return x + torch.from_numpy(np.sin(angles)).float() * shared
