"""Settings of torch and NumPy: one guard for each setting that was read. Key type: Settings."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import torch

from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.tracker import Tracker

_PLAIN_STATE = (bool, int, float, str, type(None), torch.dtype)


class Settings(Tracker):
    """Guards settings by their values."""

    _read: set[Any] = field(default_factory=set, init=False)

    def read(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], result: Any) -> bool:
        """Guard a setting that was read by calling ``fn`` again; returns whether that is possible."""
        if type(result) not in _PLAIN_STATE or any(type(a) not in _PLAIN_STATE for a in args):
            return False
        if (fn, args) not in self._read:
            self._read.add((fn, args))
            root = self.context.roots.const_root(fn, f"torch's {fn.__name__.removeprefix('_')}").source
            self.refgraph.read(self.sources.make("setting", root, args), guard.EQUAL, result, site)
        return True
