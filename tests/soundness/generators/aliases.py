"""Aliases: every way two arguments may share memory times every way to write one of them, changing from call to call.

Calls of one region follow each other with other relations (the same tensor, a view, windows that overlap, a detached copy, a
parameter, ...). Compared with eager: results, both arguments, which tensors share memory, gradients, what a later write
shows through, and the random stream. `python -m tests.soundness.generators.aliases --backend aot_eager --slice ::N`. Key
function: aliased.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch

import magpy_core
from tests.soundness.harness.families import Family, main

Pair = tuple[torch.Tensor, torch.Tensor]


def _with(t: torch.Tensor, other: Callable[[torch.Tensor], torch.Tensor]) -> Pair:
    return t, other(t)


RELATIONS: dict[str, Callable[[], Pair]] = {
    "distinct": lambda: (torch.arange(4.0), torch.arange(4.0) + 10),
    "same": lambda: _with(torch.arange(4.0), lambda t: t),
    "view": lambda: _with(torch.arange(4.0), lambda t: t[:]),
    "overlap": lambda: (lambda t: (t[:4], t[2:6]))(torch.arange(6.0)),
    "interleaved": lambda: (lambda t: (t[::2], t[1::2]))(torch.arange(8.0)),
    "transposed": lambda: _with(torch.arange(4.0), lambda t: t.view(2, 2).t().reshape(-1)),
    "detached": lambda: _with(torch.arange(4.0), torch.Tensor.detach),
    "data": lambda: _with(torch.arange(4.0), lambda t: t.data),
    "expanded": lambda: (torch.arange(4.0), torch.ones(1).expand(4)),
    "expanded_view": lambda: _with(torch.arange(4.0), lambda t: t[None, :2].expand(2, 2)),
    "leaf": lambda: (torch.arange(4.0), torch.ones(4, requires_grad=True)),
    "view_of_result": lambda: _with(torch.ones(4, requires_grad=True), lambda t: (t * 1)[:4])[::-1],
    "results": lambda: (lambda t: (t * 2, t * 3))(torch.ones(4, requires_grad=True)),
    "result_and_view": lambda: _with(torch.ones(4, requires_grad=True) * 2, lambda t: t[:]),
    "integers": lambda: (torch.arange(4), torch.arange(4.0)),
    "doubles": lambda: (torch.arange(4.0).double(), torch.arange(4.0)),
    "parameter": lambda: (torch.nn.Parameter(torch.ones(4)), torch.arange(4.0)),
}


def _no_grad(a: torch.Tensor, b: torch.Tensor) -> None:
    with torch.no_grad():
        a.mul_(3)


def _swap(a: torch.Tensor, b: torch.Tensor) -> None:
    kept = a.clone()
    a.copy_(b)
    b.copy_(kept)


def _add(a: torch.Tensor, b: torch.Tensor) -> None:
    a += b


WRITES: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "nothing": lambda a, b: None,
    "add_number": lambda a, b: a.add_(1),
    "add_other": lambda a, b: a.add_(b),
    "add_to_other": lambda a, b: b.add_(a),
    "augmented": _add,
    "copy": lambda a, b: a.copy_(b),
    "swap": _swap,
    "zero": lambda a, b: a.zero_(),
    "lerp": lambda a, b: a.lerp_(b, 0.5),
    "clamp": lambda a, b: a.clamp_(max=2),
    "fill_slice": lambda a, b: a[1:3].fill_(7),
    "set_item": lambda a, b: a.__setitem__(0, 5.0),
    "set_slice": lambda a, b: a.__setitem__(slice(0, 2), b[:2]),
    "set_mask": lambda a, b: a.__setitem__(a > 1, 0),
    "set_indices": lambda a, b: a.__setitem__(torch.tensor([0, 2]), 9.0),
    "scatter": lambda a, b: a.scatter_(0, torch.tensor([0, 1]), b[:2]),
    "index_add": lambda a, b: a.index_add_(0, torch.tensor([0, 0]), b[:2]),
    "by_data": lambda a, b: a.data.mul_(2),
    "by_detached": lambda a, b: a.detach().add_(3),
    "by_view": lambda a, b: a.view(-1).add_(3),
    "by_chunks": lambda a, b: [c.mul_(2) for c in a.chunk(2)],
    "by_elements": lambda a, b: [c.add_(1) for c in a.unbind(0)],
    "by_strides": lambda a, b: a.as_strided((2,), (1,)).add_(4),
    "foreach": lambda a, b: torch._foreach_add_([a, b], 1),
    "out": lambda a, b: torch.add(b, 1, out=a),
    "no_grad": _no_grad,
    "requires_grad": lambda a, b: a.requires_grad_(not a.requires_grad),
    "detach": lambda a, b: a.detach_(),
    "set_data": lambda a, b: setattr(a, "data", b.data.clone()),
    "share_data": lambda a, b: setattr(a, "data", b.data),
    "resize": lambda a, b: a.resize_(2, 2),
    "unsqueeze": lambda a, b: a.unsqueeze_(0),
    "squeeze": lambda a, b: a.squeeze_(),
    "clear_grad": lambda a, b: setattr(a, "grad", None),
    "set_grad": lambda a, b: setattr(a, "grad", b.detach().clone()),
    "share_grad": lambda a, b: setattr(a, "grad", b),
    "bernoulli": lambda a, b: a.bernoulli_(0.5),
    "exponential": lambda a, b: a.exponential_(),
    "read": lambda a, b: a.sum().item(),
}

RESULTS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "computed": lambda a, b: (a * 2, b * 3),
    "argument": lambda a, b: a,
    "arguments": lambda a, b: (b, a),
    "slice": lambda a, b: a[:1],
    "dict": lambda a, b: {"a": a, "sum": a + b if a.shape == b.shape else a},
    "views": lambda a, b: (a.view(-1), a.view(-1)),
    "detached": lambda a, b: (a.detach(), a.detach()),
    "twice": lambda a, b: [a, a],
    "chunks": lambda a, b: a.chunk(2),
}


def _facts(t: torch.Tensor) -> Any:
    grad = None if t.grad is None else t.grad.tolist()
    place = (tuple(t.shape), t.stride(), t.storage_offset(), t._is_view())
    return type(t).__name__, t.dtype, place, t.requires_grad, t.is_leaf, t.grad_fn is None, t.tolist(), grad


def _tensors(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    values = result.values() if isinstance(result, dict) else result
    return [t for value in values for t in _tensors(value)]


def _call(function: Callable[..., Any], relation: str) -> Sequence[str]:
    """All that a call with fresh arguments shows."""
    torch.manual_seed(3)
    a, b = RELATIONS[relation]()
    try:
        result = function(a, b)
    except Exception as error:  # the program's own: the compiled region must raise it too, with the same arguments left
        return type(error).__name__, str(error).split("\n")[0][:60], repr((_facts(a), _facts(b)))
    tensors = _tensors(result)
    every = [a, b, *tensors]
    memory = [t.untyped_storage().data_ptr() for t in every]
    shown: list[Any] = [type(result).__name__, [_facts(t) for t in every]]
    shown.append([(x is y, p == q) for x, p in zip(every, memory, strict=True) for y, q in zip(every, memory, strict=True)])
    wanting = [t for t in tensors if t.requires_grad]
    if wanting:
        try:
            sum((t.sum() * (i + 1) for i, t in enumerate(wanting)), torch.zeros(())).backward()
            shown.append((_facts(a), _facts(b)))
        except RuntimeError as error:
            shown.append(type(error).__name__)
    with torch.no_grad():
        if a.untyped_storage().size() and not any(n == 0 for n in a.stride()):
            a.add_(100)
    shown += [[t.tolist() for t in every], torch.rand(1).item()]
    return tuple(map(repr, shown))


def aliased(write: str, result: str, backend: str, seed: int = 1) -> str | None:
    """How a region differs from eager mode whose arguments' relations are drawn by ``seed``; None where it doesn't."""

    def region(a: torch.Tensor, b: torch.Tensor) -> Any:
        WRITES[write](a, b)
        return RESULTS[result](a, b)

    draw = random.Random(f"{write} {result} {seed}")
    drawn = [draw.choice(list(RELATIONS)) for _ in range(7)]
    relations = [name for i, name in enumerate(drawn) for _ in range(3 if i < 3 else 1)]
    compiled = magpy_core.compile(region, backend=backend, same_random=True)
    for number, relation in enumerate(relations):
        got, want = _call(compiled, relation), _call(region, relation)
        if got != want:
            parts = [(w, g) for w, g in zip(want, got, strict=False) if w != g]
            e, g = (parts or [(want, got)])[0]
            after = ", ".join(relations[:number])
            return f"{write}, {result}, {backend}, call {number}, {relation}, after {after}: {e} expected, {g} found"
    return None


FAMILY = Family.product(aliased, write=WRITES, result=RESULTS, backend=("eager", "aot_eager"))


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))
