"""A program with rounding noise, which shows how fast rounding grows in it. Key type: NoisyProgram.

As in ``noise.py``, for each ATen operation that a program in eager mode runs, instead of a recorded graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from magpy_core._compat.torch.every_operation import EveryOperation
from magpy_core._compat.torch.operator_schemas import combines_elements
from magpy_core.verification.noise import is_noisy, summands_of, units_of_each

#: Operations that move elements, or make new ones, and round nothing.
_MOVES = frozenset(
    (
        "_to_copy alias arange cat clone copy_ constant_pad_nd detach embedding empty empty_like eye fill fill_ flip full"
        " full_like gather index index_select lift_fresh linspace masked_fill masked_fill_ new_empty new_full new_ones"
        " new_zeros ones ones_like repeat roll scalar_tensor stack tril triu where zero_ zeros zeros_like _foreach_copy_"
        " _foreach_zero_ _local_scalar_dense set_ resize_ neg abs relu max_pool2d_with_indices"
    ).split()
)
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


class NoisyProgram:
    """``seed``: of the noise, which takes nothing from the program's random streams. From ``begin`` on, operations have
    noise while ``is_on``. ``separates``: elements that are equal get different noise, so that rounding decides which is the
    largest, for example; without that, such ties stay."""

    def __init__(self, seed: int, *, separates: bool = False) -> None:
        self.is_on = False
        self._mode = EveryOperation(self._run)
        self._seed, self._calls = seed, 0
        self._separates = separates
        self._combining: dict[Any, bool] = {}

    def begin(self) -> None:
        self._mode.begin()

    def end(self) -> None:
        self._mode.end()

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        if not self.is_on or not _rounds(func):
            return func(*args, **kwargs)
        if self._combines(func):
            args = self._before(args, _inputs(func))
        result = func(*args, **kwargs)
        with torch.no_grad():
            for value in _new_or_written(func, args, kwargs, result):
                self._round(value)
        return result

    def _combines(self, func: Any) -> bool:
        found = self._combining.get(func)
        if found is None:
            name = func._schema.name.partition("::")[2]
            writes = any(one.alias_info is not None for one in func._schema.arguments)
            found = self._combining[func] = not writes and combines_elements(name)
        return found

    def _before(self, args: Any, count: int) -> Any:
        """What an operation adds up has noise before that: its result has no trace of summands that cancel."""
        units = units_of_each(summands_of([one for one in args if isinstance(one, torch.Tensor)]))
        first = tuple(self._rounded(one, units) if isinstance(one, torch.Tensor) else one for one in args[:count])
        return first + tuple(args[count:])

    def _rounded(self, value: torch.Tensor, units: float) -> torch.Tensor:
        if not self._is_noisy(value):
            return value
        eps = min(torch.finfo(value.dtype).eps, torch.finfo(torch.float32).eps)
        return value + self._noise(value, units * eps)

    def _round(self, value: torch.Tensor) -> None:
        if self._is_noisy(value):
            value.add_(self._noise(value, torch.finfo(value.dtype).eps))

    @staticmethod
    def _is_noisy(value: torch.Tensor) -> bool:
        return is_noisy(value) and not value.is_meta and value.numel() > 0 and type(value) in _PLAIN

    def _noise(self, value: torch.Tensor, scale: float) -> torch.Tensor:
        self._calls += 1
        random = (self._by_place(value) if self._separates else self._by_value(value)).to(value.dtype)
        random.mul_(scale).mul_(value.abs().clamp_min_(torch.finfo(value.dtype).tiny))
        return random.masked_fill_((value == value.round()) | ~torch.isfinite(value), 0.0)

    def _by_value(self, value: torch.Tensor) -> torch.Tensor:
        """Equal elements get equal noise, as compiled code computes them in the same way."""
        bits = value.detach().contiguous().view(_BITS[value.dtype.itemsize]).to(torch.int32)
        return self._scrambled(bits).view(value.shape)

    def _by_place(self, value: torch.Tensor) -> torch.Tensor:
        places = torch.arange(value.numel(), dtype=torch.int32, device=value.device)
        return self._scrambled(places).view(value.shape)

    def _scrambled(self, numbers: torch.Tensor) -> torch.Tensor:
        """Numbers between -1 and 1, as random as it takes: other ones in each operation, and with each seed."""
        mixed = (numbers * 0x2545F491).add_((self._calls * 0x1003F + self._seed * 0x5BD1E995) & 0x7FFFFFFF)
        mixed.bitwise_xor_(mixed >> 15).mul_(0x2C1B3C6D).bitwise_xor_(mixed >> 12)
        return (mixed & 0xFFFF).to(torch.float32).div_(32768.0).sub_(1.0)


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _rounds(func: Any) -> bool:
    name = func._schema.name.partition("::")[2]
    return name not in _MOVES and torch.Tag.nondeterministic_seeded not in func.tags


def _inputs(func: Any) -> int:
    """How many of the first arguments are read only. A normalization writes running statistics, which its schema hides."""
    name = func._schema.name
    return (2 if "backward" in name else 1) if "norm" in name else len(func._schema.arguments)


def _new_or_written(func: Any, args: Any, kwargs: Any, result: Any) -> Iterable[torch.Tensor]:
    """New tensors of the result, and tensors among the arguments that were written. Of a view, nothing: it is neither."""
    written = [one for one in func._schema.arguments if one.alias_info is not None and one.alias_info.is_write]
    if written:
        given = {one.name: value for one, value in zip(func._schema.arguments, args, strict=False)} | dict(kwargs)
        for one in written:
            yield from _flat(given.get(one.name))
        return
    if any(one.alias_info is not None for one in func._schema.returns):
        return
    yield from _flat(result)


def _flat(value: Any) -> Iterable[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _flat(one)
