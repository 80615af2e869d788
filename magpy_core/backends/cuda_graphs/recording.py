"""One call's kernels as a CUDA graph, with the memory that they use. Key type: Recording."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from magpy_core._compat.torch.graph_recording import busy_threads, clean_up, is_elsewhere
from magpy_core.backends.calling import Boxed
from magpy_core.limits import LIMITS


class Unfit(Exception):
    """A call can't be replayed; the message says why."""


_streams: dict[tuple[int, int], torch.cuda.Stream] = {}
_failed: list[torch.cuda.CUDAGraph] = []  # torch's allocators may still ask them
_generations: dict[int, int] = {}


def generation(device: int) -> int:
    """Recordings on ``device`` of an earlier one are invalid: they draw from a generator that the program has no more."""
    return _generations.get(device, 0)


def _stream(device: int) -> torch.cuda.Stream:
    """Where calls on the current stream are recorded. Libraries keep memory for each stream."""
    place = device, torch.cuda.current_stream().cuda_stream
    found = _streams.get(place)
    if found is None:
        found = _streams[place] = torch.cuda.Stream(device)
    return found


def _record(graph: torch.cuda.CUDAGraph, call: Boxed, given: list[torch.Tensor], device: int) -> Sequence[Any]:
    """What ``call`` returns, whose kernels are recorded and not run."""
    if others := busy_threads():
        raise Unfit(f"the thread {others[0]!r} may use the device meanwhile")
    stream, pool = _stream(device), torch.cuda.graph_pool_handle()
    torch.cuda.synchronize()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with _no_collections(), torch.cuda.stream(stream):
            # A loader's thread that pins memory may do what a thread that records may not.
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                probe = torch.empty(1, device=stream.device)
                results = call(given)
            finally:
                graph.capture_end()
    except RuntimeError:
        _failed.append(graph)
        if clean_up(device, pool):
            _generations[device] = generation(device) + 1
        raise
    if is_elsewhere(probe, pool):
        raise Unfit("the program directs the device's memory to a separate pool")
    return results


class _Result(NamedTuple):
    """What a recording's results are copied into."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


class Recording:
    """``call`` recorded for ``inputs``, of which it writes those at ``written``; those at ``moving`` may be elsewhere in
    later calls. Raises Unfit, or what the recording raises."""

    def __init__(
        self, call: Boxed, inputs: list[torch.Tensor], moving: frozenset[int], written: frozenset[int], device: int
    ) -> None:
        self._staying = [i for i in range(len(inputs)) if i not in moving]
        self._moving = sorted(moving)
        self.places = [inputs[i].data_ptr() for i in self._staying]
        with torch.inference_mode(False):
            self._buffers = [_like(inputs[i]) for i in self._moving]
        given = list(inputs)
        for i, buffer in zip(self._moving, self._buffers, strict=True):
            given[i] = buffer
        if {_memory(inputs[i]) for i in self._moving} & {_memory(inputs[i]) for i in written}:
            raise Unfit("an input that moves shares memory with one that it writes")
        self._graph = torch.cuda.CUDAGraph()
        self._outputs = list(_record(self._graph, call, given, device))
        self.generation = generation(device)
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
                raise Unfit("one of its results shares memory with an input")
            if _overlaps(output):
                raise Unfit("elements of a result share memory")
            first = places.setdefault(_memory(output), i) if output.numel() else i
            if first != i and _layout(output) != _layout(self._outputs[first]):
                raise Unfit("two of its results share memory")
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
        raise Unfit("elements of an input that moves share memory")
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


@contextmanager
def with_room(device: int) -> Iterator[None]:
    """Raises Unfit if what is allocated inside leaves the program too little memory."""
    tries = _retries(device)
    yield
    free, total = torch.cuda.mem_get_info(device)
    if free < LIMITS.device_left * total or _retries(device) != tries:  # it has freed what the program would have used again
        raise Unfit("too little memory would be left")


def _retries(device: int) -> int:
    return int(torch.cuda.memory_stats(device).get("num_alloc_retries", 0))
