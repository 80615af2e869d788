"""What a capture is made for. Key type: Settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from magpy_core.backends.tuning import DEFAULT, Tuning


@dataclass(frozen=True)
class Settings:
    """One form of call (``n_args`` positional arguments and these keywords) and one backend. ``background``: its graphs are
    compiled beside the program, which runs as plain Python meanwhile. ``affords``: whether the program can spend so many
    seconds on loading compiled code now; later it may."""

    region_id: str
    n_args: int
    kwarg_names: tuple[str, ...]
    backend: str
    same_random: bool = False
    background: bool = False
    tuning: Tuning = DEFAULT
    affords: Callable[[float], bool] = lambda seconds: True

    @property
    def tunings(self) -> tuple[Tuning, ...]:
        """With what each graph is compiled, the quickest first."""
        return self.tuning.stages if self.background else (self.tuning,)
