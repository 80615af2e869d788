"""A trainer class with callbacks, whose run() loops until the step count is reached; the model learns to sort."""

import argparse
import sys
import time
from collections import defaultdict
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class SortDataset(Dataset):
    """Sequences of digits, followed by the same digits in order."""

    def __init__(self, count, length=6, num_digits=3):
        self.length = length
        self.num_digits = num_digits
        self.sequences = torch.randint(num_digits, (count, length))

    def __len__(self):
        return len(self.sequences)

    def __getitem__(self, idx):
        inp = self.sequences[idx]
        cat = torch.cat((inp, torch.sort(inp)[0]))
        x = cat[:-1].clone()
        y = cat[1:].clone()
        y[: self.length - 1] = -1  # only the sorted half counts
        return x, y


class Block(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = nn.MultiheadAttention(n_embd, n_head, batch_first=True)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(n_embd, 4 * n_embd), "c_proj": nn.Linear(4 * n_embd, n_embd)})

    def forward(self, x, mask):
        h = self.ln_1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, vocab_size, block_size, n_embd=24, n_head=3, n_layer=1):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList([Block(n_embd, n_head) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        self.register_buffer("mask", torch.triu(torch.ones(block_size, block_size, dtype=torch.bool), diagonal=1))

    def configure_optimizers(self, train_config):
        decay = [p for p in self.parameters() if p.dim() >= 2]
        no_decay = [p for p in self.parameters() if p.dim() < 2]
        groups = [
            {"params": decay, "weight_decay": train_config.weight_decay},
            {"params": no_decay, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=train_config.learning_rate, betas=train_config.betas)

    def forward(self, idx, targets=None):
        _, t = idx.size()
        x = self.wte(idx) + self.wpe(torch.arange(t, device=idx.device))
        for block in self.h:
            x = block(x, self.mask[:t, :t])
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss


class Trainer:
    @staticmethod
    def get_default_config():
        return SimpleNamespace(
            device="cpu",
            num_workers=0,
            max_iters=None,
            batch_size=8,
            learning_rate=3e-3,
            betas=(0.9, 0.95),
            weight_decay=0.1,
            grad_norm_clip=1.0,
        )

    def __init__(self, config, model, train_dataset):
        self.config = config
        self.model = model
        self.optimizer = None
        self.train_dataset = train_dataset
        self.callbacks = defaultdict(list)
        self.device = config.device
        self.model = self.model.to(self.device)
        print("running on device", self.device)

        self.iter_num = 0
        self.iter_time = 0.0
        self.iter_dt = 0.0

    def add_callback(self, onevent, callback):
        self.callbacks[onevent].append(callback)

    def set_callback(self, onevent, callback):
        self.callbacks[onevent] = [callback]

    def trigger_callbacks(self, onevent):
        for callback in self.callbacks.get(onevent, []):
            callback(self)

    def run(self):
        model, config = self.model, self.config
        self.optimizer = model.configure_optimizers(config)
        train_loader = DataLoader(
            self.train_dataset, shuffle=True, batch_size=config.batch_size, num_workers=config.num_workers
        )

        model.train()
        self.iter_num = 0
        self.iter_time = time.time()
        data_iter = iter(train_loader)
        while True:
            # The next batch, from a new pass over the data if this one is over.
            try:
                batch = next(data_iter)
            except StopIteration:
                data_iter = iter(train_loader)
                batch = next(data_iter)
            batch = [t.to(self.device) for t in batch]
            x, y = batch

            _, self.loss = model(x, y)

            model.zero_grad(set_to_none=True)
            self.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.grad_norm_clip)
            self.optimizer.step()

            self.trigger_callbacks("on_batch_end")
            self.iter_num += 1
            tnow = time.time()
            self.iter_dt = tnow - self.iter_time
            self.iter_time = tnow

            if config.max_iters is not None and self.iter_num >= config.max_iters:
                break


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()

    torch.manual_seed(3407)
    dataset = SortDataset(25 * args.batch_size)
    model = GPT(dataset.num_digits, 2 * dataset.length - 1)

    config = Trainer.get_default_config()
    config.max_iters = args.steps
    config.batch_size = args.batch_size
    trainer = Trainer(config, model, dataset)
    losses = []

    def batch_end_callback(trainer):
        if trainer.iter_num % 10 == 0:
            print(f"iter {trainer.iter_num}: train loss {trainer.loss.item():.5f}")
            print(f"iter_dt {trainer.iter_dt * 1000:.2f}ms", file=sys.stderr)

    trainer.set_callback("on_batch_end", batch_end_callback)
    trainer.add_callback("on_batch_end", lambda trainer: losses.append(trainer.loss.detach()))
    trainer.run()

    model.eval()
    with torch.no_grad():
        idx = dataset.sequences[:32]
        for _ in range(dataset.length):
            logits, _ = model(idx)
            idx = torch.cat((idx, logits[:, -1].argmax(-1, keepdim=True)), dim=1)
        correct = (idx[:, dataset.length :] == torch.sort(dataset.sequences[:32])[0]).all(1).sum().item()
    print(f"sorted {correct} of 32")
    print(f"losses {sum(loss.item() for loss in losses):.9f}")
    print(f"checksum {sum(p.double().sum().item() for p in model.parameters()):.9f}")


if __name__ == "__main__":
    main()
