"""``torch.utils.checkpoint`` inside the region: the backward pass computes again, with the random numbers of the forward."""

# ruff: noqa
import functools
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

log = []


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(3)
        self.drop = 0.5
        self.calls = 0

    def inner(self, x, scale=1.0):
        return F.dropout(torch.tanh(self.b(torch.relu(self.a(x)))), self.drop, self.training) * scale

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False) + 1


class Open(Block):
    def forward(self, x):
        return self.inner(x) + 1


class Deep(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layers = nn.ModuleList([layer(), layer()])
        self.run = functools.partial(checkpoint, use_reentrant=False)

    def forward(self, x):
        for layer in self.layers:
            x = self.run(layer.__call__, x) if self.training else layer(x)
        return x


def args(i):
    return ((torch.arange(6.0).reshape(2, 3) + i).requires_grad_(i % 2 == 0),)


region = Block()


def change_train():
    region.train(not region.training)


def change_drop():
    for m in region.modules():
        if hasattr(m, "drop"):
            m.drop = 0.25


def change_frozen():
    for p in region.parameters():
        p.requires_grad_(False)


def change_method():
    Block.inner = lambda self, x, scale=2.0: self.b(self.a(x)) * scale


# === checkpoint_block: calls=8
region = Block()

# === checkpoint_layers
region = Deep(Open)

# === checkpoint_nested: refused
region = Deep(Block)


# === checkpoint_statistics
class Normed(Block):
    def inner(self, x):
        return self.norm(super().inner(x))


region = Normed()


# === checkpoint_keeps_middle
class Kept(Block):
    def forward(self, x):
        y = self.a(x)
        z, w = checkpoint(lambda v: (torch.sin(v) * y, torch.rand(4) * v), y, use_reentrant=False)
        self.last = z.detach()
        return z + w, y


region = Kept()


# === checkpoint_decides
class Decides(Block):
    def inner(self, x):
        y = self.a(x)
        return y * 2 if y.sum() > 1 else y.exp()


region = Decides()


# === checkpoint_counts: refused
class Counts(Block):
    def inner(self, x):
        self.calls += 1
        return super().inner(x)


region = Counts()


# === checkpoint_prints: refused
class Prints(Block):
    def inner(self, x):
        print("inner")
        return super().inner(x)


region = Prints()


# === checkpoint_collects: refused
class Collects(Block):
    def forward(self, x):
        kept = []
        y = checkpoint(lambda v: kept.append(v) or self.inner(v), x, use_reentrant=False)
        log.append(len(kept))
        return y


region = Collects()


# === checkpoint_reentrant: refused
class Reentrant(Block):
    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=True)


region = Reentrant()


# === checkpoint_other_random: refused
class Other(Block):
    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False, preserve_rng_state=False)


region = Other()

# === saved_tensors_hooks: refused
packed = []


def pack(t):
    packed.append(t.shape)
    return t * 3


def region(x):
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        return (x * x).sum()


# === saved_tensors_on_cpu: refused
def region(x):
    with torch.autograd.graph.save_on_cpu():
        return (x * x).sum()
