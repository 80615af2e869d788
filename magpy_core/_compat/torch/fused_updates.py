"""The fused updates of ``torch.optim`` as elementary operations, for graphs that a compiler fuses with the backward pass.

torch's kernels have no shape function, or none that functionalizes on the CPU. Each function repeats the kernel
(``aten/src/ATen/native/cpu/Fused*Kernel.cpp``): with ``found_inf`` it changes nothing where that is 1, and with
``grad_scale`` it stores the unscaled gradients. Key names: FUSED_UPDATES, for ``make_fx``; elementary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Tensors = Sequence[torch.Tensor]


class _Update:
    """One parameter's update: ``gradient`` as the kernel uses it, and how values are stored."""

    def __init__(self, gradient: torch.Tensor, *, maximize: bool, grad_scale: Any, found_inf: Any) -> None:
        self.skip = None if found_inf is None else found_inf == 1
        if grad_scale is not None:
            unscaled = gradient / grad_scale
            self.store(gradient, unscaled)
            gradient = unscaled
        self.gradient = -gradient if maximize else gradient

    def store(self, place: torch.Tensor, value: torch.Tensor) -> None:
        place.copy_(value if self.skip is None else torch.where(self.skip, place, value))


def _hoisted(number: torch.Tensor) -> torch.Tensor:
    """Computed once, not in the loop over a parameter's elements. The operator exists where Inductor is imported."""
    hoist: Any = getattr(torch.ops.magpy, "hoist", None)
    return number if hoist is None else hoist(number)


def _adam(decoupled: bool) -> Callable[..., None]:
    def update(
        params: Tensors, grads: Tensors, averages: Tensors, squares: Tensors, greatest: Tensors, steps: Tensors, *,
        lr: Any, beta1: float, beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool,
        grad_scale: Any = None, found_inf: Any = None,
    ) -> None:  # fmt: skip
        for i, param in enumerate(params):
            one = _Update(grads[i], maximize=maximize, grad_scale=grad_scale, found_inf=found_inf)
            gradient, value = one.gradient, param
            if weight_decay and decoupled:
                value = param - lr * weight_decay * param
            elif weight_decay:
                gradient = gradient + weight_decay * param
            average = averages[i].lerp(gradient, 1 - beta1)
            square = squares[i] * beta2 + (1 - beta2) * gradient * gradient
            step = steps[i].double()
            rate = _hoisted(lr / (1 - beta1**step))
            root = _hoisted((1 - beta2**step).sqrt())
            divisor = square
            if amsgrad:
                divisor = torch.maximum(greatest[i], square)
                one.store(greatest[i], divisor)
            one.store(param, value - rate * average / (divisor.sqrt() / root + eps))
            one.store(averages[i], average)
            one.store(squares[i], square)

    return update


def _sgd(
    params: Tensors, grads: Tensors, buffers: Tensors, *, weight_decay: float, momentum: float, lr: Any, dampening: float,
    nesterov: bool, maximize: bool, is_first_step: bool, grad_scale: Any = None, found_inf: Any = None,
) -> None:  # fmt: skip
    for i, param in enumerate(params):
        one = _Update(grads[i], maximize=maximize, grad_scale=grad_scale, found_inf=found_inf)
        gradient = one.gradient + weight_decay * param if weight_decay else one.gradient
        if momentum:
            buffer = gradient if is_first_step else buffers[i] * momentum + gradient * (1 - dampening)
            one.store(buffers[i], buffer)
            gradient = gradient + momentum * buffer if nesterov else buffer
        one.store(param, param - lr * gradient)


def _adagrad(
    params: Tensors, grads: Tensors, sums: Tensors, steps: Tensors, *, lr: Any, lr_decay: float, weight_decay: float,
    eps: float, maximize: bool, grad_scale: Any = None, found_inf: Any = None,
) -> None:  # fmt: skip
    for i, param in enumerate(params):
        one = _Update(grads[i], maximize=maximize, grad_scale=grad_scale, found_inf=found_inf)
        gradient = one.gradient + weight_decay * param if weight_decay else one.gradient
        total = sums[i] + gradient * gradient
        rate = _hoisted(lr / (1 + (steps[i].double() - 1) * lr_decay))
        one.store(param, param - rate * gradient / (total.sqrt() + eps))
        one.store(sums[i], total)


_FUNCTIONS: dict[str, Callable[..., None]] = {
    "_fused_adam_": _adam(decoupled=False),
    "_fused_adamw_": _adam(decoupled=True),
    "_fused_sgd_": _sgd,
    "_fused_adagrad_": _adagrad,
}
#: Decompositions of the updates that this version of torch has.
FUSED_UPDATES: dict[Any, Callable[..., Any]] = {
    getattr(packet, overload): function
    for name, function in _FUNCTIONS.items()
    if (packet := getattr(torch.ops.aten, name, None)) is not None
    for overload in packet.overloads()
}


def elementary(name: str) -> Callable[..., None]:
    """The update that a kernel makes, for a learning rate that is a tensor: torch has no shape function for that. Raises
    KeyError."""
    return _FUNCTIONS[name]
