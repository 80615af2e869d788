"""Messages from a run to its starter: JSON objects, one per line, UTF-8. Key types: Message, Decoder.

The reader trusts nothing: a program may be killed in the middle of a line, or may write to a descriptor it does not own.
A line that does not decode to a known, well-typed message is kept as noise, never an error.
"""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias, TypedDict

MAX_LINE = 64 * 1024 * 1024
"""Longer lines are left out, and a finding says so: the editor's memory is limited."""


class Hello(TypedDict):
    """The user's interpreter runs and is supported. ``pid`` is the program's, not the supervisor's."""

    type: Literal["hello"]
    pid: int


class Phase(TypedDict):
    """``started``: the user's code begins. ``stopping``: the requested steps are done, the program is being interrupted."""

    type: Literal["started", "stopping"]


class Step(TypedDict):
    """``n`` steps are done: optimizer steps or, without an optimizer, outermost module calls."""

    type: Literal["step"]
    n: int


class FindingMessage(TypedDict):
    """A finding (``Finding.to_json``); replaces an earlier one with the same key."""

    type: Literal["finding"]
    finding: dict[str, Any]


class RegionMessage(TypedDict):
    """A region's summary (``RegionSummary.to_json``); replaces the one with the same id."""

    type: Literal["region"]
    region: dict[str, Any]


class Compiling(TypedDict):
    """The state of background compilation has changed: names of regions that are being compiled, wait in the queue, or run
    compiled code."""

    type: Literal["compiling"]
    running: list[str]
    waiting: list[str]
    ready: list[str]


class Progress(TypedDict):
    """How the run is going, at the end of a step, at most twice a second, and once at the end of a compiled run. ``rate``:
    steps per second in the last seconds, of which the share ``compiled`` ran with all their compiled code. ``step``: the
    StepReport up to now, as the final report has it, without its timeline; None if nothing is measured."""

    type: Literal["progress"]
    rate: float | None
    compiled: float
    step: dict[str, Any] | None


class Captured(TypedDict):
    """The program's code has ended, and what was captured is about to be compiled for the request's target: the Report
    (``Report.to_json``) without kernels. Only in runs with details; ``done`` replaces it."""

    type: Literal["captured"]
    report: dict[str, Any]


class Lowering(TypedDict):
    """``done`` of ``of`` captures have been compiled for the request's target."""

    type: Literal["lowering"]
    done: int
    of: int


class TracingMessage(TypedDict):
    """The program's code has ended, and the run waits for the cause of a difference, at most so many ``seconds``. SIGINT
    ends this search only. ``where``: the lines that differ, ``file:line``."""

    type: Literal["tracing"]
    seconds: float
    where: list[str]


class Failed(TypedDict):
    """The run failed; the MP9xx ``code`` determines the outcome. ``place``: the location, if in the user's code."""

    type: Literal["failed"]
    code: str
    message: str
    place: dict[str, Any] | None


class Done(TypedDict):
    """The last message of a run, with the Report (``Report.to_json``)."""

    type: Literal["done"]
    report: dict[str, Any]


class Exit(TypedDict):
    """From the supervisor, after the program's process has ended. Consumed by the parent, never passed on.

    ``requested``: the supervisor ended the program on request.
    """

    type: Literal["exit"]
    code: int | None
    signal: int | None
    requested: bool


Message: TypeAlias = (
    Hello | Phase | Step | FindingMessage | RegionMessage | Compiling | Progress | Captured | Lowering | TracingMessage
    | Failed | Done | Exit
)  # fmt: skip

_FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "hello": {"pid": (int,)},
    "started": {},
    "step": {"n": (int,)},
    "finding": {"finding": (dict,)},
    "region": {"region": (dict,)},
    "compiling": {"running": (list,), "waiting": (list,), "ready": (list,)},
    "progress": {"rate": (int, float, type(None)), "compiled": (int, float), "step": (dict, type(None))},
    "captured": {"report": (dict,)},
    "lowering": {"done": (int,), "of": (int,)},
    "tracing": {"seconds": (int, float), "where": (list,)},
    "failed": {"code": (str,), "message": (str,), "place": (dict, type(None))},
    "stopping": {},
    "done": {"report": (dict,)},
    "exit": {"code": (int, type(None)), "signal": (int, type(None)), "requested": (bool,)},
}  # fmt: skip


def encode(message: Message) -> bytes:
    """One line of ASCII, so that a lone surrogate in a file name or a repr can't make the line undecodable."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=True, default=str).encode("ascii") + b"\n"


def decode(line: bytes) -> Message | None:
    """The message in one line, or None if it is not one."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not isinstance(kind := data.get("type"), str):
        return None
    fields = _FIELDS.get(kind)
    if fields is None or any(not isinstance(data.get(name), kinds) for name, kinds in fields.items()):
        return None
    return data  # type: ignore[return-value]  # checked against the table above


def error_message(code: str, message: str, place: dict[str, Any] | None = None) -> Message:
    return {"type": "failed", "code": code, "message": message, "place": place}


def too_long(size: int) -> str:
    """What a finding says of a message that was left out."""
    limit = f"{MAX_LINE >> 20} MB, which is the limit"
    return f"The report lacks a part of {size >> 20} MB, more than {limit}: without --html, reports are much shorter."


class Decoder:
    """Decodes bytes into messages. ``noise`` keeps the last other lines (a stack dump is sent this way); ``left_out`` has
    the sizes of lines that were too long, in bytes."""

    def __init__(self) -> None:
        self.noise: list[str] = []
        self.left_out: list[int] = []
        self._tail = bytearray()  # of a line whose end has not come
        self._size = 0

    def feed(self, data: bytes) -> list[Message]:
        *ends, rest = data.split(b"\n")
        out = []
        for end in ends:
            self._add(end)
            out += self._line()
        self._add(rest)
        return out

    def close(self) -> list[Message]:
        """At the end of input, decodes a last line without a newline."""
        return self._line()

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= MAX_LINE:
            self._tail += part
        else:
            self._tail.clear()

    def _line(self) -> list[Message]:
        line, size = bytes(self._tail), self._size
        self._tail, self._size = bytearray(), 0
        if size > MAX_LINE:
            self.left_out.append(size)
            return []
        if not line.strip():
            return []
        message = decode(line)
        if message is not None:
            return [message]
        self.noise.append(line[:1000].decode("utf-8", "replace"))
        del self.noise[:-400]
        return []
