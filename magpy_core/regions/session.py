"""Session: the regions of one running program, with one set of options and listeners. Key type: Session."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from magpy_core.backends import get_backend
from magpy_core.backends.background import ACCOUNT, QUEUE, waits_by_default
from magpy_core.backends.cache import cache_problem
from magpy_core.backends.tuning import DEFAULT, tuned
from magpy_core.findings import Finding, Numerics, StepReport
from magpy_core.limits import LIMITS
from magpy_core.regions.budget.budget import Budget
from magpy_core.regions.budget.history import Kept, LastRun
from magpy_core.regions.fragments.fragments import cut
from magpy_core.regions.fragments.step_functions import StepFunction, StepFunctions
from magpy_core.regions.lines import line_location
from magpy_core.regions.log import Listeners, Summarised
from magpy_core.regions.options import Options
from magpy_core.regions.policy.sampling import CallSample
from magpy_core.regions.policy.savings import futile_runs, history_of
from magpy_core.regions.region import Region
from magpy_core.regions.reports.cost_share import relate
from magpy_core.regions.reports.progress import State, compile_progress
from magpy_core.regions.reports.step_report import step_report
from magpy_core.regions.serialized import InTurn
from magpy_core.regions.threads import busy
from magpy_core.regions.timing.costs import rate
from magpy_core.regions.timing.steps import Steps
from magpy_core.verification import Plan
from magpy_core.verification.beside import Tracings

if TYPE_CHECKING:
    from magpy_core.findings.details import RegionDetail


class Session:
    """Regions by key. ``on_finding`` is called for new findings and for one seen again (its count raised); ``on_region``
    after a capture, ``on_left`` after each call of a region. ``command``: names what is run; what a run shows of compiled
    code is kept for the next run of the same command. ``ahead``: the program waits for the compiler, and what is
    recorded is what a run in the ``background`` would record, if it could afford everything. ``on_compiling``: as in
    `Options`. ``verify``: as `Plan.parse` takes it. ``traces``: the cause of a difference is looked for beside the program.
    Raises UnknownBackend for a backend that does not exist."""

    def __init__(
        self,
        *,
        mode: Literal["observe", "compiled"],
        backend: str = "inductor",
        cache_limit: int = 8,
        on_finding: Callable[[Finding], None] | None = None,
        on_region: Callable[[Summarised], None] | None = None,
        measure: bool = False,
        same_random: bool = False,
        background: bool = False,
        ahead: bool = False,
        compile_mode: str = "default",
        on_left: Callable[[Any], None] | None = None,
        on_compiling: Callable[[str], None] = lambda region_id: None,
        command: str = "",
        verify: str = "first",
        traces: bool = False,
    ) -> None:
        get_backend(backend)
        backend, tuning = tuned(backend, compile_mode)
        plan = Plan.parse(verify)
        if plan.strict and backend == "inductor":
            tuning = tuning.strictly()
        background = background and not waits_by_default()
        self._kept = Kept(command) if command and mode == "compiled" and backend == "inductor" else None
        self._last_run, self._began = self._kept.read() if self._kept is not None else LastRun(), time.monotonic()
        has_next = self._kept is not None
        budget = Budget(self._last_run, unlimited=ahead, has_next=has_next) if background or ahead else None
        self._ahead = budget if ahead else None
        ACCOUNT.expect(self._last_run.processor, self._last_run.granted)
        self._steps = Steps(self._steps_ended, observes=mode == "observe")
        self._in_turn = InTurn()  # what ends steps: a program may train in several threads
        self.options = Options(
            mode,
            backend,
            cache_limit,
            measure=measure,
            same_random=same_random,
            background=background,
            budget=budget,
            steps=self._steps,
            tuning=tuning,
            on_left=on_left,
            on_compiling=on_compiling,
            verify=plan,
            tracings=Tracings() if traces else None,
            cut=lambda region: cut(region, self._add_stretch),
        )
        self._looks = (CallSample((), self._steps), CallSample((), self._steps))
        self.current_step = 0
        self._listeners = Listeners(on_finding, on_region, lambda: self.current_step)
        self._regions: dict[Hashable, Region] = {}
        self._names: dict[str, int] = {}
        self._step_functions = StepFunctions(self._listeners, lambda: self._all)

    @property
    def numerics(self) -> Numerics:
        """Of a run that must give eager mode's bits."""
        strict = self.options.verify.strict and self.options.backend == "inductor"
        return ("strict" if self.options.tuning.is_strict else "default") if strict else ""

    def expect(self, left: float) -> None:
        """The program goes on for ``left`` seconds at least, as far as its loops tell."""
        if (budget := self.options.budget) is not None and left > 0.0:
            ran = max(time.monotonic() - self._began, 1e-3)
            total = ran + min(left, LIMITS.most_foreseen * ran)
            budget.expect(total)
            ACCOUNT.expect(max(self._last_run.processor, time.process_time() * total / ran))

    def region(self, key: Hashable, *, kind: str, name: str, file: str, line: int, target: Callable[..., Any]) -> Region:
        """The region of ``key``, created on first use."""
        found = self._regions.get(key)
        if found is None:
            location = line_location(file, line, name)
            found = Region(self._new_id(name), kind, name, location, target, self.options, self._listeners)
            self._regions[key] = found
        return found

    def step_function(
        self, key: Hashable, *, name: str, file: str, line: int, target: Callable[..., Any], parts: Iterable[Region],
        kind: str = "function", may_be_cut: bool = False,
    ) -> StepFunction:  # fmt: skip
        """A region, on trial, in place of ``parts``: the regions of the modules and optimizers that it calls.
        ``may_be_cut``: if it can't be captured whole."""
        region = self.region(key, kind=kind, name=name, file=file, line=line, target=target)
        return self._step_functions.add(region, parts, may_be_cut=may_be_cut)

    def _add_stretch(self, region: Region) -> None:
        region.id = self._new_id(region.name)
        self._regions[("stretch", id(region))] = region

    def _new_id(self, name: str) -> str:
        n = self._names[name] = self._names.get(name, 0) + 1
        return name if n == 1 else f"{name}#{n}"

    def attach(self, region: Region) -> None:
        """Make a region of the program's own ``magpy_core.compile`` one of this session's, with its options and listeners.
        ``fullgraph`` raises nothing then: the findings say why the region is not one graph."""
        region.id = self._new_id(region.name)
        tuning = self.options.tuning if region.options.tuning == DEFAULT else region.options.tuning
        if self.numerics == "strict":
            tuning = tuning.strictly()
        region.options = replace(self.options, fullgraph=False, tuning=tuning, dynamic=region.options.dynamic)
        region.log.listeners = self._listeners
        region.times.steps = self._steps
        self._regions[("compile", id(region))] = region

    def stepped(self, n: int, *, whole: bool = False, optimizer: Hashable = None) -> None:
        """Step ``n`` of the program has ended: a ``whole`` training step of ``optimizer``, or in a program without
        optimizers a call. Never inside of a region's call, where this would be part of what is recorded."""
        self._in_turn(lambda: self._stepped(n, whole, optimizer))

    def _stepped(self, n: int, whole: bool, optimizer: Hashable) -> None:
        self.current_step = n
        self._step_functions.settle()
        for region in self._all:
            region.stepped()
        if self.options.measure or self._steps.observes:
            self._steps.are_whole = whole
            self._steps.stepped(optimizer)

    @property
    def _all(self) -> list[Region]:
        """Every region now: other threads may add some."""
        return list(self._regions.values())

    def end_sample(self) -> bool:
        """Whether all calls of regions since the last time this was asked ran in eager mode, and nothing was recorded."""
        if self.options.budget is None:
            return False
        before, now = self._looks[1], CallSample(self._all, self._steps)
        self._looks = (before, now)
        return now.all_eager_since(before)

    def add_unobserved(self, steps: int, rate: float) -> None:
        """``steps`` steps that nothing has looked at, after calls that were calm, and ``rate`` times as many calls."""
        self._in_turn(lambda: self._add_unobserved(steps, rate))

    def _add_unobserved(self, steps: int, rate: float) -> None:
        before, now = self._looks
        self._steps.add_unobserved(steps)
        regions = self._all
        now.add(regions, before, steps, rate)
        self._looks = (now, CallSample(regions, self._steps))

    def begin_window(self, watching: float) -> bool:
        """A window of calls with compiled code has ended, of whose time observing them took the part ``watching``. Returns
        whether it is to be compared with a window of calls that nothing observes, which begins. It is not if steps that took
        turns have shown a gain that is certain and far greater than that."""
        regions = self._all
        ready = sum(capture.is_ready for region in regions for capture in region.captures)
        state = (sum(region.recordings for region in regions), ready)
        if not self._steps.windows.next_window(state) or self._steps.turns.is_open:
            return False
        interval = self._steps.interval()
        return interval is None or interval[0] < 1.0 + LIMITS.payback * watching

    def compared(self, compiled: float, plain: float) -> None:
        """Seconds of a call with compiled code, and of one that nothing looks at."""
        windows = self._steps.windows
        windows.add(compiled, plain)
        if windows.compared.pays is False:
            for region in self._all:
                if any(capture.is_ready for capture in region.captures):
                    region.retire()

    def _steps_ended(self, kind: str, number: int, enough: bool) -> None:
        for region in self._all:
            region.times.stepped(kind, number)
        if enough:
            self._steps.turns.end()
            for region in self._slower() if self.options.budget is not None else ():
                region.retire()

    def _slower(self) -> list[Region]:
        """What made the steps slower that were timed: single regions, or if it is none by itself, all of them together."""
        regions = [region for region in self._all if region.times.by_step and region.captures]
        interval = self._steps.interval()
        alone = [region for region in regions if region.times.is_slower()]
        return alone or (regions if interval is not None and interval[1] < 1.0 else [])

    def compile_progress(self) -> dict[State, list[str]]:
        """What is being compiled now."""
        return compile_progress(self._all)

    def step_report(self) -> StepReport:
        """The training step in figures, up to now."""
        return step_report(self._steps, self.regions)

    def finish(self) -> None:
        """The program has ended: report what its timings show (MP4xx)."""
        self._step_functions.settle(finally_=True)
        if self._kept is not None:
            self._kept.write(self._shown())
        self.await_causes(0.0)
        for region in self.regions:
            region.finish()
        compiled = next((region for region in self.regions if region.times.compile_seconds(region.captures)), None)
        if compiled is not None and (problem := cache_problem()):
            hint = "`magpy-lsp cache info` shows the folder."
            compiled.log.add(Finding("MP405", problem, compiled.location, hint=hint, region=compiled.id))
        self._step_functions.repeat(region.findings.values() for region in self.regions)
        step = self._steps.medians()
        changed = [*relate(self.regions, self._step_functions.findings, self._steps)]
        changed += rate(self.findings, 1e3 * min(step)) if step is not None else ()
        if self._listeners.on_finding is not None:
            for finding in {id(finding): finding for finding in changed}.values():
                self._listeners.on_finding(finding)

    @property
    def is_tracing(self) -> bool:
        """Whether the cause of a difference is being looked for."""
        return self.options.tracings is not None and self.options.tracings.are_running

    def await_causes(self, seconds: float) -> None:
        """Waits for the causes of differences, at most so long, and completes the findings with what is known."""
        if self.options.tracings is not None:
            self.options.tracings.wait(seconds)
            for region in self._all:
                region.log.take_causes()

    def skip_causes(self) -> None:
        """Ends `await_causes`, which may be running: what is known is kept."""
        if self.options.tracings is not None:
            self.options.tracings.skip()

    def _shown(self) -> LastRun:
        """For the next run. What is compiled ahead of time says nothing of how long a run takes."""
        if self._ahead is not None:
            return replace(self._last_run, ahead=round(self._ahead.recording, 3))
        seconds = time.monotonic() - self._began
        shown = history_of(self.regions, self._steps, seconds, self._last_run)
        # If most steps are compiled, what is left is small: the usual share will do.
        lacks = QUEUE.pays_in(seconds) and not self._steps.are_mostly_compiled
        unfinished = min(self._last_run.unfinished + 1, 2) if lacks else 0
        processor = time.process_time()
        # Where the program leaves cores idle, its code was only late because others were busy.
        is_alone = processor >= LIMITS.all_cores * len(os.sched_getaffinity(0)) * seconds
        futile = futile_runs(self.regions, self._last_run.futile) if is_alone and not lacks else 0
        return replace(shown, processor=round(processor, 3), unfinished=unfinished, futile=futile)

    def release(self) -> None:
        """Forgets the regions. The program has ended."""
        QUEUE.cancel()
        if self.options.tracings is not None:
            self.options.tracings.cancel()
        for region in self._all:
            region.forget()
        self._regions = {}
        self._step_functions = StepFunctions(self._listeners, lambda: self._all)

    def graph_times(self, region: Region) -> Iterable[tuple[float, float]]:
        """When graphs of calls that cut them began and ended, in a few of those calls."""
        return region.times.costs.graphs

    def details(self) -> list[RegionDetail]:
        """Every capture in full."""
        from magpy_core.regions.reports.details import region_detail

        return [region_detail(region) for region in self.regions]

    @property
    def regions(self) -> list[Region]:
        """As reports show them."""
        return [region for region in self._all if not self._step_functions.hides(region)]

    @property
    def findings(self) -> list[Finding]:
        of_regions = [finding for region in self.regions for finding in region.findings.values()]
        return of_regions + self._step_functions.findings

    in_region = staticmethod(busy)
    """Whether this thread is in a call of a region."""
