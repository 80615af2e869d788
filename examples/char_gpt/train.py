"""Train a character-level GPT on the fables in corpus.txt.

python train.py --steps 200 --device cpu
"""

import argparse
import math
import time
from pathlib import Path

import torch
from model import GPT, GPTConfig

HERE = Path(__file__).parent


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--block-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--eval-every", type=int, default=50)
    parser.add_argument("--log-every", type=int, default=10)
    parser.add_argument("--checkpoint", type=Path, default=HERE / "checkpoint.pt")
    return parser.parse_args()


class Corpus:
    """A text as character ids, cut into a training and a validation part."""

    def __init__(self, path: Path, block_size: int, batch_size: int, seed: int, device: str) -> None:
        text = path.read_text(encoding="utf-8")
        self.alphabet = sorted(set(text))
        index = {character: i for i, character in enumerate(self.alphabet)}
        data = torch.tensor([index[character] for character in text], dtype=torch.long)
        cut = int(0.9 * len(data))
        self.parts = {"train": data[:cut], "val": data[cut:]}
        self.block_size = block_size
        self.batch_size = batch_size
        self.generator = torch.Generator().manual_seed(seed)
        self.device = device

    def batch(self, part: str) -> tuple[torch.Tensor, torch.Tensor]:
        data = self.parts[part]
        starts = torch.randint(len(data) - self.block_size, (self.batch_size,), generator=self.generator)
        x = torch.stack([data[s : s + self.block_size] for s in starts])
        y = torch.stack([data[s + 1 : s + 1 + self.block_size] for s in starts])
        return x.to(self.device), y.to(self.device)


@torch.no_grad()
def evaluate(model: GPT, corpus: Corpus, batches: int = 4) -> float:
    model.eval()
    total = 0.0
    for _ in range(batches):
        x, y = corpus.batch("val")
        _, loss = model(x, y)
        total += loss.item()
    model.train()
    return total / batches


def cosine_with_warmup(step: int, warmup: int, steps: int) -> float:
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


def main() -> None:
    args = parse_args()
    torch.manual_seed(args.seed)
    corpus = Corpus(HERE / "corpus.txt", args.block_size, args.batch_size, args.seed, args.device)
    model = GPT(GPTConfig(vocab_size=len(corpus.alphabet), block_size=args.block_size)).to(args.device)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters, {len(corpus.alphabet)} characters")

    optimizer = torch.optim.AdamW(model.parameter_groups(weight_decay=0.1), lr=args.lr, betas=(0.9, 0.95))
    warmup = max(1, args.steps // 10)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: cosine_with_warmup(step, warmup, args.steps))

    history = []
    best = float("inf")
    start = time.perf_counter()
    for step in range(args.steps):
        if step % args.eval_every == 0:
            val_loss = evaluate(model, corpus)
            print(f"step {step:4d}  val loss {val_loss:.4f}")
            if val_loss < best:
                best = val_loss
                torch.save({"model": model.state_dict(), "config": model.config, "step": step}, args.checkpoint)

        x, y = corpus.batch("train")
        _, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()

        history.append(loss.item())
        if step % args.log_every == 0:
            lr = optimizer.param_groups[0]["lr"]
            print(f"step {step:4d}  loss {history[-1]:.4f}  lr {lr:.2e}  {model.tokens_seen} tokens")

    elapsed = time.perf_counter() - start
    print(f"final loss {history[-1]:.4f}  val loss {evaluate(model, corpus):.4f}")
    print(f"{args.steps} steps in {elapsed:.1f} s")


if __name__ == "__main__":
    main()
