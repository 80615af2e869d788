"""Registry of finding codes: the one table that docs, `explain`, editors and CI formats are generated from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(str, Enum):
    """LSP's four severities, most severe first."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"

    @property
    def rank(self) -> int:
        """0 is most severe."""
        return list(Severity).index(self)


@dataclass(frozen=True)
class Code:
    """One diagnostic code. ``name`` is kebab-case; ``explanation`` and ``hints`` are full sentences; ``example`` is Python."""

    code: str
    name: str
    title: str
    severity: Severity
    explanation: str = ""
    hints: tuple[str, ...] = ()
    example: str = ""
    has_fix: bool = False

    @property
    def family(self) -> str:
        return {"1": "graph break", "2": "guard", "3": "side effect", "4": "performance", "9": "tool"}[self.code[2]]

    @property
    def url(self) -> str:
        return f"https://magpy.dev/codes/{self.code}"


W, I, H, E = Severity.WARNING, Severity.INFORMATION, Severity.HINT, Severity.ERROR

_TABLE = (
    # MP1xx graph breaks: why a region is not one complete operator graph
    Code("MP101", "data-dependent-branch", "Control flow depends on a tensor's value", W),
    Code("MP102", "host-read", "A tensor's value is read by Python", W),
    Code("MP103", "host-call", "A call whose result can't be guarded (clock, random, environment)", W),
    Code("MP104", "unknown-call", "A call into unknown native code", W),
    Code("MP105", "unrecorded-operator", "A tensor operation ran outside every recorded call", W),
    Code("MP106", "unsupported-operator", "A torch feature that cannot be recorded safely", W),
    Code("MP107", "opaque-autograd-function", "A custom autograd.Function that reads outside state", W),
    Code("MP108", "external-iterator", "A generator or native iterator from outside is advanced", W),
    Code("MP109", "data-dependent-shape", "A shape depends on tensor data and Python reads it", W),
    Code("MP110", "unrebuildable-object", "An object that leaves the region can't be rebuilt by replay", W),
    Code("MP111", "untracked-state", "State was reached in a way the monitor can't follow", W),
    Code("MP112", "nested-compiler", "Another compiler runs inside the region", W),
    Code("MP113", "host-io", "Input or output in the middle of a region", W),
    # MP2xx guards and recompiles
    Code("MP201", "recompile", "A guarded value changed: the region was captured again", W),
    Code("MP202", "varying-value", "A number that varies is carried as a symbolic scalar", I),
    Code("MP203", "recompile-limit", "Too many captures: the region runs in plain Python from now on", W),
    Code("MP204", "guard", "The capture is valid only while this value stays the same", H),
    Code("MP205", "dynamic-shape", "A dimension varies and is captured as dynamic", I),
    # MP3xx side effects
    Code("MP301", "attribute-write", "An attribute of an outside object is written", I),
    Code("MP302", "container-mutation", "An outside container is changed", I),
    Code("MP303", "global-write", "A global variable is written", I),
    Code("MP304", "closure-write", "A closure variable is written", I),
    Code("MP305", "output", "Text is printed, logged or warned", I),
    Code("MP306", "tensor-mutation", "A tensor from outside is changed in place", I),
    Code("MP307", "raised-exception", "The region leaves by an exception", I),
    # MP4xx performance
    Code("MP401", "slower-than-eager", "The compiled region is slower than eager", W),
    Code("MP402", "costly-guards", "Guards take a large part of a compiled call", I),
    Code("MP403", "long-compile", "Compiling took much longer than it can win back in this run", I),
    # MP9xx the tool and the entrypoint
    Code("MP901", "monitor-failed", "The monitor itself failed; the program ran as plain Python", W),
    Code("MP902", "backend-failed", "The backend could not compile a capture; it runs as plain Python", W),
    Code("MP903", "unsupported-version", "This Python or torch version is not supported", E),
    Code("MP904", "no-region", "The program never called a module, optimizer or named region", W),
    Code("MP905", "program-failed", "The program raised an exception", E),
    Code("MP906", "program-killed", "The program was killed by a signal", E),
    Code("MP907", "program-timeout", "The program did not finish in time", E),
    Code("MP908", "bad-entrypoint", "The entrypoint can't be run", E),
    Code("MP909", "early-exit", "The program exited before the requested steps were done", W),
    Code("MP910", "bad-config", "The [tool.magpy] configuration is not valid", E),
    Code("MP911", "no-source", "Code without source: findings can't be placed on lines", I),
    Code("MP912", "unused-ignore", "A `magpy: ignore` comment that suppresses nothing", H),
)

REGISTRY: dict[str, Code] = {c.code: c for c in _TABLE}


def lookup(code: str) -> Code:
    """The registry entry of ``code``; raises KeyError with the known codes when there is none."""
    try:
        return REGISTRY[code]
    except KeyError:
        raise KeyError(f"unknown finding code {code!r}; known: {', '.join(REGISTRY)}") from None
