"""What a capture is made for. Key type: Settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """One form of call (``n_args`` positional arguments and these keywords) and one backend."""

    region_id: str
    n_args: int
    kwarg_names: tuple[str, ...]
    backend: str
    same_random: bool = False
