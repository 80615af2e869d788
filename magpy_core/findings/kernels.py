"""The kernels of a program on a device that it is compiled for. Key types: Kernel, TargetGraph, Unfused, TargetReport.

Times are estimates from the device's published figures: the least that a kernel can take. Nothing has run on the device.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from magpy_core.findings.json_form import build

GRAPHS = ("forward", "backward", "inference", "optimizer", "step")
"""The graphs that kernels belong to. ``inference``: a forward pass without gradients. ``step``: a graph with a backward pass
inside."""

BOUNDS = ("memory", "compute", "launch")
"""What limits a kernel: moving its bytes, its arithmetic, or being started."""


@dataclass(frozen=True)
class KernelLine:
    """A line of the program (1-based) that a kernel computes something of. ``text``: the line, in JSON reports, by which
    two reports are compared."""

    file: str
    line: int
    text: str = field(default="", compare=False)

    def is_at(self, file: str, line: int) -> bool:
        """``file``: an absolute path or the end of one."""
        end = file if os.path.isabs(file) else os.sep + file.removeprefix(f".{os.sep}")
        return self.line == line and self.file.endswith(end)


@dataclass(frozen=True)
class KernelWork:
    """What one launch moves to and from the device's memory, in bytes, and computes. Each input counts once, although a
    kernel may read it several times. ``dtype``: the arithmetic's type, which decides the peak rate (``tf32``: that of
    float32 products on tensor cores)."""

    bytes_read: int
    bytes_written: int
    flops: int
    dtype: str

    @property
    def bytes_moved(self) -> int:
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float:
        """Floating-point operations per byte."""
        return self.flops / self.bytes_moved if self.bytes_moved else 0.0


@dataclass(frozen=True)
class KernelCode:
    """The code of a Triton kernel. ``ptx``: empty in reports without it. ``registers``: per thread. ``spill_bytes``: stored
    and loaded again per thread, for want of registers. ``shared_bytes``: per block. ``grid``: the numbers of blocks; empty
    if they are not known."""

    triton: str
    ptx: str
    registers: int
    spill_bytes: int
    shared_bytes: int
    num_warps: int
    grid: tuple[int, ...]


@dataclass(frozen=True)
class Kernel:
    """One kernel and how often a call of its graph launches it. ``kind``: ``triton`` (generated) or ``extern`` (a library's:
    cuBLAS, cuDNN, attention; or an operator of MagPy's). ``operators``: what it computes (ATen names). ``us``: the least
    microseconds of one launch; ``bound``: one of BOUNDS. ``code``: None for libraries, and if only kernels of other lines
    were compiled; of an operator of MagPy's, the kernel that it launches."""

    region: str
    graph: str
    name: str
    kind: str
    operators: tuple[str, ...]
    lines: tuple[KernelLine, ...]
    launches: int
    work: KernelWork
    us: float
    bound: str
    code: KernelCode | None = None

    @property
    def total_us(self) -> float:
        """Microseconds of all its launches in a call of the graph."""
        return self.us * self.launches


@dataclass(frozen=True)
class TargetGraph:
    """One graph of a region. ``least_bytes``: its inputs read once and its results written once, which no fusion avoids."""

    region: str
    graph: str
    least_bytes: int


@dataclass(frozen=True)
class Unfused:
    """Two generated kernels, the first of which writes what only the second reads: one kernel would keep it in registers.
    ``written``, ``read``: the lines that do. ``times``: how many such pairs a call of the graph has; ``saved_bytes`` and
    ``saved_us``: what all of them write and read again; ``share``: of the graph's time. ``reason``: the compiler's;
    empty if it gives none. ``is_window``: each result of the second needs several elements of it (pooling)."""

    region: str
    graph: str
    producer: str
    consumer: str
    written: KernelLine
    read: KernelLine
    times: int
    saved_bytes: int
    saved_us: float
    share: float
    reason: str
    is_window: bool


@dataclass(frozen=True)
class LineCost:
    """The least microseconds of a line in a step: a kernel's time is shared equally among its lines. ``file`` is empty for
    kernels that compute no line of the program. ``launches``: those that compute something of it."""

    region: str
    file: str
    line: int
    us: float
    launches: int


@dataclass(frozen=True)
class TargetProblem:
    """A region that could not be compiled for the device, and why."""

    region: str
    message: str


@dataclass
class TargetReport:
    """``target``: as in ``--target``. ``device``: its name. ``bandwidth``: bytes per second. ``launch_us``: the least time
    that any kernel is assumed to take. ``unfused``: pairs that cost a notable share of their graph. ``lines``: hottest
    first, if the run's steps are known."""

    target: str
    device: str
    bandwidth: float
    launch_us: float
    kernels: list[Kernel] = field(default_factory=list)
    problems: list[TargetProblem] = field(default_factory=list)
    graphs: list[TargetGraph] = field(default_factory=list)
    unfused: list[Unfused] = field(default_factory=list)
    lines: list[LineCost] = field(default_factory=list)

    def of_line(self, file: str, line: int) -> list[Kernel]:
        """The kernels that compute something of this line."""
        return [kernel for kernel in self.kernels if KernelLine(file, line) in kernel.lines]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> TargetReport:
        return build(TargetReport, data)


def of_a_call(kernels: Iterable[Kernel]) -> list[Kernel]:
    """What one call of a region launches: with its backward pass, where it has one."""
    found = list(kernels)
    return [kernel for kernel in found if kernel.graph != "inference"] or found


def total_us(kernels: Iterable[Kernel]) -> float:
    return sum(kernel.total_us for kernel in kernels)


def total_launches(kernels: Iterable[Kernel]) -> int:
    return sum(kernel.launches for kernel in kernels)


def total_bytes(kernels: Iterable[Kernel]) -> int:
    return sum(kernel.work.bytes_moved * kernel.launches for kernel in kernels)


def most_spilled(kernels: Iterable[Kernel]) -> int:
    """The most bytes that a thread of one of these kernels spills."""
    return max((kernel.code.spill_bytes for kernel in kernels if kernel.code is not None), default=0)
