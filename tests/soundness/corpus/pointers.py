"""Where a tensor's memory begins: asked of two tensors, whether it is the same."""

# ruff: noqa
import torch
from torch import nn


def args(i):
    x = torch.arange(6.0).reshape(2, 3) + i
    return (x, x) if i % 3 else (x, x.clone())


# === pointers_of_arguments: calls=8, refused
def region(query, key):
    if query.data_ptr() == key.data_ptr():
        return query * 2
    return query + key


# === pointers_of_views: calls=8, refused
def region(query, key):
    same = query.data_ptr() == key.data_ptr() == query[0].data_ptr()
    return query * 2 if same else key, same, query.data_ptr() != key[1:].data_ptr()


def args(i):
    x = torch.arange(6.0).reshape(2, 3) + i
    return (x, x[:]) if i % 3 else (x, x.clone())


# === pointers_of_results: calls=8, refused
layer = nn.Linear(3, 3)


def region(query, key):
    a = layer(query)
    b = a if query.sum() > 20 else a.clone()
    return a + b if a.data_ptr() == b.data_ptr() else a - b


# === pointers_of_what_is_in_place: calls=8, refused
def region(query, key):
    before = query.data_ptr()
    query.add_(1)
    query.data = query.data.clone() if key.sum() > 20 else query.data
    return query * 2 if before == query.data_ptr() else query * 3


# === pointer_as_key: refused calls=6
def region(query, key):
    return query * len({query.data_ptr(), key.data_ptr()})


# === pointer_ordered: refused calls=6
def region(query, key):
    return query * 2 if query.data_ptr() <= key.data_ptr() + 0 else query * 2
