"""What a capture is made for. Key type: Settings."""

from __future__ import annotations

from dataclasses import dataclass

from magpy_core.backends.tuning import DEFAULT, Tuning


@dataclass(frozen=True)
class Settings:
    """One form of call (``n_args`` positional arguments and these keywords) and one backend. ``background``: its graphs are
    compiled beside the program, which runs as plain Python meanwhile."""

    region_id: str
    n_args: int
    kwarg_names: tuple[str, ...]
    backend: str
    same_random: bool = False
    background: bool = False
    tuning: Tuning = DEFAULT
