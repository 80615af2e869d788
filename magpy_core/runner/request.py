"""What to run and how it ended. Key types: RunRequest, Record, Outcome. Pure data; imports only the standard library."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from magpy_core.products.targets.devices import DEVICES as DEVICES
from magpy_core.products.targets.devices import UnknownTarget as UnknownTarget
from magpy_core.products.targets.devices import parse_target as parse_target

if TYPE_CHECKING:
    from magpy_core.findings import Report

Sink: TypeAlias = Literal["inherit", "stderr", "null"] | int | Callable[[bytes], None]
"""The destination of a stream of the program; a number is an open descriptor. A callable receives bytes on a thread of the
runner."""

Kind: TypeAlias = Literal["ok", "failed", "killed", "timeout", "cancelled", "bad-entrypoint", "tool-error"]

SESSIONS = {
    "magpy": "magpy_core.regions.session:Session",
    "dynamo": "magpy_core.products.dynamo.session:DynamoSession",
    "eager": "magpy_core.runner.eager_session:EagerSession",
}
"""The session factory of each engine."""

COMPILER_SESSION = SESSIONS["dynamo"]
"""The session that may begin with the first function that torch.compile compiles, since findings in functions that the
program compiles itself are reported too. Other sessions begin with the first call of a region."""

_OF_CHILD = ("mode", "script", "module", "args", "steps", "backend", "compile", "compile_mode", "cache_limit", "target",
             "target_line", "verify", "regions", "call_policy", "stop_grace", "details", "record",
             "session_factory")  # fmt: skip


@dataclass(frozen=True)
class Record:
    """What a run saves of its state, in files in ``folder``. ``steps``: after which steps, in addition to the end; None:
    1, 2, 4, 8, ... ``noise``: the seed of rounding noise in all operations; None: no noise."""

    folder: str
    steps: list[int] | None = None
    noise: int | None = None


@dataclass(frozen=True)
class RunRequest:
    """One run of one entrypoint: a ``script`` path or a ``module`` name (``-m``), never both.

    ``steps`` 0: run to the end. ``python`` None: this interpreter. ``env``: the complete environment; None: this one.
    ``regions`` and ``call_policy`` come from ``[tool.magpy]``. ``stop_grace``: how long a program may run after its last
    step (``finally`` blocks, ``atexit`` functions) before it is killed. ``details``: the report contains complete captures
    and a timeline of calls. ``compile``: whether the program waits for Inductor (it always does if MAGPY_COMPILE is
    ``foreground`` in the environment); ``ahead``: it waits, and what is recorded is what a run to the end would record with
    ``background``, at whatever cost: its compiled code is for that run. ``compile_mode``: as
    ``magpy_core.compile(mode=...)``. ``verify``: which calls of compiled code are compared with eager mode (``first``,
    ``off``, ``on``, ``strict`` or a number: one in so many). ``target``: the device that the captures are compiled for
    after the run (``cuda:sm_90``); empty: none. ``target_line``: only the kernels of this line are (an absolute path or its
    end, and a number from 1). ``record``: the state is saved, to be compared with that of another run, and the program is
    stopped before the first call after its last step, not in the middle of what follows the step.
    """

    mode: Literal["check", "run"] = "check"
    script: str | None = None
    module: str | None = None
    args: list[str] = field(default_factory=list)
    python: str | None = None
    cwd: str | None = None
    env: dict[str, str] | None = None
    steps: int = 3
    timeout: float | None = None
    backend: str = "inductor"
    compile: Literal["background", "foreground", "ahead"] = "background"
    compile_mode: Literal["default", "max", "quick"] = "default"
    cache_limit: int = 8
    regions: list[str] = field(default_factory=list)
    call_policy: dict[str, str] = field(default_factory=dict)
    stdin: Literal["inherit", "null"] = "inherit"
    stdout: Sink = "inherit"
    stderr: Sink = "inherit"
    stop_grace: float = 30.0
    details: bool = False
    verify: str = "first"
    target: str = ""
    target_line: tuple[str, int] | None = None
    record: Record | None = None
    session_factory: str = SESSIONS["magpy"]

    @property
    def entrypoint(self) -> str:
        """The user's name for the entrypoint."""
        return f"-m {self.module}" if self.module is not None else str(self.script)

    @property
    def file(self) -> str:
        """The entrypoint's file, as far as it can be determined without importing anything."""
        folder = os.path.abspath(self.cwd or os.getcwd())
        if self.script is not None:
            return os.path.normpath(os.path.join(folder, self.script))
        stem = os.path.join(folder, *(self.module or "").split("."))
        for path in (f"{stem}.py", os.path.join(stem, "__main__.py")):
            if os.path.exists(path):
                return path
        return f"{stem}.py"

    def to_child(self) -> dict[str, Any]:
        """The child's part of the request, as JSON."""
        more: dict[str, Any] = {"entrypoint": self.entrypoint, "file": self.file, "line_buffered": callable(self.stdout)}
        if self.record is not None:
            more["record"] = asdict(self.record)
        return {name: getattr(self, name) for name in _OF_CHILD} | more


@dataclass(frozen=True)
class Outcome:
    """How a run ended. ``message`` says what to do (empty if ok).

    ``exit_code`` and ``signal`` are the program's own (one of them is None; both when it never started). ``report`` holds
    what was found up to the end, however it ended.
    """

    kind: Kind
    exit_code: int | None
    signal: int | None
    message: str
    report: Report

    @property
    def cli_exit_code(self) -> int:
        """0: ok; 2: usage or tool error; 3: the program failed. (1 is for findings; the caller decides.)"""
        if self.kind == "ok":
            return 0
        return 3 if self.kind in ("failed", "killed", "timeout") else 2
