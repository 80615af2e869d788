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
