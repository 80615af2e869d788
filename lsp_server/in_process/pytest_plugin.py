"""What pytest loads in every run: the options. Everything else is imported only with `--magpy`."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("magpy", "graph breaks (MagPy)")
    group.addoption("--magpy", action="store_true", help="monitor the tests; one that leads to a new finding fails")
    group.addoption(
        "--magpy-update-baseline",
        action="store_true",
        help="write the findings of all tests to the baseline instead of failing; implies --magpy",
    )


def pytest_configure(config: pytest.Config) -> None:
    updates = bool(config.getoption("--magpy-update-baseline"))
    if not updates and not config.getoption("--magpy"):
        return
    if updates and (config.getoption("numprocesses", None) or hasattr(config, "workerinput")):
        raise pytest.UsageError("--magpy-update-baseline needs all tests in one process: run pytest without -n.")
    from lsp_server.in_process.monitored_tests import MonitoredTests, Unusable

    try:
        config.pluginmanager.register(MonitoredTests.of(config, updates=updates), "magpy-monitored")
    except Unusable as error:
        raise pytest.UsageError(str(error)) from None
