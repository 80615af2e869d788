"""Two or three calls of a region before their backward pass, with every layer that writes buffers in training."""

# ruff: noqa
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    """A linear layer and a normalisation; the squares of what a normalisation gives would have no gradient to speak of."""

    def __init__(self, norm, *shape):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.norm = norm
        self.shape = shape

    def forward(self, x):
        h = self.first(x)
        return torch.tanh(self.norm(h.reshape(self.shape) if self.shape else h) + 0.3)


def args(i):
    torch.manual_seed(i)
    return (torch.randn(6, 4),)


# === two_calls_batchnorm: together=2 calls=7
region = Net(nn.BatchNorm1d(4))


def change_eval():
    region.eval()


def change_train():
    region.train()


def change_norm_eval():
    region.norm.eval()


def change_momentum():
    region.norm.momentum = 0.5


def change_cumulative():
    region.norm.momentum = None


# === three_calls_batchnorm: together=3 calls=7
region = Net(nn.BatchNorm1d(4))


def change_eval():
    region.eval()


# === two_calls_batchnorm_cumulative: together=2 calls=7
region = Net(nn.BatchNorm1d(4, momentum=None))


def change_eval():
    region.eval()


# === two_calls_batchnorm_images: together=2 calls=6
region = Net(nn.BatchNorm2d(4, affine=False), 1, 4, 2, 3)


# === two_calls_batchnorm_volumes: together=2 calls=6
region = Net(nn.BatchNorm3d(2), 3, 2, 2, 2, 1)


# === two_calls_instancenorm: together=2 calls=6
region = Net(nn.InstanceNorm1d(2, affine=True, track_running_stats=True), 3, 2, 4)


def change_eval():
    region.eval()


# === three_calls_instancenorm_images: together=3 calls=7
region = Net(nn.InstanceNorm2d(2, track_running_stats=True), 3, 2, 2, 2)


# === two_calls_spectral_norm: together=2 calls=6
region = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), nn.ReLU(), nn.Linear(4, 2))


def change_eval():
    region.eval()


# === two_calls_spectral_norm_hook: together=2 calls=6
region = nn.Sequential(nn.utils.spectral_norm(nn.Linear(4, 4)), nn.ReLU(), nn.Linear(4, 2))


def change_eval():
    region.eval()


# === two_calls_discriminator: together=2 calls=7
def block(n, m):
    return nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(n, m)), nn.BatchNorm1d(m), nn.LeakyReLU(0.2))


region = nn.Sequential(block(4, 8), block(8, 4), nn.Dropout(0.2), nn.Linear(4, 1))


def change_eval():
    region.eval()


# === two_calls_synchronised_statistics: together=2 calls=6
class Norm(nn.Module):
    """The statistics a synchronised normalisation keeps, of one process."""

    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))
        self.register_buffer("running_mean", torch.zeros(n))
        self.register_buffer("running_var", torch.ones(n))
        self.register_buffer("batches", torch.tensor(0))

    def forward(self, x):
        if not self.training:
            return (x - self.running_mean) * torch.rsqrt(self.running_var + 1e-5) * self.weight
        mean, var = x.mean(0), x.var(0, unbiased=False)
        with torch.no_grad():
            self.batches += 1
            self.running_mean.mul_(0.9).add_(mean, alpha=0.1)
            self.running_var.lerp_(var, 0.1)
        return (x - mean) * torch.rsqrt(var + 1e-5) * self.weight


region = Net(Norm(4))


def change_eval():
    region.eval()


# === two_calls_exponential_average: together=2 calls=6
class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("shadow", torch.zeros(4, 4))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.seen.add_(1)
        self.shadow.data.mul_(0.5).add_(self.lin.weight.data, alpha=0.5)
        return self.lin(x) - F.linear(x, self.shadow.detach().clone())


region = Average()


# === two_calls_average_in_use: together=2 calls=6
class Average(nn.Module):
    """Autograd saves the average, which the next call writes: in eager the backward pass raises."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("average", torch.ones(4))

    def forward(self, x):
        self.average.mul_(0.5).add_(x.mean(0), alpha=0.5)
        return x * self.scale * self.average


region = Average()


# === one_call_average_in_use: calls=6
class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("average", torch.ones(4))

    def forward(self, x):
        self.average.mul_(0.5).add_(x.mean(0), alpha=0.5)
        return x * self.scale * self.average


region = Average()


# === two_calls_average_behind_autograd: together=2 calls=6
class Average(nn.Module):
    """No write that autograd counts: in eager the backward pass takes the values the second call has left."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("average", torch.ones(4))

    def forward(self, x):
        self.average.data.mul_(0.5).add_(x.mean(0), alpha=0.5)
        return x * self.scale * self.average


region = Average()


# === two_calls_saved_then_written: together=2 calls=5
class Average(nn.Module):
    """The backward pass of every call raises."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("average", torch.ones(4))

    def forward(self, x):
        y = x * self.scale * self.average
        self.average.add_(1)
        return y


region = Average()


# === two_calls_statistics_in_use: together=2 calls=6
class Scaled(nn.Module):
    """The running mean takes part in what is differentiated."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return self.norm(x) * self.scale * self.norm.running_mean


region = Scaled()


# === two_calls_statistics_looked_at: together=2 calls=6
class Logged(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.norm(self.lin(x)) + 0.3), self.norm.running_mean.abs().sum(), self.norm.running_var.view(2, 2)


region = Logged()


# === two_calls_norm_used_twice: together=2 calls=6
class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4, bias=False), nn.BatchNorm1d(4))  # a bias's gradient is 0 but for rounding

    def forward(self, x):
        return self.body(x) * self.body(x.flip(0))


region = Siamese()


# === two_calls_codebook: together=2 calls=6
class Codebook(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("codes", torch.arange(12.0).reshape(3, 4) / 6)
        self.register_buffer("sizes", torch.ones(3))

    def forward(self, x):
        h = self.lin(x)
        with torch.no_grad():
            nearest = torch.cdist(h, self.codes).argmin(1)
            hot = F.one_hot(nearest, 3).to(h.dtype)
        codes = self.codes[nearest]
        if self.training:
            with torch.no_grad():
                self.sizes.mul_(0.9).add_(hot.sum(0), alpha=0.1)
                self.codes.mul_(0.9).add_((hot.t() @ h) / self.sizes.unsqueeze(1), alpha=0.1)
        return h + (codes - h).detach(), F.mse_loss(h, codes.detach())


region = Codebook()


def change_eval():
    region.eval()


# === two_calls_embedding_with_a_norm: together=2 calls=6
class Words(nn.Module):
    """Rows of the weight are scaled down in place where they are looked up."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5, 4, max_norm=1.0)
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return self.lin(self.words(x.abs().long().clamp(max=4).sum(1).clamp(max=4)))


region = Words()


# === two_calls_batch_written: together=2 calls=6
lin = nn.Linear(4, 4)
batch = torch.ones(6, 4)


def args(i):
    return (batch,)


def region(x):
    """Autograd saves the batch, which the next call writes."""
    x.mul_(0.5)
    return lin(x)
