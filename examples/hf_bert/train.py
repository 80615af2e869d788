"""Train a small BERT classifier, random weights from a config, on generated reviews.

pip install transformers
python train.py --steps 300
"""

import argparse
import random
import time

import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

PAD, CLS, SEP = 0, 1, 2
GOOD = "good great lovely warm bright funny clever moving fresh honest".split()
BAD = "bad dull cold flat noisy slow clumsy stale empty tired".split()
PLAIN = "the a film story actor scene music light ending script camera hero city night love road was is felt seemed".split()
NEGATION = "not never hardly".split()
VOCABULARY = {word: i for i, word in enumerate([*GOOD, *BAD, *PLAIN, *NEGATION], start=3)}


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--length", type=int, default=32, help="tokens per review, padding included")
    parser.add_argument("--lr", type=float, default=5e-4)
    return parser.parse_args()


def review(rng: random.Random) -> tuple[list[str], int]:
    """A review's words, and 1 if more of its opinions are good than bad; a negation reverses the next opinion."""
    opinions = rng.choice([1, 3, 5])
    score = 0
    words = []
    for _ in range(opinions):
        words += rng.choices(PLAIN, k=rng.randint(1, 3))
        good = rng.random() < 0.5
        negated = rng.random() < 0.2
        if negated:
            words.append(rng.choice(NEGATION))
        words.append(rng.choice(GOOD if good else BAD))
        score += 1 if good != negated else -1
    return words, int(score > 0)


def reviews(count: int, length: int, seed: int) -> TensorDataset:
    rng = random.Random(seed)
    tokens = torch.full((count, length), PAD)
    labels = torch.zeros(count, dtype=torch.long)
    for row in range(count):
        words, labels[row] = review(rng)
        ids = [CLS, *(VOCABULARY[word] for word in words), SEP][:length]
        tokens[row, : len(ids)] = torch.tensor(ids)
    return TensorDataset(tokens, (tokens != PAD).long(), labels)


@torch.no_grad()
def evaluate(model: BertForSequenceClassification, loader: DataLoader, device: str) -> tuple[float, float]:
    """Mean loss and accuracy."""
    model.eval()
    losses, right, total = [], 0, 0
    for batch in loader:
        tokens, mask, labels = (t.to(device) for t in batch)
        output = model(input_ids=tokens, attention_mask=mask, labels=labels)
        losses.append(output.loss.item())
        right += (output.logits.argmax(dim=-1) == labels).sum().item()
        total += len(labels)
    model.train()
    return sum(losses) / len(losses), right / total


def main() -> None:
    args = parse_args()
    torch.manual_seed(args.seed)
    train_loader = DataLoader(reviews(2048, args.length, args.seed), args.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(reviews(256, args.length, args.seed + 1), batch_size=64)

    config = BertConfig(
        vocab_size=3 + len(VOCABULARY),
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=args.length,
        pad_token_id=PAD,
        num_labels=2,
    )
    model = BertForSequenceClassification(config).to(args.device)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=args.steps // 10, num_training_steps=args.steps)
    print(f"{model.num_parameters() / 1e3:.0f} k parameters, {len(VOCABULARY)} words")
    loss, accuracy = evaluate(model, val_loader, args.device)
    print(f"epoch 0  val loss {loss:.4f}  accuracy {accuracy:.3f}")

    start = time.perf_counter()
    step = epoch = 0
    while step < args.steps:
        epoch += 1
        for batch in train_loader:
            tokens, mask, labels = (t.to(args.device) for t in batch)
            output = model(input_ids=tokens, attention_mask=mask, labels=labels)
            output.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            step += 1
            if step % 10 == 0:
                print(f"step {step:4d}  loss {output.loss.item():.4f}  lr {scheduler.get_last_lr()[0]:.2e}")
            if step == args.steps:
                break
        loss, accuracy = evaluate(model, val_loader, args.device)
        print(f"epoch {epoch}  val loss {loss:.4f}  accuracy {accuracy:.3f}")
    print(f"{step} steps in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
