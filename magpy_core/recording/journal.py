"""Journal: the refusals and findings of one recording, its status, and the event being handled.

There are four ways to refuse: `refuse` (no capture, but the recording continues to find other reasons), `skip_call` (this
call can't be captured, the next one may be), `refuse_if_repeated` (the program may do it once, for initialization) and
`abort` (the recording ends immediately). Key types: Journal, Aborted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from magpy_core.findings import HERE, Finding, Location, Severity, Unsupported, Value, lookup
from magpy_core.monitor.events import MaybeSite
from magpy_core.monitor.hooks import belongs_to_user
from magpy_core.monitor.positions import is_user_file, site_location, text_at
from magpy_core.recording.places import Place, Places
from magpy_core.refgraph.kinds import is_a
from magpy_core.replay.ir import MadeInside

_MOST_OBSTACLES = 64
FAILED = object()
"""What `Journal.contained` returns for a step that failed."""
SET_UP_HINT = "No action needed if this happens once, for initialization: the next call is compiled."


class Aborted(Exception):
    """The recording has ended early and no longer holds any object of the program."""


class Journal:
    """Status, findings and places of one recording. ``set_up``: messages about earlier calls' actions that replay can't
    repeat."""

    def __init__(self, region_id: str, location: Location, set_up: set[str]) -> None:
        self.region_id = region_id
        self.findings: list[Finding] = []
        self.obstacles: list[Finding] = []  # those that keep the run from being one graph
        self.refused = False
        self.is_on_branch = False
        """Whether a branch on data or numbers was taken before anything was refused: another call may take the other."""
        self.aborted = False
        self.skip_reason = ""
        self.graph_incomplete = False  # an operator was not recorded: errors about its result are consequences
        self.site: MaybeSite = None  # the site of the event being handled, or of the last one
        self.places = Places(lambda: location)
        self._set_up, self._set_up_before = set_up, frozenset(set_up)
        self._reported: dict[Location, dict[str, int]] = {}  # codes reported at a place, with their severities' ranks
        self._unrecorded_calls: set[Location] = set()
        self._on_abort: list[Callable[[], None]] = []

    def branched(self) -> None:
        """The program has taken a branch that another call may not take."""
        self.is_on_branch = self.is_on_branch or not self.refused

    # -- refusing ----------------------------------------------------------------------------------------------

    def refuse(
        self, code: str, message: str, *, hint: str = "", values: tuple[Value, ...] = (), site: MaybeSite = None,
        place: Place | None = None,
    ) -> None:  # fmt: skip
        """Refuse to capture this run, and report why at the current line. The recording continues to find other reasons."""
        self.refused = True
        found = self.note(code, message, hint=hint, values=values, site=site, place=place)
        self.obstacles += [found] if found is not None else self._repeated(code, self._quoted(message, site))

    def _repeated(self, code: str, message: str) -> list[Finding]:
        """What was reported before, and has been reached by another path now."""
        known = [f for f in self.findings if (f.code, f.message) == (code, message)]
        if not known or len(self.obstacles) > _MOST_OBSTACLES:
            return []
        path = self.places.path(known[0].location)
        return [] if any(f.path == path for f in self.obstacles) else [replace(known[0], path=path)]

    def refuse_call(self, code: str, message: str, *, hint: str = "", site: MaybeSite = None) -> None:
        """Refuse a call whose result has no value in the graph: neither the operators that run in it nor uses of its result
        are reported again."""
        self.graph_incomplete = True
        self._unrecorded_calls.add(self.places.now(site, self.site).location)
        self.refuse(code, message, hint=hint, site=site)

    def refuse_call_if_repeated(self, error: Unsupported) -> None:
        """Like `refuse_if_repeated`, for a call whose result has no value in the graph."""
        self.graph_incomplete = True
        self._unrecorded_calls.add(self.places.now(None, self.site).location)
        error.message = self._quoted(error.message)
        self.refuse_if_repeated(error)

    def skip_call(self, why: str) -> None:
        """This run can't be captured, for a reason that may not hold at the next call."""
        self.skip_reason = self.skip_reason or why

    def refuse_if_repeated(self, error: Unsupported, site: MaybeSite = None) -> None:
        """This call does something that replay can't. If the program does it once, for initialization, the next call is
        captured; if it does it again, it is refused."""
        if error.message in self._set_up_before:
            self.refuse(error.code, error.message, hint=error.hint, site=site)
            return
        self._set_up.add(error.message)
        self.skip_call(error.message)
        hint = f"{SET_UP_HINT} {error.hint}".rstrip()
        self.note(error.code, error.message, hint=hint, site=site, severity=Severity.INFORMATION)

    def refuse_error(self, error: Unsupported) -> None:
        """Report an error that a step raised. An error without a code is a consequence of something already reported."""
        if not error.code:
            self.refused = self.refused or not self.skip_reason  # after a skipped call, the next one may be captured
        elif is_a(error, MadeInside):
            self.refuse_if_repeated(error)
        else:
            text = self.source_text(self.site)
            values = error.values or ((Value("expression", text),) if text else ())
            self.refuse(error.code, error.message, hint=error.hint, values=values)

    def internal_error(self, error: BaseException) -> None:
        kind = type(error).__name__
        self.refuse("MP901", f"MagPy's own recorder failed ({kind}: {error}); this call ran in eager mode.")

    def contained(self, step: Callable[..., Any], *args: Any) -> Any:
        """Run a step of the recorder. An exception refuses the capture and never reaches the program: returns `FAILED`."""
        try:
            return step(*args)
        except Exception as error:
            if belongs_to_user(error):
                raise
            try:
                if isinstance(error, Unsupported):
                    self.refuse_error(error)
                else:
                    self.internal_error(error)
            except Exception:  # creating the finding may fail too
                self.refused = True
        return FAILED

    def on_abort(self, release: Callable[[], None]) -> None:
        """Call ``release`` when the recording is aborted: it drops references to the program's objects."""
        self._on_abort.append(release)

    def abort(self, message: str, site: MaybeSite, code: str = "MP110", hint: str = "") -> NoReturn:
        """End the recording here, before it extends the lifetime of an object of the program."""
        self.refuse(code, message, site=site, hint=hint)
        self.aborted = True
        for release in self._on_abort:
            release()
        raise Aborted(message)

    def refuse_compiled_code(self, what: str) -> None:
        """Refuse code of another compiler inside the region: its operators can't be observed."""
        self.refuse_call(
            "MP112",
            f"{what} is compiled already, and MagPy can't look into it.",
            hint="Call the original Python function or module: MagPy compiles it, too.",
        )

    # -- reporting ---------------------------------------------------------------------------------------------

    def note(
        self, code: str, message: str, *, hint: str = "", values: tuple[Value, ...] = (), site: MaybeSite = None,
        place: Place | None = None, severity: Severity | None = None,
    ) -> Finding | None:  # fmt: skip
        """Report at the user's current line (that of ``site`` if it is in the user's code), once for each place and code. Of
        several findings inside one call of a library, only the first is reported. None if this one is not reported."""
        message = self._quoted(message, site)
        if place is None:
            place = self.places.now(site, self.site)
        reported = self._reported.setdefault(place.location, {})
        rank = (severity or lookup(code).severity).rank
        # after the run, findings without a line are placed at its end
        key = code if self.places.running or site is not None else f"{code} {message}"
        if reported.get(key, rank + 1) <= rank or (
            place.deeper and self.places.running and min(reported.values(), default=rank + 1) <= rank
        ):
            return None
        reported[key] = rank
        location = self.places.reported(place)
        path = place.path or self.places.path(location)
        finding = Finding(code, message, location, hint=hint, region=self.region_id, path=path, values=values)
        self.findings.append(finding if severity is None else replace(finding, severity_override=severity))
        return self.findings[-1]

    def revise(self, finding: Finding, message: str, *, hint: str, severity: Severity) -> None:
        """Say something else about what has been reported."""
        at = next(i for i, known in enumerate(self.findings) if known is finding)
        self.obstacles = [one for one in self.obstacles if one is not finding]
        self.findings[at] = replace(finding, message=message, hint=hint, severity_override=severity)

    def _quoted(self, message: str, site: MaybeSite = None) -> str:
        return message.replace(HERE, self.quoted_expression(site) or "The program") if HERE in message else message

    def is_explained(self, site: MaybeSite) -> bool:
        """Whether a refusal has already been reported at the place of ``site``."""
        if not self.refused or site is None:
            return False
        return not is_user_file(site.code.co_filename) or self.places.now(site).location in self._reported

    def is_unrecorded_call(self) -> bool:
        """Whether the current line contains a call that was refused."""
        return bool(self._unrecorded_calls) and self.places.now(None, self.site).location in self._unrecorded_calls

    def source_text(self, site: MaybeSite) -> str:
        return "" if site is None else text_at(site_location(site))

    def quoted_expression(self, site: MaybeSite = None) -> str:
        """The user's expression being evaluated, and the library's expression inside it if there is one."""
        site = site or self.site
        inner = self.source_text(site)
        if site is None or is_user_file(site.code.co_filename):
            return f"`{inner}`" if inner else ""
        outer = text_at(self.places.now(site).location)
        if not (outer and inner):
            return f"`{outer or inner}`" if outer or inner else ""
        return f"`{outer}` (at `{inner}` in `{site.code.co_qualname}`)"
