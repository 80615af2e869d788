"""Tests under the monitor: a test fails if it leads to a finding that is not in the baseline, or exceeds a budget.

A finding belongs to a region, so to the test that calls a module or steps an optimizer first; a module of a fixture that
several tests share is one region. The baseline's part for tests is named ``pytest``. Key types: MonitoredTests, Unusable.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from lsp_server.baseline import Baseline, BaselineError
from lsp_server.config import ConfigError, Loaded, load_for
from lsp_server.formats.view import count, relative
from lsp_server.in_process.new_findings import NewFindings, described
from lsp_server.sources import Sources
from magpy_core.findings import Finding, Severity

_PART = "pytest"


class Unusable(Exception):
    """The settings or the baseline can't be used; the message says why and what to do."""


class MonitoredTests:
    """One pytest process. ``updates``: no test fails, and the findings become the baseline's; unless these are
    ``all_tests``, it keeps what it has."""

    def __init__(self, root: Path, loaded: Loaded, *, updates: bool, all_tests: bool = True) -> None:
        self._root, self._updates = root, updates
        self._baseline = _baseline(loaded, updates=updates)
        self._sources = Sources()
        self._tests = self._failed = 0
        self._are_all, self._is_written, self._problem = all_tests, False, ""
        self._findings = NewFindings(loaded, _PART, root, self._sources)

    @staticmethod
    def of(config: pytest.Config, *, updates: bool) -> MonitoredTests:
        """Raises Unusable."""
        try:
            loaded = load_for(config.rootpath)
        except ConfigError as error:
            raise Unusable("\n".join(map(str, error.problems))) from None
        all_tests = config.args_source is not pytest.Config.ArgsSource.ARGS
        return MonitoredTests(config.rootpath, loaded, updates=updates, all_tests=all_tests)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Runs the test; fails one that has passed if it led to new findings."""
        result = yield
        self._tests += 1
        found = [finding for finding in self._unknown() if finding.severity.rank <= self._findings.fail_on.rank]
        if found and not self._updates:
            self._failed += 1
            lines = [f"MagPy: this test leads to {count(len(found), 'new finding')}."]
            lines += described(found, self._root, self._sources)
            lines += ["", "Known findings belong in a baseline: pytest --magpy-update-baseline"]
            pytest.fail("\n".join(lines), pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """What a failed test, or a fixture, led to belongs to no later test."""
        result = yield
        self._findings.take()
        return result

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self._are_all = False

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and not session.shouldfail
        if not (self._updates and self._baseline is not None and ended and self._tests):
            return
        try:
            least = max(self._findings.fail_on, Severity.INFORMATION, key=lambda severity: severity.rank)
            known = Counter() if self._are_all else self._baseline.counts(_PART)
            self._baseline.replace(_PART, 0, self._findings.all(), least, self._sources)
            self._baseline.parts[_PART].counts |= known  # those of tests that did not run
            self._baseline.write()
            self._is_written = True
        except BaselineError as error:
            self._problem, session.exitstatus = str(error), pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if terminalreporter.config.getoption("numprocesses", None):
            return  # the tests ran in other processes
        found = count(len(self._findings.all()), "finding")
        text = f"MagPy: {count(self._findings.regions, 'region')} in {count(self._tests, 'test')}, {found}; "
        if self._updates and not self._is_written:
            text += self._problem or "the baseline is as it was, because not all of them have ended."
        elif self._updates and self._baseline is not None:
            text += f"written to {relative(str(self._baseline.file), self._root)}."
        else:
            text += f"{count(self._failed, 'test')} failed by new ones."
        terminalreporter.write_line(text)

    def _unknown(self) -> list[Finding]:
        """New ones that are not in the baseline."""
        new = self._findings.take()
        if self._baseline is None:
            return new
        return [finding for finding in new if not self._baseline.knows(_PART, finding, self._sources)]


def _baseline(loaded: Loaded, *, updates: bool) -> Baseline | None:
    name = loaded.settings.baseline
    if name is None or loaded.file is None:
        if updates:
            raise Unusable("No baseline file: set `baseline` under [tool.magpy] in pyproject.toml.")
        return None
    file = Path(os.path.abspath(loaded.file.parent / name))
    try:
        return Baseline.load(file)
    except BaselineError as error:
        if updates or not file.exists():
            return Baseline(file)
        raise Unusable(str(error)) from None
