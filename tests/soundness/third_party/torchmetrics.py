"""Programs that use torchmetrics: modules whose calls add to their state."""

# ruff: noqa
import torch
from torch import nn
import torchmetrics


def args(i):
    return torch.linspace(-1, 1 + i, 6), torch.arange(6.0) / 6


# === error
region = torchmetrics.MeanSquaredError()

# === mean_in_a_region
metric = torchmetrics.MeanMetric()
net = nn.Linear(6, 1)


def region(x, y):
    loss = (net(x) - y.sum()).pow(2).sum()
    metric.update(loss.detach())
    return loss, metric.compute()


def change_reset():
    metric.reset()


# === collection
region = torchmetrics.MetricCollection([torchmetrics.MeanSquaredError(), torchmetrics.MeanAbsoluteError()])
