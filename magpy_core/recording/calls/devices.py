"""Devices: what a region asks of an accelerator, as optimizers and autocast do. Key type: Devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import torch

from magpy_core._compat.torch.surroundings import current_device_of, current_stream_number, in_cuda_graph
from magpy_core.knowledge.torch_functions import DEVICE_PROPERTIES, DEVICE_SELECTIONS, STREAM_READS
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.kinds import is_a


class Devices(Tracker):
    """A region may ask which stream is current, and whether a CUDA graph is being recorded there: both are guarded. The
    properties of a device stay as they are. Selecting the device that is current (`torch.cuda.device(0)`) changes nothing,
    and which one is current is guarded. Whatever else a region does with a stream or a device is refused, as other calls of
    torch are."""

    _current: dict[int, Any] = field(default_factory=dict, init=False)  # streams that were current, by id

    def asks(self, site: MaybeSite, fn: Any, args: tuple[Any, ...]) -> bool:
        """Whether the call that begins is such a question."""
        name = getattr(fn, "__name__", "")
        if name in STREAM_READS:
            self._expect(site, fn, lambda result: self._current_stream(site, args, result))
        elif name in DEVICE_PROPERTIES:
            self._expect(site, fn, lambda result: None)
        elif name == "is_capturing" and id(args[0] if args else getattr(fn, "__self__", None)) in self._current:
            self._expect(site, fn, lambda result: self.context.settings.read(site, in_cuda_graph, (), bool(result)))
        elif name in DEVICE_SELECTIONS and len(args) == 1 and self._is_current(site, name, args[0]):
            self._expect(site, fn, lambda result: None)
        else:
            return False
        return True

    def _is_current(self, site: MaybeSite, name: str, index: Any) -> bool:
        """Whether selecting a device changes nothing: it is the current one, or none (a negative index)."""
        if type(index) is not int:
            return False
        if index >= 0:
            getter = current_device_of(name)
            if getter is None or getter() != index:
                return False
            self.context.settings.read(site, getter, (), index)  # the call may return it
        self.context.numbers.escape_all(site, (index,))
        return True

    def _current_stream(self, site: MaybeSite, args: tuple[Any, ...], result: Any) -> None:
        if is_a(result, torch.Stream):
            self.context.settings.read(site, current_stream_number, args, result.stream_id)
            self._current[id(result)] = result

    def _expect(self, site: MaybeSite, fn: Any, note: Callable[[Any], object]) -> None:
        def receive(result: Any) -> Any:
            note(result)
            return result

        self.context.stack.expect(receive, self.context.callbacks.unobservable(site, fn))
