"""Operators: torch's own samples of each of its operators, called one after the other by one region.

Four ways to change what a region is given: other samples (also such that raise), other sizes, other numbers, other layouts
and dtypes. What it returns is compared bit for bit, with strides, aliases, gradients, arguments afterwards and the random
stream. `python -m tests.soundness.generators.operators --kind sizes`. Key functions: cases, differing.
"""

from __future__ import annotations

import argparse
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

import magpy_core
from tests.soundness.harness.compare import told
from tests.soundness.harness.families import short_stacks

Given = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""An operator's first argument, the others and the named ones."""

Region = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]

#: Results that eager mode does not repeat: memory nobody set, numbers that hang on where memory lies, or reads beyond it.
NOT_REPEATED = ("empty", "lstsq", "segment_reduce", "embedding_bag", "svd_lowrank", "pca_lowrank", "resize_", "ctc_loss")
LARGEST = 20_000


@cache
def operators() -> list[Any]:
    # torch's test library forbids its importer to set torch.backends' flags, and wraps calls of scripts: other tests in this
    # process set them, and call scripts.
    calls = [mock.patch.object(kind, "__call__", kind.__call__) for kind in (torch._C.ScriptFunction, torch._C.ScriptMethod)]
    with mock.patch.object(torch.backends, "disable_global_flags"), calls[0], calls[1]:
        from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if not any(word in op.name for word in NOT_REPEATED)]


def name_of(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor)]


def _samples(op: Any, dtype: torch.dtype, count: int) -> list[Given]:
    if dtype not in op.dtypes:
        return []
    torch.manual_seed(1)
    try:
        made = list(op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd and dtype.is_floating_point))
    except RuntimeError:  # samples that only make sense on another device
        return []
    small = [s for s in made if sum(t.numel() for t in _tensors((s.input, s.args, s.kwargs))) < LARGEST]
    return [(s.input, tuple(s.args), s.kwargs) for s in small[:: max(1, len(small) // count)][:count]]


def _first_samples(op: Any, count: int) -> list[Given]:
    return _samples(op, torch.float32, count) or _samples(op, torch.int64, count)


def _each_tensor(given: Given, change: Callable[[torch.Tensor], torch.Tensor]) -> Given:
    """The same arguments with strided tensors changed; one that is given twice stays one."""
    made: dict[int, torch.Tensor] = {}

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided or leaf.is_quantized:
            return leaf
        if id(leaf) not in made:
            made[id(leaf)] = change(leaf)
        return made[id(leaf)]

    changed: Given = tree_map(one, given)
    return changed


def _fresh(t: torch.Tensor) -> torch.Tensor:
    return t.detach().clone(memory_format=torch.preserve_format).requires_grad_(t.requires_grad)


def _resized(old: int, new: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(t: torch.Tensor) -> torch.Tensor:
        made = t.detach()
        for dim, size in enumerate(t.shape):
            if size == old:
                made = made.index_select(dim, torch.arange(new) % old)
        return made.clone().requires_grad_(t.requires_grad)

    return change


def _turned(t: torch.Tensor) -> torch.Tensor:
    return t.mT.contiguous().mT if t.dim() > 1 else t


def _last(t: torch.Tensor) -> torch.Tensor:
    if t.dim() == 4:
        return t.contiguous(memory_format=torch.channels_last)
    return t.transpose(0, -1).contiguous().transpose(0, -1)


def _negated(t: torch.Tensor) -> torch.Tensor:
    return torch.complex(t, -t).conj().imag if t.dtype in (torch.float32, torch.float64) else t


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "as it is": lambda t: t.clone(),
    "turned": _turned,
    "channels last": _last,
    "strided": lambda t: torch.stack([t, t], -1)[..., 0],
    "offset": lambda t: torch.cat([t[:1], t])[1:],
    "expanded": lambda t: t[:1].expand(t.shape),
    "negated": _negated,
    "double": lambda t: t.double() if t.is_floating_point() else t,
    "bfloat16": lambda t: t.bfloat16() if t.is_floating_point() else t,
}
LAYOUT_CALLS = ("as it is", "as it is", "turned", "as it is", "channels last", "strided", "offset", "expanded", "negated",
                "frozen", "double", "bfloat16", "turned", "offset", "negated", "as it is")  # fmt: skip


def _laid(how: str) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(t: torch.Tensor) -> torch.Tensor:
        if how == "frozen":
            return t.detach().clone()
        made = LAYOUTS[how](t.detach()) if t.dim() else t.detach().clone()
        return made.requires_grad_(t.requires_grad)

    return change


# -- regions -----------------------------------------------------------------------------------------------------------


def sizes(result: Any) -> list[Any]:
    """What Python can see of a result's sizes."""
    seen: list[Any] = []
    for t in tree_flatten(result)[0]:
        if isinstance(t, torch.Tensor):
            ends = (len(t), t.shape[-1] * 2 + 1) if t.dim() else None
            seen.append((tuple(t.shape), t.numel(), t.dim(), str(t.dtype), t.requires_grad, ends))
        else:
            seen.append(t)
    return seen


def _plain(op: Any) -> Region:
    return lambda x, args, kwargs: op.op(x, *args, **kwargs)


def _shown(op: Any) -> Region:
    def region(x: Any, args: Any, kwargs: Any) -> Any:
        result = op.op(x, *args, **kwargs)
        seen = sizes(result)
        return result, seen, f"{seen}"

    return region


def _used(op: Any) -> Region:
    """Makes tensors by a result's sizes, and asks for its layout."""

    def region(x: Any, args: Any, kwargs: Any) -> Any:
        result = op.op(x, *args, **kwargs)
        out: list[Any] = []
        for t in _tensors(result):
            if t.dim() and t.layout is torch.strided:
                n = t.shape[0]
                out += [torch.arange(n) + t.shape[-1], t.reshape(-1)[: n // 2], t.new_zeros(t.shape[-1], 2)]
                out.append(t * n if n > 3 else t)
                out.append((t.is_contiguous(), t.dtype, t.is_leaf))
        return result, out

    return region


def _method(op: Any) -> Region:
    def region(x: Any, args: Any, kwargs: Any) -> Any:
        y = x * 1 if isinstance(x, torch.Tensor) else x
        return op.method_variant(y, *args, **kwargs), y

    return region


def _in_place(op: Any) -> Region:
    def region(x: Any, args: Any, kwargs: Any) -> Any:
        y = x.clone()
        result = op.inplace_variant(y.view_as(y), *args, **kwargs)
        return result is y, y, y * 2

    return region


def _outside(op: Any) -> Region:
    def region(x: Any, args: Any, kwargs: Any) -> Any:
        with torch.no_grad():
            result = op.inplace_variant(x, *args, **kwargs)
        return result is x, result + 1

    return region


def _out(op: Any) -> Region:
    def region(x: Any, args: Any, kwargs: Any) -> Any:
        with torch.no_grad():
            result = op.op(x, *args, **kwargs)
            out = tree_map(lambda t: torch.full_like(t, 3) if isinstance(t, torch.Tensor) else t, result)
            return op.op(x, *args, **kwargs, out=out), out

    return region


@dataclass(frozen=True)
class Case:
    """A region, and what makes the arguments of each of its calls."""

    what: str
    region: Region
    calls: list[Callable[[], Given]]


def _changed(given: Given, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], Given]:
    return lambda: _each_tensor(given, change)


def _of_samples(op: Any) -> Iterator[Case]:
    """Each sample twice, then all once more in another order."""
    given = [
        g
        for dtype, count in ((torch.float32, 12), (torch.int64, 4), (torch.complex64, 3), (torch.bool, 2))
        for g in _samples(op, dtype, count)
    ]
    if op.error_inputs_func is not None:
        wrong = [e.sample_input for e in op.error_inputs("cpu")][:6]
        given += [(s.input, tuple(s.args), s.kwargs) for s in wrong]
    more = list(given)
    random.Random(3).shuffle(more)
    calls = [_changed(g, _fresh) for g in [twice for g in given for twice in (g, g)] + more]
    regions = {"plain": _plain(op), "shown": _shown(op)}
    if op.method_variant is not None:
        regions["method"] = _method(op)
    if op.inplace_variant is not None:
        regions |= {"in place": _in_place(op), "in place, from outside": _outside(op)}
    if op.supports_out:
        regions["out"] = _out(op)
    for form, region in regions.items():
        yield Case(form, region, calls)


def _of_sizes(op: Any) -> Iterator[Case]:
    """One size after the other varies, in all tensors that have it."""
    for number, given in enumerate(_first_samples(op, 4)):
        found = sorted({n for t in _tensors(given) for n in t.shape if n > 1})
        for old in found[:3]:
            several = [old, old + 1, old, old + 2, old + 3, old + 6, max(2, old - 1), 2 * old, old, old + 4, 1, old + 7]
            calls = [_changed(given, _resized(old, new)) for new in several]
            for form, region in {"shown": _shown(op), "used": _used(op)}.items():
                yield Case(f"{form}, sample {number}, size {old}", region, calls)


def _with(flat: list[Any], spec: Any, where: int, value: Any) -> Callable[[], Given]:
    def make() -> Given:
        given: Given = tree_unflatten([*flat[:where], value, *flat[where + 1 :]], spec)
        return _each_tensor(given, _fresh)

    return make


def _of_numbers(op: Any) -> Iterator[Case]:
    """One number of the arguments varies."""
    seen = set()
    for given in _first_samples(op, 100):
        flat, spec = tree_flatten(given)
        for where, v in enumerate(flat):
            key = (where, str(spec), type(v))
            if type(v) not in (int, float) or abs(v) > 1e6 or key in seen or len(seen) > 8:
                continue
            seen.add(key)
            whole = [v, v + 1, v, v + 2, 0, 1, 2, -1, 3, v, 4, -2]
            real = [v, v / 2, 0.0, 1.0, -1.0, 2.0, 0.3, float("nan"), v, float("inf"), 0.7]
            calls = [_with(flat, spec, where, value) for value in (whole if type(v) is int else real)]
            for form, region in {"plain": _plain(op), "shown": _shown(op)}.items():
                yield Case(f"{form}, number {where} of {v}", region, calls)


def _of_layouts(op: Any) -> Iterator[Case]:
    """The tensors' strides, dtypes and places in memory vary."""
    for number, given in enumerate(_first_samples(op, 4)):
        calls = [_changed(given, _laid(how)) for how in LAYOUT_CALLS]
        for form, region in {"shown": _shown(op), "used": _used(op)}.items():
            yield Case(f"{form}, sample {number}", region, calls)


KINDS: dict[str, Callable[[Any], Iterator[Case]]] = {
    "samples": _of_samples, "sizes": _of_sizes, "numbers": _of_numbers, "layouts": _of_layouts,
}  # fmt: skip


# -- calls -------------------------------------------------------------------------------------------------------------


class Data:
    """A tensor's numbers: equal bit for bit, or nearly where compilers may compute in another order."""

    close = False  # of the whole run

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor.clone()
        plain = tensor.numel() > 1 and not (tensor.is_floating_point() and tensor.isnan().any())
        # a NaN has many bit patterns
        self.exact: Any = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if plain else repr(tensor.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Data):
            return False
        both = self.tensor, other.tensor
        return bool(self.exact == other.exact or (self.close and torch.allclose(*both, 1e-3, 1e-4, equal_nan=True)))

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return repr(self.tensor.tolist())


def _tensor(t: torch.Tensor, given: list[Any], version: bool) -> tuple[Any, ...]:
    d = t.detach().clone() if t._is_zerotensor() else t.detach()
    if d.layout is not torch.strided or d.is_quantized:
        return type(t).__name__, str(d.dtype), tuple(d.shape), repr(d)
    if d.dim() > 64:  # more than most operations take, ours too
        return type(t).__name__, str(d.dtype), tuple(d.shape), d.sum().item()
    memory = d.untyped_storage().data_ptr()
    shares = [
        i for i, a in enumerate(given)
        if isinstance(a, torch.Tensor) and a.layout is torch.strided and memory and a.untyped_storage().data_ptr() == memory
    ]  # fmt: skip
    plain = d.resolve_conj().resolve_neg().contiguous()
    data = Data(plain)
    same = [i for i, a in enumerate(given) if a is t]
    layout = tuple(d.shape), d.stride(), d.storage_offset(), t._version if version and not Data.close else None
    history = t.grad_fn is None if Data.close else type(t.grad_fn).__name__
    return type(t).__name__, str(d.dtype), layout, t.requires_grad, history, same, shares, data


def _seen(value: Any, given: list[Any], version: bool = False) -> Any:
    if isinstance(value, torch.Tensor):
        return _tensor(value, given, version)
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [_seen(v, given, version) for v in value]
    if isinstance(value, dict):
        return [(k, _seen(v, given, version)) for k, v in value.items()]
    if isinstance(value, float) and Data.close:
        return "float", Data(torch.tensor(value, dtype=torch.float64))
    return type(value).__name__, repr(value)


def _backward(result: Any) -> str:
    total: Any = 0
    for t in _tensors(result):
        if t.requires_grad and (t.is_floating_point() or t.is_complex()):
            plain = t.to_dense() if t.layout is not torch.strided else t
            total = total + ((plain.abs() if plain.is_complex() else plain).float() * 1.5).sum()
    if isinstance(total, torch.Tensor):
        total.backward()
    return "backward"


def _call(region: Region, make: Callable[[], Given], seed: int) -> list[Any]:
    given = make()
    flat = tree_flatten(given)[0]
    torch.manual_seed(seed)
    seen: list[Any] = []
    try:
        with short_stacks():
            result = region(*given)
        seen.append(_seen(result, flat))
        seen.append(_backward(result))
    except Exception as error:  # what it raises is compared too
        seen.append((type(error).__name__, str(error)[:200]))
    seen.append(_seen(flat, [], True))
    seen.append([_seen(a.grad, []) for a in flat if isinstance(a, torch.Tensor) and a.is_leaf])
    seen.append(torch.get_rng_state().sum().item())
    return seen


def differing(op: Any, kind: str, backend: str = "eager") -> list[str | None]:
    """For each case of an operator, how it differs from eager mode; None where it doesn't."""
    found: list[str | None] = []
    Data.close = backend != "eager"
    for case in KINDS[kind](op):
        compiled = magpy_core.compile(case.region, backend=backend)
        line = None
        for number, make in enumerate(case.calls):
            expected, got = _call(case.region, make, number), _call(compiled, make, number)
            if expected != got and expected == _call(case.region, make, number):
                part = next(((e, g) for e, g in zip(expected, got, strict=False) if e != g), (expected, got))
                line = f"{name_of(op)}, {case.what}, call {number}: {part[0]!s:.600} expected, {part[1]!s:.600} found"
                break
        found.append(line)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", action="append", choices=list(KINDS))
    parser.add_argument("--only", action="append", metavar="OPERATOR")
    parser.add_argument("--slice", default="::", metavar="START:STOP:STEP")
    parser.add_argument("--backend", default="eager")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    part = slice(*(int(n) if n else None for n in args.slice.split(":")))
    chosen = [op for op in operators()[part] if not args.only or name_of(op) in args.only]
    found = [line for op in chosen for kind in args.kind or KINDS for line in differing(op, kind, args.backend)]
    return told(found, 12)


if __name__ == "__main__":
    raise SystemExit(main())
