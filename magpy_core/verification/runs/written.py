"""Compares a file that runs have written: texts as printed lines, what torch.save wrote as tensors, others by their bytes.
Key type: Written; key function: compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from magpy_core.verification.runs import printed, states


@dataclass(frozen=True)
class Written:
    """As ``Printed``: the difference that rounding does not explain, or nothing; and what was not compared, and why."""

    difference: str = ""
    is_rounding: bool = False
    ignored: str = ""


def compare(
    eager: Path | None, compiled: Path | None, again: Path | None, noisy: Sequence[Path | None], *, is_repeated: bool
) -> Written:
    """``is_repeated``: there is a second eager run, ``again`` its file. None: a run has not written such a file."""
    if eager is None or compiled is None:
        if is_repeated and (again is None) != (eager is None):
            return Written(ignored="only one of two eager runs writes it")
        if any((one is None) != (eager is None) for one in noisy):
            return Written(is_rounding=True)
        return Written(f"only {'compiled code' if eager is None else 'eager mode'} writes it")
    a, b = eager.read_bytes(), compiled.read_bytes()
    if a == b:
        return Written()
    others = [one.read_bytes() for one in noisy if one is not None]
    second = again.read_bytes() if again is not None else None
    texts = [_text(one) for one in (a, b)]
    if texts[0] is not None and texts[1] is not None:
        more = [text for text in map(_text, others) if text is not None]
        found = printed.compare(texts[0], texts[1], None if second is None else _text(second), more)
        at = f"line {found.line}: {found.difference}" if found.difference else ""
        return Written(at, found.is_rounding, found.ignored)
    if (first := _saved(eager)) is not None and (other := _saved(compiled)) is not None:
        return _of_saved(first, other, None if again is None else _saved(again), [_saved(one) for one in noisy if one])
    if second is not None and second != a:
        return Written(ignored="two eager runs write different bytes")
    if others and any(one != a for one in others):
        return Written(ignored="its bytes change with rounding, and its format is not known")
    return Written("its bytes differ")


def _text(data: bytes) -> str | None:
    if b"\0" in data[:8192]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _of_saved(
    eager: dict[str, Any], compiled: dict[str, Any], again: dict[str, Any] | None, noisy: Sequence[Any]
) -> Written:
    if again is not None:
        kept = [name for name in eager if name in again and states.same_bits({name: eager[name]}, {name: again[name]})]
    else:
        kept = list(eager)
    ignored = "values that differ between two eager runs" if len(kept) < len(eager) else ""
    if eager.keys() ^ compiled.keys():
        return Written(f"only one of the two has `{min(eager.keys() ^ compiled.keys())}`", ignored=ignored)
    numbers = [name for name in kept if isinstance(eager[name], torch.Tensor)]
    for name in kept:
        if name not in numbers and eager[name] != compiled[name]:
            if any(one is not None and one.get(name) != eager[name] for one in noisy):
                continue
            return Written(f"`{name}` is {str(compiled[name])[:60]!r}, not {str(eager[name])[:60]!r}", ignored=ignored)
    found = states.compare(
        {name: eager[name] for name in numbers},
        {name: compiled[name] for name in numbers},
        [one for one in noisy if one is not None],
    )
    if found.worst is not None:
        return Written(f"`{found.worst.what}` {found.worst.text}", ignored=ignored)
    return Written(is_rounding=not found.is_equal, ignored=ignored)


def _saved(path: Path) -> dict[str, Any] | None:
    """The values that torch.save has written, by their keys; None: something else, or what can't be read without running
    code."""
    try:
        return dict(_flat("", torch.load(path, weights_only=True, map_location="cpu")))
    except Exception:  # torch.load raises anything for what it has not written; then the bytes are compared
        return None


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), one)
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            yield from _flat(f"{name}[{number}]", one)
    elif type(value) is float:
        yield name or "value", torch.tensor(value, dtype=torch.float64)
    else:
        yield name or "value", value
