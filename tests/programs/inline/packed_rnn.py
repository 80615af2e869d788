"""Sentences of different length, packed for an LSTM that classifies them."""

import argparse
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader


class Classifier(nn.Module):
    def __init__(self, vocab=40, dim=16, hidden=24, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, text, lengths):
        packed = pack_padded_sequence(self.embedding(text), lengths, batch_first=True, enforce_sorted=False)
        _, (hidden, _) = self.lstm(packed)
        return self.fc(hidden[-1])


def collate(batch):
    texts, labels = zip(*batch, strict=True)
    lengths = torch.tensor([len(text) for text in texts])
    return pad_sequence(texts, batch_first=True), lengths, torch.tensor(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()

    random.seed(0)
    torch.manual_seed(0)
    dataset = []
    for _ in range(args.steps * 8):
        text = torch.randint(1, 40, (random.randint(3, 9),))
        dataset.append((text, int(text.sum()) % 3))
    loader = DataLoader(dataset, batch_size=8, shuffle=True, collate_fn=collate)

    model = Classifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    total_loss = total_acc = 0.0
    for step, (text, lengths, labels) in enumerate(loader, 1):
        optimizer.zero_grad()
        predicted = model(text, lengths)
        loss = criterion(predicted, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        total_loss += loss.item()
        total_acc += (predicted.argmax(1) == labels).float().mean().item()
        if step % 10 == 0:
            print(f"| step {step:4d} | loss {total_loss / step:8.5f} | accuracy {total_acc / step:.3f}")

    print(f"losses {total_loss:.9f}")
    print(f"checksum {sum(p.double().sum().item() for p in model.parameters()):.9f}")


if __name__ == "__main__":
    main()
