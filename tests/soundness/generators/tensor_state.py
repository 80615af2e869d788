"""Tensor state: everything a tensor tells about itself times kinds of tensors times where the region has it from.

A tensor has a good hundred getters and methods that show state no operation computes: `_base`, `is_leaf`, `output_nr`,
`is_coalesced()`. Each is asked of tensors whose kind changes from call to call.
`python -m tests.soundness.generators.tensor_state`. Key function: shown.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import magpy_core
from tests.soundness.harness.families import Family, first_difference, main


class OwnTensor(torch.Tensor):
    pass


def _plain() -> torch.Tensor:
    return torch.arange(6.0).reshape(2, 3)


def _with_grad() -> torch.Tensor:
    t = _plain().requires_grad_()
    t.grad = torch.ones(2, 3)
    return t


def _retaining() -> torch.Tensor:
    t = _plain().requires_grad_() * 2
    t.retain_grad()
    return t


def _hooked() -> torch.Tensor:
    t = _plain().requires_grad_()
    t.register_hook(lambda g: g * 2)
    return t


def _accumulating() -> torch.Tensor:
    t = _plain().requires_grad_()
    t.register_post_accumulate_grad_hook(lambda p: None)
    return t


def _inference() -> torch.Tensor:
    with torch.inference_mode():
        return _plain()


def _written() -> torch.Tensor:
    t = _plain()
    t += 1
    return t


def _attribute() -> torch.Tensor:
    t: Any = _plain()
    t.tag = "tagged"
    return t  # type: ignore[no-any-return]


def _shared() -> torch.Tensor:
    return _plain().share_memory_()


KINDS: dict[str, Callable[[], torch.Tensor]] = {
    "plain": _plain,
    "leaf": lambda: _plain().requires_grad_(),
    "computed": lambda: _plain().requires_grad_() * 2,
    "second output": lambda: (_plain().repeat(2, 1).requires_grad_() * 1).chunk(2)[1],
    "view": lambda: torch.arange(12.0).reshape(4, 3)[:2],
    "whole view": lambda: torch.arange(6.0).view(2, 3)[:],
    "later view": lambda: torch.arange(12.0).reshape(4, 3)[2:],
    "detached": lambda: (_plain().requires_grad_() * 2).detach(),
    "differentiable view": lambda: (torch.arange(12.0).reshape(4, 3).requires_grad_() * 1)[:2],
    "parameter": lambda: nn.Parameter(_plain()),
    "frozen parameter": lambda: nn.Parameter(_plain(), requires_grad=False),
    "buffer": lambda: nn.Buffer(_plain()),
    "with gradient": _with_grad,
    "retaining": _retaining,
    "hooked": _hooked,
    "accumulating": _accumulating,
    "inference": _inference,
    "written": _written,
    "attribute": _attribute,
    "transposed": lambda: torch.arange(6.0).reshape(3, 2).t(),
    "expanded": lambda: torch.arange(3.0).expand(2, 3),
    "strided": lambda: torch.arange(12.0).reshape(2, 6)[:, ::2],
    "double": lambda: _plain().double(),
    "whole": lambda: torch.arange(6).reshape(2, 3),
    "truths": lambda: _plain() > 2,
    "complex": lambda: torch.complex(_plain(), _plain()),
    "conjugate": lambda: torch.complex(_plain(), _plain()).conj(),
    "negative": lambda: torch.complex(_plain(), _plain()).conj().imag,
    "sparse": lambda: _plain().to_sparse(),
    "not coalesced": lambda: torch.sparse_coo_tensor(torch.tensor([[0, 0], [1, 1]]), torch.ones(2), (2, 3)),
    "compressed": lambda: _plain().to_sparse_csr(),
    "quantised": lambda: torch.quantize_per_tensor(_plain(), 0.5, 3, torch.quint8),
    "meta": lambda: _plain().to("meta"),
    "shared": _shared,
    "own class": lambda: _plain().as_subclass(OwnTensor),
    "one row": lambda: torch.arange(3.0).reshape(1, 3),
    "empty": lambda: torch.zeros(0, 3),
    "channels": lambda: torch.arange(24.0).reshape(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
    "number": lambda: torch.tensor(2.5),
}  # fmt: skip


class Holder:
    t: Any = None
    other: Any = None


PLACES: dict[str, Callable[[Holder, Any], Any]] = {
    "attribute": lambda h, x: h.t,
    "argument": lambda h, x: x,
    "detached inside": lambda h, x: x.detach(),
    "computed inside": lambda h, x: x * 1,
    "viewed inside": lambda h, x: x[:1],
}

# What differs from one tensor or run to the next by itself, writes, or asks for more than a look.
_NOT = frozenset({
    "data_ptr", "_cdata", "__hash__", "__dir__", "__sizeof__", "untyped_storage", "storage", "_typed_storage", "__reduce__",
    "__init_subclass__", "__subclasshook__", "__new__", "__init__", "backward", "resize", "resize_as", "lu", "stft", "istft",
    "random_", "normal_", "uniform_", "exponential_", "log_normal_", "geometric_", "cauchy_", "bernoulli_", "bernoulli",
    "multinomial", "cuda", "xpu", "hpu", "ipu", "mtia", "mps", "pin_memory", "is_pinned", "to_dlpack", "__dlpack__",
    "storage_type",
    "module_load", "reinforce", "grad_fn", "_reduce_ex_internal", "__getstate__", "__dlpack_c_exchange_api__", "type",
    "_clear_non_serializable_cached_data", "__class_getitem__", "__class__", "__weakref__", "_make_dtensor",
    "_make_subclass",
    "_make_wrapper_subclass", "__c_dlpack_exchange_api__", "_use_count", "__delattr__",
    "const_data_ptr", "_fix_weakref", "geqrf", "svd", "qr", "histogram",
})  # fmt: skip


def _asked() -> dict[str, Callable[[Any], Any]]:
    """What to ask a tensor: every getter, and every method that takes nothing else."""
    out: dict[str, Callable[[Any], Any]] = {}
    t = _plain()
    for name in dir(torch.Tensor):
        raw = inspect.getattr_static(torch.Tensor, name)
        if name in _NOT or (name.endswith("_") and not name.endswith("__")):
            continue
        if type(raw).__name__ == "getset_descriptor" or isinstance(raw, property):
            out[f".{name}"] = lambda t, name=name: getattr(t, name)
            continue
        if not callable(getattr(t, name, None)):
            continue
        try:
            value = getattr(_plain(), name)()
        except Exception:
            continue
        if not isinstance(value, torch.Tensor) and value is not NotImplemented:
            out[f".{name}()"] = lambda t, name=name: getattr(t, name)()
    return out


ASKED: dict[str, Callable[[Any], Any]] = _asked() | {
    "grad_fn is None": lambda t: t.grad_fn is None,
    "grad_fn name": lambda t: t.grad_fn and t.grad_fn.name(),
    "type": lambda t: (type(t), t.type()),
    "isinstance": lambda t: (isinstance(t, nn.Parameter), isinstance(t, OwnTensor), isinstance(t, nn.Buffer)),
    "is_pinned": lambda t: t.is_pinned(),
    "storage size": lambda t: t.untyped_storage().size(),
    "same memory": lambda t: t.data_ptr() == t.view(-1).data_ptr(),
    "same storage": lambda t: t.detach().untyped_storage().data_ptr() == t.untyped_storage().data_ptr(),
    "torch.is_tensor": lambda t: (torch.is_tensor(t), torch.is_storage(t)),
    "torch.is_floating_point": lambda t: (torch.is_floating_point(t), torch.is_complex(t), t.dtype.is_floating_point),
    "torch.is_conj": lambda t: (torch.is_conj(t), torch.is_neg(t), torch.is_inference(t), torch.is_same_size(t, t)),
    "torch.numel": lambda t: (torch.numel(t), torch.result_type(t, 1.5), torch.can_cast(t.dtype, torch.int32)),
    "promoted": lambda t: torch.promote_types(t.dtype, torch.float16),
    "contiguous for": lambda t: (t.is_contiguous(memory_format=torch.channels_last), t.is_contiguous()),
    "suggested format": lambda t: torch.empty_like(t).stride(),
    "sizes": lambda t: (t.size(0), t.stride(-1), t.shape[-1], len(t.shape), t.dim(), len(t)),
    "hasattr": lambda t: (hasattr(t, "tag"), hasattr(t, "grad"), hasattr(t, "_base"), hasattr(t, "nothing")),
    "tag": lambda t: getattr(t, "tag", "none"),
    "vars": lambda t: sorted(vars(t)),
    "iterated": lambda t: [row.shape for row in t],
    "unpacked": lambda t: len([*t]),
    "in text": lambda t: f"{t.shape} {t.dtype} {t.device} {t.requires_grad} {t.layout}",
    "branch on base": lambda t: 1 if t._base is None else 2,
    "branch on view": lambda t: 1 if t._is_view() else 2,
    "base's shape": lambda t: None if t._base is None else t._base.shape,
    "grad's sum": lambda t: None if t.grad is None else t.grad + 1,
    "copied": lambda t: copy.copy(t).requires_grad,
    "deep copied": lambda t: copy.deepcopy(t.detach()).stride(),
}  # fmt: skip


def _told(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        plain = value.detach()
        numbers = None if plain.is_meta or plain.is_quantized else plain.to_dense().resolve_conj().resolve_neg()
        return type(value), str(value.dtype), tuple(value.shape), str(value.layout), repr(numbers), value.requires_grad
    if isinstance(value, dict):
        return [(type(key) if type(key) is int else key, _told(v)) for key, v in value.items()]  # hooks have numbers
    if isinstance(value, (tuple, list)):
        return type(value), [_told(v) for v in value]
    if value is None or isinstance(value, (int, float, str, bool, torch.dtype, torch.device, type)):
        return type(value), repr(value)
    return type(value)


def _life(asked: str, place: str, kinds: list[str], compiled: bool) -> list[Any]:
    holder = Holder()
    ask, get = ASKED[asked], PLACES[place]

    def region(x: Any) -> Any:
        try:
            return ask(get(holder, x)), None
        except Exception as error:
            return None, (type(error), str(error)[:60])

    target = magpy_core.compile(region, backend="eager") if compiled else region
    seen = []
    for kind in kinds:
        holder.t = x = KINDS[kind]()
        seen.append(_told(target(x)))
    return seen


def shown(asked: str, place: str) -> str | None:
    """How a region that asks this of tensors of all kinds differs from eager mode; None where it doesn't.

    Between two others there is a plain tensor, so that each kind follows on what the guards of the plain one let pass."""
    kinds = ["plain", "plain"]
    for kind in KINDS:
        kinds += [kind, "plain"]
    kinds += [kind for kind in KINDS for _ in range(2)]
    expected, got = (_life(asked, place, kinds, compiled) for compiled in (False, True))
    return first_difference((asked, place), expected, got)


FAMILY = Family.product(shown, asked=ASKED, place=PLACES)


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))
