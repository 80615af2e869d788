"""Programs about the operator graph: modes, randomness, state, autograd, hooks. See tests/soundness/harness/world.py."""

# ruff: noqa
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def args(i):
    return ((torch.arange(6.0).view(2, 3) * (i + 1)).requires_grad_(),)


# === linear_net
region = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def change_bias():
    region[0].bias = None


def change_layer():
    region[1] = nn.Tanh()


def change_reorder():
    region.append(nn.ReLU())


# === no_grad_inside
w = nn.Parameter(torch.ones(3))


def region(x):
    with torch.no_grad():
        a = x * w
        with torch.enable_grad():
            b = x * w
    return a, b, a + b * w


# === no_grad_decorator
w = nn.Parameter(torch.ones(3))


@torch.no_grad()
def ema(x):
    w.mul_(0.9).add_(x.mean(0), alpha=0.1)
    return w * 2


def region(x):
    return ema(x) + x


# === grad_mode_read
def region(x):
    if torch.is_grad_enabled():
        return x * 2
    return x * 3


# === inference_inside: refused
w = nn.Parameter(torch.ones(3))


def region(x):
    with torch.inference_mode():
        a = x * w
    return a, x * w


# === set_grad_enabled_flag
train = True
w = nn.Parameter(torch.ones(3))


def region(x):
    with torch.set_grad_enabled(train):
        return x * w


def change_train():
    global train
    train = not train


# === set_grad_enabled_leak
def region(x):
    torch.set_grad_enabled(False)
    return x * 2


# === autocast_inside
lin = nn.Linear(3, 3)


def region(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = lin(x)
        with torch.autocast("cpu", enabled=False):
            z = lin(x.float())
    return y, z


# === autocast_enabled_flag
amp = True
lin = nn.Linear(3, 3)


def region(x):
    with torch.autocast("cpu", enabled=amp):
        return lin(x)


def change_amp():
    global amp
    amp = not amp


# === dropout_train
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = nn.Dropout(0.5)
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        return self.d(self.lin(x)) + F.dropout(x, 0.3, self.training)


region = M()


def change_eval():
    region.eval()


def change_p():
    region.d.p = 0.9


# === random_ops
def region(x):
    return x + torch.randn(2, 3), torch.rand_like(x), torch.randperm(4), torch.bernoulli(torch.full((3,), 0.5))


# === manual_seed_inside: refused
def region(x):
    torch.manual_seed(7)
    return x + torch.rand(3)


# === generator_outside
g = torch.Generator()
g.manual_seed(1)


def region(x):
    return x + torch.rand(3, generator=g)


# === batchnorm
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.bn(x)


region = M()


def change_eval():
    region.eval()


def change_momentum():
    region.bn.momentum = 0.5


def change_no_track():
    region.bn.track_running_stats = False
    region.bn.running_mean = None
    region.bn.running_var = None


# === batchnorm_cumulative
region = nn.BatchNorm1d(3, momentum=None)


# === layernorm_attention
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln = nn.LayerNorm(4)
        self.att = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        h = self.ln(x)
        return self.att(h, h, h, need_weights=False)[0] + x


region = M()


def args(i):
    return (torch.randn(2, 3, 4),)


def change_eval():
    region.eval()


# === transformer_layer
region = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1, batch_first=True)


def args(i):
    return (torch.randn(2, 3, 4),)


def change_eval():
    region.eval()


# === lstm
region = nn.LSTM(3, 4, batch_first=True)


def args(i):
    return (torch.randn(2, 5, 3),)


# === lstm_dropout
region = nn.LSTM(3, 4, num_layers=2, dropout=0.5)


def args(i):
    return (torch.randn(3, 2, 3),)


def change_rate():
    region.dropout = 0.25


# === recurrent_of_varying_length: calls=10
rnn = nn.GRU(3, 4, num_layers=2, bidirectional=True, dropout=0.4)
state = torch.ones(4, 2, 4)


def region(x):
    out, h = rnn(x, state)
    return out.relu().sum(0), h


def args(i):
    return (torch.randn(3 + i * 2 % 5, 2, 3),)


def change_rate():
    rnn.dropout = 0.1


def change_eval():
    rnn.eval()


def change_state():
    global state
    state = torch.zeros(4, 2, 4)


# === gru_cell
cell = nn.GRUCell(3, 4)


def region(x):
    h = torch.zeros(2, 4)
    for _ in range(3):
        h = cell(x, h)
    return h


# === conv_net
region = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def args(i):
    return (torch.randn(2, 1, 5, 5),)


def change_eval():
    region.eval()


# === embedding_tied
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, x):
        return self.head(self.emb(x))


region = M()


def args(i):
    return (torch.tensor([i % 5, 1]),)


def change_untie():
    region.head.weight = nn.Parameter(region.emb.weight.detach().clone() * 2)


# === inplace_views
def region(x):
    y = x * 1
    v = y.view(-1)
    v[0] = 9
    y[1].mul_(2)
    y.t_()
    y.transpose_(0, 1)
    z = y.clone()
    z += y
    return y, v, z


# === inplace_activation
region = nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Hardtanh(inplace=True))

# === out_argument
buf = torch.empty(2, 3)


def region(x):
    torch.add(x.detach(), 1, out=buf)
    y = torch.empty(2, 3)
    torch.mul(x.detach(), 2, out=y)
    return buf + y


# === view_returned_of_input
def region(x):
    v = x.view(3, 2)
    w = x[0]
    return v, w, x.T, x.detach()


# === returns_input_through_op
drop = nn.Dropout(0.5).eval()


def region(x):
    y = drop(x)
    z = x.contiguous()
    return y, z, y is x, z is x


def args(i):
    t = torch.ones(2, 3) * (i + 1)
    return (t,)


# === contiguous_alias
def region(x):
    y = x.contiguous()
    y.add_(1)
    return y


def args(i):
    t = torch.zeros(3, 3)
    return (t if i % 2 == 0 else t.t(),)


# === to_alias
def region(x):
    y = x.to(torch.float32)
    y.mul_(2)
    return y, x.float() is x


def args(i):
    return (torch.ones(3) if i % 3 else torch.ones(3, dtype=torch.float64),)


# === strides_kept
def region(x):
    return x * 2, torch.relu(x), x.stride(), x.is_contiguous()


def args(i):
    t = torch.randn(4, 3)
    return (t if i % 2 == 0 else torch.randn(3, 4).t(),)


# === memory_format
conv = nn.Conv2d(2, 2, 1)


def region(x):
    return conv(x)


def args(i):
    t = torch.randn(1, 2, 3, 3)
    return (t if i % 2 == 0 else t.to(memory_format=torch.channels_last),)


# === storage_offset_read
def region(x):
    return x * 2, x.storage_offset()


def args(i):
    t = torch.ones(10)
    return (t[i % 3 : i % 3 + 4],)


# === same_size_as_another
def region(x, y):
    return x + 1 if x.is_same_size(y) else x - 1


def args(i):
    return torch.ones(3), torch.ones(3 + i % 2)


# === custom_function
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        ctx.save_for_backward(x)
        return x * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.k * 10 + x, None


k = 2.0


def region(x):
    return Double.apply(x, k) + 1


def change_k():
    global k
    k = 3.0


def change_backward():
    Double.backward = staticmethod(lambda ctx, g: (g * 100, None))


# === custom_function_global
scale = 3.0


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * scale

    @staticmethod
    def backward(ctx, g):
        return g * bscale


bscale = 1.0


def region(x):
    return Scale.apply(x * 1)


def change_scale():
    global scale
    scale = 5.0


def change_bscale():
    global bscale
    bscale = 5.0


# === custom_function_helper
FACTOR = 2.0


def scaled(g):
    return torch.mul(g, FACTOR) * len("ab")


class Helped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return scaled(g)


def region(x):
    return Helped.apply(x * 1)


def change_factor():
    global FACTOR
    FACTOR = 7.0


def change_helper():
    global scaled
    scaled = lambda g: g * 11


def change_code():
    scaled.__code__ = (lambda g: g * FACTOR * 13).__code__


def change_builtin():
    global len
    len = lambda text: 17


# === custom_function_of_a_module: refused
import types

settings = types.ModuleType("settings")
settings.rate = 2.0


class Reading(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g * settings.rate


def region(x):
    return Reading.apply(x * 1)


def change_rate():
    settings.rate = 5.0


# === custom_function_effect
calls = []


class Spy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        calls.append("f")
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        calls.append("b")
        return g * 2


def region(x):
    return Spy.apply(x)


# === ste_detach_trick
def region(x):
    q = torch.round(x)
    return x + (q - x).detach()


# === forward_hook
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        return self.lin(x)


region = M()
feats = {}


def keep(m, a, out):
    feats["lin"] = out


handle = region.lin.register_forward_hook(keep)


def change_remove():
    handle.remove()


def change_add():
    region.lin.register_forward_hook(lambda m, a, o: o * 3)


def change_pre():
    region.register_forward_pre_hook(lambda m, a: (a[0] + 1,))


# === forward_hook_outer
class M(nn.Module):
    def forward(self, x):
        return x * 2


region = M()
log = []
region.register_forward_pre_hook(lambda m, a: (a[0] + 1,))
region.register_forward_hook(lambda m, a, o: o + 5)


def change_global_hook():
    global g
    g = nn.modules.module.register_module_forward_hook(lambda m, a, o: None)
    g.remove()


# === hook_with_kwargs
class M(nn.Module):
    def forward(self, x, k=1.0):
        return x * k


inner = M()
inner.register_forward_hook(lambda m, a, kw, o: o + len(kw), with_kwargs=True)


def region(x):
    return inner(x, k=2.0)


# === module_backward_hook
lin = nn.Linear(3, 3)
grads = []
lin.register_full_backward_hook(lambda m, gi, go: grads.append(go[0].sum().item()))


def region(x):
    return lin(x)


# === tensor_hook_leaf
w = nn.Parameter(torch.ones(3))
seen = []
w.register_hook(lambda g: g * 2)


def region(x):
    return x * w


def change_add_hook():
    w.register_hook(lambda g: g * 5)


# === tensor_hook_inside
def region(x):
    y = x * 2
    y.register_hook(lambda g: g * 3)
    return y + 1


# === retain_grad_inside
def region(x):
    y = x * 2
    y.retain_grad()
    return y + 1, y


# === requires_grad_inside: refused
def region(x):
    y = x.detach() * 2
    y.requires_grad_(True)
    return y * 3, y


# === requires_grad_arg
def region(x):
    return x * 2, x.requires_grad


def args(i):
    return (torch.ones(3, requires_grad=i % 2 == 0),)


# === grad_read
w = nn.Parameter(torch.ones(3))


def region(x):
    if w.grad is None:
        return x * w
    return x * w + w.grad


def change_zero():
    w.grad = None


# === backward_inside: nograd
w = nn.Parameter(torch.ones(3))


def region(x):
    loss = (x.detach() * w).sum()
    loss.backward()
    return loss.detach()


# === autograd_grad_inside: nograd
w = nn.Parameter(torch.ones(3))


def region(x):
    loss = ((x.detach() * w) ** 2).sum()
    (g,) = torch.autograd.grad(loss, w)
    return g * 2


# === checkpoint_inside
lin = nn.Linear(3, 3)
drop = nn.Dropout(0.5)


def block(x):
    return drop(torch.relu(lin(x)))


def region(x):
    return checkpoint(block, x, use_reentrant=False) + x


def change_eval():
    drop.eval()


# === checkpoint_module_state
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.k = 2.0

    def part(self, x):
        return self.lin(x) * self.k

    def forward(self, x):
        return checkpoint(self.part, x, use_reentrant=False)


region = M()


def change_k():
    region.k = 5.0


# === parametrized
from torch.nn.utils import parametrize


class Sym(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).T


region = nn.Linear(3, 3)
parametrize.register_parametrization(region, "weight", Sym())

# === weight_norm_
from torch.nn.utils.parametrizations import weight_norm

region = weight_norm(nn.Linear(3, 3))

# === functional_call_
lin = nn.Linear(3, 3)
ps = {"weight": torch.ones(3, 3), "bias": torch.zeros(3)}


def region(x):
    return torch.func.functional_call(lin, ps, (x,))


def change_ps():
    ps["weight"] = torch.ones(3, 3) * 2


# === func_vmap
def region(x):
    return torch.vmap(lambda r: r * r.sum())(x)


# === func_grad
w = torch.ones(3)


def region(x):
    return torch.func.grad(lambda w: ((x.detach() * w) ** 2).sum())(w)


# === tensor_constants
def region(x):
    return x + torch.tensor([1.0, 2.0, 3.0]) + torch.arange(3) + torch.zeros_like(x) + torch.eye(3)[0] + torch.as_tensor(2.5)


# === tensor_from_state
vals = [1.0, 2.0, 3.0]


def region(x):
    return x * torch.tensor(vals)


def change_vals():
    vals[0] = 9.0


# === legacy_constructor
def region(x):
    return x + torch.Tensor([1, 2, 3])


# === legacy_constructors
sizes = [2, 3]


def region(x):
    a = torch.FloatTensor(*sizes).fill_(2.0)
    b = torch.LongTensor([[1, 2], [3, 4]])
    c = torch.Tensor(x.size()).zero_()
    d = x.new(3).fill_(len(sizes))
    torch.Tensor(x).add_(1)
    return a, b, c, d, torch.ByteTensor(2).fill_(1), torch.Tensor(()), torch.Tensor(range(3))


def change_sizes():
    sizes.append(1)


# === legacy_constructor_of_nothing
def region(x):
    return torch.FloatTensor(), torch.Tensor(), torch.Tensor(torch.Size([])).fill_(1.0), x + 1


# === legacy_constructor_of_tensors
def region(x):
    return x + torch.FloatTensor([x.detach().sum(), 1.0, 2.0])[:1]


# === variable_detaches: refused
from torch.autograd import Variable

w = torch.ones(3, requires_grad=True)


def region(x):
    a = Variable(x * w)
    a.add_(1)
    return x * w + a, Variable(torch.exp(x)), Variable(w * 2, requires_grad=True)


def change_w():
    global w
    w = torch.ones(3, dtype=torch.float64)


# === parameter_made_inside: refused
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Parameter(torch.ones(3))
        self.scale = nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, x):
        self.mix = nn.Parameter(torch.softmax(self.mix, 0))
        return x * self.mix[0] + nn.Parameter(self.scale, requires_grad=False)


net = Net()


def region(x):
    return net(x)


def change_mix():
    net.mix = nn.Parameter(torch.zeros(3))


def change_frozen():
    net.scale.requires_grad_(not net.scale.requires_grad)


# === variable_of_a_subclass: refused
from torch.autograd import Variable


class Own(torch.Tensor):
    pass


w = torch.ones(3).as_subclass(Own)


def region(x):
    return type(Variable(w * 2, requires_grad=True)).__name__, type(Variable(w)).__name__, x + 1


# === data_assigned: refused
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.zeros(3))
        self.view = self.p.detach()

    def forward(self, x):
        before = self.p * 1
        self.p.data = self.p.detach() + x.sum(0)
        inside = x * 2
        inside.data = x[:1].expand(x.shape).clone()
        return before + self.p * x + self.view, inside


net = Net()


def region(x):
    return net(x)


def change_p():
    net.p = nn.Parameter(torch.ones(3, dtype=torch.float64))


def change_data():
    net.p.data = torch.ones(3)


# === data_assigned_then_undone: refused
p = torch.zeros(3)
view = p.view(3)


def args(i):
    return (torch.ones(2, 3) * (-1 if i % 4 == 3 else i + 1),)


def region(x):
    p.add_(1)
    p.data = x[0]
    p.mul_(2)
    assert x.sum() > 0, "negative"
    return p * 2, view * 1


def change_back():
    p.data = view


# === data_assigned_to_itself: calls=8
net = nn.Linear(3, 3)
shown = net.weight.data
other = net.bias.detach()


def region(x):
    loss = net(x).square().mean()
    loss.backward()
    for p in net.parameters():
        p.data -= 0.1 * p.grad
        p.grad.data *= 0.5
    net.weight.data += shown * 0.01
    net.bias.data = other.data
    return loss, net(x), shown.sum()


def change_memory():
    net.weight.data = torch.ones(3, 3)


def change_parameter():
    net.weight = nn.Parameter(torch.ones(3, 3))


def change_other():
    global other
    other = torch.ones(3)


def change_layout():
    net.weight.data = torch.ones(3, 3).t()


# === data_of_another_assigned: refused calls=8
p = nn.Parameter(torch.ones(2, 2))
other = torch.zeros(2, 2)


def region(x):
    kept = p.data
    p.data = other.data
    kept += 1
    return (p * x.sum()).sum()


# === data_assigned_to_what_has_no_gradient: calls=8
slow, fast = nn.Linear(3, 3), nn.Linear(3, 3)
slow.requires_grad_(False)
kept = slow.weight.data
given = []


def region(x):
    with torch.no_grad():
        for a, b in zip(fast.parameters(), slow.parameters()):
            b.data = b.data * 0.5 + a.data * 0.5
    given[:] = [slow.bias * 2]
    loss = (fast(x) * slow(x)).sum()
    loss.backward()
    return loss, fast.weight.grad.clone(), kept * 1


def change_memory():
    slow.weight.data = torch.ones(3, 3)


def change_in_place():
    slow.bias.data.add_(1)


def change_gradient():
    slow.requires_grad_(True)


def change_view():
    slow.bias.data = fast.bias.data


def change_dtype():
    slow.double()
    fast.double()


# === data_assigned_and_returned: calls=6
p = torch.zeros(2, 3)
old = p.view(6)


def region(x):
    result = x * 2
    p.data = result
    return result, p + 1, old + 1


def change_result():
    p.mul_(3)


def change_old():
    old.add_(1)


def change_back():
    p.data = old.view(2, 3)


# === data_assigned_twice: calls=6
p = torch.ones(2, 3)


def region(x):
    p.data = p.data + x
    between = p * 2
    p.data = p.data * 0.5
    return between, p.sum()


# === data_assigned_after_autograd_has_saved_it: refused
p = torch.ones(2, 3)
w = torch.ones(2, 3, requires_grad=True)


def region(x):
    loss = (w * p).sum()
    p.data = x * 2
    (g,) = torch.autograd.grad(loss, [w])
    return g


# === data_assigned_and_then_written: refused
p = torch.ones(2, 3)


def region(x):
    value = x * 2
    p.data = value
    value.add_(1)
    return p * 1


# === data_assigned_to_two: refused
p, q = torch.ones(2, 3), torch.ones(2, 3)


def region(x):
    value = x * 2
    p.data = value
    q.data = value
    return p + q


# === data_assigned_then_a_decision: calls=8
p = torch.ones(2, 3)


def region(x):
    before = p.sum()
    p.data = p.data + x
    if before > 20:
        p.data = torch.zeros(2, 3) + x
    return p * 2


# === data_assigned_another_shape: refused
p = torch.zeros(3)


def region(x):
    p.data = x.detach()[0, : 1 + p.shape[0] % 3].clone()
    return p * 2


# === assertions
limit = 1e6
calls = []


def args(i):
    x = torch.ones(2, 3) * (i + 1)
    if i % 6 == 3:
        x[0, 1] = float("nan")
    if i % 6 == 4:
        x[0, 0] = 1e9
    return (x,)


def region(x):
    calls.append(len(calls))
    y = torch.relu(x) * torch.rand(3)
    x.mul_(2)
    assert not torch.isnan(x).any(), "not a number"
    if y.max() > limit:
        raise ValueError(f"more than {limit}")
    return y


def change_limit():
    global limit
    limit = 1.0


# === assertion_that_is_caught
def args(i):
    return (torch.ones(2, 3) * (i % 3 - 1),)


def region(x):
    try:
        assert x.sum() > 0
    except AssertionError:
        return x - 1
    return x + 1


# === assertion_before_an_index
def args(i):
    return (torch.arange(3) + (9 if i % 4 == 3 else 0),)


table = torch.randn(4, 2)


def region(i):
    if int(i.max()) > 3:
        raise KeyError("no such row")
    return table[i] * 2


# === validated_distribution
def args(i):
    return (torch.ones(2, 3) * (i % 5 - 3),)


def region(x):
    d = torch.distributions.Normal(x, x.abs() + (x > 0))
    return d.log_prob(x + 1), d.rsample()


# === numbers_of_a_list
def region(x):
    values = x.sum(1).tolist()
    places = x.argmax(1).tolist()
    return x * values[0] + places[-1], torch.stack([x[i, : n + 1].sum() for i, n in enumerate(places)])


# === numbers_of_a_list_decide
def region(x):
    if x.sum(1).tolist()[0] > 4:
        return x + 1
    return x - 1


# === scripted_function: refused
@torch.jit.script
def swish(x, beta: float = 1.0):
    return x * torch.sigmoid(beta * x)


@torch.jit.script
def add_to(x, n: int):
    return x.add_(n)


b = 1.0


def region(x):
    y = swish(x, b) + swish(x)
    add_to(y, 2)
    return y


def change_b():
    global b
    b += 0.5


# === name_of_the_type
def region(x):
    return x > 1, x.type(), (x > 1).type(x.type())


# === numpy_roundtrip: refused
import numpy as np


def region(x):
    return torch.from_numpy(x.detach().numpy() * 2)


# === default_dtype
def region(x):
    return torch.zeros(2), torch.tensor([1.0]), torch.ones(1) * 2, x.dtype


# === dtype_promotion
half = torch.ones(3, dtype=torch.float16)


def region(x):
    return x * half, half * 2, half + torch.tensor(1.5), torch.arange(3) / 2, torch.arange(3) * 2.5


# === complex_and_fft
def region(x):
    z = torch.fft.fft(x)
    return z.abs(), z.real, torch.view_as_real(z), torch.complex(x, x).conj()


# === indexing_forms
idx = [0, 1]


def region(x):
    return x[0], x[..., 1], x[:, None], x[idx], x[torch.tensor([1, 0])], x[:, 1:3], x[-1, ::2], x[x > 2]


def change_idx():
    idx[0] = 1


# === setitem_forms
def region(x):
    y = x.clone()
    y[0, 1] = 7
    y[:, 2] = y[:, 0]
    y[y > 5] = 0
    y[torch.tensor([0])] += 1
    return y


# === split_unbind_stack
def region(x):
    a, b, c = x.unbind(1)
    p, q = torch.split(x, [1, 2], dim=1)
    t, i = x.max(1)
    s = x.sort(1)
    return torch.stack([a, b, c]), p, q, t, i, s.values, x.topk(2).indices, x.chunk(2)


# === einsum_matmul
w = nn.Parameter(torch.ones(3, 3))


def region(x):
    return torch.einsum("bi,ij->bj", x, w), x @ w, w.mm(w), F.linear(x, w), torch.bmm(x[None], w[None])


# === losses
def region(x):
    t = torch.tensor([0, 2])
    return F.cross_entropy(x, t), F.mse_loss(x, x * 2), nn.CrossEntropyLoss(label_smoothing=0.1)(x, t), F.gumbel_softmax(x)


# === sdpa
def region(q):
    return F.scaled_dot_product_attention(q, q, q, is_causal=True)


def args(i):
    return (torch.randn(1, 2, 4, 8),)


# === subclass_tensor
class T(torch.Tensor):
    pass


def region(x):
    return x * 2


def args(i):
    t = torch.ones(3)
    return (t.as_subclass(T) if i % 2 else t,)


# === parameter_list_dict
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.ps = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(2)])
        self.d = nn.ParameterDict({"a": nn.Parameter(torch.ones(3))})
        self.m = nn.ModuleDict({"l": nn.Linear(3, 3)})

    def forward(self, x):
        for p in self.ps:
            x = x * p
        for k, m in self.m.items():
            x = m(x)
        return x + self.d["a"] + len(list(self.parameters()))


region = M()


def change_params():
    region.ps.append(nn.Parameter(torch.ones(3) * 2))


def change_module():
    region.m["z"] = nn.Tanh()


# === named_parameters_loop
net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))


def region(x):
    reg = sum(p.pow(2).sum() for n, p in net.named_parameters() if n.endswith("weight"))
    return net(x) + reg


def change_freeze():
    net[0].weight.requires_grad_(False)


def change_new():
    net.add_module("2", nn.Linear(3, 3))


# === train_inside
net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))


def region(x):
    was = net.training
    net.eval()
    y = net(x)
    net.train(was)
    return y


# === ema_update
net = nn.Linear(3, 3)
ema = copy.deepcopy(net)


@torch.no_grad()
def region(x):
    for p, q in zip(net.parameters(), ema.parameters()):
        q.lerp_(p, 0.1)
    return ema(x)


def change_net():
    with torch.no_grad():
        net.weight.add_(1)


# === sgd_step: nograd
net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
region = opt.step


def args(i):
    net.weight.grad = torch.ones(3, 3)
    net.bias.grad = torch.ones(3) * i
    return ()


def change_lr():
    opt.param_groups[0]["lr"] = 0.5


# === adamw_step: nograd calls=8
net = nn.Linear(3, 3)
opt = torch.optim.AdamW(net.parameters(), lr=0.1)
region = opt.step


def args(i):
    net.weight.grad = torch.ones(3, 3)
    net.bias.grad = torch.ones(3) * i
    return ()


def change_lr():
    opt.param_groups[0]["lr"] = 0.5


def change_wd():
    opt.param_groups[0]["weight_decay"] = 0.5


# === train_step: nograd calls=5
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def region(x):
    opt.zero_grad()
    loss = net(x.detach()).pow(2).mean()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    return loss.item()


# === zero_grad_of_any_gradient: nograd calls=10
net, unreached = nn.Linear(3, 1), nn.Linear(2, 2)
opt = torch.optim.SGD([*net.parameters(), *unreached.parameters()], lr=0.1)
kept = []


def region(x):
    opt.zero_grad()
    loss = net(x.detach()).pow(2).mean()
    loss.backward()
    opt.step()
    return loss.item(), unreached.weight.grad is None


def change_gradient_of_what_no_pass_reaches():
    unreached.weight.grad = torch.ones(2, 2)


def change_gradients_gone():
    net.zero_grad()
    opt.zero_grad()


def change_gradient_is_kept():
    kept.append(net.weight.grad)


def change_gradients_share_memory():
    both = torch.ones(2, 2)
    unreached.weight.grad, unreached.bias.grad = both, both[0]


def change_to_another_method():
    opt.zero_grad = lambda: None


# === zero_grad_by_flag: nograd calls=10
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
config = {"none": True}


def region(x):
    opt.zero_grad(set_to_none=config["none"])
    loss = net(x.detach()).pow(2).mean()
    loss.backward()
    opt.step()
    return loss.item()


def change_flag():
    config["none"] = not config["none"]


def change_flag_to_a_number():
    config["none"] = 1


def change_gradients_gone():
    opt.zero_grad()


# === zero_grad_of_module_after_a_read: nograd calls=10
net = nn.Linear(3, 1)


def region(x):
    before = None if net.weight.grad is None else net.weight.grad.norm()
    net.zero_grad()
    net(x.detach()).pow(2).mean().backward()
    return before


def change_gradients_gone():
    net.zero_grad()


def change_gradient():
    net.weight.grad = torch.full((1, 3), 2.0)


# === zero_grad_of_what_is_watched: nograd calls=8
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def region(x):
    opt.zero_grad()
    return net(x.detach())


def change_gradient():
    net.weight.grad = torch.ones(1, 3)


# === grad_clip: nograd
net = nn.Linear(3, 3)


def region():
    return nn.utils.clip_grad_norm_(net.parameters(), 1.0)


def args(i):
    net.weight.grad = torch.ones(3, 3) * (i + 1)
    net.bias.grad = torch.ones(3)
    return ()


# === spectral_norm_train
from torch.nn.utils import spectral_norm

region = spectral_norm(nn.Linear(3, 3))


def change_eval():
    region.eval()


# === kwargs_forward
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, *, mask=None, return_dict=True):
        y = self.lin(x)
        if mask is not None:
            y = y * mask
        return {"y": y} if return_dict else (y,)


region = M()


def args(i):
    x = torch.ones(2, 3)
    return [((x,), {}), ((x,), {"mask": torch.ones(3)}), ((x,), {"return_dict": False}), ((x,), {"mask": None})][i % 4]


# === register_buffer_inside
class M(nn.Module):
    def forward(self, x):
        if not hasattr(self, "cache"):
            self.register_buffer("cache", torch.ones(3) * 2)
        return x * self.cache


region = M()


def change_drop():
    del region.cache


# === lazy_linear
region = nn.LazyLinear(3)

# === state_dict_inside
lin = nn.Linear(3, 3)


def region(x):
    sd = lin.state_dict()
    return lin(x), sorted(sd)


# === is_tensor_checks
v = 2.0


def region(x):
    if torch.is_tensor(v) or isinstance(v, torch.Tensor):
        return x * v.sum()
    return x * v


def change_tensor():
    global v
    v = torch.tensor([3.0])


def change_float():
    global v
    v = 2.0


# === device_dtype_args
def region(x, dtype):
    return x.to(dtype), torch.zeros(2, dtype=dtype, device=x.device)


def args(i):
    return torch.ones(3), [torch.float32, torch.float64, torch.int64][i % 3]


# === where_mask_fill
def region(x):
    m = x > 2
    return torch.where(m, x, -x), x.masked_fill(m, 0.0), x.masked_fill(~m, float("-inf")).softmax(-1)


# === cumsum_scatter
def region(x):
    y = torch.zeros(2, 4).scatter_(1, torch.tensor([[0], [3]]), 1.0)
    y.index_add_(0, torch.tensor([1]), torch.ones(1, 4))
    return x.cumsum(1), y, x.gather(1, torch.tensor([[0], [2]]))


# === error_after_mutation: nograd
emb = nn.Embedding(4, 3)
bn = nn.BatchNorm1d(3)
log = []


def region(x, i):
    log.append("in")
    y = bn(x.detach())
    z = y + emb(i)
    log.append("out")
    return z


def args(i):
    return torch.randn(2, 3), torch.tensor([1, 9 if i in (2, 4) else 2])


# === error_in_modes: nograd
emb = nn.Embedding(4, 3)


def region(i):
    with torch.no_grad():
        with torch.autocast("cpu", torch.bfloat16):
            x = torch.nn.functional.dropout(torch.ones(3), 0.5)
            return emb(i) + x


def args(i):
    return (torch.tensor([1, 9 if i in (2, 4) else 2]),)


# === error_caught_inside
emb = nn.Embedding(4, 3)


def region(i):
    try:
        return emb(i)
    except IndexError:
        return torch.zeros(3)


def args(i):
    return (torch.tensor([1, 9 if i in (0, 2, 4) else 2]),)


# === branch_inside_modes: calls=8
lin = nn.Linear(3, 3)


def region(x):
    with torch.no_grad():
        with torch.autocast("cpu", torch.bfloat16):
            y = lin(x.detach())
            if x.sum() > 40:
                y = y * 2
            z = lin(y)
    return z + x


def args(i):
    return (torch.full((2, 3), [1.0, 9.0, 2.0, 3.0, 9.0, 1.0, 1.0, 8.0][i % 8], requires_grad=True),)


# === integer_division: nograd
def region(x, y):
    return x // y


def args(i):
    return torch.tensor([4]), torch.tensor([0 if i == 3 else 2])


# === expanded_memory_put_back: calls=8, refused
p = torch.zeros(3)


def args(i):
    return (torch.full((1,), -1.0 if i % 4 == 3 else i + 1.0).expand(2, 3).clone()[:1].expand(2, 3),)


def region(x):
    p.data = x[0]
    p.mul_(2)
    assert x.sum() > 0, "negative"
    return p * 2


# === buffer_asked_for_through_getattribute
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.ones(3))

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)

    def forward(self, x):
        if not hasattr(self, "cache"):
            self.register_buffer("cache", torch.ones(3) * 2)
        return x * 2


region = M()


def change_drop():
    del region.cache


# === adam_of_channels_last_weights
net = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
opt = torch.optim.Adam(net.parameters(), lr=0.1)


def region(x):
    opt.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    opt.step()
    moment = opt.state[net.weight]["exp_avg"]
    return loss.detach(), torch.rand_like(moment), (moment * 2).stride()


def args(i):
    return (torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last) + i,)


def change_layout_of_moment():
    moment = opt.state[net.weight]["exp_avg"] if net.weight in opt.state else None
    if moment is not None:
        opt.state[net.weight]["exp_avg"] = moment.contiguous()


# === adam_of_channels_last_weights_by_lists
net = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
opt = torch.optim.Adam(net.parameters(), lr=0.1, foreach=True)


def region(x):
    opt.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    opt.step()
    moment = opt.state[net.weight]["exp_avg"]
    return loss.detach(), torch.rand_like(moment)


def args(i):
    return (torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last) + i,)


# === lerp_of_other_strides
slow = torch.randn(4, 3).t()
fast = torch.randn(3, 4)


def region(x):
    slow.lerp_(fast * x, 0.25)
    other = slow * 2
    return other, torch.rand_like(other), other.stride()


def args(i):
    return (torch.ones(3, 4) + i,)


def change_fast():
    global fast
    fast = torch.randn(4, 3).t()


# === lerp_of_equal_strides
slow = torch.randn(4, 3).t()


def region(x, weight):
    slow.lerp_(x, weight)
    other = slow * 2
    return other, torch.rand_like(other), other.stride()


def args(i):
    return torch.randn(4, 3).t() + i, torch.tensor(0.25)
