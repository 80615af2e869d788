"""A training loop whose batches another thread makes with a module, beside threads that evaluate another one."""

import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

sys.setswitchinterval(1e-6)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.out = nn.Embedding(50, 8), nn.Linear(8, 50)
        self.rnn = nn.GRU(8, 8, batch_first=True)
        self.log = []

    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        self.log.append(x.shape[1])
        return self.out(h)


class Augment(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1), requires_grad=False)

    def forward(self, x):
        return (x + 1) % 50 * self.w.long()


torch.manual_seed(0)
net, augment = Net(), Augment()
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
sched = torch.optim.lr_scheduler.StepLR(opt, 10)
data = [torch.randint(0, 50, (4, 5 + i % 3)) for i in range(60)]
batches = queue.Queue(4)


def fetch():
    for x in data:
        batches.put(augment(x))
    batches.put(None)


frozen = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).eval()


def evaluate(i):
    with torch.no_grad():
        return sum(frozen(torch.full((3, 8), (i + k) / 10)).sum().item() for k in range(20))


thread = threading.Thread(target=fetch)
thread.start()
losses, scores = [], []
with ThreadPoolExecutor(3) as pool:
    futures = []
    while (x := batches.get()) is not None:
        opt.zero_grad()
        logits = net(x[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, 50), x[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        sched.step()
        losses.append(loss.item())
        if len(losses) % 5 == 0:
            futures.append(pool.submit(evaluate, len(losses)))
    scores = [f"{f.result():.5f}" for f in futures]
thread.join()
print(f"{sum(losses):.4f}", sum(net.log), scores)
