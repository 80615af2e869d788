"""Tests under the monitor: a test fails if it leads to a finding that is not in the baseline, or exceeds a budget.

Findings are those of `magpy-lsp check`, with the settings of ``[tool.magpy]``. Each belongs to a region, so to the test that
calls a module or steps an optimizer first; a module of a fixture that several tests share is one region. The baseline's part
for tests is named ``pytest``. Key types: Monitored, Unusable.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from lsp_server.baseline import Baseline, BaselineError
from lsp_server.budgets import check_budgets
from lsp_server.config import ConfigError, Loaded, load_for
from lsp_server.formats.view import count, relative
from lsp_server.repeats import merged
from lsp_server.selection import Selection, apply
from lsp_server.sources import Sources
from magpy_core.findings import Finding, Severity
from magpy_core.runner.in_process import Watch
from magpy_core.runner.request import RunRequest

_PART = "pytest"


class Unusable(Exception):
    """The settings or the baseline can't be used; the message says why and what to do."""


class Monitored:
    """One pytest process. ``updates``: no test fails, and the findings become the baseline's."""

    def __init__(self, root: Path, loaded: Loaded, *, updates: bool) -> None:
        self._root, self._updates = root, updates
        settings = loaded.settings
        self._selection = Selection(tuple(settings.select), tuple(settings.ignore), settings.severity)
        self._fail_on = settings.fail_on or Severity.WARNING
        self._budgets = settings.budgets
        self._baseline = _baseline(loaded, updates=updates)
        self._sources = Sources()
        self._seen: set[object] = set()
        self._tests = self._failed = 0
        regions, policy = list(settings.regions), dict(settings.call_policy)
        self._watch = Watch(RunRequest(module=_PART, steps=0, cwd=str(root), regions=regions, call_policy=policy))

    @staticmethod
    def of(config: pytest.Config, *, updates: bool) -> Monitored:
        """Raises Unusable."""
        try:
            loaded = load_for(config.rootpath)
        except ConfigError as error:
            raise Unusable("\n".join(map(str, error.problems))) from None
        return Monitored(config.rootpath, loaded, updates=updates)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Runs the test; fails one that has passed if it led to new findings."""
        result = yield
        self._tests += 1
        found = [finding for finding in self._new() if finding.severity.rank <= self._fail_on.rank]
        if found and not self._updates:
            self._failed += 1
            pytest.fail(self._text(found), pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """What a failed test, or a fixture, led to belongs to no later test."""
        result = yield
        self._new()
        return result

    def pytest_sessionfinish(self) -> None:
        if self._updates and self._baseline is not None:
            try:
                least = max(self._fail_on, Severity.INFORMATION, key=lambda severity: severity.rank)
                self._baseline.replace(_PART, 0, self._findings(), least, self._sources)
                self._baseline.write()
            except BaselineError as error:
                raise pytest.UsageError(str(error)) from None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        found = self._findings()
        text = f"MagPy: {count(len(self._watch.report().regions), 'region')} in {count(self._tests, 'test')}, "
        text += f"{count(len(found), 'finding')}; "
        if self._updates and self._baseline is not None:
            text += f"written to {relative(str(self._baseline.file), self._root)}."
        else:
            text += f"{count(self._failed, 'test')} failed by new ones."
        terminalreporter.write_line(text)

    def _findings(self) -> list[Finding]:
        """All so far, without facts and what comments suppress."""
        report = self._watch.report()
        exceeded = check_budgets(report, self._budgets, compiled=False)
        chosen = apply([*report.findings, *exceeded], self._selection, self._sources, flag_unused=False).findings
        return [finding for finding in merged(chosen) if self._selection.shows(finding)]

    def _new(self) -> list[Finding]:
        """Those of regions since the last call that are in no baseline."""
        new = [finding for finding in self._findings() if _identity(finding) not in self._seen]
        self._seen.update(map(_identity, new))
        if self._baseline is None:
            return new
        return [finding for finding in new if not self._baseline.knows(_PART, finding, self._sources)]

    def _text(self, findings: Sequence[Finding]) -> str:
        lines = [f"MagPy: this test leads to {count(len(findings), 'new finding')}."]
        for finding in findings:
            place = finding.location
            at = f"{relative(place.file, self._root)}:{place.range.start.line + 1}:{place.range.start.character + 1}"
            lines += ["", f"{at}: {finding.code} [{finding.severity.value}] {finding.message}"]
            line = self._sources.line(place.file, place.range.start.line)
            lines += [f"    {line.strip()}"] if line else []
            lines += [f"  hint: {finding.advice}"] if finding.advice else []
            lines.append(f"  docs: magpy-lsp explain {finding.code}")
        lines += ["", "Known findings belong in a baseline: pytest --magpy-update-baseline"]
        return "\n".join(lines)


def _identity(finding: Finding) -> object:
    """The same for a finding whose figures have changed since."""
    return finding.code, finding.location.file, finding.location.range.start.line, finding.region


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
