"""Metrics of torchmetrics that are updated in every training step, and computed after an epoch."""

import torch
import torch.nn.functional as F
from torch import nn
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score

torch.manual_seed(7)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
metrics = MetricCollection([MulticlassAccuracy(num_classes=3), MulticlassF1Score(num_classes=3)])
mean_loss = MeanMetric()
x, y = torch.randn(256, 8), torch.randint(0, 3, (256,))


def train():
    for epoch in range(3):
        for batch in range(16):
            inputs, labels = x[batch * 16 : batch * 16 + 16], y[batch * 16 : batch * 16 + 16]
            optimizer.zero_grad()
            logits = model(inputs)
            loss = F.cross_entropy(logits, labels)
            loss.backward()
            optimizer.step()
            metrics.update(logits, labels)
            mean_loss.update(loss)
        scores = {name: round(value.item(), 4) for name, value in metrics.compute().items()}
        print(f"epoch {epoch}: loss {mean_loss.compute().item():.5f}, {scores}")
        metrics.reset()
        mean_loss.reset()


train()
