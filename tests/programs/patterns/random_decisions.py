"""Decisions that random numbers of Python, NumPy and torch make: augmentations, dropped layers, sampled batches."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.patterns.pattern import Made, labelled, net, pattern, points, sgd


def conv() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))


def images() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(4, 1, 8, 8), torch.randint(2, (4,))


@pattern
def random_crop() -> Made:
    model, (x, labels) = conv(), images()
    opt = sgd(model)

    def step() -> Any:
        padded = F.pad(x, (2, 2, 2, 2))
        top, left = random.randint(0, 4), random.randint(0, 4)
        cropped = padded[:, :, top : top + 8, left : left + 8]
        opt.zero_grad()
        loss = F.cross_entropy(model(cropped), labels)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def random_crop_torch() -> Made:
    model, (x, labels) = conv(), images()
    opt = sgd(model)

    def step() -> Any:
        i = int(torch.randint(0, 3, (1,)).item())
        j = int(torch.randint(0, 3, (1,)).item())
        opt.zero_grad()
        loss = F.cross_entropy(model(x[..., i : i + 6, j : j + 6]), labels)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def random_resized_crop() -> Made:
    model, (x, labels) = conv(), images()
    opt = sgd(model)

    def step() -> Any:
        size = random.choice([5, 6, 7, 8])
        top = random.randint(0, 8 - size)
        view = F.interpolate(x[:, :, top : top + size, top : top + size], size=(8, 8), mode="bilinear")
        opt.zero_grad()
        loss = F.cross_entropy(model(view), labels)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def random_erasing() -> Made:
    model, (x, labels) = conv(), images()
    opt = sgd(model)

    def step() -> Any:
        view = x.clone()
        if random.random() < 0.5:
            h, w = random.randint(1, 4), random.randint(1, 4)
            top, left = random.randint(0, 8 - h), random.randint(0, 8 - w)
            view[:, :, top : top + h, left : left + w] = 0
        opt.zero_grad()
        loss = F.cross_entropy(model(view), labels)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def random_flip() -> Made:
    model, (x, labels) = conv(), images()
    opt = sgd(model)

    def step() -> Any:
        view = torch.flip(x, dims=[3]) if random.random() < 0.5 else x
        opt.zero_grad()
        loss = F.cross_entropy(model(view), labels)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def random_flip_torch() -> Made:
    model, (x, labels) = conv(), images()
    opt = sgd(model)

    def step() -> Any:
        view = x.flip(-1) if torch.rand(1) < 0.5 else x
        opt.zero_grad()
        loss = F.cross_entropy(model(view), labels)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def random_rotation_by_quarters() -> Made:
    """Self-supervision by rotation: the number of quarters is the class."""
    model, (x, _) = nn.Sequential(conv(), nn.Linear(2, 4)), images()
    opt = sgd(model)

    def step() -> Any:
        k = np.random.randint(4)
        opt.zero_grad()
        loss = F.cross_entropy(model(torch.rot90(x, int(k), (2, 3))), torch.full((4,), int(k)))
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


def rand_bbox(size: torch.Size, lam: float) -> tuple[int, int, int, int]:
    """CutMix's."""
    w, h = size[2], size[3]
    cut_rat = np.sqrt(1.0 - lam)
    cut_w, cut_h = int(w * cut_rat), int(h * cut_rat)
    cx, cy = np.random.randint(w), np.random.randint(h)
    x1, y1 = int(np.clip(cx - cut_w // 2, 0, w)), int(np.clip(cy - cut_h // 2, 0, h))
    x2, y2 = int(np.clip(cx + cut_w // 2, 0, w)), int(np.clip(cy + cut_h // 2, 0, h))
    return x1, y1, x2, y2


@pattern
def cutmix() -> Made:
    model, (x, labels) = conv(), images()
    opt = sgd(model)

    def step() -> Any:
        inputs = x.clone()
        lam = np.random.beta(1.0, 1.0)
        index = torch.randperm(inputs.size(0))
        x1, y1, x2, y2 = rand_bbox(inputs.size(), lam)
        inputs[:, :, x1:x2, y1:y2] = inputs[index, :, x1:x2, y1:y2]
        lam = 1 - (x2 - x1) * (y2 - y1) / (inputs.size(-1) * inputs.size(-2))
        out = model(inputs)
        loss = F.cross_entropy(out, labels) * lam + F.cross_entropy(out, labels[index]) * (1.0 - lam)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def cutmix_in_torch() -> Made:
    model, (x, labels) = conv(), images()
    opt = sgd(model)

    def step() -> Any:
        lam = random.random()
        r = 0.5 * math.sqrt(1.0 - lam)
        cx, cy = torch.randint(8, (1,)).item(), torch.randint(8, (1,)).item()
        x1, x2 = max(int(cx - r * 8), 0), min(int(cx + r * 8), 8)
        y1, y2 = max(int(cy - r * 8), 0), min(int(cy + r * 8), 8)
        view = x.clone()
        view[..., y1:y2, x1:x2] = x.roll(1, 0)[..., y1:y2, x1:x2]
        lam = 1.0 - (x2 - x1) * (y2 - y1) / 64
        target = F.one_hot(labels, 2) * lam + F.one_hot(labels.roll(1), 2) * (1 - lam)
        opt.zero_grad()
        loss = F.cross_entropy(model(view), target)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def mixup_betavariate() -> Made:
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step() -> Any:
        lam = random.betavariate(0.4, 0.4)
        index = torch.randperm(len(x))
        opt.zero_grad()
        out = model(lam * x + (1 - lam) * x[index])
        loss = lam * F.mse_loss(out, y) + (1 - lam) * F.mse_loss(out, y[index])
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def mixup_numpy_beta() -> Made:
    model, (x, labels), alpha = net(), labelled(), 0.2
    opt = sgd(model)

    def step() -> Any:
        lam = np.random.beta(alpha, alpha) if alpha > 0 else 1
        index = torch.randperm(x.size(0))
        mixed_x = lam * x + (1 - lam) * x[index, :]
        out = model(mixed_x)
        loss = lam * F.cross_entropy(out, labels) + (1 - lam) * F.cross_entropy(out, labels[index])
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def mixup_torch_beta() -> Made:
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step() -> Any:
        lam = torch.distributions.Beta(0.4, 0.4).sample((len(x), 1))
        opt.zero_grad()
        loss = F.mse_loss(model(x.lerp(x.flip(0), lam)), y.lerp(y.flip(0), lam))
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def teacher_forcing_whole_sequence() -> Made:
    cell, head, table = nn.GRUCell(4, 8), nn.Linear(8, 5), nn.Embedding(5, 4)
    targets = torch.randint(5, (3, 4))
    opt = torch.optim.SGD([*cell.parameters(), *head.parameters(), *table.parameters()], lr=0.1)

    def step() -> Any:
        use_teacher_forcing = random.random() < 0.5
        h, token, loss = torch.zeros(3, 8), torch.zeros(3, dtype=torch.long), torch.zeros(())
        for t in range(4):
            h = cell(table(token), h)
            out = head(h)
            loss = loss + F.cross_entropy(out, targets[:, t])
            token = targets[:, t] if use_teacher_forcing else out.argmax(1).detach()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item() / 4

    return step, lambda: (cell, head, table, opt)


@pattern
def teacher_forcing_each_token() -> Made:
    cell, head, table = nn.GRUCell(4, 8), nn.Linear(8, 5), nn.Embedding(5, 4)
    targets = torch.randint(5, (3, 3))
    opt = torch.optim.SGD([*cell.parameters(), *head.parameters(), *table.parameters()], lr=0.1)

    def step() -> Any:
        h, token, loss = torch.zeros(3, 8), torch.zeros(3, dtype=torch.long), torch.zeros(())
        for t in range(3):
            h = cell(table(token), h)
            out = head(h)
            loss = loss + F.cross_entropy(out, targets[:, t])
            teacher_force = random.random() < 0.5
            token = targets[:, t] if teacher_force else out.argmax(1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (cell, head, table, opt)


class Residual(nn.Module):
    def __init__(self, layers: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(layers))


@pattern
def stochastic_depth() -> Made:
    class Net(Residual):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for k, layer in enumerate(self.layers):
                if self.training and random.random() < 0.2 * k:
                    continue
                x = x + torch.relu(layer(x))
            return x

    model, x = Net(), torch.randn(8, 4)
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def drop_path_per_sample() -> Made:
    class Net(Residual):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                keep = torch.rand(len(x), 1).add_(0.8).floor_()
                x = x + torch.relu(layer(x)) / 0.8 * keep
            return x

    model, x = Net(), torch.randn(8, 4)
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def layer_drop() -> Made:
    class Net(Residual):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                if np.random.random() > 0.1 or not self.training:  # wav2vec's
                    x = torch.tanh(layer(x))
            return x

    model, x = Net(4), torch.randn(8, 4)
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = (model(x) - 1).pow(2).mean()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def modality_dropout() -> Made:
    audio, video, head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(8, 2)
    a, v, labels = torch.randn(6, 4), torch.randn(6, 4), torch.randint(2, (6,))
    opt = torch.optim.SGD([*audio.parameters(), *video.parameters(), *head.parameters()], lr=0.1)

    def step() -> Any:
        f, g = audio(a), video(v)
        if random.random() < 0.5:
            if random.random() < 0.5:
                f = torch.zeros_like(f)
            else:
                g = torch.zeros_like(g)
        loss = F.cross_entropy(head(torch.cat([f, g], 1)), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (audio, video, head, opt)


@pattern
def classifier_free_guidance() -> Made:
    model, condition = nn.Linear(8, 4), nn.Embedding(3, 4)
    x, c = torch.randn(6, 4), torch.randint(3, (6,))
    opt = torch.optim.SGD([*model.parameters(), *condition.parameters()], lr=0.1)

    def step() -> Any:
        context = condition(c)
        if np.random.rand() < 0.1:
            context = torch.zeros_like(context)
        noise = torch.randn_like(x)
        loss = F.mse_loss(model(torch.cat([x + noise, context], 1)), noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, condition, opt)


@pattern
def choice_of_augmentation() -> Made:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * 1.5

    def noisy(x: torch.Tensor) -> torch.Tensor:
        return x + 0.1 * torch.randn_like(x)

    def shifted(x: torch.Tensor) -> torch.Tensor:
        return x.roll(1, 1)

    model, (x, y), augmentations = net(), points(), [scaled, noisy, shifted]
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(random.choice(augmentations)(x)), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def rand_augment() -> Made:
    operations = [
        lambda x, m: x + 0.1 * m,
        lambda x, m: x * (1 + 0.1 * m),
        lambda x, m: x.clamp(-m, m),
        lambda x, m: x.roll(1, 0),
    ]
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step() -> Any:
        view = x
        for operation in random.choices(operations, k=2):
            view = operation(view, random.uniform(0.5, 1.5))
        opt.zero_grad()
        loss = F.mse_loss(model(view), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def randperm_batches() -> Made:
    model, (x, y) = net(), points(16)
    opt = sgd(model)

    def step() -> Any:
        index = torch.randperm(16)
        total = 0.0
        for start in range(0, 16, 8):
            batch = index[start : start + 8]
            opt.zero_grad()
            loss = F.mse_loss(model(x[batch]), y[batch])
            loss.backward()
            opt.step()
            total += loss.item()
        return total

    return step, lambda: (model, opt)


@pattern
def shuffled_indices() -> Made:
    model, (x, y), order, position = net(), points(12), list(range(12)), 0
    opt = sgd(model)

    def step() -> Any:
        nonlocal position
        if position == 0:
            random.shuffle(order)
        batch = order[position : position + 4]
        position = (position + 4) % 12
        opt.zero_grad()
        loss = F.mse_loss(model(x[batch]), y[batch])
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, order, position)


@pattern
def numpy_choice_of_rows() -> Made:
    model, (x, y) = net(), points(16)
    opt = sgd(model)

    def step() -> Any:
        index = np.random.choice(16, 4, replace=False)
        rows = torch.as_tensor(index)
        opt.zero_grad()
        loss = F.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def rows_dropped_by_numpy_mask() -> Made:
    model = net()
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        keep = np.random.rand(len(x)) > 0.25
        opt.zero_grad()
        loss = F.mse_loss(model(x)[keep], y[keep], reduction="sum") / len(x)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def nanogpt_get_batch() -> Made:
    data, model = torch.randint(10, (100,)), nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 10))
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)

    def step() -> Any:
        ix = torch.randint(len(data) - 6, (4,))
        x = torch.stack([data[i : i + 6] for i in ix])
        y = torch.stack([data[i + 1 : i + 7] for i in ix])
        logits = model(x)
        loss = F.cross_entropy(logits.view(-1, 10), y.view(-1))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def gumbel_noise() -> Made:
    model, x = net(4), torch.randn(8, 4)
    opt = sgd(model)

    def step() -> Any:
        logits = model(x)
        gumbel = -torch.log(-torch.log(torch.rand_like(logits).clamp_min(1e-9)))
        soft = ((logits + gumbel) / 0.7).softmax(1)
        hard = F.one_hot(soft.argmax(1), 4) + soft - soft.detach()
        loss = F.mse_loss(hard, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def random_sign() -> Made:
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step() -> Any:
        sign = random.choice((-1, 1))
        opt.zero_grad()
        loss = F.mse_loss(model(sign * x), sign * y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def random_length() -> Made:
    rnn, x = nn.GRU(4, 8, batch_first=True), torch.randn(3, 10, 4)
    opt = sgd(rnn)

    def step() -> Any:
        n = random.randint(4, 10)
        opt.zero_grad()
        loss = rnn(x[:, :n])[0].pow(2).mean()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (rnn, opt)


@pattern
def bptt_length_numpy() -> Made:
    """AWD-LSTM's: the length of a window is drawn, and the rate follows it."""
    rnn, data = nn.LSTM(4, 8), torch.randn(12, 3, 4)
    opt = sgd(rnn)

    def step() -> Any:
        bptt = 8.0 if np.random.random() < 0.95 else 4.0
        seq_len = min(max(3, int(np.random.normal(bptt, 2))), 12)
        lr = opt.param_groups[0]["lr"]
        opt.param_groups[0]["lr"] = lr * seq_len / 8
        opt.zero_grad()
        loss = rnn(data[:seq_len])[0].pow(2).mean()
        loss.backward()
        opt.step()
        opt.param_groups[0]["lr"] = lr
        return loss.item()

    return step, lambda: (rnn, opt)


@pattern
def diffusion_timestep() -> Made:
    model, x = nn.Linear(5, 4), torch.randn(8, 4)
    alphas = torch.linspace(0.99, 0.1, 10)
    opt = sgd(model)

    def step() -> Any:
        t = torch.randint(0, 10, (len(x),))
        noise = torch.randn_like(x)
        a = alphas[t][:, None]
        noisy = a.sqrt() * x + (1 - a).sqrt() * noise
        loss = F.mse_loss(model(torch.cat([noisy, t[:, None] / 10], 1)), noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def own_random_instance() -> Made:
    model, (x, y), rng = net(), points(), random.Random(3)
    opt = sgd(model)

    def step() -> Any:
        scale = rng.uniform(0.8, 1.2)
        opt.zero_grad()
        loss = F.mse_loss(model(x * scale), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, rng)


@pattern
def numpy_generator() -> Made:
    model, (x, y), rng = net(), points(), np.random.default_rng(3)
    opt = sgd(model)

    def step() -> Any:
        scale = float(rng.normal(1.0, 0.1))
        opt.zero_grad()
        loss = F.mse_loss(model(x * scale), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, str(rng.bit_generator.state))


@pattern
def masked_tokens() -> Made:
    tokens, model = torch.randint(2, 10, (3, 6)), nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 10))
    opt = torch.optim.Adam(model.parameters(), lr=0.01)

    def step() -> Any:
        masked = torch.bernoulli(torch.full(tokens.shape, 0.3)).bool()
        inputs = tokens.masked_fill(masked, 0)
        labels = tokens.masked_fill(~masked, -100)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), labels.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)
