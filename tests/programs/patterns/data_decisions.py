"""Decisions on what tensors hold: checks, best values, masks, experts, sequences until they end."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import copy
import io
import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from tests.programs.patterns.pattern import Made, labelled, net, pattern, points, sgd


@pattern
def nan_check_raises() -> Made:
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step() -> Any:
        loss = F.mse_loss(model(x), y)
        if torch.isnan(loss):
            raise ValueError("loss is nan")
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def math_isfinite_raises() -> Made:
    """torchvision's references: the value is checked as a Python number."""
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step() -> Any:
        loss = F.mse_loss(model(x), y)
        loss_value = loss.item()
        if not math.isfinite(loss_value):
            raise FloatingPointError(f"Loss is {loss_value}, stopping training")
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss_value

    return step, lambda: (model, opt)


@pattern
def nan_step_is_skipped() -> Made:
    model, (x, y), skipped = net(), points(), [0]
    opt = sgd(model)

    def step(i: int) -> Any:
        target = y * float("nan") if i == 8 else y
        loss = F.mse_loss(model(x), target)
        if torch.isnan(loss).any():
            skipped[0] += 1
            return None
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, skipped)


@pattern
def nan_gradients_are_skipped() -> Made:
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        valid = True
        for _, p in model.named_parameters():
            if p.grad is not None:
                valid = not (torch.isnan(p.grad).any() or torch.isinf(p.grad).any())
                if not valid:
                    break
        if not valid:
            opt.zero_grad()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def assert_isfinite() -> Made:
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step() -> Any:
        loss = F.mse_loss(model(x), y)
        assert torch.isfinite(loss).all(), "loss diverged"
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach()

    return step, lambda: (model, opt)


@pattern
def best_loss_decides() -> Made:
    model, best = net(), {"loss": float("inf"), "step": -1}
    opt = sgd(model)

    def step(i: int, x: torch.Tensor, y: torch.Tensor) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        if loss.item() < best["loss"]:
            best["loss"], best["step"] = loss.item(), i

    return step, lambda: (model, opt, best)


@pattern
def best_model_saved() -> Made:
    model, best, saved = net(), float("inf"), [0]
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        nonlocal best
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        if loss.item() < best:
            best = loss.item()
            file = io.BytesIO()
            torch.save(model.state_dict(), file)
            saved[0] += 1
        return loss.item()

    return step, lambda: (model, opt, best, saved)


@pattern
def best_weights_copied() -> Made:
    model, best, weights = net(), float("inf"), {}
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        nonlocal best, weights
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        if loss.item() < best:
            best = loss.item()
            weights = copy.deepcopy(model.state_dict())
        return best

    return step, lambda: (model, opt, best, weights)


@pattern
def reduce_on_plateau() -> Made:
    model = net()
    opt = sgd(model)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=3)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        scheduler.step(loss.item())
        return loss.item()

    return step, lambda: (model, opt, scheduler.num_bad_epochs, scheduler.best)


@pattern
def early_stopping() -> Made:
    class EarlyStopping:
        def __init__(self, patience: int = 7, delta: float = 0.0) -> None:
            self.patience, self.delta, self.counter = patience, delta, 0
            self.best_score: float | None = None
            self.early_stop = False

        def __call__(self, val_loss: float) -> None:
            score = -val_loss
            if self.best_score is None:
                self.best_score = score
            elif score < self.best_score + self.delta:
                self.counter += 1
                if self.counter >= self.patience:
                    self.early_stop = True
            else:
                self.best_score = score
                self.counter = 0

    model, stopping = net(), EarlyStopping()
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        stopping(loss.item())
        return stopping.early_stop

    return step, lambda: (model, opt, stopping)


@pattern
def gradient_norm_threshold() -> Made:
    model, large = net(), [0]
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if norm > 0.9:
            large[0] += 1
        opt.step()
        return norm.item()

    return step, lambda: (model, opt, large)


@pattern
def step_skipped_at_large_norm() -> Made:
    model = net()
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        total = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
        if total.item() < 1.0:
            opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def lbfgs_closure() -> Made:
    model, (x, y) = net(), points()
    opt = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)

    def step() -> Any:
        def closure() -> float:
            opt.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss  # type: ignore[return-value]

        return opt.step(closure).item()

    return step, lambda: (model, opt)


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList(nn.Linear(4, 2) for _ in range(3))


@pattern
def experts_by_nonzero() -> Made:
    class Mixture(Experts):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weights, chosen = self.gate(x).softmax(1).max(1)
            out = x.new_zeros(len(x), 2)
            for k, expert in enumerate(self.experts):
                rows = (chosen == k).nonzero().squeeze(1)
                if rows.numel():
                    out.index_add_(0, rows, expert(x[rows]) * weights[rows, None])
            return out

    model = Mixture()
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def experts_by_topk() -> Made:
    class Mixture(Experts):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weights, chosen = self.gate(x).softmax(1).topk(2, dim=1)
            every = torch.stack([expert(x) for expert in self.experts], 1)
            picked = every.gather(1, chosen[..., None].expand(-1, -1, 2))
            return (picked * weights[..., None]).sum(1)

    model = Mixture()
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def experts_by_where() -> Made:
    """Mixtral's loop."""

    class Mixture(Experts):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weights, selected = torch.topk(F.softmax(self.gate(x), dim=1), 2)
            mask = F.one_hot(selected, num_classes=3).permute(2, 1, 0)
            out = torch.zeros(len(x), 2)
            for k in range(3):
                idx, top_x = torch.where(mask[k])
                out.index_add_(0, top_x, self.experts[k](x[top_x]) * weights[top_x, idx, None])
            return out

    model = Mixture()
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def packed_sequences() -> Made:
    rnn, head = nn.GRU(4, 8, batch_first=True), nn.Linear(8, 2)
    opt = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.1)
    data, labels = torch.randn(3, 6, 4), torch.randint(2, (3,))

    def step(i: int) -> Any:
        lengths = torch.tensor([6, 5 - i % 2, 3])
        packed = pack_padded_sequence(data, lengths, batch_first=True)
        out, _ = pad_packed_sequence(rnn(packed)[0], batch_first=True)
        loss = F.cross_entropy(head(out[torch.arange(3), lengths - 1]), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (rnn, head, opt)


@pattern
def boolean_mask() -> Made:
    model = net()
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        mask = y[:, 0] > 0
        opt.zero_grad()
        loss = F.mse_loss(model(x)[mask], y[mask], reduction="sum") / max(1, int(mask.sum()))
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def empty_mask_returns() -> Made:
    model = net()
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        mask = y[:, 0] > 0.8
        if not mask.any():
            return 0.0
        loss = (F.mse_loss(model(x), y, reduction="none").mean(1) * mask).sum() / mask.sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def unique_classes() -> Made:
    model = net()
    opt = sgd(model)

    def step(x: torch.Tensor, labels: torch.Tensor) -> Any:
        features = model(x)
        loss = torch.zeros(())
        for c in torch.unique(labels):
            own = features[labels == c]
            loss = loss + (own - own.mean(0)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def argmax_as_index() -> Made:
    model, heads = net(3), nn.ModuleList(nn.Linear(4, 2) for _ in range(3))
    opt = torch.optim.SGD([*model.parameters(), *heads.parameters()], lr=0.1)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        scores = model(x).mean(0)
        best = int(scores.argmax().item())
        loss = F.mse_loss(heads[best](x), y) - scores[best] * 0.1
        opt.zero_grad()
        loss.backward()
        opt.step()
        return best, loss.item()

    return step, lambda: (model, heads, opt)


@pattern
def greedy_until_end() -> Made:
    """Self-critical training: a baseline is decoded until the end symbol."""
    table, cell, head = nn.Embedding(5, 4), nn.GRUCell(4, 6), nn.Linear(6, 5)
    opt = torch.optim.SGD([*table.parameters(), *cell.parameters(), *head.parameters()], lr=0.2)

    def step(x: torch.Tensor) -> Any:
        h, token, decoded = F.pad(x[:1], (0, 2)), torch.tensor([1]), []
        loss = torch.zeros(())
        for _ in range(5):
            h = cell(table(token), h)
            logits = head(h)
            token = logits.argmax(1)
            loss = loss + F.cross_entropy(logits, torch.tensor([0]))
            if token.item() == 0:
                break
            decoded.append(token.item())
        opt.zero_grad()
        loss.backward()
        opt.step()
        return decoded, loss.item()

    return step, lambda: (table, cell, head, opt)


@pattern
def beam_search_step() -> Made:
    table, head = nn.Embedding(6, 4), nn.Linear(4, 6)
    opt = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)

    def step() -> Any:
        with torch.no_grad():
            tokens, scores = torch.tensor([[1]]), torch.zeros(1)
            for _ in range(3):
                logp = head(table(tokens[:, -1])).log_softmax(1)
                total = (scores[:, None] + logp).flatten()
                scores, flat = total.topk(2)
                tokens = torch.cat([tokens[flat // 6], flat[:, None] % 6], 1)
        best = tokens[0].tolist()
        loss = F.cross_entropy(head(table(tokens[0, :-1])), tokens[0, 1:].roll(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        return best, loss.item()

    return step, lambda: (table, head, opt)


@pattern
def dynamic_batching() -> Made:
    model, pending = net(), []
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        pending.append((x, y))
        if sum(len(a) for a, _ in pending) < 12:
            return None
        a, b = torch.cat([a for a, _ in pending]), torch.cat([b for _, b in pending])
        pending.clear()
        opt.zero_grad()
        loss = F.mse_loss(model(a), b)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, pending)


@pattern
def padded_to_the_longest() -> Made:
    rnn = nn.GRU(2, 4, batch_first=True)
    opt = sgd(rnn)

    def step(i: int, x: torch.Tensor) -> Any:
        rows = [x[:4, :2], x[: 2 + i % 3, 2:], x[:1, :2]]
        batch = pad_sequence(rows, batch_first=True)
        opt.zero_grad()
        loss = rnn(batch)[0].pow(2).mean()
        loss.backward()
        opt.step()
        return loss.item(), batch.shape[1]

    return step, lambda: (rnn, opt)


@pattern
def hard_examples_topk() -> Made:
    model, ratio, n = net(), 0.5, 0
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        nonlocal n
        n += 1
        keep = max(2, int(len(x) * ratio)) if n > 10 else len(x)
        losses = F.mse_loss(model(x), y, reduction="none").mean(1)
        loss = losses.topk(keep).values.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, n)


@pattern
def ohem_threshold() -> Made:
    model = net()
    opt = sgd(model)

    def step(x: torch.Tensor, labels: torch.Tensor) -> Any:
        losses = F.cross_entropy(model(x), labels, reduction="none")
        ordered, _ = losses.sort(descending=True)
        if ordered[3] > 0.6:
            ordered = ordered[ordered > 0.6]
        else:
            ordered = ordered[:3]
        loss = ordered.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def accuracy_counts() -> Made:
    model, correct, total = net(), 0, 0
    opt = sgd(model)

    def step(x: torch.Tensor, labels: torch.Tensor) -> Any:
        nonlocal correct, total
        opt.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, labels)
        loss.backward()
        opt.step()
        _, predicted = out.max(1)
        total += labels.size(0)
        correct += predicted.eq(labels).sum().item()
        return 100.0 * correct / total

    return step, lambda: (model, opt, correct, total)


@pattern
def confusion_matrix_loop() -> Made:
    model, matrix = net(), torch.zeros(2, 2, dtype=torch.long)
    opt = sgd(model)

    def step(x: torch.Tensor, labels: torch.Tensor) -> Any:
        opt.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, labels)
        loss.backward()
        opt.step()
        for t, p in zip(labels.view(-1), out.argmax(1).view(-1)):
            matrix[t.long(), p.long()] += 1
        return loss.item()

    return step, lambda: (model, opt, matrix)


@pattern
def confusion_matrix_bincount() -> Made:
    model, matrix = net(), torch.zeros(2, 2, dtype=torch.long)
    opt = sgd(model)

    def step(x: torch.Tensor, labels: torch.Tensor) -> Any:
        nonlocal matrix
        opt.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, labels)
        loss.backward()
        opt.step()
        with torch.no_grad():
            matrix += torch.bincount(2 * labels + out.argmax(1), minlength=4).reshape(2, 2)
        return (matrix.diag().sum() / matrix.sum()).item()

    return step, lambda: (model, opt, matrix)


@pattern
def predictions_to_numpy() -> Made:
    model, predictions = net(), []
    opt = sgd(model)

    def step(x: torch.Tensor, labels: torch.Tensor) -> Any:
        opt.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, labels)
        loss.backward()
        opt.step()
        predictions.extend(out.argmax(1).cpu().numpy().tolist())
        return float(np.mean(out.detach().numpy()))

    return step, lambda: (model, opt, predictions)


@pattern
def losses_tolist() -> Made:
    model, seen = net(), []
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        losses = F.mse_loss(model(x), y, reduction="none").mean(1)
        opt.zero_grad()
        losses.mean().backward()
        opt.step()
        seen.extend(losses.tolist())
        return max(seen[-6:])

    return step, lambda: (model, opt, seen)


@pattern
def pseudo_labels_by_confidence() -> Made:
    model, (x, labels) = net(), labelled()
    opt = sgd(model)

    def step(i: int) -> Any:
        with torch.no_grad():
            confidence, pseudo = model(x + 0.1).softmax(1).max(1)
            mask = confidence.ge(0.55).float()
        loss = F.cross_entropy(model(x), labels)
        unsupervised = (F.cross_entropy(model(x - 0.1), pseudo, reduction="none") * mask).mean()
        opt.zero_grad()
        (loss + unsupervised).backward()
        opt.step()
        return loss.item(), mask.mean().item()

    return step, lambda: (model, opt)


@pattern
def loss_spike_lowers_rate() -> Made:
    model, state = net(), {"smooth": 1.0}
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        if loss.item() > 1.5 * state["smooth"]:
            for group in opt.param_groups:
                group["lr"] *= 0.9
        opt.step()
        state["smooth"] = 0.9 * state["smooth"] + 0.1 * loss.item()
        return loss.item()

    return step, lambda: (model, opt, state)


@pattern
def triplets_with_margin() -> Made:
    model, active = net(), []
    opt = sgd(model)

    def step(x: torch.Tensor) -> Any:
        e = model(x)
        distances = torch.cdist(e, e)
        losses = F.relu(distances[0, 1:] - distances[1, 1:].flip(0) + 0.2)
        num_positive = (losses > 1e-16).sum().item()
        loss = losses.sum() / (num_positive + 1e-16) if num_positive else losses.sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        active.append(num_positive)
        return loss.item()

    return step, lambda: (model, opt, active)


@pattern
def ppo_stops_at_kl() -> Made:
    policy, (x, actions) = net(), labelled()
    opt, old, updates = sgd(policy, lr=0.5), net(), [0]
    old.load_state_dict(policy.state_dict())

    def step(y: torch.Tensor) -> Any:
        with torch.no_grad():
            before = old(x).log_softmax(1)[torch.arange(8), actions]
        kl = 0.0
        for _ in range(3):
            logp = policy(x).log_softmax(1)[torch.arange(8), actions]
            kl = (before - logp).mean().item()
            if abs(kl) > 0.05:
                break
            ratio = (logp - before).exp() * y.mean()
            loss = -torch.min(ratio, ratio.clamp(0.8, 1.2)).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            updates[0] += 1
        old.load_state_dict(policy.state_dict())
        return kl

    return step, lambda: (policy, opt, updates)
