"""What torch.jit has compiled, called inside a region: functions, scripted and traced modules, old-style ScriptModules."""

# ruff: noqa
import warnings

import torch
from torch import nn
from typing import Dict, List, Tuple

warnings.simplefilter("ignore")


def args(i):
    return (torch.arange(6.0).reshape(2, 3) * (i % 3 + 1) - 2,)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.scale = 2

    def forward(self, x):
        return self.norm(self.layer(x)) * self.scale

    @torch.jit.export
    def encode(self, x):
        return self.layer(x) - self.scale


class Around(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        return self.head(self.inner(x).relu())


# === scripted_module: calls=8, refused
region = Around(torch.jit.script(Norm()))


def change_eval():
    region.inner.eval()


def change_train():
    region.inner.train()


def change_scale():
    region.inner.scale = region.inner.scale + 1


def change_statistics():
    region.inner.norm.running_mean.add_(1.0)


def change_frozen():
    region.inner.layer.weight.requires_grad_(False)


def change_weight():
    region.inner.layer.weight = nn.Parameter(torch.ones(3, 3))


def change_shared():
    region.inner.layer.weight = region.inner.layer.weight


def change_inner():
    region.inner = torch.jit.script(Norm())


def change_other_forward():
    region.inner.forward = lambda x: x + 1


# === scripted_target: calls=6, refused
region = torch.jit.script(Norm())


def change_eval():
    region.eval()


def change_scale():
    region.scale = 5


# === scripted_undone_by_a_check: calls=10, refused
inner = torch.jit.script(Norm())


def region(x):
    y = inner(x)
    if (y + x).sum() > 0:
        return y * 2
    return y


def change_eval():
    inner.eval()


def change_train():
    inner.train()


# === scripted_method_by_name: calls=6, refused
inner = torch.jit.script(Norm())


def region(x):
    return inner.encode(x) + inner.layer.bias, inner.scale, inner.training


def change_scale():
    inner.scale = 7


def change_eval():
    inner.eval()


def change_weight():
    inner.layer.weight.data = torch.zeros(3, 3)


# === scripted_statistics_read_beside: calls=6, refused
inner = torch.jit.script(Norm())


def region(x):
    before = inner.norm.running_mean * 1
    y = inner(x)
    return before, y, inner.norm.running_mean + 0, inner.norm.num_batches_tracked


def change_eval():
    inner.eval()


# === scripted_layer_shared_with_python: calls=6, refused
layer = nn.Linear(3, 3)


class Sharing(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)


inner = torch.jit.script(Sharing())


def region(x):
    y = layer(x)
    return inner(y), y


def change_layer():
    layer.weight = nn.Parameter(torch.zeros(3, 3))


# === old_style_script_module: calls=6, refused
class Old(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.count = torch.zeros(())
        self.times = 2

    @torch.jit.script_method
    def inside(self, x):
        self.count.add_(1)
        return self.layer(x) * self.times

    def forward(self, x):
        return self.inside(x) + self.count


region = Old()


def change_times():
    region.times = 3


def change_count():
    region.count.fill_(10)


# === old_style_scripted_forward: calls=6, refused
class Old(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    @torch.jit.script_method
    def forward(self, x):
        return self.layer(x)


region = Old()


def change_frozen():
    region.layer.bias.requires_grad_(False)


# === traced_module: calls=6, refused
traced = torch.jit.trace(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.ones(2, 3))


def region(x):
    return traced(x) * 2


# === frozen_module: calls=6, refused
frozen = torch.jit.freeze(torch.jit.script(Norm()).eval())


def region(x):
    return frozen(x) * 2


# === scripted_in_sequential: calls=6, refused
region = nn.Sequential(nn.Linear(3, 3), torch.jit.script(nn.Dropout(0.5)), torch.jit.script(nn.ReLU()))


def change_eval():
    region.eval()


# === scripted_outputs: calls=6, refused
@torch.jit.script
def parts(x) -> Tuple[torch.Tensor, List[torch.Tensor], Dict[str, torch.Tensor], int]:
    return x + 1, [x, x * 2], {"a": x - 1}, x.size(0)


def region(x):
    a, b, c, n = parts(x)
    return a, b[0] is x, b[1], c["a"] * n, sorted(c), n


# === scripted_dict_returned: calls=6, refused
@torch.jit.script
def parts(x) -> Dict[str, List[torch.Tensor]]:
    return {"a": [x - 1, x], "b": [x.exp()]}


def region(x):
    return parts(x)


# === scripted_takes_containers: calls=6, refused
class Joins(nn.Module):
    def forward(self, parts: List[torch.Tensor], named: Dict[str, torch.Tensor], k: int):
        return torch.cat(parts, 0)[k] * named["w"]


inner = torch.jit.script(Joins())
k = 0


def region(x):
    return inner([x, x * 2], {"w": x[0]}, k)


def change_k():
    global k
    k = (k + 1) % 4


# === scripted_shape_follows_data: calls=8, refused
@torch.jit.script
def positive(x):
    if bool(x.sum() > 0):
        return x[x > 0]
    return x.double()


def region(x):
    return positive(x) * 2


def args(i):
    return (torch.arange(4.0) - i,)


# === scripted_hooks: refused calls=6
def doubled(self, input: Tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
    return output * 2


layer = Norm()
layer.register_forward_hook(doubled)
inner = torch.jit.script(layer)


def region(x):
    return inner(x) + inner.encode(x)


def change_eval():
    inner.eval()


# === scripted_changes_its_argument: calls=6, refused
@torch.jit.script
def grow(x):
    x.add_(1)
    return x * 2


total = torch.zeros(3)


def region(x):
    y = grow(total)
    if (x.sum() + y.sum()) > 30:
        return y
    return y + total


# === scripted_changes_by_data: refused calls=8
@torch.jit.script
def grow(x, total):
    if bool(x.sum() > 0):
        total.add_(1)
    return x * 2


total = torch.zeros(3)


def region(x):
    return grow(x, total)


def args(i):
    return (torch.arange(4.0) - i,)


# === scripted_counts: refused calls=6
class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 0

    def forward(self, x):
        self.k += 1
        return x * self.k


inner = torch.jit.script(Counts())


def region(x):
    return inner(x)


# === scripted_prints: refused calls=6
@torch.jit.script
def speaks(x):
    print("x")
    return x + 1


def region(x):
    return speaks(x)


# === scripted_list_kept: refused calls=6
class Keeps(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = torch.jit.Attribute([1], List[int])

    def forward(self, x):
        self.seen.append(x.size(0))
        return x * len(self.seen)


inner = torch.jit.script(Keeps())


def region(x):
    return inner(x)


# === scripted_list_read: calls=6, refused
class Reads(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.jit.Attribute([1.0, 2.0], List[float])

    def forward(self, x):
        for w in self.weights:
            x = x * w
        return x


inner = torch.jit.script(Reads())


def region(x):
    return inner(x)


def change_weights():
    inner.weights = [1.0, 3.0]


# === scripted_attribute_set_inside: refused calls=6
inner = torch.jit.script(Norm())


def region(x):
    inner.scale = 3
    return inner(x)


# === scripted_eval_inside: refused calls=6
inner = torch.jit.script(Norm())


def region(x):
    inner.eval()
    return inner(x)


# === script_error_text: nograd
@torch.jit.script
def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.mm(x, y)


def region(x):
    try:
        return product(x, torch.ones(7, 2))
    except RuntimeError as error:
        return x, str(error)
