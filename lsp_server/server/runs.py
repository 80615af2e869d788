"""Runs of entrypoints: one per entrypoint, superseded by the next. Key types: Run, RunManager, Client.

A run is a task that reads a worker's events. However it ends (done, failed, cancelled, superseded, server shutdown), the
worker's process tree has ended before the run reports its end.
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
from typing import Any, Literal, Protocol, get_args

from lsp_server.budgets import check_budgets, unknown_regions, unmeasured
from lsp_server.config import ConfigError, Loaded, load_for
from lsp_server.features.diagnostics import Board
from lsp_server.features.documents import Documents, key_of, uri_of
from lsp_server.features.finding_filter import FindingFilter
from lsp_server.features.run_findings import RunFindings
from lsp_server.features.settings import Settings
from lsp_server.features.summary import count, findings_line, report_text, severity_counts
from lsp_server.features.tables import is_table_file
from lsp_server.features.tracking import Tracker
from lsp_server.formats import step_text
from lsp_server.formats.live import LiveRun
from lsp_server.formats.view import View
from lsp_server.repeats import merged
from lsp_server.server.kept_runs import Kept, KeptRuns
from lsp_server.server.targets import Target
from lsp_server.server.worker import Refused, RunOptions, Worker, options_to_settings, selection_of
from lsp_server.sources import is_library
from magpy_core.findings import Finding, RegionSummary, Report
from magpy_core.runner.request import SESSIONS, Outcome, parse_target

log = logging.getLogger(__name__)
Mode = Literal["check", "compiled"]
_GARBAGE_REPORTED = 3
_PERCENT_OF_STEPS = 20  # of a progress bar, if kernels are made after the steps


class Untrusted(Exception):
    """A run was requested in an untrusted workspace."""


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
    """Receives the notifications of runs."""

    def status(self, run: Run) -> None: ...
    def output(self, run: Run, stream: str, data: bytes) -> None: ...
    def changed(self, keys: set[str]) -> None: ...
    def lenses_changed(self) -> None: ...
    def check_table(self, key: str) -> None: ...


class Run:
    """One run of one entrypoint, from the command to the end of its process."""

    _ids = itertools.count(1)

    def __init__(
        self, target: Target, mode: Mode, settings: Settings, documents: Documents, shown: Callable[[], RunFindings | None]
    ) -> None:
        self.shown = shown  # the board's findings of this entrypoint
        self.id = next(self._ids)
        self.target = target
        self.mode: Mode = mode
        self.settings = settings
        self.state = RunState.STARTING
        self.step = 0
        self.steps = 0  # stop the program after this many; 0: run to its end
        self.is_shown = False  # whether its findings are on the board
        self.lowering: tuple[int, int] | None = None  # after the program's end: captures with kernels, and all captures
        self.lowering_for = ""  # the device's name
        self.doing = "starting"
        self.failure = ""
        self.live = LiveRun()
        self.garbage = 0
        self.started_at = time.monotonic()
        self.ended_at = 0.0
        self.ended_ms: int | None = None  # since the epoch
        self.suppressed = 0
        self.finding_filter: FindingFilter | None = None
        self.loaded = Loaded()
        self.found = RunFindings(target.uri, Tracker(time.time_ns(), documents), settings, target.engine)
        self.raw: dict[Any, Finding] = {}  # before settings and comments apply, while the program runs
        self.outcome: Outcome | None = None  # at its end
        self.epilogue: Callable[[Report], str] | None = None  # replaces the run's table at the end of the report
        self.task: asyncio.Task[None] | None = None
        self.stop_as = RunState.CANCELLED
        self.on_change: list[Callable[[Run], None]] = []

    @property
    def verb(self) -> str:
        if self.lowering is not None:
            return "Compiling kernels of"
        return "Checking" if self.mode == "check" else "Running"

    @property
    def percentage(self) -> int | None:
        """How much is done; None without a number of steps. Kernels take longer than a few steps."""
        if not self.steps:
            return None
        of_steps = _PERCENT_OF_STEPS if self.lowering_for else 100
        done, of = self.lowering or (0, 1)
        return int(of_steps * min(1.0, self.step / self.steps) + (100 - of_steps) * done / max(of, 1))

    @property
    def keeps_shown(self) -> bool:
        """Whether the findings of an earlier check stay, because this run, of compiled code, has recorded nothing."""
        return self.mode == "compiled" and not self.is_shown and self.shown() is not None

    def counts(self) -> dict[str, int]:
        shown = self.shown()
        found = shown if self.keeps_shown and shown is not None else self.found
        return severity_counts(severity for _, severity in found.diagnosed())

    def summary(self) -> str:
        """One line on the run's progress or result."""
        counts = self.counts()
        found = findings_line(counts)
        if self.state.active:
            of = f" of {self.steps}" if self.steps else ""
            where = f"step {self.step}{of}" if self.step else self.doing
            if self.lowering is not None:
                where = f"{self.lowering[0]} of {count(self.lowering[1], 'graph')} for {self.lowering_for}"
            head = f"{self.verb} {self.target.label}" + (f": {where}" if where else "")
            head += f" · {compiling}" if (compiling := self.live.compiling.text()) else ""
            return f"{head} · {found}" if any(counts.values()) else head
        if self.state is RunState.FAILED:
            return f"{self.target.label}: {self.failure}"
        if self.state is not RunState.DONE:
            return f"{self.target.label}: {self.state.value}"
        regions = list(self.found.regions.values())
        complete = sum(r.complete for r in regions)
        parts = [count(len(regions), "region"), f"{complete} complete"] if regions else ["no regions"]
        speedups = [r.shown_speedup for r in regions if r.shown_speedup is not None]
        if self.found.step is not None and (step := step_text.brief(self.found.step)):
            parts.insert(0, step)
        elif self.mode == "compiled" and speedups:
            parts.append(f"up to {max(speedups):.2f}x")
        if self.verified:
            parts.append(self.verified)
        if self.keeps_shown and self.outcome is not None and (why := step_text.why_not(self.outcome.report)):
            parts = [f"nothing was recorded: {why}"]
        if self.found.kernels is not None:
            parts.append(f"{count(len(self.found.kernels.kernels), 'kernel')} for {self.found.kernels.device}")
        elif self.lowering is not None:
            parts.append(f"no kernels for {self.lowering_for}")
        return f"{self.target.label}: {' · '.join(parts)} · {found} · {self.ended_at - self.started_at:.1f} s"

    def result(self) -> dict[str, Any]:
        """The response to the command."""
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
            "gain": step_text.result(self.found.step) if self.found.step is not None else "",
            "verified": self.verified,
            "lowering": list(self.lowering) if self.lowering is not None else None,
            "findings": self.counts(),
            "regions": [region.to_json() for region in self.found.regions.values()],
            "failure": self.failure or None,
            "endedMs": self.ended_ms,
            # The shown findings are of an older text or an older run: the editor marks them.
            "stale": self.stale,
            "edited": [uri_of(key) for key in self.found.edited()],
        }

    @property
    def verified(self) -> str:
        """``verified 11 of 12 graphs``, of a compiled run that has ended; empty if nothing was compared."""
        graphs = step_text.verified_graphs(self.found.regions.values()) if self.state is RunState.DONE else ""
        return f"verified {graphs}" if graphs else ""

    @property
    def stale(self) -> bool:
        """Whether the shown findings are outdated: of an older text, or of the previous run."""
        shown = self.shown()
        return shown is not None and (shown is not self.found or bool(shown.edited()))

    def changed(self) -> None:
        for listener in tuple(self.on_change):
            listener(self)


class RunManager:
    """Starts, supersedes and stops runs, and puts their findings on the board."""

    def __init__(self, client: Client, documents: Documents, board: Board) -> None:
        self._client = client
        self._documents = documents
        self._board = board
        self._runs: dict[str, Run] = {}
        self._begun: dict[str, Run] = {}  # the last run of each entrypoint that loaded its program; its findings are shown
        self._locks: dict[str, asyncio.Lock] = {}
        self.kept = KeptRuns()
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
        """Starts a run after the superseded one has ended. The returned run may still be in progress (``wait`` for it).

        Only this method starts programs, so it checks trust. Raises Untrusted.
        """
        if not self.trusted:
            raise Untrusted("MagPy runs your program, so it works only in trusted workspaces.")
        # One run at a time for both engines, since the program may write files.
        async with self._locks.setdefault(target.with_engine("magpy").key, asyncio.Lock()):
            for engine in SESSIONS:
                before = self._runs.get(target.with_engine(engine).key)
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
        """Waits for the end of ``run``; cancelling the wait stops the run."""
        if run.task is None:
            return
        try:
            await asyncio.shield(run.task)
        except asyncio.CancelledError:
            await self.stop(run)
            raise

    async def stop(self, run: Run, stop_as: RunState = RunState.CANCELLED) -> None:
        """Kills the worker's process tree and waits for its end."""
        if run.task is None or run.task.done():
            return
        run.stop_as = stop_as
        run.task.cancel()
        await asyncio.wait([run.task])

    async def stop_uri(self, uri: str | None) -> int:
        """Stops the runs of one entrypoint, or all; returns how many."""
        runs = [run for run in self.active() if uri is None or run.target.uri == uri]
        await asyncio.gather(*(self.stop(run) for run in runs))
        return len(runs)

    async def forget(self, folder: str) -> None:
        """Ends the runs of a folder that left the workspace, and removes their findings."""
        inside = [r for r in self._runs.values() if os.path.commonpath([os.path.abspath(r.target.path), folder]) == folder]
        await asyncio.gather(*(self.stop(run) for run in inside))
        for run in inside:
            self._runs.pop(run.target.key, None)
            self._begun.pop(run.target.key, None)
            self.kept.forget(run.target.key)
            self._client.changed(self._board.drop(run.target.key))

    def restore(self, kept: Kept, settings: Settings) -> None:
        """Shows a run of the editor's last session, unless its program has run in this one."""
        if kept.target.key in self._runs or kept.mode not in get_args(Mode):
            return
        mode: Mode = "check" if kept.mode == "check" else "compiled"
        run = Run(kept.target, mode, settings, self._documents, partial(self._board.shown_for, kept.target.key))
        run.found.tracker = Tracker.of_texts(kept.texts, self._documents)
        try:
            run.loaded = load_for(kept.target.config_start)
        except ConfigError:
            log.info("the table of %s is not valid: the kept run is shown without it", kept.target.entrypoint)
        run.found.selection = selection_of(run.loaded)
        run.finding_filter = FindingFilter(run.found.selection, run.found.tracker)
        run.found.configured_docs_url = run.loaded.settings.docs_url
        run.state, run.started_at, run.ended_at, run.ended_ms = RunState.DONE, 0.0, kept.seconds, kept.ended_ms
        self._runs[kept.target.key] = run
        self._show(run)
        self._take_report(run, Outcome("ok", None, None, "", kept.report))
        self._notify(run, lenses=True)

    def clear(self) -> None:
        """Removes all findings."""
        self.kept.clear()
        self._client.changed(self._board.clear())

    async def _keep(self, run: Run) -> None:
        report = run.outcome.report if run.outcome is not None else None
        if report is None or not run.is_shown or run.state is not RunState.DONE or run.ended_ms is None:
            return
        places = [place for finding in report.findings for place in (finding.location, *finding.path)]
        keys = run.found.files() | {key_of(place.file) for place in places if not is_library(place.file)}
        seconds = run.ended_at - run.started_at
        kept = Kept(run.target, run.mode, report, run.found.tracker.texts(keys), seconds, run.ended_ms)
        await asyncio.to_thread(self.kept.write, kept)

    def on_config_saved(self) -> None:
        """Applies the saved pyproject.toml to the shown findings."""
        for run in {id(run): run for run in (*self._runs.values(), *self._begun.values())}.values():
            if run.finding_filter is None:
                continue  # it has not read the table yet
            try:
                loaded = load_for(run.target.config_start)
            except ConfigError:
                continue  # the mistakes are marked in the file; the last valid table still applies
            if loaded != run.loaded:
                run.found.selection = selection_of(loaded)
                run.loaded, run.finding_filter = loaded, FindingFilter(run.found.selection, run.found.tracker)
                run.found.configured_docs_url = loaded.settings.docs_url
                before = run.found.keys()
                self._filter(run)
                self._client.changed(before | run.found.keys())
                self._notify(run, lenses=True)

    async def close(self) -> None:
        self._closed = True
        await self.stop_uri(None)

    async def _execute(self, run: Run) -> None:
        self._board.follow(run.found)
        self._notify(run, lenses=True)
        try:
            await self._follow(run)
        except asyncio.CancelledError:
            # Whoever cancels while kernels are made does without them, and keeps what the program's own run has shown.
            only_kernels = run.lowering is not None and run.found.complete and run.stop_as is RunState.CANCELLED
            run.state = RunState.DONE if only_kernels else run.stop_as
        except Refused as refusal:
            self._begin(run)
            self._show(run)
            keys = {key for finding in refusal.findings for key in run.found.add(finding)}
            for key in keys:
                if is_table_file(key):
                    self._client.check_table(key)  # it may have changed without the client's telling
            self._client.changed(keys)
            run.state, run.failure = RunState.FAILED, str(refusal)
        except Exception as error:
            log.exception("run %d of %s failed", run.id, run.target.entrypoint)
            run.state, run.failure = RunState.FAILED, f"internal error: {type(error).__name__}: {error}"
        run.ended_at, run.ended_ms = time.monotonic(), time.time_ns() // 1_000_000
        self._board.unfollow(run.found)
        if run.garbage > _GARBAGE_REPORTED:
            log.warning("run %d: %d invalid messages from the worker", run.id, run.garbage)
        self._notify(run, lenses=True)
        await self._keep(run)

    async def _follow(self, run: Run) -> None:
        target = run.target
        options = RunOptions(
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
            device=target.device,
        )
        worker = Worker(options, run.settings, partial(self._printed, run))
        run.finding_filter, run.loaded = FindingFilter(worker.selection, run.found.tracker), worker.loaded
        run.found.selection = worker.selection
        run.found.configured_docs_url = worker.loaded.settings.docs_url
        run.steps = run.live.steps = worker.request.steps
        run.lowering_for = parse_target(worker.request.target).title if worker.request.target else ""
        try:
            async for message in worker.start():
                self._message(run, message)
            outcome = await worker.wait()
        finally:
            await worker.close()
        self._complete(run, outcome)

    def _printed(self, run: Run, stream: str, data: bytes) -> None:
        run.live.output(data)
        self._client.output(run, stream, data)

    def _filter(self, run: Run) -> None:
        """Applies the project's table and comments to the findings so far."""
        assert run.finding_filter is not None, "the table has been read"
        if run.outcome is None:
            kept = [
                found for finding in run.raw.values() if (found := run.finding_filter.filter_finding(finding)) is not None
            ]
        else:
            worded = [_for_editor(finding) for finding in run.outcome.report.findings]
            report = replace(run.outcome.report, findings=[*worded, *_over_budget(run, run.outcome)])
            report, run.suppressed = run.finding_filter.filter_report(
                report, run.target.engine, flag_unused=run.outcome.kind == "ok" and not run.state.active
            )
            kept = report.findings
        run.found.findings = {finding.key: finding for finding in kept}
        run.found.version += 1

    def _complete(self, run: Run, outcome: Outcome) -> None:
        """The run has ended: its report is complete."""
        report = outcome.report
        states = {"ok": RunState.DONE, "cancelled": RunState.CANCELLED}
        run.state = states.get(outcome.kind, RunState.FAILED)
        self._take_report(run, outcome)
        run.failure = options_to_settings(outcome.message) if run.state is RunState.FAILED else ""
        if run.state is RunState.DONE:
            shown = replace(report, findings=merged(run.found.findings.values()))
            view = View(suppressed=run.suppressed, selection=run.found.selection)
            text = options_to_settings(report_text(shown, view, table=run.mode == "compiled" and run.epilogue is None))
            text = text if run.epilogue is None else f"{text}\n\n{run.epilogue(report)}"
            self._client.output(run, "report", f"\n{text}\n".encode())

    def _take_report(self, run: Run, outcome: Outcome) -> None:
        """Replaces the streamed findings and regions by those of a report."""
        if outcome.report.findings or any(region.captures for region in outcome.report.regions):
            self._show(run)
        before = run.found.keys()
        run.outcome, run.raw = outcome, {}
        self._filter(run)
        report = outcome.report
        run.found.regions = {region.id: region for region in report.regions}
        run.found.details, run.found.step, run.found.complete = report.details, report.step, True
        run.found.kernels, run.found.why_not = report.kernels, report.why_not
        run.found.steps = max(run.found.steps, report.steps)
        self._client.changed(before | run.found.keys())

    def _message(self, run: Run, body: Mapping[str, Any]) -> None:
        """Handles one message of the worker, which may be malformed: the user's program runs in its process."""
        try:
            self._handle(run, body)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            run.garbage += 1
            if run.garbage <= _GARBAGE_REPORTED:
                log.warning("run %d: invalid message (%r): %.300r", run.id, error, body)

    def _handle(self, run: Run, body: Mapping[str, Any]) -> None:
        match body["type"]:
            case "hello":
                run.doing = "importing"
                self._notify(run)
            case "started":
                self._begin(run)
            case "step":
                run.step = run.found.steps = int(body["n"])
                run.live.take(body)
                self._notify(run)
            case "finding":
                self._begin(run)
                self._show(run)
                finding = _for_editor(Finding.from_json(body["finding"]))
                run.raw[finding.key] = finding
                kept = run.finding_filter.filter_finding(finding) if run.finding_filter is not None else finding
                if kept is not None:
                    self._client.changed(run.found.add(kept))
                    run.changed()
            case "region":
                self._begin(run)
                self._show(run)
                region = RegionSummary.from_json(body["region"])
                run.found.regions[region.id] = region
                run.changed()
            case "compiling":
                run.live.take(body)
                self._notify(run)
            case "progress":
                run.live.take(body)
            case "captured":
                report = Report.from_json(body["report"])
                known = {finding.key for finding in report.findings}  # of one rank
                report.findings += [finding for key, finding in run.raw.items() if key not in known]
                self._take_report(run, Outcome("ok", None, None, "", report))
                self._notify(run, lenses=True)
            case "lowering":
                lenses = run.lowering is None
                run.lowering = int(body["done"]), int(body["of"])
                self._notify(run, lenses=lenses)
            case "tracing":
                run.doing = "looking for the operation that differs"
                run.step = 0  # so that the status says so
                self._notify(run)
            case "stopping":
                run.doing = "stopping the program"
                self._notify(run)
            case "done" | "failed":
                pass  # part of the outcome
            case other:
                raise ValueError(f"unknown message type {other!r}")

    def _begin(self, run: Run) -> None:
        """The program runs. What a check has found stays until a run of compiled code has recorded something itself."""
        if run.state is RunState.STARTING:
            run.state, run.doing = RunState.RUNNING, ""
            if not run.keeps_shown:
                self._show(run)
            self._notify(run, lenses=True)

    def _show(self, run: Run) -> None:
        """Replaces the findings of the entrypoint's previous run."""
        if run.is_shown:
            return
        run.is_shown = True
        self._begun[run.target.key] = run
        changed = self._board.replace(run.target.key, run.found)
        if run.target.engine == "magpy":
            # Findings under torch.compile are outdated now; in a comparison its run comes next.
            other = run.target.with_engine("dynamo").key
            self._begun.pop(other, None)
            self.kept.forget(other)
            changed |= self._board.drop(other)
        self._client.changed(changed)

    def _notify(self, run: Run, *, lenses: bool = False) -> None:
        self._client.status(run)
        run.changed()
        if lenses:
            self._client.lenses_changed()


def _over_budget(run: Run, outcome: Outcome) -> list[Finding]:
    """The findings for exceeded budgets, at the definitions of regions, and for budgets of unknown regions."""
    loaded, report = run.loaded, outcome.report
    if run.target.engine != "magpy":
        return []  # budgets apply to MagPy's figures only
    found = check_budgets(report, loaded.settings.budgets, compiled=run.mode == "compiled" and outcome.kind == "ok")
    if run.mode == "check":
        found += unmeasured(report, loaded.settings.budgets)
    if outcome.kind == "ok" and loaded.file is not None:
        found += unknown_regions(report.regions, loaded.settings.budgets, str(loaded.file), loaded.region_lines)
    return found


def _for_editor(finding: Finding) -> Finding:
    """Replaces command-line options by the editor's settings, in hints and in messages about the run."""
    message = options_to_settings(finding.message) if finding.code.startswith("MP9") else finding.message
    return replace(finding, message=message, hint=options_to_settings(finding.hint))
