"""Decisions on the data of inputs: what is looked at ahead of the graph must be what the program looked at, when it did."""

# ruff: noqa
import torch


def args(i):
    mask = torch.ones(4, dtype=torch.long)
    mask[3 - i % 3 :] = i % 2
    return torch.arange(12.0).reshape(4, 3).requires_grad_(i % 3 == 0), mask


# === condition_mask
def region(x, mask):
    if mask.all():
        return x * 2
    return x * mask[:, None]


# === condition_written_before
def region(x, mask):
    mask.add_(1)
    if mask.all():
        return x * 2
    return x * mask[:, None]


# === condition_view_written_before
def region(x, mask):
    mask[:2].zero_()
    head = mask[1:]
    if head.any():
        return x * 2
    return x - mask.sum()


# === condition_written_through_a_base
def region(x, mask):
    tail = mask[2:]
    mask.mul_(0)
    if tail.any():
        return x * 2
    return x + 1


# === condition_written_after
def region(x, mask):
    if mask.any():
        y = x * 2
    else:
        y = x - 1
    mask.zero_()
    return y


# === condition_between_writes
def region(x, mask):
    first = bool(mask.all())
    mask.add_(1)
    second = bool((mask > 1).all())
    mask.sub_(1)
    third = bool(mask.all())
    return x + 1 if first and second and third else x * 2, first, second, third


# === condition_copy_written
def region(x, mask):
    flags = mask.clone()
    flags[0] = 0
    flags |= 2
    if (flags == 2).any():
        return x + flags.sum()
    return x


# === condition_data_assigned
def region(x, mask):
    mask.data = torch.zeros_like(mask)
    if mask.any():
        return x * 2
    return x + 1


# === condition_number_as_size
def region(x, mask):
    n = int(mask.sum())
    return x[:n].sum() * n


# === condition_index_read
def region(x, mask):
    out = []
    for row in (mask == 1).nonzero():
        out.append(x[row])
    return out


# === condition_value_returned_too
def region(x, mask):
    every = mask.all()
    if every:
        return x, every
    return every, x.sum()


# === condition_number_returned_too
def region(x, mask):
    total = mask.sum().item()
    if total > 2:
        return x * total, total
    return x + total, -total


# === condition_in_autocast
def region(x, mask):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = x.detach() @ x.detach().T
        if (h.sum() * 1.0001 == h.double().sum() * 1.0001).all():
            return x * 2
        if mask.float().cumsum(0).dtype is torch.float32 and mask.any():
            return x * 3
    return x + 1


# === condition_after_random
def region(x, mask):
    noise = torch.rand(3)
    if mask.all():
        return x + noise
    return x - noise - torch.rand(3)


# === condition_shared_memory
def args(i):
    base = torch.arange(8) % (2 + i % 2)
    return base[:4], base[2:]


def region(a, b):
    a.fill_(3)
    if (b == 3).any():
        return b * 2
    return b + a


# === condition_of_a_module
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))
        self.scale = torch.nn.Parameter(torch.ones(3))

    def forward(self, x, mask):
        if not self.seen.any():
            x = x * 2
        if (self.scale > 1).any():
            x = x + 1
        self.seen += mask[0]
        if self.seen.max() > 2:
            x = x - 1
        return x * self.scale


net = Net()


def region(x, mask):
    return net(x, mask)


def change_seen():
    net.seen.zero_()


def change_scale():
    with torch.no_grad():
        net.scale.mul_(2)


# === condition_never_reached
def region(x, mask):
    if mask[0] == 0:
        return x.sum()
    chosen = (mask != 1).nonzero()
    if len(chosen) and chosen[0, 0] > 2:
        return x * 3
    return x * 2


# === condition_out_of_range
def args(i):
    return torch.arange(4.0), torch.tensor([i % 6])


def region(x, index):
    if x[index] > 2:
        return x
    return x * 2


# === condition_in_inference_mode: refused
def region(x, mask):
    with torch.inference_mode():
        flags = mask.clone()
        flags.zero_()
        if flags.any():
            return x.detach() + 1
        return x.detach() + 2


# === condition_type_changed
def args(i):
    return torch.ones(3), torch.tensor([True, i % 2 == 0]) if i % 3 else torch.tensor([1.0, 0.0])


def region(x, mask):
    if mask.all():
        return x
    return x * 2
