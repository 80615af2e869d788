"""NumPy arrays from outside, and what `Tensor.numpy` returns: their numbers vary."""

# ruff: noqa
import numpy as np
import torch


def args(i):
    return (torch.ones(3) * (i + 0.25), i)


# === array_stores: calls=8
values = np.zeros(20)
counts = np.zeros((2, 3), dtype=np.int64)


def region(x, i):
    values[i] = x.sum().item()
    values[-1] = values[i] + values[0]
    counts[1, i % 3] += 1
    return x + 1, float(values[i]), values.mean(), np.max(values[: i + 1]), counts[1].sum(), len(values)


def change_values():
    values[0] = 7.0


def change_filled():
    values.fill(float("nan"))


def change_size():
    global values
    values = np.zeros(4)


def change_kind():
    global values
    values = np.zeros(20, dtype=np.float32)


def change_to_list():
    global values
    values = [0.0] * 20


def change_read_only():
    values.flags.writeable = False


def change_shared():
    global counts
    counts = values[:6].view(np.int64).reshape(2, 3)


def change_resized():
    values.resize(30, refcheck=False)


def change_reshaped():
    values.shape = (4, 5)


# === array_shared_with_tensor: calls=8
values = np.zeros(4)
shown = torch.from_numpy(values)


def region(x, i):
    values[1] = x.sum().item()
    return x + shown[:3].sum(), values.mean()


def change_values():
    values[0] = 7.0


# === array_shared_later: calls=8
values = np.zeros(4)
shown = torch.zeros(4, dtype=torch.float64)


def region(x, i):
    shown.add_(1)
    return x + shown.sum(), values.mean(), values[1]


def change_shared():
    global values
    values = shown.numpy()


def change_shared_from():
    global shown
    shown = torch.from_numpy(values)


def change_part_is_shared():
    global shown
    shown = torch.from_numpy(values[2:])


# === array_written_then_shared: calls=8
values = np.zeros(4)
shown = torch.zeros(4, dtype=torch.float64)


def region(x, i):
    values[2] = x.sum().item()
    return x + shown.sum(), values.mean()


def change_shared_from():
    global shown
    shown = torch.from_numpy(values)


def change_part_is_shared():
    global shown
    shown = torch.from_numpy(values[2:])


# === array_view_before_write: calls=8
values = np.arange(4.0)


def region(x, i):
    view = values[1:]
    first = values[0]
    values[1] = x.sum().item()
    return x + 1, first


def change_values():
    values[0] = 7.0


# === array_stale_view: refused calls=8
values = np.arange(4.0)


def region(x, i):
    view = values[1:]
    values[1] = x.sum().item()
    return x + 1, view.mean()


# === array_two_views: refused calls=8
values = np.arange(6.0)
first, second = values[:4], values[2:]


def region(x, i):
    first[3] = x.sum().item()
    return x + 1, second.mean()


# === array_out: refused calls=8
values, other = np.arange(6.0), np.zeros(6)


def region(x, i):
    np.add(values, 1, out=other)
    return x + 1, other.mean()


# === array_out_by_position: refused calls=8
values, other = np.arange(6.0), np.zeros(6)


def region(x, i):
    np.exp(values, other)
    return x + 1, other.mean()


# === array_changed_in_place: refused calls=8
values = np.arange(6.0)


def region(x, i):
    np.put(values, [0], [x.sum().item()])
    return x + 1, values.mean()


# === array_sorted_in_place: refused calls=8
values = np.arange(6.0)


def region(x, i):
    values.sort()
    return x + 1, values[0]


# === array_augmented: refused calls=8
values = np.arange(6.0)


def region(x, i):
    global values
    values += 1
    return x + 1, values[0]


# === array_of_tensor: calls=8
weight = torch.ones(3, 3)


def region(x, i):
    out = weight @ x
    shown = out.detach().cpu().numpy()
    labels = out.argsort().numpy().tolist()
    doubled = shown * 2 + 1
    return (
        out,
        shown.mean(),
        float(doubled.max()),
        doubled[0],
        labels,
        shown.shape,
        len(shown),
        (doubled > 3).sum(),
        shown[1:].sum(),
    )


def change_weight():
    weight[0] = 5


def change_weight_nan():
    weight[1, 1] = float("nan")


# === array_of_input: calls=8
kept = torch.arange(4.0)


def region(x, i):
    return x + 1, kept.numpy().sum(), np.std(kept.numpy())


def change_kept():
    kept[1] = 8


def change_shape():
    global kept
    kept = torch.arange(6.0).reshape(2, 3)


# === array_of_changed_tensor: refused calls=8
def region(x, i):
    out = x + 1
    shown = out.numpy()
    out.add_(1)
    return out, shown.mean()


# === array_of_written_input: refused calls=8
kept = torch.arange(4.0)


def region(x, i):
    kept.add_(1)
    return x, kept.numpy().mean()


# === array_of_tensor_leaves: refused calls=8
def region(x, i):
    return x, (x + 1).numpy()


# === array_of_tensor_kept: refused calls=8
kept = []


def region(x, i):
    kept.append((x + 1).numpy())
    return x


# === array_of_tensor_iterated: refused calls=8
def region(x, i):
    return x, [float(v) for v in (x + 1).numpy()]


# === array_of_tensor_printed: refused calls=8
def region(x, i):
    return x, str((x + 1).numpy())


# === array_of_tensor_formatted: refused calls=8
def region(x, i):
    return x, f"{(x + 1).numpy()}"


# === array_of_tensor_written: refused calls=8
def region(x, i):
    out = x + 1
    shown = out.numpy()
    shown[0] = 5
    return out, shown.sum()


# === array_back_to_tensor: refused calls=8
def region(x, i):
    return x, torch.from_numpy((x + 1).numpy() * 2)


# === array_added_to_tensor: refused calls=8
def region(x, i):
    return x + (x + 1).numpy()


# === array_decides: calls=8
def region(x, i):
    shown = (x * 2).numpy()
    if shown.max() > 9 or np.isnan(shown).any():
        return x + 1
    return x - 1


# === array_masked: calls=8
kept = np.arange(5.0)


def region(x, i):
    shown = kept[kept > i]
    return x + 1, np.sum(shown), shown.size > 2


def change_kept():
    kept[0] = 9


# === array_warns: calls=8
kept = np.ones(3)


def region(x, i):
    return x, np.log(kept).sum(), (1 / kept).max()


def change_zero():
    kept[1] = 0


def change_negative():
    kept[1] = -1


# === array_reaches_torch_as_number: calls=8
rates = np.linspace(1, 0, 12)


def region(x, i):
    return x * rates[i], x + rates[i].item(), torch.full((2,), float(rates[-1 - i]))


def change_rates():
    rates[3] = 5.0


def change_short():
    global rates
    rates = np.linspace(1, 0, 4)


# === array_number_from_tensor_reaches_torch: calls=8
def region(x, i):
    scale = np.sqrt((x + 1).numpy().sum())
    return x * float(scale)


# === array_in_containers: refused calls=8
values = np.arange(3.0)


def region(x, i):
    held = {"a": [values, (x + 1).numpy()]}
    return x, repr(held)


# === array_object: refused calls=8
values = np.array([1, "a"], dtype=object)


def region(x, i):
    return x, values[0]


# === array_of_own_class: calls=8
class Own(np.ndarray):
    def mean(self, *args, **kwargs):
        print("mean")
        return 0.0


values = np.arange(3.0).view(Own)


def region(x, i):
    return x, values.mean()


# === array_indexes_tensor: calls=8
table = torch.arange(40.0).reshape(10, 4)
order = np.arange(10)


def region(x, i):
    batch = order[i % 4 : i % 4 + 3]
    taken = table[batch]
    return taken.sum() + x, table[batch, 1:3], table[:, order[:2]], table[order[i % 3]]


def change_order():
    order[:] = order[::-1].copy()


def change_negative():
    order[1] = -2


def change_out_of_range():
    order[2] = 10


def change_kind():
    global order
    order = np.arange(10, dtype=np.int32)


def change_to_mask():
    global order
    order = np.arange(10) % 2 == 0


def change_unsigned():
    global order
    order = (np.arange(10) % 2).astype(np.uint8)


def change_table():
    table[3] = 7


def change_short():
    global order
    order = np.arange(2)


# === array_indexes_written_tensor: calls=8
counts = torch.zeros(10)
order = np.arange(10)


def region(x, i):
    counts[order[i % 4 : i % 4 + 3]] += x.sum()
    return counts[order[:3]].clone()


def change_twice():
    order[1] = order[2]


def change_out_of_range():
    order[5] = 11


# === array_of_places: calls=8
data = np.arange(30.0, dtype=np.float32).reshape(10, 3)
order = np.arange(10)


def region(x, i):
    picked = order[i % 4 : i % 4 + 3]
    rows = torch.from_numpy(data[picked]) * x.sum()
    return (
        rows,
        torch.tensor(data[picked, 1]),
        torch.FloatTensor(data[picked]).sum(),
        data[picked].mean(),
        data[picked].shape,
    )


def change_order():
    order[:] = 3


def change_data():
    data[2:5] = -1


def change_out_of_range():
    order[2] = 10


def change_kind():
    global data
    data = data.astype(np.float64)


def change_to_mask():
    global order
    order = np.arange(10) % 3 == 0


# === array_shown_by_tensor_and_written: refused calls=8
data = np.arange(4.0)


def region(x, i):
    shown = torch.from_numpy(data)
    data[0] = x.sum().item()
    return shown + x.sum()


# === array_shown_by_tensor_that_is_written: refused calls=8
data = np.arange(4.0)


def region(x, i):
    torch.from_numpy(data).add_(x.sum())
    return data.sum()


# === array_tensor_of_it_is_kept: calls=8
data = np.arange(4.0)
kept = []


def region(x, i):
    kept[:] = [torch.from_numpy(data)]
    return x + kept[0].sum()


def change_data():
    data[0] += 3


# === array_drawn_as_index: calls=8
table = torch.arange(40.0).reshape(10, 4)


def region(x, i):
    picked = np.random.choice(10, 4)
    return table[picked] * x.sum(), table[np.random.permutation(10)[:3]]


def change_seed():
    np.random.seed(7)


# === array_computed_leaves: calls=8
order = np.arange(10)
kept = {}


def region(x, i):
    batch = order[i % 4 : i % 4 + 3]
    kept["batch"] = batch
    kept["sum"] = batch * 2 + 1
    kept["drawn"] = np.random.permutation(4)
    return x, batch, order[[1, 2]]


def change_order():
    order[:] = order[::-1].copy()


def change_through_view():
    if "batch" in kept:
        kept["batch"][0] = 77


def change_owner():
    if "sum" in kept:
        kept["sum"][0] = 5


# === array_and_its_view_leave: refused calls=8
order = np.arange(10)


def region(x, i):
    doubled = order * 2
    return x, doubled, doubled[1:]


# === array_leaves_with_tensor_of_it: refused calls=8
order = np.arange(10.0)


def region(x, i):
    doubled = order * 2
    return x, doubled, torch.from_numpy(doubled)


# === array_leaves_after_store: refused calls=8
order = np.arange(10.0)


def region(x, i):
    order[0] = i
    return x, order[:2]


# === array_indexes_after_store: calls=8
table = torch.arange(40.0).reshape(10, 4)
order = np.arange(10)


def region(x, i):
    before = table[order]
    order[0] = order[i % 4 + 3]
    return before * x.sum(), table[order] * 2


def change_order():
    order[1] = 9


# === array_masks_tensor: calls=8
table = torch.arange(40.0).reshape(10, 4)
keep = np.arange(10) % 3 == 0
cells = np.arange(40).reshape(10, 4) % 7 == 0


def region(x, i):
    written = table * x.sum()
    written[~keep] = -1.0
    written[cells] += 0.5
    return written, table[keep], table[keep & (np.arange(10) < i + 4), 1], table[:, keep[:4]].sum(), int(keep.sum())


def change_mask():
    keep[3] = not keep[3]


def change_to_none():
    keep[:] = False


def change_through_view():
    view = cells[2]
    view[:] = True


def change_kind():
    global keep
    keep = np.array([1, 0, 4])


def change_size():
    global keep, table
    keep, table = np.arange(12) % 2 == 0, torch.arange(48.0).reshape(12, 4)


# === array_masks_written_later: calls=8
table = torch.arange(10.0)
keep = np.arange(10) % 3 == 0


def region(x, i):
    before = table[keep]
    keep[i] = np.bool_(True)
    return before.sum() * x, table[keep]


def change_mask():
    keep[9] = False


# === arrays_in_a_list: calls=8
parts = [np.arange(4.0), np.ones(4)]
more = np.zeros(4)


def region(x, i):
    stacked = torch.from_numpy(np.stack(parts))
    joined = torch.from_numpy(np.concatenate([*parts, more * i], 0))
    table = torch.tensor(np.array(parts), dtype=torch.float32)
    made = []
    for part in parts:
        made.append(part + 1)
    return stacked * x.sum(), joined, table, torch.from_numpy(np.vstack(made)), torch.from_numpy(np.hstack((more, parts[0])))


def change_numbers():
    parts[0][1] = 9.0


def change_array():
    parts[1] = np.full(4, 3.0)


def change_longer():
    parts.append(np.full(4, -1.0))


def change_same():
    parts[1] = parts[0]


def change_element_kind():
    parts[0] = [1.0, 2.0, 3.0, 4.0]


def change_memory():
    global more
    more = parts[0][:]


# === arrays_in_a_list_that_is_written: calls=8
parts = [np.arange(4.0), np.ones(4)]


def region(x, i):
    before = np.stack(parts)
    parts[0][1] = float(i)
    return torch.from_numpy(before) * x.sum(), torch.from_numpy(np.stack(parts))


def change_numbers():
    parts[1][1] = 9.0


# === arrays_in_a_list_that_changes: calls=8
parts = [np.arange(4.0), np.ones(4)]


def region(x, i):
    before = np.stack(parts)
    parts.reverse()
    return torch.from_numpy(before) * x.sum(), torch.from_numpy(np.concatenate(list(parts)))


def change_numbers():
    parts[1][1] = 9.0


# === array_places: calls=8
table = torch.arange(40.0).reshape(10, 4)
scores = np.arange(10) * 3 % 7
kept = {}


def region(x, i):
    (above,) = np.where(scores > i % 4)
    rows = scores.nonzero()[0]
    kept["best"] = np.argsort(scores)[-2:]
    return table[above].sum() * x, table[rows], table[np.flatnonzero(scores == 3)], torch.from_numpy(scores[scores > 2])


def change_scores():
    scores[:] = scores[::-1].copy()


def change_to_none():
    scores[:] = 0


def change_to_one():
    scores[:] = 0
    scores[4] = 9


# === array_of_another_size: calls=10
table = torch.arange(40.0).reshape(10, 4)
batch = np.arange(12.0).reshape(3, 4)
rows = np.arange(3)


def args(i):
    global batch, rows
    n = (3, 5, 2, 7, 1, 0)[i % 6]
    batch, rows = np.arange(4.0 * n).reshape(n, 4) + i, np.arange(n)[::-1].copy()
    return (torch.ones(3) * (i + 0.25), i)


def region(x, i):
    n, width = batch.shape
    given = torch.from_numpy(batch)
    halves = torch.from_numpy(batch.T.copy()) * 0.5
    return given.sum() * x + n, table[rows] + width, halves, len(rows) * 2, batch.size + rows.shape[0], batch.T[0].sum()


def change_rank():
    global batch
    batch = batch.reshape(-1, 2)


def change_type():
    global batch
    batch = batch.astype(np.float32)


def change_order():
    global batch
    batch = np.asfortranarray(batch)


def change_memory():
    global rows
    rows = batch.view(np.int64)[:, 0] * 0


# === array_of_another_size_decides: calls=10
batch = np.arange(12.0).reshape(3, 4)


def args(i):
    global batch
    n = (3, 5, 2, 7, 3)[i % 5]
    batch = np.arange(4.0 * n).reshape(n, 4) + i
    return (torch.ones(3) * (i + 0.25), i)


def region(x, i):
    given = torch.from_numpy(batch)
    if len(batch) > 4:
        given = given[:4]
    total = given.sum()
    for row in batch[:, 0].tolist():
        total = total + row
    return total * x, getattr(batch, "shape"), batch.ndim, str(batch.dtype)


def change_size():
    batch.resize((2, 4), refcheck=False)


# === array_shape_is_changed: refused calls=8
batch = np.arange(12.0).reshape(3, 4)


def region(x, i):
    before = torch.from_numpy(batch * 1.0)
    batch.shape = (4, 3) if i % 2 else (2, 6)
    return before.sum() * x, torch.from_numpy(batch * 2.0), batch.shape


# === computed_array_shape_is_changed: refused calls=8
batch = np.arange(12.0).reshape(3, 4)


def region(x, i):
    doubled = batch * 2.0
    doubled.shape = (4, 3) if i % 2 else (2, 6)
    return torch.from_numpy(doubled).sum() * x


# === plain_arrays_and_numbers: calls=8
table = torch.arange(40.0).reshape(10, 4)
order = np.arange(10)
step = {"n": 0}


def region(x, i):
    step["n"] += 1
    n = step["n"] % 5
    plain = np.arange(10)
    below = plain < n
    plain[0] = 7
    mixed = order + plain
    plain[1] = -1
    rows = np.arange(n, n + 3)
    np.add(plain, 1, out=plain)
    return table[below].sum() * x, torch.from_numpy(mixed), table[rows], torch.from_numpy(plain), np.full(2, n).sum()


def change_order():
    order[2] = 5


def change_step():
    step["n"] = 3


# === plain_array_shown_by_a_view: calls=8
step = {"n": 0}


def region(x, i):
    step["n"] += 1
    plain = np.arange(6)
    shown = np.reshape(plain, (2 + 0 * step["n"], 3))
    parts = np.split(plain, [step["n"] % 2 + 1])
    plain[0] = 9
    return x, torch.tensor(shown), torch.tensor(parts[0])


def change_step():
    step["n"] = 3


# === plain_array_written_by_numpy: calls=8
order = np.arange(6)
step = {"n": 0}


def region(x, i):
    step["n"] += 1
    plain = np.zeros(6, dtype=np.int64)
    np.put(plain, step["n"] % 3, 5)
    np.multiply(plain, step["n"], plain)
    return x, torch.tensor(plain)


def change_step():
    step["n"] = 3


# === plain_array_written_with_what_varies: refused calls=8
order = np.arange(6)


def region(x, i):
    plain = np.zeros(6, dtype=np.int64)
    np.copyto(plain, order)
    return x, torch.tensor(plain)


def change_order():
    order[2] = 5


# === plain_array_is_the_result_of_what_varies: refused calls=8
order = np.arange(6)


def region(x, i):
    plain = np.zeros(6, dtype=np.int64)
    np.add(order, 1, out=plain)
    return x, torch.tensor(plain)


def change_order():
    order[2] = 5


# === plain_array_masked_by_what_varies: refused calls=8
order = np.arange(6)


def region(x, i):
    plain = np.zeros(6, dtype=np.int64)
    np.putmask(plain, order > 2, 7)
    return x, torch.tensor(plain)


def change_order():
    order[2] = 5


# === array_of_a_list_that_grows: calls=8
values = [1.0, 2.0]


def region(x, i):
    values.append(x.sum().item())
    made = np.array(values)
    return x, len(made), made.shape, made.size, made[-1], np.array(values[-2:]).sum()


def change_values():
    values.append(3.0)


# === type_of_an_array_and_a_number: calls=8
small = np.arange(4, dtype=np.int8)
step = {"n": 90}


def region(x, i):
    step["n"] += 6
    made = small * 1 + step["n"]
    return x, str(made.dtype), torch.tensor(made)


def change_step():
    step["n"] = 120


# === array_whose_axis_varies: calls=8
parts = [np.arange(6.0).reshape(2, 3), np.ones((2, 3))]
step = {"n": 0}


def region(x, i):
    step["n"] += 1
    stacked = np.stack(parts, axis=step["n"] % 3)
    joined = np.concatenate(parts, step["n"] % 2)
    return x, stacked.shape, len(joined), torch.from_numpy(joined).sum()


def change_step():
    step["n"] = 4


# === array_of_numbers_is_written: calls=8
step = {"n": 2}


def region(x, i):
    step["n"] = step["n"] % 5 + 1
    filled = np.zeros(step["n"])
    filled[0] = 3.0
    return x * 2, torch.tensor(filled)


def change_step():
    step["n"] = 4


# === array_computed_of_numbers_is_written: refused calls=8
step = {"n": 2}


def region(x, i):
    step["n"] += 1
    made = np.arange(4.0) + step["n"]
    made[0] = 3.0
    made.sort()
    return x * 2, torch.tensor(made)
