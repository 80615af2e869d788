"""Optional parts of a report: guards, operator graph, generated code, calls. Key types: RegionDetail, Call."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class GuardDetail:
    """One value that is checked before a replay, and where the program reads it (line 1-based; 0: unknown).

    ``text`` is the check as a sentence fragment: ``self.calls == 3``.
    """

    name: str
    check: str
    value: str
    file: str = ""
    line: int = 0
    text: str = ""


@dataclass
class NodeDetail:
    """One operation of the graph. ``inputs`` are names of other nodes; ``kind`` is placeholder, call or read (by Python).

    ``user_file`` and ``user_line``: the user's line that called the library, if the operation's own line is a library's.
    ``tensor``: dtype and shape of the recorded result (``float32[2, 4]``); empty for anything but one tensor.
    """

    name: str
    kind: str
    label: str
    inputs: list[str] = field(default_factory=list)
    segment: int = 0
    file: str = ""
    line: int = 0
    tensor: str = ""
    user_file: str = ""
    user_line: int = 0

    @property
    def users(self) -> tuple[str, int]:
        """The user's line: the operation's own, or that of the call into the library."""
        return (self.user_file, self.user_line) if self.user_line else (self.file, self.line)


@dataclass
class FactDetail:
    """One read or write of an object, as a sentence fragment, and its line."""

    text: str
    file: str = ""
    line: int = 0


@dataclass
class ObjectDetail:
    """One object of the RefGraph, reached by ``step`` from the object with index ``parent``; -1: a root."""

    name: str
    kind: str
    parent: int = -1
    step: str = ""
    reads: list[FactDetail] = field(default_factory=list)
    writes: list[FactDetail] = field(default_factory=list)


@dataclass
class CaptureDetail:
    """One capture: what it checks, what it computes, and the generated Python and backend code."""

    guards: list[GuardDetail] = field(default_factory=list)
    nodes: list[NodeDetail] = field(default_factory=list)
    guard_code: str = ""
    replay_code: str = ""
    generated_code: list[str] = field(default_factory=list)
    cut: int = 0  # how many nodes of a very large graph are omitted
    rest: str = ""  # the omitted nodes as text, one per line
    objects: list[ObjectDetail] = field(default_factory=list)  # the RefGraph, in the order of first touch
    objects_cut: int = 0
    objects_rest: str = ""


@dataclass
class RegionDetail:
    """The captures of one region, from newest to oldest."""

    region: str
    captures: list[CaptureDetail] = field(default_factory=list)


@dataclass
class Call:
    """One call of a region: its start and duration in seconds, and ``how`` it ran: recorded, replayed, watched, plain."""

    region: str
    start: float
    seconds: float
    how: str


@dataclass
class GraphCall:
    """One of the graphs that a call of a region ran, of the few calls in which they were timed one by one."""

    region: str
    start: float
    seconds: float


@dataclass
class Details:
    regions: list[RegionDetail] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    graphs: list[GraphCall] = field(default_factory=list)
