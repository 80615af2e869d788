"""Replays a compiled graph as a CUDA graph where that is faster: one launch in place of one for each kernel.

The first calls run the code as it is and show which inputs stay in their places. Then one call is recorded, which runs
nothing, and replayed. Inputs that move, a batch, are copied into tensors of the recording's own; results are copied out of
its memory, because the next replay overwrites them. Calls then alternate until the device's time for both is known, without
waiting for the device, and the faster of the two is kept. The random numbers are those that the code itself would draw:
torch advances the generator by as much in each replay.

A recording is valid for its addresses and its stream; any other call runs the code as it is. Key type: Replayed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

import torch

from magpy_core._compat.torch.surroundings import in_cuda_graph
from magpy_core.backends.calling import Boxed
from magpy_core.backends.cuda_graphs.recording import Recording, Unfit, generation, with_room
from magpy_core.limits import LIMITS


class _Timed(NamedTuple):
    """Two events of the device, around a call."""

    start: torch.cuda.Event
    end: torch.cuda.Event


class Replayed:
    """``call`` takes a list of tensors on the ``device`` with that index, has no autograd, and writes the inputs at
    ``written``. To be called as it is. ``reason``: why calls are not replayed; empty while they are, or while that is not
    known. ``is_slower``: replaying was not faster. ``replays``: how many calls have been."""

    def __init__(self, call: Boxed, written: frozenset[int], device: int, reason: str = "") -> None:
        self._call, self._written, self._device = call, written, device
        self._recording: Recording | None = None
        self._stream: tuple[int, int] | None = None
        self._moving: frozenset[int] = frozenset()
        self._counted: list[int] = []  # inputs whose versions the code increments
        self._places: list[int] = []
        self._lock = threading.RLock()
        self._calls = self._recordings = self.replays = 0
        self._samples: dict[bool, list[_Timed]] | None = {True: [], False: []}
        self.reason, self.is_slower = reason, False

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        if self.reason or self.is_slower or in_cuda_graph():
            return self._call(inputs)
        place = (torch.cuda.current_device(), torch.cuda.current_stream().cuda_stream)
        if place[0] != self._device:
            return self._call(inputs)
        if place != self._stream:
            if self._recording is not None:
                return self._call(inputs)
            self._stream, self._calls = place, 0
        with self._lock:
            self._calls += 1
            return self._watch(inputs) if self._calls <= LIMITS.watched_calls else self._replay(inputs)

    def _watch(self, inputs: list[Any]) -> Sequence[Any]:
        """Runs the code, and learns which inputs move and which versions it increments."""
        if any(not isinstance(t, torch.Tensor) or t.is_inference() for t in inputs):
            self.reason = "its inputs are tensors of inference mode"
            return self._call(inputs)
        places = [t.data_ptr() for t in inputs]
        if self._places:
            self._moving |= {i for i, (one, other) in enumerate(zip(places, self._places, strict=True)) if one != other}
        self._places = places
        kept, versions = list(inputs), [t._version for t in inputs]
        results = self._call(inputs)
        self._counted = [i for i, (t, version) in enumerate(zip(kept, versions, strict=True)) if t._version != version]
        return results

    def _replay(self, inputs: list[Any]) -> Sequence[Any]:
        recording = self._recording
        if recording is None or recording.generation != generation(self._device) or not recording.fits(inputs):
            recording = self._recorded(inputs)
            if recording is None:
                return self._call(inputs)
        if self._samples is not None:
            return self._sample(recording, inputs, self._samples)
        return self._replayed(recording, inputs)

    def _replayed(self, recording: Recording, inputs: list[Any]) -> Sequence[Any]:
        try:
            with torch.no_grad():
                results = recording.replay(inputs)
        except RuntimeError as error:  # too little memory; the call runs in eager mode
            self.reason, self._recording = f"a replay failed: {str(error).splitlines()[0][:160]}", None
            raise
        if self._counted:
            torch.autograd.graph.increment_version([inputs[i] for i in self._counted])
        self.replays += 1
        inputs.clear()
        return results

    def _recorded(self, inputs: list[Any]) -> Recording | None:
        """A recording for ``inputs``; None if there can be none: ``reason`` says why."""
        before, self._recording = self._recording, None
        if before is not None:
            self._moving |= before.moved(inputs) - self._written
        if elsewhere := self._moving & self._written:
            count = "1 output tensor gets" if len(elsewhere) == 1 else f"{len(elsewhere)} output tensors get"
            self.reason = f"{count} a new address on every call, and a CUDA graph needs fixed ones"
        elif self._recordings == LIMITS.most_recordings:
            self.reason = "input tensors get a new address on every call"
        else:
            self._recordings += 1
            try:
                with with_room(self._device):
                    self._recording = Recording(self._call, inputs, self._moving, self._written, self._device)
            except Unfit as error:
                self.reason, self._recording = str(error), None
            except RuntimeError as error:  # nothing of the call has run
                self.reason = f"it can't be recorded: {str(error).splitlines()[0][:160]}"
        return self._recording

    def _sample(self, recording: Recording, inputs: list[Any], samples: dict[bool, list[_Timed]]) -> Sequence[Any]:
        """A call, timed, replayed or not by turns. Decides once all times are known."""
        done = [len(samples[True]), len(samples[False])]
        if min(done) == LIMITS.replayed_timings:
            if all(timed.end.query() for one in samples.values() for timed in one):
                self._decide(samples)
            if self.is_slower:
                return self._call(inputs)
            return self._replayed(recording, inputs)
        is_replayed = done[0] <= done[1]
        timed = _Timed(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
        timed.start.record()
        results = self._replayed(recording, inputs) if is_replayed else self._call(inputs)
        timed.end.record()
        samples[is_replayed].append(timed)
        return results

    def _decide(self, samples: dict[bool, list[_Timed]]) -> None:
        replayed, plain = (median(t.start.elapsed_time(t.end) for t in samples[kind]) for kind in (True, False))
        self._samples = None
        if replayed > LIMITS.replay_gain * plain:
            self.is_slower, self._recording = True, None
