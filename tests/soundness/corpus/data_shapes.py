"""Shapes that depend on data: the graph may hold them, Python may compute with sizes, nothing is frozen."""

# ruff: noqa
import torch


def args(i):
    g = torch.Generator().manual_seed(i)
    return (torch.randn(4, 3, generator=g),)


# === data_shape_args_only
def region(x):
    return x[x > 1].size(dim=0) * x


# === data_shape_rows_counted
def region(x):
    n = 0
    for r in x[x[:, 0] > 0]:
        n += 1
    return x * n


# === data_shape_listed
def region(x):
    return x * len(list(x[x > 0]))


# === data_shape_unbound
def region(x):
    return x * len(x[x > 0].unbind())


# === data_shape_split_in_parts
def region(x):
    a = x[x > 0]
    return x * len(a.split(1))


# === data_shape_bytes_counted
def region(x):
    a = x[x > 0]
    return x * a.nbytes


# === data_shape_size_for_others
def region(x):
    a = x[x > 0]
    return x + torch.zeros(a.size()).sum() + torch.zeros_like(a).numel()


# === data_shape_both_sizes
def region(x):
    a = torch.nonzero(x > 0)
    return x * a.shape[0] / a.shape[1]


# === data_shape_number_of_elements
def region(x):
    a = x[x > 0]
    return x * a.numel()


# === data_shape_length_decides
def region(x):
    a = x[x[:, 0] > 0]
    n = len(a)
    return a.sum(0) / max(n, 1) if n else x[0]


# === data_shape_viewed
def region(x):
    a = x[x[:, 0] > 0]
    return a.view(-1, a.size(1)).sum(0) / (a.size(0) + 1)


# === data_shape_elements_decide
def region(x):
    a = x[x[:, 0] > 0]
    if a.nelement() > 4:
        return a.sum()
    return x.sum()


# === data_shape_enumerated
def region(x):
    a = x[x[:, 0] > 0]
    return [t * i for i, t in enumerate(a)][0] if a.shape[0] else x[0]


# === data_shape_unpacked
def region(x):
    a, b = x[x[:, 0] > -9][:2]
    return a + b


# === data_shape_arange_of_it
def region(x):
    a = x[x > 0]
    return x * torch.arange(a.shape[0]).sum() + a.new_zeros(a.shape).sum()


# === data_shape_in_text
def region(x):
    a = x[x > 0]
    return f"{tuple(a.shape)}", x


# === data_shape_size_returned
def region(x):
    a = x[x > 0]
    return a.shape, x


# === data_shape_strides
def region(x):
    a = x[x > 0]
    return a.dim() * x, a.stride()


# === data_shape_unique_sizes
def region(x):
    a = x.unique()
    return x * a.shape[-1], a.size(-1)


# === data_shape_expanded
def region(x):
    a = x[x > 0]
    b = a.reshape(1, -1).expand(2, a.shape[0])
    return b.t()


# === number_as_size_1
def n(x):
    return (x > 0).sum().item()


def region(x):
    return x * torch.zeros(n(x)).shape[0]


# === number_as_size_2
def n(x):
    return (x > 0).sum().item()


def region(x):
    return x * torch.zeros(x[x > 0].size(0)).shape[0]


# === number_as_size_3
def n(x):
    return (x > 0).sum().item()


def region(x):
    return x * x.flatten()[: n(x)].numel()


# === number_as_size_4
def n(x):
    return (x > 0).sum().item()


def region(x):
    return x * len(x.flatten()[: n(x)].unbind())


# === number_as_size_5
def n(x):
    return (x > 0).sum().item()


def region(x):
    return x * torch.arange(n(x)).shape[0]


# === number_as_size_6
def n(x):
    return (x > 0).sum().item()


def region(x):
    return x * torch.arange(x[x > 0].numel()).shape[0]


# === number_as_size_7
def n(x):
    return (x > 0).sum().item()


def region(x):
    return x * x.new_zeros((n(x), 2)).size(0)


# === number_as_size_8
def n(x):
    return (x > 0).sum().item()


def region(x):
    return x * x[:1].expand(n(x), 3).shape[0]


# === number_as_size_9
def n(x):
    return (x > 0).sum().item()


def region(x):
    return x * x.repeat(n(x), 1).shape[0]


# === number_as_size_10
def n(x):
    return (x > 0).sum().item()


def region(x):
    return x * torch.nn.functional.pad(x, (0, n(x))).shape[1]


# === number_as_size_11
def n(x):
    return (x > 0).sum().item()


def region(x):
    return x * x.narrow(0, 0, x.argmax(0).tolist()[0] + 1).shape[0]


# === number_as_size_12
def n(x):
    return (x > 0).sum().item()


def region(x):
    return x * x[: x.argmax(0).tolist()[0] + 1].shape[0]


# === counter_as_size
c = [0]


def region(x):
    c[0] += 1
    return x * torch.zeros(c[0] + 1).shape[0] + x[: c[0] % 3 + 1].shape[0]


def change_c():
    c[0] = 9


# === number_in_a_legacy_constructor
def region(x):
    return x * torch.FloatTensor((x > 0).sum().item(), 2).numel()


# === data_shape_not_by_repeating
def region(x):
    y = x.repeat_interleave(2, dim=1)
    a, b = torch.repeat_interleave(x, repeats=3, dim=0).split(6)
    return [y + n for n in range(y.shape[1])], a * b


# === data_shape_by_repeating
def region(x):
    y = x.repeat_interleave((x[:, 0] > 0).long(), dim=0)
    return y.sum() * y.shape[0]


# === parts_of_a_shape_from_data: calls=10
def region(x):
    found = (x > 1).nonzero()[:, 0]
    rows = [x[i] * 2 for i in found]
    first = x.unique().split(2)
    return rows, len(first), first[0] + 1, x.unique().chunk(2)


def args(i):
    return (torch.tensor([1.0, 2.0, 3.0, 1.5]) * (1 + (i // 2) % 3 / 2),)


# === parts_that_change_something: calls=10
seen = []


def region(x):
    for row in x[x > 1].unbind():
        seen.append(row.shape)
        x = x + row
    return x, len(seen)


def args(i):
    return (torch.tensor([1.0, 2.0, 3.0, 1.5]) * (1 + (i // 3) % 2 / 4 - (i % 2) / 3),)


# === shapes_of_uncommon_operations_from_data: nograd, calls=10
import torch.nn.functional as F


def region(x):
    n = x.long()
    rows = torch.where(x > 1)[0]
    return F.one_hot(n).shape, rows.shape[0], x.to_sparse().values().shape, torch.tensor_split(x, n[:1])[0].shape


def args(i):
    return (torch.tensor([1.0, 2.0, 3.0]) if i % 3 else torch.tensor([0.0, i // 3 % 2 + 2.0, 1.0]),)


# === one_hot_of_varying_length: nograd, calls=10
import torch.nn.functional as F


def region(x):
    hot = F.one_hot(x)
    return hot.shape, hot.numel(), torch.nonzero(hot).shape, len(F.one_hot(x[1:]))


def args(i):
    return (torch.arange(2 + (i * 5) % 7) % (2 + i % 3),)


# === packed_sequences: calls=8
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

rnn = torch.nn.LSTM(2, 3, batch_first=True)


def region(x, lengths):
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    out, (h, c) = rnn(packed)
    padded, n = pad_packed_sequence(out, batch_first=True)
    return padded, padded.shape[1], h, n


def args(i):
    lengths = [torch.tensor([3, 5, 2]), torch.tensor([3, 5, 2]), torch.tensor([4, 1, 4])][i % 3]
    return torch.arange(30.0).view(3, 5, 2) * (i + 1) / 50, lengths


# === tensors_as_sizes: nograd, calls=10
def region(x):
    n = x.long().max()
    made = torch.arange(n), torch.zeros(2, n), x.expand(n, 3), torch.arange(9.0)[n:], x.repeat(n)
    return [t.shape for t in made], made[3]


def args(i):
    return (torch.tensor([1.0, 2.0, i // 2 % 3 + 1.0]),)


# === tensors_as_dimensions: nograd calls=10
big = torch.arange(24.0).view(2, 3, 4)


def region(x):
    n = x.long().max()
    d = n % 3
    return (
        big.sum(d).shape,
        big.transpose(0, d),
        torch.stack([big, big], d).shape,
        big[:, None].squeeze(n % 2).dim(),
        big[0, d % 2],
    )


def args(i):
    return (torch.tensor([1.0, 2.0, i // 2 % 3 + 1.0]),)


# === parts_by_a_tensor: nograd, calls=10, refused
line = torch.arange(12.0)


def region(x):
    n = x.long().max() + 1
    return len(line.chunk(n)), len(line.split(n)), [t.shape for t in torch.tensor_split(line, n)]


def args(i):
    return (torch.full((2,), float((2, 3, 4, 5, 1, 0, 2, 1, 3, 4)[i])),)


# === dimensions_by_a_tensor_in_inference_mode: refused nograd calls=10
big = torch.arange(24.0).view(2, 3, 4)


def region(x):
    with torch.inference_mode():
        n = x.long().max()
        return big.sum(n % 3).shape, big[:, None].squeeze(n % 2).dim(), torch.stack([big, big], n % 3).shape


def args(i):
    return (torch.full((2,), float((2, 3, 4, 5, 1, 0, 2, 1, 3, 4)[i])),)


# === counter_as_size_1: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x * x.flatten()[: n()].numel()


def change_n():
    state["n"] = 30


# === counter_as_size_2: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x * x.flatten()[-n() :].numel()


def change_n():
    state["n"] = 30


# === counter_as_size_3: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x * x.flatten()[n() : n() + x.shape[0]].shape[0]


def change_n():
    state["n"] = 30


# === counter_as_size_4: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x.flatten()[:: n()].reshape(1, -1) + len(x.flatten()[:: n()])


def change_n():
    state["n"] = 30


# === counter_as_size_5: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x * torch.zeros(n()).shape[0]


def change_n():
    state["n"] = 30


# === counter_as_size_6: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x * torch.arange(n()).shape[0]


def change_n():
    state["n"] = 30


# === counter_as_size_7: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x * torch.arange(1, 20, n()).shape[0]


def change_n():
    state["n"] = 30


# === counter_as_size_8: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x[:1].expand(n(), 3) * x[:1].expand(n(), 3).shape[0]


def change_n():
    state["n"] = 30


# === counter_as_size_9: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x.repeat(n(), 1).view(-1, 3 * n()).sum(0) * x.repeat(n(), 1).shape[0]


def change_n():
    state["n"] = 30


# === counter_as_size_10: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return torch.nn.functional.pad(x, (0, n())) * torch.nn.functional.pad(x, (0, n())).shape[1]


def change_n():
    state["n"] = 30


# === counter_as_size_11: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x.narrow(0, 0, min(n(), 4)) * x.narrow(0, 0, min(n(), 4)).size(0)


def change_n():
    state["n"] = 30


# === counter_as_size_12: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return torch.cat(x.flatten().split(n())[::-1]) + len(x.flatten().split(n()))


def change_n():
    state["n"] = 30


# === counter_as_size_13: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return torch.cat(x.flatten().chunk(n())[::-1]) + x.flatten().chunk(n())[0].shape[0]


def change_n():
    state["n"] = 30


# === counter_as_size_14: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x * x.flatten()[: int(n() * 0.5)].shape[0]


def change_n():
    state["n"] = 30


# === counter_as_size_15: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x * torch.ones(n() * x.shape[0], x.shape[1]).shape[0]


def change_n():
    state["n"] = 30


# === counter_as_size_16: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x * torch.full((n(), 2), n()).sum() + torch.full((n(), 2), 1.0).size()[0]


def change_n():
    state["n"] = 30


# === counter_as_size_17: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return torch.nn.functional.interpolate(x[None], size=n()) * torch.nn.functional.interpolate(x[None], size=n()).shape[-1]


def change_n():
    state["n"] = 30


# === counter_as_size_18: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x * torch.nn.functional.avg_pool1d(x[None], min(n(), 3)).shape[-1]


def change_n():
    state["n"] = 30


# === counter_as_size_19: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x.flatten()[n() % 12] * x.flatten()[n() % 12 :].shape[0]


def change_n():
    state["n"] = 30


# === counter_as_size_20: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x.roll(n(), 0) * x.flatten().unfold(0, n(), 1).shape[0]


def change_n():
    state["n"] = 30


# === counter_as_size_21: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x.sum(n() % 2) * x.sum(n() % 2).shape[0]


def change_n():
    state["n"] = 30


# === counter_as_size_22: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x.flatten()[: n()].mean() if x.flatten()[: n()].shape[0] > 3 else x.flatten()[: n()].sum()


def change_n():
    state["n"] = 30


# === counter_as_size_23: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return x * torch.tril_indices(n(), n()).shape[1]


def change_n():
    state["n"] = 30


# === counter_as_size_24: calls=8
state = {"n": 0}


def n():
    return state["n"] % 13


def region(x):
    state["n"] += 1
    return torch.eye(n(), 3)[: x.shape[0]] * torch.eye(n(), 3).numel() + x[:1]


def change_n():
    state["n"] = 30


# === zeros_sized_by_a_tensor
def region(x, n):
    z = torch.zeros(2, n[0], 3)
    return x.sum() + x.shape[0] * z.size()[1] + z.shape[1]


def args(i):
    return torch.ones(2 + i, 3), torch.tensor([1 + i % 2])


# === packed_gru_of_varying_lengths
gru = torch.nn.GRU(4, 5, batch_first=True)


def region(x, lengths):
    packed = torch.nn.utils.rnn.pack_padded_sequence(x * 2, lengths, batch_first=True, enforce_sorted=False)
    out, last = gru(packed)
    padded, sizes = torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    return padded, sizes, last, padded.shape


def args(i):
    lengths = torch.tensor([1 + i % 4, 3, 2 + i % 2])
    return torch.ones(3, int(lengths.max()), 4) * (i + 1), lengths
