"""Normalization, with its backward pass and its running statistics."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.kernels.program import Case, leaf, program


@program()
def layer_norm() -> Case:
    model = nn.Sequential(nn.LayerNorm(48), nn.GELU())
    return Case(lambda x: model(x), lambda i: (leaf(10, 48),), {"model": model})


@program()
def wide_layer_norm() -> Case:
    model = nn.LayerNorm(2100)
    return Case(lambda x: model(x), lambda i: (leaf(3, 2100),), {"model": model})


@program()
def rms_norm() -> Case:
    model = nn.RMSNorm(40)
    return Case(lambda x, y: model(x + y), lambda i: (leaf(2, 7, 40), leaf(2, 7, 40)), {"model": model})


@program()
def batch_norm_that_trains() -> Case:
    model = nn.BatchNorm2d(5)
    return Case(lambda x: F.relu(model(x)), lambda i: (leaf(4, 5, 6, 7),), {"model": model})


@program()
def batch_norm_that_evaluates() -> Case:
    model = nn.BatchNorm2d(5).eval()
    model.running_mean = torch.randn(5)
    return Case(lambda x: F.relu(model(x)), lambda i: (leaf(4, 5, 6, 7),), {"model": model})


@program()
def group_norm() -> Case:
    model = nn.GroupNorm(3, 6)
    return Case(lambda x: F.silu(model(x)), lambda i: (leaf(2, 6, 5, 5),), {"model": model})


@program()
def unit_length() -> Case:
    return Case(lambda x, y: F.cosine_similarity(x, F.normalize(y), dim=1), lambda i: (leaf(6, 30), leaf(6, 30)))
