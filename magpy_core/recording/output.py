"""OutputCalls: log records and warnings, which replay repeats at the recorded line and with the settings of that time.

A log call is recorded at its first frame (``Logger.info``), so that replay checks the level again. For a disabled level, a
guard is recorded instead. A warning is recorded where ``warnings.warn`` is called; at each replay, filters and registries
decide whether it is shown.

Key type: OutputCalls.
"""

from __future__ import annotations

import _warnings
import logging
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import field
from typing import Any

from magpy_core.findings import Unsupported
from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite
from magpy_core.monitor.positions import past_own_frames
from magpy_core.monitor.record import is_own_file
from magpy_core.recording.ledger import Output
from magpy_core.recording.printing import frozen, printable
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.kinds import is_a

_LOGGING = logging.__file__
_LEVELS = {
    "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR,
    "exception": logging.ERROR, "critical": logging.CRITICAL,
}  # fmt: skip


def _stack() -> list[types.FrameType]:
    """The frames of the program inside the region, innermost first."""
    frames: list[types.FrameType] = []
    frame = past_own_frames(sys._getframe(1))
    while frame is not None:
        if is_own_file(frame.f_code.co_filename):
            if frame.f_code.co_name == "run":
                break  # the recording's call of the region
        else:
            frames.append(frame)
        frame = frame.f_back
    return frames


def _frame_at(frames: list[types.FrameType], stacklevel: Any) -> types.FrameType | None:
    """The frame that a stack level names; None if it is outside the region, or the stack level is unusual."""
    return frames[stacklevel - 1] if is_a(stacklevel, int) and 1 <= stacklevel <= len(frames) else None


def _raises(text: str, category: type, frame: types.FrameType) -> bool:
    """Whether the current filters turn this warning into an exception."""
    module = frame.f_globals.get("__name__") or "<string>"
    for action, message, of, where, line in warnings.filters:
        if (
            (message is None or message.match(text))
            and issubclass(category, of)
            and (where is None or where.match(module))
            and line in (0, frame.f_lineno)
        ):
            return bool(action == "error")
    return bool(_warnings._defaultaction == "error")


_LOG: types.CodeType = logging.Logger._log.__code__


class OutputCalls(Tracker):
    """Handlers of the frames of ``logging`` and of ``warnings.warn``."""

    _loggers: list[logging.Logger] = field(default_factory=list, init=False)
    _catching: int = field(default=0, init=False)  # blocks of warnings.catch_warnings that are open

    def log_call(self, frame: Any) -> bool:
        """``Logger.info`` and ``logging.info`` etc., ``Logger.log``, and ``Logger._log`` itself."""
        loc = frame.f_locals
        logger = loc.get("self", logging.root)
        level = loc.get("level", _LEVELS.get(frame.f_code.co_name))
        self.context.pauses.code = frame.f_code
        if "self" not in loc and not logging.root.handlers:
            self.journal.skip_call("the first log record of the program configures logging")
            return False
        if not is_a(logger, logging.Logger) or not is_a(level, int):
            self.journal.refuse("MP114", "Compiled code can't repeat this log record.")
            return False
        self.context.numbers.escape_all(self.journal.site, (level,))
        root = self._logger_node(logger)
        if frame.f_code is not _LOG and not logger.isEnabledFor(level):
            self.refgraph.read(self.sources.make("logs", root.source, int(level)), guard.EQUAL, False, self.journal.site)
            return False
        self._log_record(logger, level, loc)
        return False

    def _logger_node(self, logger: logging.Logger) -> Any:
        """The node of a logger whose settings matter: guards check their values at entry."""
        self._loggers.append(logger)
        return self.refgraph.node(logger) or self.context.roots.const_root(logger, f"logging.getLogger({logger.name!r})")

    def loggers_changed(self) -> None:
        """At the region's end: refuse if it logs and also changes the logger, because replay does not keep their order."""
        for logger in self._loggers:
            above: logging.Logger | None = logger
            while above is not None:
                nodes = map(self.refgraph.node, (above, above.handlers, above.filters, above.manager))
                if any(node is not None and node.snapshot is not None for node in nodes):
                    text = f"The region logs to `{logger.name}` and changes that logger: compiled code can't keep the order."
                    self.journal.refuse("MP114", text)
                above = above.parent

    def is_enabled_for(self, frame: Any) -> bool:
        """``Logger.isEnabledFor``: the result is guarded, not the logger's cache."""
        logger, level = frame.f_locals.get("self"), frame.f_locals.get("level")
        if not is_a(logger, logging.Logger) or type(level) is not int:
            return True
        self.context.pauses.code = frame.f_code
        self.context.numbers.escape_all(self.journal.site, (level,))
        node = self._logger_node(logger)
        self.refgraph.read(
            self.sources.make("logs", node.source, level), guard.EQUAL, logger.isEnabledFor(level), self.journal.site
        )
        return False

    def _log_record(self, logger: logging.Logger, level: int, loc: dict[str, Any]) -> None:
        options = {**loc, **loc.get("kwargs", {})}
        args = loc.get("args") or ()
        special = any(options.get(name) for name in ("exc_info", "extra", "stack_info"))
        caller = _frame_at([f for f in _stack() if f.f_code.co_filename != _LOGGING], options.get("stacklevel", 1))
        if special or caller is None or any(not printable(a) for a in (loc["msg"], *args)):
            text = "Compiled code can't repeat this log record (exc_info, extra, stack_info, or objects in it)."
            self.journal.refuse("MP114", text)
            return
        self.context.arguments.read(self.journal.site, (args,), {})
        origin = (caller.f_code.co_filename, caller.f_lineno, caller.f_code.co_name)
        self._repeat("log", (logger, level, frozen(loc["msg"]), frozen(args), origin), self.journal.site)

    def _repeat(self, what: str, payload: Any, site: MaybeSite) -> None:
        """Record an output for replay to repeat in order."""
        self.ledger.outputs.append(Output(what, payload, site))
        self.journal.places.remember(None, site)

    def get_logger(self, frame: Any) -> bool:
        """``logging.getLogger(name)``: the returned logger is guarded; the first call for a name creates one."""
        name = frame.f_locals.get("name")
        self.context.pauses.code = frame.f_code
        self.context.numbers.escape_all(self.journal.site, (name,))
        if not name or (is_a(name, str) and name == logging.root.name):
            self.context.roots.const_root(logging.root, "logging.root")
            return False
        table = logging.root.manager.loggerDict
        found = table.get(name) if is_a(name, str) else None
        if not is_a(found, logging.Logger):
            self.journal.skip_call(f"`logging.getLogger({name!r})` creates a logger in this call.")
            return False
        held = self.context.roots.const_root(table, "logging.root.manager.loggerDict")
        self.context.values.read(self.sources.make("dict_item", held.source, name), found, self.journal.site)
        return False

    def warn(self, site: MaybeSite, args: Any, kwargs: Any) -> None:
        """``warnings.warn(message, category, stacklevel, source)`` is about to run."""
        given = dict(zip(("message", "category", "stacklevel", "source"), args, strict=False)) | kwargs
        message, category = given.get("message"), given.get("category") or UserWarning
        text: Any = message
        plain = True
        if is_a(message, Warning):
            category, text = type(message), message.args[0] if len(message.args) == 1 else None
            plain = category.__module__ == "builtins"
        frame = _frame_at(_stack(), given.get("stacklevel", 1))
        unknown = set(given) - {"message", "category", "stacklevel"} or not is_a(category, type)
        unusual = unknown or not plain or not is_a(text, str) or self._catching
        if frame is None or unusual or "importlib" in frame.f_code.co_filename or _raises(text, category, frame):
            error = Unsupported("MP114", "Compiled code can't repeat this warning.")
            self.journal.refuse_if_repeated(error, site)  # a program warns once, and remembers it
            return
        self.context.numbers.escape_all(site, (text,))
        self._guard_filters(site)
        self._repeat("warn", (text, category, frame.f_code.co_filename, frame.f_lineno, frame.f_globals), site)
        self.context.pauses.during_call()

    def filters_entered(self, frame: Any) -> bool:
        """``warnings.catch_warnings``: changes inside are undone at its end."""
        self._catching += 1
        return False

    def filters_left(self, frame: Any) -> bool:
        self._catching -= 1
        return False

    def filter_added(self, frame: Any) -> bool:
        if not self._catching:
            self.journal.refuse("MP114", "The region changes the warning filters.")
        return False

    def _guard_filters(self, site: MaybeSite) -> None:
        """Guard the filters, which decide whether a warning becomes an exception."""
        module = self.context.roots.const_root(warnings, "warnings")
        filters = warnings.filters
        self.context.values.read(self.sources.make("attr", module.source, "filters"), filters, site)
        self.context.host.guard_contents(filters)

    def warning_shown(self, frame: Any) -> bool:
        """A warning from native code or unmonitored Python code (such as torch's) is shown."""
        shown = frame.f_locals.get("msg")
        self.context.pauses.code = frame.f_code
        if self.ledger.ops.op_depth:
            return False  # the operation issues it again at replay
        if self._catching:
            self.journal.refuse("MP114", "The code itself catches this warning: compiled code can't repeat it.")
            return False
        where = (shown.filename, shown.lineno)
        caller = next((f for f in _stack() if (f.f_code.co_filename, f.f_lineno) == where), None)
        if caller is None:
            self.journal.skip_call("a warning named a line outside the region")
            return False
        self._guard_filters(self.journal.site)
        self._repeat("warn", (str(shown.message), shown.category, *where, caller.f_globals), self.journal.site)
        return False


FRAMES: dict[Callable[..., Any], Callable[..., bool]] = {
    **{getattr(owner, name): OutputCalls.log_call for owner in (logging.Logger, logging) for name in _LEVELS},
    logging.Logger.log: OutputCalls.log_call, logging.log: OutputCalls.log_call, logging.Logger._log: OutputCalls.log_call,
    logging.Logger.isEnabledFor: OutputCalls.is_enabled_for, logging.getLogger: OutputCalls.get_logger,
    warnings._showwarnmsg: OutputCalls.warning_shown, warnings._add_filter: OutputCalls.filter_added,  # type: ignore[attr-defined]
    warnings.resetwarnings: OutputCalls.filter_added, warnings.catch_warnings.__enter__: OutputCalls.filters_entered,
    warnings.catch_warnings.__exit__: OutputCalls.filters_left,
}  # fmt: skip
