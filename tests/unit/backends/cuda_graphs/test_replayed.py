"""Compiled code replayed as a CUDA graph: what is copied, when it is recorded anew, and when the code runs as it is.

A stand-in takes the place of CUDA: a recording keeps the work, and a replay does it on the same tensors. That results are
those of kernels is tested on a device, in ``tests/gpu/test_cuda_graphs.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from magpy_core.backends.cuda_graphs import Replayed, recording

_UNTIL_RECORDED = 4  # calls
_UNTIL_DECIDED = 3 + 2 * 5 + 1


class _Graph:
    """``torch.cuda.CUDAGraph`` as far as it is used."""

    def __init__(self, cuda: _Cuda) -> None:
        self._cuda = cuda
        self.work: list[Callable[[], None]] = []

    def capture_begin(self, **options: Any) -> None:
        assert options["capture_error_mode"] == "thread_local"
        self._cuda.recording = self

    def capture_end(self) -> None:
        self._cuda.recording = None
        self._cuda.recordings += bool(self.work)

    def replay(self) -> None:
        self._cuda.clock += self._cuda.replay_ms
        for work in self.work:
            work()


class _Event:
    def __init__(self, cuda: _Cuda) -> None:
        self._cuda, self.at = cuda, 0.0

    def record(self) -> None:
        self.at = self._cuda.clock

    def query(self) -> bool:
        return self._cuda.is_done

    def elapsed_time(self, end: _Event) -> float:
        return end.at - self.at


class _Stream:
    device = torch.device("cpu")

    def __init__(self, number: int) -> None:
        self.cuda_stream, self.waited = number, 0

    def wait_stream(self, other: _Stream) -> None:
        self.waited += 1


class _Cuda:
    """``plain_ms``, ``replay_ms``: what the device takes; ``is_done``: whether it has done everything."""

    def __init__(self) -> None:
        self.recording: _Graph | None = None
        self.recordings, self.clock, self.plain_ms, self.replay_ms = 0, 0.0, 10.0, 1.0
        self.is_done, self.is_stuck, self.device = True, False, 0
        self.stream = _Stream(0)
        self.free, self.retries = 50, 0
        self.threads, self.is_elsewhere = list[str](), False

    @contextmanager
    def on(self, stream: _Stream) -> Iterator[None]:
        yield

    def code(self, fn: Callable[..., Sequence[Any]]) -> Callable[[list[Any]], Sequence[Any]]:
        """Compiled code that computes ``fn``, or has it recorded."""

        def call(inputs: list[Any]) -> Sequence[Any]:
            given = list(inputs)
            inputs.clear()
            if self.recording is None:
                self.clock += self.plain_ms
                return fn(*given)
            with torch.no_grad():
                kept = [t.clone() for t in given]
                results = fn(*given)
                for one, before in zip(given, kept, strict=True):
                    one.copy_(before)

            def work() -> None:
                for result, new in zip(results, fn(*given), strict=True):
                    if isinstance(result, torch.Tensor):
                        result.copy_(new)

            self.recording.work.append(work)
            return results

        return call


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> _Cuda:
    made = _Cuda()
    replaced: dict[str, Any] = {
        "CUDAGraph": lambda: _Graph(made),
        "Event": lambda enable_timing: _Event(made),
        "Stream": lambda device: _Stream(99),
        "stream": made.on,
        "current_stream": lambda: made.stream,
        "current_device": lambda: made.device,
        "synchronize": lambda: None,
        "graph_pool_handle": lambda: (0, 0),
        "mem_get_info": lambda device: (made.free, 100),
        "memory_stats": lambda device: {"num_alloc_retries": made.retries},
    }
    for name, value in replaced.items():
        monkeypatch.setattr(torch.cuda, name, value)
    for name in ("_streams", "_generations"):
        monkeypatch.setattr(recording, name, {})
    monkeypatch.setattr(recording, "_failed", [])
    monkeypatch.setattr(recording, "busy_threads", lambda: made.threads)
    monkeypatch.setattr(recording, "clean_up", lambda device, pool: made.is_stuck)
    monkeypatch.setattr(recording, "is_elsewhere", lambda probe, pool: made.is_elsewhere)
    return made


def _step(weight: torch.Tensor, x: torch.Tensor) -> list[torch.Tensor]:
    weight.add_(x)
    return [weight * 2, (weight * x).sum()]


def _run(replayed: Replayed, weight: torch.Tensor, calls: int, start: int = 0) -> list[list[torch.Tensor]]:
    """Calls with a batch that is elsewhere each time."""
    kept = [torch.full((4,), float(i)) for i in range(start, start + calls)]
    return [list(replayed([weight, x])) for x in kept]


def _wanted(calls: int) -> list[list[torch.Tensor]]:
    weight = torch.ones(4)
    return [[t.clone() for t in _step(weight, torch.full((4,), float(i)))] for i in range(calls)]


def test_results_and_writes_are_those_of_the_code(cuda: _Cuda) -> None:
    replayed, weight = Replayed(cuda.code(_step), frozenset({0}), 0), torch.ones(4)
    found = _run(replayed, weight, 40)
    torch.testing.assert_close(found, _wanted(40))
    assert replayed.replays == 40 - 3 - 5 and cuda.recordings == 1 and not replayed.reason


def test_versions_are_counted(cuda: _Cuda) -> None:
    """Autograd raises if a tensor that it has saved was written since."""
    replayed, weight = Replayed(cuda.code(_step), frozenset({0}), 0), torch.ones(4)
    _run(replayed, weight, _UNTIL_DECIDED)
    before = weight._version
    _run(replayed, weight, 1)
    assert weight._version > before


def test_the_faster_is_kept(cuda: _Cuda) -> None:
    cuda.replay_ms = 9.9
    replayed, weight = Replayed(cuda.code(_step), frozenset({0}), 0), torch.ones(4)
    torch.testing.assert_close(_run(replayed, weight, 40), _wanted(40))
    assert replayed.is_slower and replayed.replays == 5 and not replayed.reason


def test_nothing_waits_for_the_device(cuda: _Cuda) -> None:
    """While it is behind, calls go on, and the decision comes later."""
    cuda.is_done, cuda.replay_ms = False, 20.0
    replayed, weight = Replayed(cuda.code(_step), frozenset({0}), 0), torch.ones(4)
    _run(replayed, weight, 40)
    assert not replayed.is_slower
    cuda.is_done = True
    _run(replayed, weight, 1)
    assert replayed.is_slower


def test_a_tensor_that_is_read_is_elsewhere_later(cuda: _Cuda) -> None:
    replayed, weight, x = Replayed(cuda.code(_step), frozenset({0}), 0), torch.ones(4), torch.ones(4)
    for _ in range(_UNTIL_RECORDED):
        replayed([weight, x])
    assert cuda.recordings == 1
    weight.fill_(1.0)
    found = list(replayed([weight, torch.full((4,), 3.0)]))
    assert cuda.recordings == 2 and float(found[0][0]) == 8.0
    list(replayed([weight, torch.full((4,), 3.0)]))
    assert cuda.recordings == 2, "now it is copied"


def test_a_tensor_that_is_written_is_elsewhere_once(cuda: _Cuda) -> None:
    replayed, x = Replayed(cuda.code(_step), frozenset({0}), 0), torch.ones(4)
    weight = torch.ones(4)
    for _ in range(_UNTIL_RECORDED):
        replayed([weight, x])
    other = torch.zeros(4)
    replayed([other, x])
    assert cuda.recordings == 2 and torch.equal(other, torch.ones(4)) and not replayed.reason


def test_a_tensor_that_is_written_is_elsewhere_each_time(cuda: _Cuda) -> None:
    replayed, x = Replayed(cuda.code(_step), frozenset({0}), 0), torch.ones(4)
    weights = [torch.zeros(4) for _ in range(8)]
    for weight in weights:
        replayed([weight, x])
        assert torch.equal(weight, x)
    assert "1 output tensor gets a new address" in replayed.reason and cuda.recordings == 0


def test_a_recording_that_fails(cuda: _Cuda) -> None:
    def fails() -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    def step(weight: torch.Tensor, x: torch.Tensor) -> list[torch.Tensor]:
        if cuda.recording is not None:
            fails()
        return _step(weight, x)

    replayed, weight = Replayed(cuda.code(step), frozenset({0}), 0), torch.ones(4)
    torch.testing.assert_close(_run(replayed, weight, 10), _wanted(10))
    assert replayed.reason == "it can't be recorded: operation not permitted when stream is capturing"
    assert recording._failed, "torch may still ask it"


def test_a_recording_that_leaves_too_little_memory(cuda: _Cuda) -> None:
    cuda.free = 9
    replays, weight = Replayed(cuda.code(_step), frozenset({0}), 0), torch.ones(4)
    torch.testing.assert_close(_run(replays, weight, 10), _wanted(10))
    assert replays.reason == "too little memory would be left" and not replays.replays


def test_a_recording_that_takes_the_memory_of_the_program(cuda: _Cuda) -> None:
    """The allocator had to free what the code will need again."""

    def step(weight: torch.Tensor, x: torch.Tensor) -> list[torch.Tensor]:
        cuda.retries += cuda.recording is not None
        return _step(weight, x)

    replays, weight = Replayed(cuda.code(step), frozenset({0}), 0), torch.ones(4)
    _run(replays, weight, 10)
    assert replays.reason == "too little memory would be left"


def test_an_input_that_moves_in_the_memory_of_one_that_is_written(cuda: _Cuda) -> None:
    weight = torch.ones(8)
    replays = Replayed(cuda.code(lambda whole, part: [part + whole.add_(1)[:1]]), frozenset({0}), 0)
    for i in range(_UNTIL_RECORDED):
        replays([weight, weight[i : i + 1]])
    assert "shares memory with one that it writes" in replays.reason


def test_another_thread_may_use_the_device(cuda: _Cuda) -> None:
    cuda.threads.append("evaluation")
    replays, weight = Replayed(cuda.code(_step), frozenset({0}), 0), torch.ones(4)
    torch.testing.assert_close(_run(replays, weight, 10), _wanted(10))
    assert replays.reason == "the thread 'evaluation' may use the device meanwhile" and not cuda.recordings


def test_memory_of_a_pool_of_the_programs(cuda: _Cuda) -> None:
    cuda.is_elsewhere = True
    replays, weight = Replayed(cuda.code(_step), frozenset({0}), 0), torch.ones(4)
    torch.testing.assert_close(_run(replays, weight, 10), _wanted(10))
    assert "separate pool" in replays.reason


def test_a_replay_that_fails(cuda: _Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything has run: the caller runs the call in eager mode, and later ones run the code."""
    replays, weight = Replayed(cuda.code(_step), frozenset({0}), 0), torch.ones(4)
    _run(replays, weight, _UNTIL_DECIDED)
    before = weight.clone()

    def fails(*arguments: Any, **options: Any) -> Any:
        raise torch.OutOfMemoryError("no memory for results")

    with monkeypatch.context() as patch, pytest.raises(torch.OutOfMemoryError):
        patch.setattr(torch, "empty_strided", fails)
        _run(replays, weight, 1)
    assert torch.equal(weight, before) and "a replay failed: no memory" in replays.reason
    _run(replays, weight, 1, start=2)
    assert torch.equal(weight, before + 2)


def test_recordings_are_dropped_with_their_generator(cuda: _Cuda) -> None:
    """One that fails may take the random generator with it that others have been recorded with."""
    replayed, weight = Replayed(cuda.code(_step), frozenset({0}), 0), torch.ones(4)
    _run(replayed, weight, _UNTIL_DECIDED)
    assert cuda.recordings == 1
    cuda.is_stuck = True

    def step(x: torch.Tensor) -> list[torch.Tensor]:
        if cuda.recording is not None:
            raise RuntimeError("not permitted")
        return [x * 2]

    other, x = Replayed(cuda.code(step), frozenset(), 0), torch.ones(4)
    for _ in range(_UNTIL_RECORDED):
        other([x])
    assert other.reason
    _run(replayed, weight, 2)
    assert cuda.recordings == 2 and not replayed.reason


def test_another_stream_or_device_runs_the_code(cuda: _Cuda) -> None:
    replayed, weight = Replayed(cuda.code(_step), frozenset({0}), 0), torch.ones(4)
    _run(replayed, weight, _UNTIL_DECIDED)
    before = replayed.replays
    own, cuda.stream = cuda.stream, _Stream(7)
    _run(replayed, weight, 2)
    cuda.stream, cuda.device = own, 1
    _run(replayed, weight, 2)
    assert replayed.replays == before
    cuda.device = 0
    _run(replayed, weight, 2)
    assert replayed.replays == before + 2


def test_a_program_that_warms_up_on_another_stream(cuda: _Cuda) -> None:
    replayed, weight = Replayed(cuda.code(_step), frozenset({0}), 0), torch.ones(4)
    cuda.stream = _Stream(7)
    _run(replayed, weight, 2)
    cuda.stream = _Stream(0)
    _run(replayed, weight, _UNTIL_DECIDED)
    assert replayed.replays


def test_results_of_one_memory(cuda: _Cuda) -> None:
    """The same result twice shares memory, as the code's own do; what overlaps otherwise is not replayed."""

    def twice(x: torch.Tensor) -> list[torch.Tensor]:
        result = x + 1
        return [result, result.detach(), x.clone()]

    replayed, x = Replayed(cuda.code(twice), frozenset(), 0), torch.ones(4)
    for _ in range(_UNTIL_DECIDED):
        one, other, _ = replayed([x])
    assert one.data_ptr() == other.data_ptr() and torch.equal(one, x + 1) and replayed.replays

    for part in (lambda x: [(y := x + 1), y[1:]], lambda x: [x.view(2, 2)], lambda x: [(x + 1).expand(2, 4)]):
        replayed = Replayed(cuda.code(part), frozenset(), 0)
        for _ in range(_UNTIL_RECORDED):
            replayed([x])
        assert "share" in replayed.reason


def test_results_that_are_no_tensors_and_of_several_dtypes(cuda: _Cuda) -> None:
    def step(x: torch.Tensor) -> list[Any]:
        return [x * 2, None, x.double(), (x > 0), x + 1]

    replayed, x = Replayed(cuda.code(step), frozenset(), 0), torch.randn(5)
    for _ in range(_UNTIL_DECIDED):
        found = list(replayed([x]))
    torch.testing.assert_close(found, step(x))
    assert replayed.replays


def test_tensors_of_inference_mode(cuda: _Cuda) -> None:
    replayed = Replayed(cuda.code(lambda x: [x * 2]), frozenset(), 0)
    with torch.inference_mode():
        (found,) = replayed([torch.ones(2)])
    assert replayed.reason and torch.equal(found, torch.full((2,), 2.0))
