"""Runs of entrypoints: one per entrypoint, a new one supersedes. Key types: Run, RunManager, Client.

A run is a task that reads a worker's events. However it ends (done, failed, cancelled, superseded, server going
down), the worker's process tree is gone before the run says so.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import Any, Literal, Protocol

from lsp_server.budgets import judge, unknown_regions, unmeasured
from lsp_server.config import ConfigError, Loaded, load_for
from lsp_server.features.diagnostics import Board
from lsp_server.features.documents import Documents, uri_of
from lsp_server.features.run_findings import RunFindings
from lsp_server.features.settings import Settings
from lsp_server.features.sieve import Sieve
from lsp_server.features.summary import count, findings_line, report_text, severity_counts
from lsp_server.features.tracking import Tracker
from lsp_server.server.targets import Target
from lsp_server.server.worker import Refused, Wishes, Worker, in_editor_words, selection_of
from magpy_core.findings import Finding, RegionSummary, Report
from magpy_core.runner.request import SESSIONS, Outcome

log = logging.getLogger(__name__)
Mode = Literal["check", "compiled"]
_GARBAGE_REPORTED = 3


class Untrusted(Exception):
    """A run was asked for in a workspace that its user does not trust."""


class RunState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"

    @property
    def active(self) -> bool:
        return self in (RunState.STARTING, RunState.RUNNING)


class Client(Protocol):
    """What a run tells the outside."""

    def status(self, run: Run) -> None: ...
    def output(self, run: Run, stream: str, data: bytes) -> None: ...
    def changed(self, keys: set[str]) -> None: ...
    def lenses_changed(self) -> None: ...


class Run:
    """One run of one entrypoint, from the command to the end of its process."""

    _ids = itertools.count(1)

    def __init__(
        self, target: Target, mode: Mode, settings: Settings, documents: Documents, shown: Callable[[], RunFindings | None]
    ) -> None:
        self.shown = shown  # what the board has of this entrypoint
        self.id = next(self._ids)
        self.target = target
        self.mode: Mode = mode
        self.settings = settings
        self.state = RunState.STARTING
        self.step = 0
        self.steps = 0  # after which the program is ended; 0 lets it run to its end
        self.doing = "starting"
        self.failure = ""
        self.garbage = 0
        self.started_at = time.monotonic()
        self.ended_at = 0.0
        self.suppressed = 0
        self.sieve: Sieve | None = None
        self.loaded = Loaded()
        self.found = RunFindings(target.uri, Tracker(time.time_ns(), documents), settings, target.engine)
        self.raw: dict[Any, Finding] = {}  # before the project's settings and comments, while the program runs
        self.outcome: Outcome | None = None  # at its end
        self.epilogue: Callable[[Report], str] | None = None  # what the report ends with in place of the run's own table
        self.task: asyncio.Task[None] | None = None
        self.stop_as = RunState.CANCELLED
        self.on_change: list[Callable[[Run], None]] = []

    @property
    def verb(self) -> str:
        return "Checking" if self.mode == "check" else "Running"

    def counts(self) -> dict[str, int]:
        return severity_counts(severity for _, severity in self.found.shown())

    def summary(self) -> str:
        """One sentence on how the run stands or ended."""
        counts = self.counts()
        found = findings_line(counts)
        if self.state.active:
            of = f" of {self.steps}" if self.steps else ""
            where = f"step {self.step}{of}" if self.step else self.doing
            head = f"{self.verb} {self.target.label}" + (f": {where}" if where else "")
            return f"{head} · {found}" if any(counts.values()) else head
        if self.state is RunState.FAILED:
            return f"{self.target.label}: {self.failure}"
        if self.state is not RunState.DONE:
            return f"{self.target.label}: {self.state.value}"
        regions = list(self.found.regions.values())
        complete = sum(r.complete for r in regions)
        parts = [count(len(regions), "region"), f"{complete} complete"] if regions else ["no regions"]
        speedups = [r.speedup for r in regions if r.speedup is not None]
        if self.mode == "compiled" and speedups:
            parts.append(f"up to {max(speedups):.2f}x")
        return f"{self.target.label}: {' · '.join(parts)} · {found} · {self.ended_at - self.started_at:.1f} s"

    def result(self) -> dict[str, Any]:
        """The answer to the command."""
        return {
            "state": self.state.value,
            "entrypoint": self.target.entrypoint,
            "mode": self.mode,
            "engine": self.target.engine,
            "name": self.target.name,
            "uri": self.target.uri,
            "runId": self.id,
            "summary": self.summary(),
            "step": self.step,
            "findings": self.counts(),
            "regions": [region.to_json() for region in self.found.regions.values()],
            "failure": self.failure or None,
            # What is shown is not of this program text, or not of this run: the editor marks it as from an older run.
            "stale": self.stale,
            "edited": [uri_of(key) for key in self.found.edited()],
        }

    @property
    def stale(self) -> bool:
        """Whether the findings shown are from an older run: of an older text, or of the run before this one."""
        shown = self.shown()
        return shown is not None and (shown is not self.found or bool(shown.edited()))

    def changed(self) -> None:
        for listener in tuple(self.on_change):
            listener(self)


class RunManager:
    """Starts, supersedes and stops runs, and puts what they find on the board."""

    def __init__(self, client: Client, documents: Documents, board: Board) -> None:
        self._client = client
        self._documents = documents
        self._board = board
        self._runs: dict[str, Run] = {}
        self._begun: dict[str, Run] = {}  # the last run of each entrypoint that came to its program: what is shown
        self._locks: dict[str, asyncio.Lock] = {}
        self._closed = False
        self.trusted = True

    def active(self) -> list[Run]:
        return [run for run in self._runs.values() if run.state.active]

    def latest(self) -> list[Run]:
        """The last run of each entrypoint."""
        return list(self._runs.values())

    def of_uri(self, uri: str) -> Run | None:
        return next((run for run in self.active() if run.target.uri == uri), None)

    async def start(
        self, target: Target, mode: Mode, settings: Settings, on_change: Callable[[Run], None] | None = None
    ) -> Run:
        """Start a run, after the one it supersedes is gone. The returned run may still be under way (``wait`` for it).

        The one place where a program is started, so trust is asked for here. Raises Untrusted.
        """
        if not self.trusted:
            raise Untrusted("MagPy runs your program, so it works in trusted workspaces only.")
        # One at a time whichever engine runs it: the program may write files.
        async with self._locks.setdefault(target.under("magpy").key, asyncio.Lock()):
            for engine in SESSIONS:
                before = self._runs.get(target.under(engine).key)
                if before is not None and before.state.active:
                    await self.stop(before, RunState.SUPERSEDED)
            run = Run(target, mode, settings, self._documents, partial(self._board.shown_for, target.key))
            if on_change is not None:
                run.on_change.append(on_change)
            if self._closed:
                run.state, run.failure = RunState.FAILED, "the server is shutting down"
                return run
            self._runs[target.key] = run
            run.task = asyncio.create_task(self._execute(run), name=f"magpy run {run.id}")
            return run

    async def wait(self, run: Run) -> None:
        """Wait for the end of ``run``; being cancelled meanwhile stops it."""
        if run.task is None:
            return
        try:
            await asyncio.shield(run.task)
        except asyncio.CancelledError:
            await self.stop(run)
            raise

    async def stop(self, run: Run, stop_as: RunState = RunState.CANCELLED) -> None:
        """Kill the worker's process tree and wait until it is gone."""
        if run.task is None or run.task.done():
            return
        run.stop_as = stop_as
        run.task.cancel()
        await asyncio.wait([run.task])

    async def stop_uri(self, uri: str | None) -> int:
        """Stop the runs of one entrypoint, or all; returns how many there were."""
        runs = [run for run in self.active() if uri is None or run.target.uri == uri]
        await asyncio.gather(*(self.stop(run) for run in runs))
        return len(runs)

    async def forget(self, folder: str) -> None:
        """A folder left the workspace: its runs end, and what they found is not shown any more."""
        inside = [r for r in self._runs.values() if os.path.commonpath([os.path.abspath(r.target.path), folder]) == folder]
        await asyncio.gather(*(self.stop(run) for run in inside))
        for run in inside:
            self._runs.pop(run.target.key, None)
            self._begun.pop(run.target.key, None)
            self._client.changed(self._board.drop(run.target.key))

    def configured_anew(self) -> None:
        """A pyproject.toml was saved: what its table says of findings holds at once for those that are shown."""
        for run in {id(run): run for run in (*self._runs.values(), *self._begun.values())}.values():
            if run.sieve is None:
                continue  # it has not read the table yet
            try:
                loaded = load_for(run.target.config_start)
            except ConfigError:
                continue  # the mistakes are marked in the file; until then the last table that was right holds
            if loaded != run.loaded:
                run.loaded, run.sieve = loaded, Sieve(selection_of(loaded), run.found.tracker)
                run.found.configured_docs_url = loaded.settings.docs_url
                before = run.found.keys()
                self._sift(run)
                self._client.changed(before | run.found.keys())
                self._tell(run, lenses=True)

    async def close(self) -> None:
        self._closed = True
        await self.stop_uri(None)

    async def _execute(self, run: Run) -> None:
        self._board.follow(run.found)
        self._tell(run, lenses=True)
        try:
            await self._follow(run)
        except asyncio.CancelledError:
            run.state = run.stop_as
        except Refused as refusal:
            self._begin(run)
            self._client.changed({key for finding in refusal.findings for key in run.found.add(finding)})
            run.state, run.failure = RunState.FAILED, str(refusal)
        except Exception as error:
            log.exception("run %d of %s failed", run.id, run.target.entrypoint)
            run.state, run.failure = RunState.FAILED, f"internal error: {type(error).__name__}: {error}"
        run.ended_at = time.monotonic()
        self._board.unfollow(run.found)
        if run.garbage > _GARBAGE_REPORTED:
            log.warning("run %d: %d messages of the worker were not understood", run.id, run.garbage)
        self._tell(run, lenses=True)

    async def _follow(self, run: Run) -> None:
        target = run.target
        wishes = Wishes(
            mode="check" if run.mode == "check" else "run",
            script=None if target.module else target.path,
            module=target.module,
            args=target.args,
            steps=target.steps,
            cwd=target.cwd or os.path.dirname(target.path),
            config_start=target.config_start,
            env=target.env,
            engine=target.engine,
            python=target.python,
            timeout=target.timeout,
            nproc=target.nproc,
        )
        worker = Worker(wishes, run.settings, lambda stream, data: self._client.output(run, stream, data))
        run.sieve, run.loaded = Sieve(worker.selection, run.found.tracker), worker.loaded
        run.found.configured_docs_url = worker.loaded.settings.docs_url
        run.steps = worker.request.steps
        try:
            async for message in worker.start():
                self._message(run, message)
            outcome = await worker.wait()
        finally:
            await worker.close()
        self._settle(run, outcome)

    def _sift(self, run: Run) -> None:
        """What the project's table and the comments leave of what the run has found so far."""
        assert run.sieve is not None, "the table has been read"
        if run.outcome is None:
            kept = [found for finding in run.raw.values() if (found := run.sieve.one(finding)) is not None]
        else:
            worded = [_worded(finding) for finding in run.outcome.report.findings]
            report = replace(run.outcome.report, findings=[*worded, *_over_budget(run, run.outcome)])
            report, run.suppressed = run.sieve.all(report, run.target.engine, flag_unused=run.outcome.kind == "ok")
            kept = report.findings
        run.found.findings = {finding.key: finding for finding in kept}
        run.found.version += 1

    def _settle(self, run: Run, outcome: Outcome) -> None:
        """The report is complete: findings and regions it does not name were withdrawn."""
        before = run.found.keys()
        run.outcome, run.raw = outcome, {}
        self._sift(run)
        report = outcome.report
        run.found.regions = {region.id: region for region in report.regions}
        run.found.details, run.found.settled = report.details, True
        run.found.steps = max(run.found.steps, report.steps)
        self._client.changed(before | run.found.keys())
        states = {"ok": RunState.DONE, "cancelled": RunState.CANCELLED}
        run.state = states.get(outcome.kind, RunState.FAILED)
        run.failure = in_editor_words(outcome.message) if run.state is RunState.FAILED else ""
        if run.state is RunState.DONE:
            shown = replace(report, findings=list(run.found.findings.values()))
            text = report_text(shown, suppressed=run.suppressed, table=run.mode == "compiled" and run.epilogue is None)
            text = text if run.epilogue is None else f"{text}\n\n{run.epilogue(report)}"
            self._client.output(run, "report", f"\n{text}\n".encode())

    def _message(self, run: Run, body: Mapping[str, Any]) -> None:
        """One message of the worker. What it says may be wrong in any way: the program runs in its process."""
        try:
            self._understand(run, body)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            run.garbage += 1
            if run.garbage <= _GARBAGE_REPORTED:
                log.warning("run %d: message not understood (%r): %.300r", run.id, error, body)

    def _understand(self, run: Run, body: Mapping[str, Any]) -> None:
        match body["type"]:
            case "hello":
                run.doing = "importing"
                self._tell(run)
            case "started":
                self._begin(run)
            case "step":
                run.step = run.found.steps = int(body["n"])
                self._tell(run)
            case "progress":
                run.doing = str(body["text"])
                self._tell(run)
            case "finding":
                self._begin(run)
                finding = _worded(Finding.from_json(body["finding"]))
                run.raw[finding.key] = finding
                kept = run.sieve.one(finding) if run.sieve is not None else finding
                if kept is not None:
                    self._client.changed(run.found.add(kept))
                    run.changed()
            case "region":
                self._begin(run)
                region = RegionSummary.from_json(body["region"])
                run.found.regions[region.id] = region
                run.changed()
            case "stopping":
                run.doing = "ending the program"
                self._tell(run)
            case "done" | "failed":
                pass  # the outcome carries both
            case other:
                raise ValueError(f"unknown message type {other!r}")

    def _begin(self, run: Run) -> None:
        """The program runs: what the entrypoint's last run found is history from here on."""
        if run.state is RunState.STARTING:
            run.state, run.doing = RunState.RUNNING, ""
            self._begun[run.target.key] = run
            changed = self._board.replace(run.target.key, run.found)
            if run.target.engine == "magpy":
                # What torch.compile made of it is of an older run now; in a comparison its turn comes next.
                other = run.target.under("dynamo").key
                self._begun.pop(other, None)
                changed |= self._board.drop(other)
            self._client.changed(changed)
            self._tell(run, lenses=True)

    def _tell(self, run: Run, *, lenses: bool = False) -> None:
        self._client.status(run)
        run.changed()
        if lenses:
            self._client.lenses_changed()


def _over_budget(run: Run, outcome: Outcome) -> list[Finding]:
    """Broken budgets of ``[tool.magpy]``, at the definitions of regions, and budgets of regions that are not there."""
    loaded, report = run.loaded, outcome.report
    if run.target.engine != "magpy":
        return []  # of the two, budgets are for MagPy's own figures
    found = judge(report, loaded.settings.budgets, compiled=run.mode == "compiled" and outcome.kind == "ok")
    if run.mode == "check":
        found += unmeasured(report, loaded.settings.budgets)
    if outcome.kind == "ok" and loaded.file is not None:
        found += unknown_regions(report.regions, loaded.settings.budgets, str(loaded.file), loaded.region_lines)
    return found


def _worded(finding: Finding) -> Finding:
    """Findings about the run itself give advice in the command line's words."""
    return replace(finding, message=in_editor_words(finding.message)) if finding.code.startswith("MP9") else finding
