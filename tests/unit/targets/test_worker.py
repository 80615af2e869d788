"""Work in forked processes: what comes back, and what happens if nothing does."""

from __future__ import annotations

import os
import signal
import time

import torch

from magpy_core.products.targets.worker import WorkerFailed, results_of


def test_results_come_back_with_their_positions() -> None:
    found = dict(results_of([lambda: {"pid": os.getpid()}, lambda: [1, "two"]]))
    assert found[1] == [1, "two"] and found[0]["pid"] != os.getpid()


def test_a_long_result_is_read_completely() -> None:
    ((_, text),) = results_of([lambda: "x" * 1_000_000])
    assert len(text) == 1_000_000


def test_a_process_that_dies_is_no_result() -> None:
    def killed() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def raises() -> None:
        raise RuntimeError("no")

    found = dict(results_of([killed, raises, lambda: os._exit(3), lambda: 1]))
    texts = {i: str(result) for i, result in found.items() if isinstance(result, WorkerFailed)}
    assert "SIGKILL" in texts[0] and "status 70" in texts[1] and "status 3" in texts[2] and found[3] == 1


def test_a_process_that_hangs_is_ended() -> None:
    ((_, result),) = results_of([lambda: time.sleep(60)], longest=0.5)
    assert isinstance(result, WorkerFailed) and "in time" in str(result)


def test_the_program_is_not_touched() -> None:
    def work() -> bool:
        torch.cuda.is_available = lambda: True
        torch.manual_seed(7)
        return torch.cuda.is_available()

    before, state = torch.cuda.is_available, torch.get_rng_state()
    assert dict(results_of([work])) == {0: True}
    assert torch.cuda.is_available is before and torch.equal(torch.get_rng_state(), state)


def test_who_stops_waiting_leaves_no_process() -> None:
    results = results_of([lambda: os.getpid(), lambda: time.sleep(60)])
    next(results)
    start = time.monotonic()
    results.close()
    assert time.monotonic() - start < 5
