"""An LSTM language model whose hidden state goes from batch to batch, with hand-written SGD or an optimizer."""

import argparse
import math
import sys
import time

import torch
from torch import nn

parser = argparse.ArgumentParser(description="Word language model")
parser.add_argument("--steps", type=int, default=60, help="training steps in all epochs together")
parser.add_argument("--emsize", type=int, default=24)
parser.add_argument("--nhid", type=int, default=24)
parser.add_argument("--nlayers", type=int, default=2)
parser.add_argument("--lr", type=float, help="default: 5 for manual, 0.01 for an optimizer")
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch_size", type=int, default=8)
parser.add_argument("--bptt", type=int, default=8)
parser.add_argument("--dropout", type=float, default=0.2)
parser.add_argument("--optimizer", choices=["manual", "sgd", "adamw"], default="manual")
parser.add_argument("--seed", type=int, default=1111)
parser.add_argument("--log-interval", type=int, default=5)
parser.add_argument("--dry-run", action="store_true")
args = parser.parse_args()

torch.manual_seed(args.seed)
device = torch.device("cpu")

ntokens = 64
eval_batch_size = 4


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout):
        super().__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        self.nhid = nhid
        self.nlayers = nlayers
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output))
        return nn.functional.log_softmax(decoded.view(-1, self.ntoken), dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid)


def corpus(count):
    """Each word is the one before plus 1, 2 or 3."""
    return torch.randint(1, 4, (count,)).cumsum(0) % ntokens


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous().to(device)


steps_per_epoch = max(1, args.steps // args.epochs)
train_data = batchify(corpus((steps_per_epoch * args.bptt + 1) * args.batch_size), args.batch_size)
val_data = batchify(corpus(30 * eval_batch_size), eval_batch_size)

model = RNNModel(ntokens, args.emsize, args.nhid, args.nlayers, args.dropout).to(device)
criterion = nn.NLLLoss()
lr = args.lr or (5.0 if args.optimizer == "manual" else 0.01)
optimizer = None
if args.optimizer == "sgd":
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
elif args.optimizer == "adamw":
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
logged = []


def repackage_hidden(h):
    """The same state without its history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    data = source[i : i + seq_len]
    target = source[i + 1 : i + 1 + seq_len].view(-1)
    return data, target


def evaluate(data_source):
    model.eval()
    total_loss = 0.0
    hidden = model.init_hidden(eval_batch_size)
    with torch.no_grad():
        for i in range(0, data_source.size(0) - 1, args.bptt):
            data, targets = get_batch(data_source, i)
            output, hidden = model(data, hidden)
            hidden = repackage_hidden(hidden)
            total_loss += len(data) * criterion(output, targets).item()
    return total_loss / (len(data_source) - 1)


def train():
    model.train()
    total_loss = 0.0
    start_time = time.time()
    hidden = model.init_hidden(args.batch_size)
    for batch, i in enumerate(range(0, train_data.size(0) - 1, args.bptt)):
        data, targets = get_batch(train_data, i)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()

        # Recurrent networks have exploding gradients.
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        if optimizer is not None:
            optimizer.step()
        else:
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-lr)

        total_loss += loss.item()

        if batch % args.log_interval == 0 and batch > 0:
            cur_loss = total_loss / args.log_interval
            elapsed = time.time() - start_time
            print(
                f"| epoch {epoch:3d} | {batch:5d}/{len(train_data) // args.bptt:5d} batches | lr {lr:02.2f} "
                f"| loss {cur_loss:5.2f} | ppl {math.exp(cur_loss):8.2f}"
            )
            print(f"| ms/batch {elapsed * 1000 / args.log_interval:5.2f}", file=sys.stderr)
            logged.append(cur_loss)
            total_loss = 0
            start_time = time.time()
        if args.dry_run:
            break


best_val_loss = None
try:
    for epoch in range(1, args.epochs + 1):
        epoch_start_time = time.time()
        train()
        val_loss = evaluate(val_data)
        logged.append(val_loss)
        print("-" * 89)
        print(f"| end of epoch {epoch:3d} | valid loss {val_loss:5.2f} | valid ppl {math.exp(val_loss):8.2f}")
        print("-" * 89)
        print(f"| epoch took {time.time() - epoch_start_time:5.2f}s", file=sys.stderr)
        if not best_val_loss or val_loss < best_val_loss:
            best_val_loss = val_loss
        else:
            # No better than before: smaller steps.
            lr /= 4.0
            if optimizer is not None:
                for group in optimizer.param_groups:
                    group["lr"] = lr
except KeyboardInterrupt:
    print("-" * 89)
    print("Exiting from training early")

print(f"losses {sum(logged):.9f}")
print(f"checksum {sum(p.double().sum().item() for p in model.parameters()):.9f}")
