"""Schedules, optimizers and what else stands between a gradient and its parameter."""

# mypy: disable-error-code="no-any-return,union-attr,operator,misc,arg-type"

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations
from torch.optim import lr_scheduler as S
from torch.optim.swa_utils import SWALR, AveragedModel
from torch.utils.checkpoint import checkpoint

from tests.programs.patterns.pattern import Made, labelled, net, pattern, points, sgd


def _scheduled(make: Any, **options: Any) -> Made:
    model, (x, y) = net(), points()
    opt = sgd(model, **options)
    scheduler = make(opt)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        scheduler.step()
        return loss.item()

    return step, lambda: (model, opt, scheduler.last_epoch, scheduler.get_last_lr())


@pattern
def step_lr() -> Made:
    return _scheduled(lambda opt: S.StepLR(opt, step_size=5, gamma=0.5))


@pattern
def multi_step_lr() -> Made:
    return _scheduled(lambda opt: S.MultiStepLR(opt, milestones=[8, 20], gamma=0.1))


@pattern
def cosine_annealing() -> Made:
    return _scheduled(lambda opt: S.CosineAnnealingLR(opt, T_max=30))


@pattern
def one_cycle_with_momentum() -> Made:
    return _scheduled(lambda opt: S.OneCycleLR(opt, max_lr=0.1, total_steps=40), momentum=0.9)


@pattern
def lambda_lr_warmup() -> Made:
    """transformers' linear schedule with warm-up."""

    def lr_lambda(current_step: int) -> float:
        if current_step < 5:
            return float(current_step) / float(max(1, 5))
        return max(0.0, float(30 - current_step) / float(max(1, 30 - 5)))

    return _scheduled(lambda opt: S.LambdaLR(opt, lr_lambda))


@pattern
def exponential_lr() -> Made:
    return _scheduled(lambda opt: S.ExponentialLR(opt, gamma=0.95))


@pattern
def warm_restarts() -> Made:
    return _scheduled(lambda opt: S.CosineAnnealingWarmRestarts(opt, T_0=6, T_mult=2))


@pattern
def sequential_warmup_cosine() -> Made:
    return _scheduled(
        lambda opt: S.SequentialLR(opt, [S.LinearLR(opt, 0.1, total_iters=5), S.CosineAnnealingLR(opt, 25)], [5])
    )


@pattern
def scheduler_every_epoch() -> Made:
    model, (x, y), n = net(), points(), 0
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = S.StepLR(opt, 2, 0.5)

    def step() -> Any:
        nonlocal n
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        n += 1
        if n % 6 == 0:
            scheduler.step()
            print("lr", scheduler.get_last_lr()[0])
        return loss.item()

    return step, lambda: (model, opt, n)


@pattern
def groups_with_own_rates() -> Made:
    model, (x, y), base = net(), points(), [0.1, 0.01]
    opt = torch.optim.AdamW(
        [
            {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0},
        ],
        lr=0.01,
    )

    def step(i: int) -> Any:
        for group, lr in zip(opt.param_groups, base):
            group["lr"] = lr * (1 - i / 30)
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def gan_two_optimizers() -> Made:
    generator, critic = nn.Linear(3, 4), net(1)
    g_opt = torch.optim.Adam(generator.parameters(), lr=0.01, betas=(0.5, 0.999))
    d_opt = torch.optim.Adam(critic.parameters(), lr=0.01, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()

    def step(x: torch.Tensor) -> Any:
        real, false = torch.ones(len(x), 1), torch.zeros(len(x), 1)
        d_opt.zero_grad()
        fake = generator(torch.randn(len(x), 3))
        d_loss = criterion(critic(x), real) + criterion(critic(fake.detach()), false)
        d_loss.backward()
        d_opt.step()
        g_opt.zero_grad()
        g_loss = criterion(critic(fake), real)
        g_loss.backward()
        g_opt.step()
        return d_loss.item(), g_loss.item()

    return step, lambda: (generator, critic, g_opt, d_opt)


@pattern
def wgan_gradient_penalty() -> Made:
    critic = net(1)
    opt = torch.optim.Adam(critic.parameters(), lr=0.01)

    def step(x: torch.Tensor) -> Any:
        fake = torch.randn_like(x)
        alpha = torch.rand(len(x), 1)
        mixed = (alpha * x + (1 - alpha) * fake).requires_grad_(True)
        out = critic(mixed)
        (gradient,) = torch.autograd.grad(out, mixed, torch.ones_like(out), create_graph=True, retain_graph=True)
        penalty = ((gradient.norm(2, dim=1) - 1) ** 2).mean()
        loss = critic(fake).mean() - critic(x).mean() + 10 * penalty
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item(), penalty.item()

    return step, lambda: (critic, opt)


@pattern
def wgan_weight_clipping() -> Made:
    critic, generator, n = net(1), nn.Linear(3, 4), 0
    c_opt, g_opt = torch.optim.RMSprop(critic.parameters(), lr=0.01), torch.optim.RMSprop(generator.parameters(), lr=0.01)

    def step(x: torch.Tensor) -> Any:
        nonlocal n
        c_opt.zero_grad()
        loss = critic(generator(torch.randn(6, 3)).detach()).mean() - critic(x).mean()
        loss.backward()
        c_opt.step()
        for p in critic.parameters():
            p.data.clamp_(-0.1, 0.1)
        n += 1
        if n % 5 == 0:
            g_opt.zero_grad()
            (-critic(generator(torch.randn(6, 3))).mean()).backward()
            g_opt.step()
        return loss.item()

    return step, lambda: (critic, generator, c_opt, g_opt, n)


@pattern
def swa_from_a_step() -> Made:
    model, (x, y) = net(), points()
    opt, averaged = sgd(model), AveragedModel(model)
    swa, plain = SWALR(opt, swa_lr=0.02, anneal_epochs=3), S.CosineAnnealingLR(opt, 30)

    def step(i: int) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        if i >= 8:
            averaged.update_parameters(model)
            swa.step()
        else:
            plain.step()
        return loss.item()

    return step, lambda: (model, opt, averaged.module, averaged.n_averaged)


@pattern
def ema_by_hand() -> Made:
    model, (x, y) = net(), points()
    ema, opt = copy.deepcopy(model), sgd(model)
    ema.requires_grad_(False)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        with torch.no_grad():
            for e, p in zip(ema.parameters(), model.parameters()):
                e.lerp_(p, 0.01)
        return loss.item()

    return step, lambda: (model, ema, opt)


@pattern
def accumulation_without_sync() -> Made:
    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module, self.sync = net(), True

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.module(x)

        @contextlib.contextmanager
        def no_sync(self) -> Iterator[None]:
            before, self.sync = self.sync, False
            try:
                yield
            finally:
                self.sync = before

    model, n = Wrapped(), 0
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        nonlocal n
        n += 1
        last = n % 3 == 0
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.mse_loss(model(x), y) / 3
            loss.backward()
        if last:
            opt.step()
            opt.zero_grad()
        return loss.item()

    return step, lambda: (model, opt, n)


@pattern
def zero_grad_to_zeros() -> Made:
    model, (x, y) = net(), points()
    opt = sgd(model, momentum=0.9, nesterov=True)

    def step() -> Any:
        opt.zero_grad(set_to_none=False)
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def unfreeze_at_a_step() -> Made:
    model, (x, y) = net(), points()
    model[0].requires_grad_(False)
    opt = sgd(model)

    def step(i: int) -> Any:
        if i == 10:
            for p in model[0].parameters():
                p.requires_grad = True
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def frozen_norm_after_a_step() -> Made:
    model, (x, y) = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)), points()
    opt = sgd(model)

    def step(i: int) -> Any:
        model.train()
        if i > 8:
            for module in model.modules():
                if isinstance(module, nn.BatchNorm1d):
                    module.eval()
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def weight_norm() -> Made:
    model = nn.Sequential(parametrizations.weight_norm(nn.Linear(4, 8)), nn.Tanh(), nn.Linear(8, 2))
    opt, (x, y) = sgd(model), points()

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def spectral_norm() -> Made:
    model = nn.Sequential(parametrizations.spectral_norm(nn.Linear(4, 8)), nn.LeakyReLU(0.2), nn.Linear(8, 2))
    opt, (x, y) = sgd(model), points()

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def clip_by_value() -> Made:
    model, (x, y) = net(), points()
    opt = torch.optim.Adagrad(model.parameters(), lr=0.05)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), clip_value=0.1)
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def clip_by_history() -> Made:
    """AutoClip: the threshold is a percentile of the norms so far."""
    model, (x, y), history = net(), points(), []
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        total = sum(p.grad.norm(2).item() ** 2 for p in model.parameters() if p.grad is not None) ** 0.5
        history.append(total)
        clip = sorted(history)[int(0.5 * (len(history) - 1))]
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, history)


@pattern
def sam_two_passes() -> Made:
    model, (x, y), rho = net(), points(), 0.05
    opt = sgd(model)

    def step() -> Any:
        loss = F.mse_loss(model(x), y)
        loss.backward()
        moved = []
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            for p in model.parameters():
                e = p.grad * (rho / (norm + 1e-12))
                p.add_(e)
                moved.append(e)
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        with torch.no_grad():
            for p, e in zip(model.parameters(), moved):
                p.sub_(e)
        opt.step()
        opt.zero_grad()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def lookahead() -> Made:
    class Lookahead:
        def __init__(self, optimizer: torch.optim.Optimizer, k: int = 5, alpha: float = 0.5) -> None:
            self.optimizer, self.k, self.alpha, self.counter = optimizer, k, alpha, 0
            self.slow = [[p.clone().detach() for p in group["params"]] for group in optimizer.param_groups]

        def step(self) -> None:
            self.optimizer.step()
            self.counter += 1
            if self.counter % self.k == 0:
                with torch.no_grad():
                    for group, slow in zip(self.optimizer.param_groups, self.slow):
                        for p, q in zip(group["params"], slow):
                            q.add_(p - q, alpha=self.alpha)
                            p.copy_(q)

    model, (x, y) = net(), points()
    opt = Lookahead(sgd(model))

    def step() -> Any:
        opt.optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def sgd_by_hand() -> Made:
    model, (x, y), lr = net(), points(), 0.1

    def step() -> Any:
        nonlocal lr
        loss = F.mse_loss(model(x), y)
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= lr * p.grad
                p.grad = None
        lr *= 0.98
        return loss.item()

    return step, lambda: (model, lr)


@pattern
def sgd_by_hand_on_data() -> Made:
    """word_language_model's."""
    model, (x, y), lr = net(), points(), 0.1

    def step() -> Any:
        model.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        return loss.item()

    return step, lambda: model


@pattern
def moco_queue() -> Made:
    class MoCo(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder_q, self.encoder_k, self.K = net(3), net(3), 12
            for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
                k.data.copy_(q.data)
                k.requires_grad = False
            self.register_buffer("queue", F.normalize(torch.randn(3, self.K), dim=0))
            self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

        @torch.no_grad()
        def _enqueue(self, keys: torch.Tensor) -> None:
            ptr = int(self.queue_ptr)
            self.queue[:, ptr : ptr + len(keys)] = keys.T
            self.queue_ptr[0] = (ptr + len(keys)) % self.K

        def forward(self, im_q: torch.Tensor, im_k: torch.Tensor) -> torch.Tensor:
            q = F.normalize(self.encoder_q(im_q), dim=1)
            with torch.no_grad():
                for a, b in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
                    b.data = b.data * 0.99 + a.data * 0.01
                k = F.normalize(self.encoder_k(im_k), dim=1)
            positive = (q * k).sum(1, keepdim=True)
            logits = torch.cat([positive, q @ self.queue.clone().detach()], 1)
            self._enqueue(k)
            return logits / 0.07

    model = MoCo()
    opt = torch.optim.SGD(model.encoder_q.parameters(), lr=0.05)

    def step(x: torch.Tensor) -> Any:
        logits = model(x, x + 0.1)
        loss = F.cross_entropy(logits, torch.zeros(len(x), dtype=torch.long))
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def queue_with_python_pointer() -> Made:
    model, queue, pointer = net(3), torch.randn(12, 3), 0
    opt = sgd(model)

    def step(x: torch.Tensor) -> Any:
        nonlocal pointer
        z = F.normalize(model(x), dim=1)
        loss = (z @ queue.t()).logsumexp(1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        queue[pointer : pointer + len(x)] = z.detach()
        pointer = (pointer + len(x)) % len(queue)
        return loss.item()

    return step, lambda: (model, opt, queue, pointer)


@pattern
def byol_momentum_schedule() -> Made:
    online, target, predictor, n = net(3), net(3), nn.Linear(3, 3), 0
    opt = torch.optim.SGD([*online.parameters(), *predictor.parameters()], lr=0.05)

    def step(x: torch.Tensor) -> Any:
        nonlocal n
        with torch.no_grad():
            wanted = F.normalize(target(x + 0.1), dim=1)
        loss = 2 - 2 * (F.normalize(predictor(online(x)), dim=1) * wanted).sum(1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        m = 1 - (1 - 0.99) * (torch.cos(torch.tensor(torch.pi * n / 30)).item() + 1) / 2
        for a, b in zip(online.parameters(), target.parameters()):
            b.data.mul_(m).add_((1 - m) * a.detach().data)
        n += 1
        return loss.item()

    return step, lambda: (online, target, predictor, opt, n)


@pattern
def hooks_store_activations() -> Made:
    model, (x, y), activations = net(), points(), {}

    def keep(name: str) -> Any:
        def hook(module: nn.Module, args: Any, output: torch.Tensor) -> None:
            activations[name] = output.detach()

        return hook

    for name, module in model.named_children():
        module.register_forward_hook(keep(name))
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y) + 0.01 * activations["0"].abs().mean()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, activations)


@pattern
def hooks_for_one_call() -> Made:
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step() -> Any:
        features: list[torch.Tensor] = []
        handle = model[1].register_forward_hook(lambda module, args, output: features.append(output))
        out = model(x)
        handle.remove()
        loss = F.mse_loss(out, y) + 0.01 * features[0].pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def autocast_bfloat16() -> Made:
    model, (x, labels) = net(), labelled()
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad(set_to_none=True)
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), labels)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def grad_scaler_disabled() -> Made:
    model, (x, y) = net(), points()
    opt, scaler = sgd(model), torch.amp.GradScaler("cpu", enabled=False)

    def step() -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
            loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def grad_scaler_enabled() -> Made:
    model, (x, y) = net(), points()
    opt, scaler = sgd(model), torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=8)

    def step() -> Any:
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.mse_loss(model(x).float(), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        return loss.item()

    return step, lambda: (model, opt, scaler.state_dict())


@pattern
def checkpointed_layers() -> Made:
    model, (x, y) = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)]), points()
    opt = sgd(model)

    def step() -> Any:
        h = x
        for k, layer in enumerate(model):
            h = checkpoint(layer, h, use_reentrant=False) if k % 2 == 0 else layer(h).relu()
        loss = F.mse_loss(h, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def weights_by_hand() -> Made:
    """As in tutorials: no optimizer, and writes through `.data`."""
    model, state = net(), {"lr": 0.05}

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        loss = F.mse_loss(model(x), y)
        loss.backward()
        for p in model.parameters():
            p.data -= state["lr"] * p.grad.data
        model.zero_grad()
        state["lr"] *= 0.99
        return loss.item()

    return step, lambda: (model, state)
