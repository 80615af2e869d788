"""What torch keeps about tensors and about itself, changed inside a region: gradient flags, histories, settings."""

# ruff: noqa
import torch
from torch import nn


def args(i):
    return (torch.full((3,), float(i % 4 + 1)),)


# === flag_of_an_inner_tensor: calls=6, refused
net = nn.Linear(3, 2)
wanted = True


def region(x):
    y = x[None]
    if wanted and net.training:
        y.requires_grad = True
    z = net(y)
    return z, y.requires_grad, y


def change_wanted():
    global wanted
    wanted = not wanted


# === flag_of_an_argument_read_before: calls=8, refused
def region(x):
    before = x.requires_grad
    x.requires_grad_()
    return (x * 2 if before else x * 3), x.requires_grad


def args(i):
    return (torch.full((3,), float(i), requires_grad=i % 3 == 2),)


# === flag_of_an_argument_taken_off: calls=8
def region(x):
    x.requires_grad = False
    y = x * 2
    x.requires_grad_(requires_grad=True)
    return y, x * 3


def args(i):
    return (torch.full((3,), float(i), requires_grad=i % 3 == 0),)


# === flag_undone_by_a_check: calls=10, refused
def region(x):
    x.requires_grad_(True)
    y = x * 2
    if y.sum() > 12:
        return y
    return y + 1


# === flag_undone_by_a_raise: calls=10, refused
table = torch.arange(3.0)


def region(x):
    x.requires_grad_(True)
    return table[(x - 1).long()] * x


# === flag_of_a_parameter: calls=6, refused
net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))


def region(x):
    net[0].weight.requires_grad_(False)
    y = net(x)
    net[0].bias.requires_grad = not net[0].bias.requires_grad
    return y


def change_unfreeze():
    net[0].weight.requires_grad_(True)


# === flag_of_a_result_of_an_operation: calls=6
def region(x):
    y = x * 2
    y.requires_grad = True
    try:
        (y * 2).requires_grad = False
    except RuntimeError as error:
        return y, str(error)
    return y


# === flag_of_a_tensor_of_numbers: plain calls=4
def region(x):
    y = x.long()
    try:
        y.requires_grad = True
    except RuntimeError as error:
        return x, str(error)
    return x


# === flag_from_a_switch: calls=6, refused
flag = True


def region(x):
    y = x + 1
    y.requires_grad_(flag)
    with torch.no_grad():
        z = y.detach().requires_grad_(not flag)
    return y * 2, z.sum() * 3


def change_flag():
    global flag
    flag = not flag


# === flag_through_a_view: calls=6, refused
base = torch.ones(2, 3)


def region(x):
    row = base[0]
    row.requires_grad_(True)
    return row * x, base.requires_grad


# === flag_of_a_new_input: calls=6
def region(x):
    z = x.detach()
    z.requires_grad = True
    return z * x


def args(i):
    return (torch.full((3,), float(i), requires_grad=i % 2 == 0),)


# === history_by_a_change_in_place: calls=6
w = torch.full((3,), 2.0, requires_grad=True)


def region(x):
    before = x.requires_grad
    x.mul_(w)
    return (x * 2 if before else x * 3), x.requires_grad


def args(i):
    x = torch.full((3,), float(i + 1))
    return (x * w if i % 3 == 2 else x,)


# === history_undone_by_a_check: calls=10
w = torch.full((3,), 2.0, requires_grad=True)


def region(x):
    x.mul_(w)
    if x.sum() > 12:
        return x * 2
    return x * 3


# === history_of_a_result_undone: refused calls=10
w = torch.full((3,), 2.0, requires_grad=True)


def region(x):
    x.mul_(w)
    if x.sum() > 12:
        return x * 2
    return x * 3


def args(i):
    return (torch.full((3,), float(i % 4 + 1)) * w,)


# === history_of_a_view_undone: refused calls=10
w = torch.full((3,), 2.0, requires_grad=True)


def region(x):
    x.mul_(w)
    if x.sum() > 12:
        return x * 2
    return x * 3


def args(i):
    return (torch.full((2, 3), float(i % 4 + 1))[1],)


# === detached_in_place: calls=6
def region(x):
    before = x.requires_grad
    x.detach_()
    return x * 2, before, x.requires_grad


def args(i):
    return (torch.full((3,), float(i), requires_grad=i % 2 == 0) * 1.0,)


# === setting_for_a_block: calls=6
net = nn.Conv1d(1, 2, 3)


def region(x):
    before = torch.backends.cudnn.enabled
    with torch.backends.cudnn.flags(enabled=False):
        y = net(x[None, None])
        inside = torch.backends.cudnn.enabled
    return y, before, inside, torch.backends.cudnn.enabled


# === setting_toggled: calls=6
import contextlib

ours = contextlib.ExitStack()
on = True


def region(x):
    if torch.backends.cudnn.benchmark:
        return x * 2
    with torch.backends.cudnn.flags(benchmark=on, deterministic=not on):
        y = x * (2 if torch.backends.cudnn.benchmark else 3)
        if torch.backends.cudnn.deterministic:
            y = y + 1
    return y, torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32


def change_on():
    global on
    on = not on


# === setting_undone_by_a_check: calls=10
def region(x):
    with torch.backends.cudnn.flags(enabled=False):
        y = x * 2
        if y.sum() > 12:
            y = y * 3
        z = torch.backends.cudnn.enabled
    return y, z, torch.backends.cudnn.enabled


# === setting_of_precision: plain calls=4
def region(x):
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False, fp32_precision="ieee"):
        return x * 2, torch.backends.cudnn.conv.fp32_precision, torch.backends.cudnn.rnn.fp32_precision


# === written_leaf_after_a_written_result: calls=6
leaf = torch.ones(2, requires_grad=True)


def region(a, b):
    a.mul_(2)
    b.mul_(3)
    return a + b


def args(i):
    last = leaf if i == 4 else leaf.view(2) if i == 5 else leaf * 2
    return leaf * 1, last


# === out_of_an_operation_that_is_another_under_a_mode: plain calls=6
def region(x):
    rank, parts = torch.full((), 7), tuple(torch.full((), -1.0) for _ in range(3))
    torch.linalg.matrix_rank(x, out=rank)
    torch.unbind_copy(x[0], 0, out=parts)
    return rank + 1, parts, parts[0]._version


def args(i):
    return (torch.eye(3)[: 3 - i % 2] * (i + 1.0),)
