"""Replays a compiled graph as a CUDA graph where that is faster: one launch in place of one for each kernel.

The first calls run the code as it is and show which inputs stay in their places. Then one call is recorded, which runs
nothing, and replayed. Inputs that move, a batch, are copied into tensors of the recording's own; results are copied out of
its memory, because the next replay overwrites them. Calls then alternate until the device's time for both is known, without
waiting for the device, and the faster of the two is kept. The random numbers are those that the code itself would draw:
torch advances the generator by as much in each replay.

A recording is valid for its addresses and its stream; any other call runs the code as it is. Key type: Replayed.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any, NamedTuple

import torch

from magpy_core._compat.torch.failed_recording import clean_up
from magpy_core._compat.torch.surroundings import in_cuda_graph
from magpy_core.backends.calling import Boxed

_WATCHED = 3  # calls before the first recording
_SAMPLES = 5  # timed calls of each kind
_MOST_RECORDINGS = 4
_LEAST_GAIN = 0.97  # of the code's own time


class _Unfit(Exception):
    """A call can't be replayed; the message says why."""


class _Pool:
    """The memory of all recordings for one stream of the program's. They never run at the same time: ``lock``."""

    def __init__(self, device: int) -> None:
        self.handle = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream(device)
        self.lock = threading.RLock()
        self._keeper = torch.cuda.CUDAGraph()  # torch refuses a pool all of whose graphs have been freed
        self.record(self._keeper, lambda given: [torch.zeros(1, device=self.stream.device)], [])

    def record(self, graph: torch.cuda.CUDAGraph, call: Boxed, given: list[torch.Tensor]) -> Sequence[Any]:
        """What ``call`` returns, whose kernels are recorded and not run."""
        torch.cuda.synchronize()
        self.stream.wait_stream(torch.cuda.current_stream())
        with _no_collections(), torch.cuda.stream(self.stream):
            # Other threads (a loader that pins memory) may do what a thread that records may not.
            graph.capture_begin(pool=self.handle, capture_error_mode="thread_local")
            try:
                return call(given)
            finally:
                graph.capture_end()


_pools: dict[tuple[int, int], _Pool] = {}


def _pool(device: int, stream: int) -> _Pool:
    found = _pools.get((device, stream))
    if found is None:
        found = _pools[device, stream] = _Pool(device)
    return found


def _forget(device: int) -> None:
    """All recordings on ``device`` are invalid: they draw from a generator that the program has no more."""
    for place in [place for place in _pools if place[0] == device]:
        del _pools[place]


class _Result(NamedTuple):
    """What a recording's results are copied into."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


class _Recording:
    """``call`` recorded for ``inputs``; those at ``moving`` may be elsewhere in later calls. Raises _Unfit, or what the
    recording raises."""

    def __init__(self, call: Boxed, inputs: list[torch.Tensor], moving: frozenset[int], pool: _Pool) -> None:
        self._staying = [i for i in range(len(inputs)) if i not in moving]
        self._moving = sorted(moving)
        self.places = [inputs[i].data_ptr() for i in self._staying]
        with torch.inference_mode(False):
            self._buffers = [_like(inputs[i]) for i in self._moving]
        given = list(inputs)
        for i, buffer in zip(self._moving, self._buffers, strict=True):
            given[i] = buffer
        self._graph = torch.cuda.CUDAGraph()
        self.pool = pool
        self._outputs = list(pool.record(self._graph, call, given))
        self._results, self._sources, self._positions = self._plan(inputs)

    def _plan(self, inputs: Sequence[torch.Tensor]) -> tuple[list[_Result], list[torch.Tensor], list[int | None]]:
        """Which results are copied, in groups of one dtype, which one copy operation fills; and for each output, which
        of them it is."""
        known = {_memory(t) for t in (*inputs, *self._buffers)}
        order: list[int] = []
        places: dict[int, int] = {}  # outputs by their memory
        positions: list[int | None] = [None] * len(self._outputs)
        for i, output in enumerate(self._outputs):
            if not isinstance(output, torch.Tensor):
                continue
            if output.numel() and _memory(output) in known:
                raise _Unfit("one of its results shares memory with an input")
            if _overlaps(output):
                raise _Unfit("elements of a result share memory")
            first = places.setdefault(_memory(output), i) if output.numel() else i
            if first != i and _layout(output) != _layout(self._outputs[first]):
                raise _Unfit("two of its results share memory")
            positions[i] = first
            if first == i:
                order.append(i)
        order.sort(key=lambda i: str(self._outputs[i].dtype))
        at = {i: position for position, i in enumerate(order)}
        sources = [self._outputs[i] for i in order]
        results = [_Result(tuple(t.shape), t.stride(), t.dtype, t.device) for t in sources]
        return results, sources, [None if first is None else at[first] for first in positions]

    def fits(self, inputs: Sequence[torch.Tensor]) -> bool:
        return [inputs[i].data_ptr() for i in self._staying] == self.places

    def moved(self, inputs: Sequence[torch.Tensor]) -> frozenset[int]:
        """The inputs that are not where they were."""
        now = zip(self._staying, self.places, strict=True)
        return frozenset(i for i, place in now if inputs[i].data_ptr() != place)

    def replay(self, inputs: Sequence[torch.Tensor]) -> list[Any]:
        # first, because nothing has been written if there is no memory for them
        copies = [torch.empty_strided(*one[:2], dtype=one.dtype, device=one.device) for one in self._results]
        if self._moving:
            torch._foreach_copy_(self._buffers, [inputs[i] for i in self._moving])
        self._graph.replay()
        start = 0
        for end in range(1, len(copies) + 1):
            if end == len(copies) or self._results[end].dtype != self._results[start].dtype:
                torch._foreach_copy_(copies[start:end], self._sources[start:end])
                start = end
        given: list[Any] = []
        taken = set[int]()
        for position, output in zip(self._positions, self._outputs, strict=True):
            if position is None:
                given.append(output)
            else:
                given.append(copies[position].detach() if position in taken else copies[position])
                taken.add(position)
        return given


def _like(tensor: torch.Tensor) -> torch.Tensor:
    if _overlaps(tensor):
        raise _Unfit("elements of an input that moves share memory")
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset()


def _overlaps(tensor: torch.Tensor) -> bool:
    """Whether two elements may be in the same place."""
    end = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1:
            if stride < end:
                return True
            end = stride * size
    return False


@contextmanager
def _no_collections() -> Iterator[None]:
    """A collection could free what a recording must not touch."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


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
        self._recording: _Recording | None = None
        self._stream: tuple[int, int] | None = None
        self._moving: frozenset[int] = frozenset()
        self._counted: list[int] = []  # inputs whose versions the code increments
        self._places: list[int] = []
        self._calls = self._recordings = self.replays = 0
        self._samples: dict[bool, list[_Timed]] | None = {True: [], False: []}
        self.reason, self.is_slower = reason, False

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        if self.reason or self.is_slower or in_cuda_graph():
            return self._call(inputs)
        place = (torch.cuda.current_device(), torch.cuda.current_stream().cuda_stream)
        if self._stream is None:
            self._stream = place
        if place != self._stream or place[0] != self._device:
            return self._call(inputs)
        self._calls += 1
        if self._calls <= _WATCHED:
            return self._watch(inputs)
        pool = _pool(*place)
        with pool.lock:
            return self._replay(inputs, pool)

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

    def _replay(self, inputs: list[Any], pool: _Pool) -> Sequence[Any]:
        recording = self._recording
        if recording is None or recording.pool is not pool or not recording.fits(inputs):
            recording = self._recorded(inputs, pool)
            if recording is None:
                return self._call(inputs)
        if self._samples is not None:
            return self._sample(recording, inputs, self._samples)
        return self._replayed(recording, inputs)

    def _replayed(self, recording: _Recording, inputs: list[Any]) -> Sequence[Any]:
        with torch.no_grad():
            results = recording.replay(inputs)
        if self._counted:
            torch.autograd.graph.increment_version([inputs[i] for i in self._counted])
        self.replays += 1
        inputs.clear()
        return results

    def _recorded(self, inputs: list[Any], pool: _Pool) -> _Recording | None:
        """A recording for ``inputs``; None if there can be none: ``reason`` says why."""
        before, self._recording = self._recording, None
        if before is not None:
            self._moving |= before.moved(inputs) - self._written
        if elsewhere := self._moving & self._written:
            self.reason = f"{len(elsewhere)} of the tensors that it writes are elsewhere in each call"
        elif self._recordings == _MOST_RECORDINGS:
            self.reason = "tensors that it reads are elsewhere in each call"
        else:
            self._recordings += 1
            try:
                self._recording = _Recording(self._call, inputs, self._moving, pool)
            except _Unfit as error:
                self.reason = str(error)
            except RuntimeError as error:  # nothing of the call has run
                self.reason = f"it can't be recorded: {str(error).splitlines()[0][:160]}"
                if clean_up(self._device, pool.handle):
                    _forget(self._device)
        return self._recording

    def _sample(self, recording: _Recording, inputs: list[Any], samples: dict[bool, list[_Timed]]) -> Sequence[Any]:
        """A call, timed, replayed or not by turns. Decides once all times are known."""
        done = [len(samples[True]), len(samples[False])]
        if min(done) == _SAMPLES:
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
        if replayed > _LEAST_GAIN * plain:
            self.is_slower, self._recording = True, None
