"""A pytest plugin (``-p tests.gpu.verdicts``) that tells each test's beginning and verdict at once, on a pipe.

A test that hangs or takes the process down is known that way, and so are the verdicts before it. After an error that leaves
the device unusable for the process, the tests that remain are left to another one. Key name: Verdicts.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from benchmarks.gpu.events import Events

_LONGEST = 4000  # characters of a failure
# What CUDA reports again at every later call of the process.
_LASTING = (
    "illegal memory access",
    "device-side assert",
    "misaligned address",
    "unspecified launch failure",
    "launch timed out",
    "uncorrectable ECC",
)


class Verdicts:
    """``outcome`` is ``passed``, ``failed`` or ``skipped``: of the test and what pytest does before and after it."""

    def __init__(self) -> None:
        self._events = Events()
        self._outcomes: list[tuple[str, str]] = []
        self._start = 0.0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._events.send({"tests": [item.nodeid for item in session.items]})

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed or report.skipped:  # a whole module
            self._events.send(_verdict(report.nodeid, report.outcome, 0.0, _message(report)))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._outcomes, self._start = [], time.perf_counter()
        self._events.send({"test": nodeid})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._outcomes.append((report.outcome, _message(report)))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        for outcome in ("failed", "skipped", "passed"):
            messages = [message for found, message in self._outcomes if found == outcome]
            if messages:
                break
        text = "\n".join(filter(None, messages))
        self._events.send(_verdict(nodeid, outcome, time.perf_counter() - self._start, text))
        if outcome == "failed" and any(error in text for error in _LASTING):
            pytest.exit("the device is unusable for this process", returncode=3)


def _message(report: pytest.TestReport | pytest.CollectReport) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return "" if report.passed else str(report.longrepr)


def _verdict(test: str, outcome: str, seconds: float, message: str) -> dict[str, Any]:
    if len(message) > _LONGEST:
        message = f"...{message[-_LONGEST:]}"
    return {"test": test, "outcome": outcome, "seconds": round(seconds, 2), "message": message}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", default="0/1", metavar="I/N", help="only every Nth test, from the Ith on")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    first, count = map(int, config.getoption("--share").split("/"))
    items[:] = items[first::count]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Verdicts(), "magpy-verdicts")
