"""NumPy that computes with tensors' data, and with arrays from outside: values of the graph, never frozen."""

# ruff: noqa
import numpy as np
import torch


def args(i):
    return (torch.tensor([1.0 + i % 3, 2.0, 2.5 - i % 2]),)


# === numpy_a1: calls=6
T = np.array([1.0, 2.0, 3.0], dtype="float32")


def region(x):
    return x + torch.from_numpy(T)


def change_content():
    T[1] += 1


def change_dtype():
    global T
    T = T.astype("float64")


def change_shape():
    global T
    T = T[:1]


def change_object():
    global T
    T = T * 2


# === numpy_a2: calls=6
I = np.array([2, 0, 1])


def region(x):
    return x[torch.from_numpy(I)]


def change_index():
    I[...] = [1, 0, 2]


def change_order():
    global I
    I = I[::-1]


# === numpy_a3: calls=6
T = np.array([1.0, 2.0, 3.0], dtype="float32")


def region(x):
    return x * float((T + 1)[0])


def change_content():
    T[1] += 1


def change_dtype():
    global T
    T = T.astype("float64")


def change_shape():
    global T
    T = T[:1]


def change_object():
    global T
    T = T * 2


# === numpy_a4: calls=6
T = np.array([1.0, 2.0, 3.0], dtype="float32")


def region(x):
    return x * T.sum()


def change_content():
    T[1] += 1


def change_dtype():
    global T
    T = T.astype("float64")


def change_shape():
    global T
    T = T[:1]


def change_object():
    global T
    T = T * 2


# === numpy_a5: calls=6, refused


def region(x):
    n = x.numpy()
    return torch.from_numpy(n * 2 + n.mean())


# === numpy_a6: calls=6, refused


def region(x):
    n = x.numpy()
    o = np.zeros_like(n)
    for i in range(3):
        o[i] = n[2 - i] ** 2
    return torch.tensor(o)


# === numpy_a7: calls=6, refused


def region(x):
    n = x.numpy()
    n[0] = 5.0
    return x * 2


# === numpy_a8: calls=6, refused


def region(x):
    n = x.numpy().copy()
    n.sort()
    return torch.as_tensor(n), n


# === numpy_a9: calls=6, refused


def region(x):
    n = x.numpy()
    idx = np.argsort(n)
    return x[torch.from_numpy(idx.copy())]


# === numpy_b1: calls=6


def region(x):
    n = x.numpy()
    if n.max() > 2:
        return x * 2
    return x


# === numpy_b2: calls=6, refused


def region(x):
    u = np.unique(x.long().numpy())
    return torch.tensor([float(v) for v in u])


# === numpy_b3: calls=6


def region(x):
    out = np.zeros(3)
    for i, v in enumerate(x.numpy()):
        out[i] = v * 2
    return torch.FloatTensor(out)


# === numpy_b4: calls=6


def region(x):
    n = x.numpy()
    a, b, c = n
    return x * a + b - c


# === numpy_b5: calls=6, refused


def region(x):
    return torch.tensor([m.item() for m in x.numpy()])


# === numpy_b6: calls=6


def region(x):
    return x * int(x.numpy().argmax())


# === numpy_b7: calls=6


def region(x):
    return [1, 2, 3][x.numpy().argmax()]


# === numpy_b8: calls=6, refused


def region(x):
    return f"{x.numpy()[0]:.2f}"


# === numpy_b9: calls=6


def region(x):
    return x.numpy().tolist()


# === numpy_c1: calls=6, refused


def region(x):
    n = x.numpy()
    m = n > 1
    return torch.from_numpy(n[m])


# === numpy_c2: calls=6, refused


def region(x):
    n = x.numpy()
    return x * float(np.where(n > 1, n, 0).sum())


# === numpy_c3: calls=6, refused


def region(x):
    n = x.numpy()
    n += 1
    return x


# === numpy_c4: calls=6, refused


def region(x):
    y = x * 2
    n = y.numpy()
    y.add_(1)
    return torch.from_numpy(n) * n[0]


# === numpy_c5: calls=6, refused
T = np.array([1.0, 2.0, 3.0], dtype="float32")


def region(x):
    n = x.numpy().T
    return torch.from_numpy(np.ascontiguousarray(n.real))


def change_content():
    T[1] += 1


def change_dtype():
    global T
    T = T.astype("float64")


def change_shape():
    global T
    T = T[:1]


def change_object():
    global T
    T = T * 2


# === numpy_c7: calls=6, refused


def region(x):
    n = x.numpy()
    return [v * 2 for v in n], n.shape, len(n), n.dtype


# === numpy_c8: calls=6 refused


def region(x):
    z = np.zeros((3,))
    v = z[1:]
    z[:] = x.numpy()
    return torch.from_numpy(z), float(v[0])


# === numpy_c9: calls=6


def region(x):
    l = []
    for i in range(3):
        if x.numpy()[i] in (1.0, 2.0):
            l.append(i)
    return l


# === numpy_d1: calls=6


def region(x):
    n = x.numpy()
    try:
        n.reshape(7)
    except ValueError:
        return x * 2
    return x


# === numpy_d2: calls=6


def region(x):
    return torch.from_numpy(np.random.permutation(3)) + x


# === numpy_d3: calls=6


def region(x):
    return x[np.random.choice(3)]


# === numpy_d4: calls=6


def region(x):
    return x * sum(x.numpy())


# === numpy_d5: calls=6, refused


def region(x):
    return x * max(x.numpy()[0], 2)


# === numpy_d6: calls=6


def region(x):
    return dict(zip(x.numpy(), [1, 2, 3]))


# === numpy_d7: calls=6, refused


def region(x):
    return x * np.float32(2) * np.sqrt(x.numpy()[0])


# === numpy_d8: calls=6, refused
T = np.array([1.0, 2.0, 3.0], dtype="float32")


def region(x):
    return torch.from_numpy(np.stack([x.numpy(), T])).sum(0)


def change_content():
    T[1] += 1


def change_dtype():
    global T
    T = T.astype("float64")


def change_shape():
    global T
    T = T[:1]


def change_object():
    global T
    T = T * 2


# === numpy_d9: calls=6, refused


def region(x):
    return x.mul(torch.from_numpy(np.linalg.norm(x.numpy()[None], axis=1)))


# === numpy_e1: calls=6
T = np.array([1.0, 2.0, 3.0], dtype="float32")


def region(x):
    return np.concatenate([x.numpy(), T]).max()


def change_content():
    T[1] += 1


def change_dtype():
    global T
    T = T.astype("float64")


def change_shape():
    global T
    T = T[:1]


def change_object():
    global T
    T = T * 2


# === numpy_e2: calls=6, refused


def region(x):
    n = x.numpy()
    h, b = np.histogram(n, bins=3)
    return torch.from_numpy(h)


# === numpy_e3: calls=6


def region(x):
    return not x.numpy()[0] > 1


# === numpy_e4: calls=6, refused


def region(x):
    return x[: int(x.numpy()[0])]


# === numpy_e5: calls=6, refused


def region(x):
    return list(x.numpy()), tuple(x.numpy() * 2)


# === numpy_e6: calls=6
T = np.array([1.0, 2.0, 3.0], dtype="float32")
I = np.array([2, 0, 1])


def region(x):
    return x * T[1] + I[0]


def change_content():
    T[1] += 1


def change_dtype():
    global T
    T = T.astype("float64")


def change_shape():
    global T
    T = T[:1]


def change_object():
    global T
    T = T * 2


def change_index():
    I[...] = [1, 0, 2]


def change_order():
    global I
    I = I[::-1]


# === numpy_e7: calls=6, refused
I = np.array([2, 0, 1])


def region(x):
    s = 0
    for i in I:
        s = s + x[i]
    return s


def change_index():
    I[...] = [1, 0, 2]


def change_order():
    global I
    I = I[::-1]


# === numpy_e8: calls=6, refused


def region(x):
    return x.numpy()[::-1].copy()


# === numpy_f1: calls=6


def region(x):
    l = []
    l.extend(x.numpy())
    return l


# === numpy_f2: calls=6


def region(x):
    l = [1]
    l += x.numpy().tolist()
    return l


# === numpy_f3: calls=6


def region(x):
    return set(x.numpy()), dict.fromkeys(x.numpy())


# === numpy_f4: calls=6


def region(x):
    return [*x.numpy()], max(*x.numpy())


# === numpy_f5: calls=6


def region(x):
    return list(map(float, x.numpy()))


# === numpy_f6: calls=6, refused


def region(x):
    l = []
    l.append(x.numpy())
    return l[0]


# === numpy_f7: calls=6


def region(x):
    return "%s" % x.numpy()[0], str(x.numpy()), "{}".format(x.numpy()[1]), repr(x.numpy())


# === numpy_f8: calls=6, refused


def region(x):
    d = {}
    d[x.numpy()[0]] = 1
    return d


# === numpy_f9: calls=6


def region(x):
    return round(float(x.numpy()[0]), 1), int(x.numpy()[1] * 10) % 3


# === numpy_g1: calls=6, refused


def region(x):
    n = x.numpy()
    n2 = n.reshape(3, 1)
    n2[0, 0] = 7
    return x + torch.from_numpy(n)


# === numpy_g2: calls=6, refused


def region(x):
    n = x.numpy()
    y = torch.from_numpy(n)
    y.add_(1)
    return float(n[0]), x


# === numpy_g3: calls=6, refused


def region(x):
    n = np.zeros((3, 2))
    n[:, 0] = x.numpy()
    m = n[:, 0]
    return torch.from_numpy(m.copy()), m.sum()


# === numpy_g4: calls=6


def region(x):
    return np.array([x.sum().item(), 2.0]).max() * x


# === numpy_g5: calls=6, refused


def region(x):
    return x[torch.tensor(np.nonzero(x.numpy() > 1)[0])]


# === numpy_g6: calls=6, refused


def region(x):
    for i in np.nonzero(x.numpy() > 1)[0]:
        x = x + x[i]
    return x


# === numpy_g7: calls=6


def region(x):
    return np.any(x.numpy() > 1), np.all(x.numpy() > 1) and x.numpy().any()


# === numpy_g8: calls=6


def region(x):
    b = x.numpy() > 1
    return x * 2 if b[0] or not b[1] else x


# === numpy_h2: calls=6, refused


def region(x):
    return torch.where(torch.from_numpy(x.numpy() > 1), x, -x)


# === numpy_h3: calls=6, refused


def region(x):
    n = x.numpy()
    a = n[0]
    n[0] = 9
    return float(a), x


# === numpy_h4: calls=6, refused


def region(x):
    n = x.numpy()
    v = n[:2]
    n[0] = 9
    return float(v[0]), x


# === numpy_h5: calls=6, refused


def region(x):
    return range(int(x.numpy()[0])), [0] * int(x.numpy()[1])


# === numpy_h6: calls=6, refused


def region(x):
    return x.numpy()[0] == x.numpy()[1], x.numpy()[0] is x.numpy()[0]


# === numpy_h7: calls=6, refused
class State:
    a = None


st = State()


def region(x):
    st.a = x.numpy() * 2
    return st.a.sum()


# === numpy_h8: calls=6
class State:
    a = None


st = State()


def region(x):
    st.b = np.float32(2) * x.numpy()[0]
    return x


# === numpy_h9: calls=6, refused


def region(x):
    return np.random.rand(2, 2), np.random.permutation(4)[0], np.random.normal(size=(2,)) * x.numpy()[0]


# === numpy_outside_changed_by_torch: calls=6
A = np.zeros(3, dtype="float32")


def region(x):
    t = torch.from_numpy(A)
    t.add_(x)
    if t.sum() > 12:
        return t * 2
    return t.clone()


# === numpy_outside_changed: calls=6
A = np.zeros(3, dtype="float32")


def region(x):
    A[0] += x[0].item()
    np.add(A, 1, out=A)
    return torch.from_numpy(A) * x


# === numpy_memory_exchanged: calls=6
def region(x):
    n = x.numpy()
    x.data = x * 2
    return float(n[0]), n.sum(), x


# === numpy_number_as_size: calls=7, refused
def region(x):
    n = x.numpy().astype(int)[0]
    z = torch.zeros(n, 2)
    return z.shape[0], len(z), z.numel(), torch.ones(n).sum()


# === numpy_mask_on_tensor: calls=7, refused
def region(x):
    y = x[x.numpy() > 1.5]
    return y.shape[0], y * 2


# === numpy_index_on_tensor: calls=7, refused
def region(x):
    i = np.nonzero(x.numpy() > 1.5)[0]
    y = x[i]
    return y.shape[0], y * 2, x[: i[0]] if len(i) else x


# === numpy_repeats_from_data: calls=7, refused
def region(x):
    y = torch.repeat_interleave(x, torch.from_numpy(x.numpy().astype("int64")))
    return y.shape[0], np.repeat(x.numpy(), 2).shape


# === numpy_written_by_copyto: calls=6, refused
def region(x):
    m = np.zeros(3, dtype=np.float32)
    np.copyto(m, x.numpy())
    return torch.from_numpy(m) + 1


# === numpy_written_by_out: calls=6, refused
def region(x):
    m, n = np.zeros(3, dtype=np.float32), np.zeros(3, dtype=np.float32)
    np.add(x.numpy(), 1, out=m)
    np.multiply(x.numpy(), 2, n)
    return torch.tensor(m), torch.tensor(n)


# === numpy_written_along_an_axis: calls=6, refused
def region(x):
    m = np.zeros((1, 3), dtype=bool)
    np.put_along_axis(m, (x.numpy()[None] > 2.2).astype(np.int64), True, 1)
    return torch.tensor(m, dtype=torch.bool), x


# === numpy_written_through_a_view: plain calls=6
def region(x):
    m = np.zeros(3, dtype=np.float32)
    np.copyto(m[:2], x.numpy()[:2])
    np.fill_diagonal(m.reshape(3, 1), x.numpy()[2])
    x.numpy().sum(out=m[2:].reshape(()))
    return torch.tensor(m)


# === numpy_view_of_a_plain_one: calls=6, refused
def region(x):
    m = np.zeros(3, dtype=np.float32)
    a, b = np.broadcast_arrays(x.numpy(), m)
    m[0] = 5
    return torch.tensor(a) + torch.tensor(b)


# === numpy_draw_as_many_as_drawn: calls=8, refused
def region(x):
    n = int(2 * np.random.rand(1).item()) + 1
    picked = np.random.choice(np.arange(4), n, replace=False)
    mask = np.zeros(4, dtype=bool)
    np.put_along_axis(mask, picked, True, 0)
    return x.sum() * torch.tensor(mask), len(picked)


# === numpy_draw_of_data: plain calls=8
def region(x):
    n = int(x[0])
    return x * torch.tensor(np.random.choice(np.arange(n) + 1, 2, replace=True)).sum(), np.random.permutation(x.numpy() * 2)[
        0
    ].item()
