"""What the assembler makes of PTX: registers, spilled bytes. Key function: resources.

`ptxas` comes with the ``triton`` package; it needs no device.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_LONGEST_S = 120.0


class AssemblerFailed(RuntimeError):
    """The assembler does not accept the code, or does not report what it uses."""


@dataclass(frozen=True)
class Resources:
    """``registers``: per thread. ``spill_bytes``: stored to memory and loaded again, per thread."""

    registers: int
    spill_bytes: int


def resources(ptx: str, assembler: Path, architecture: str) -> Resources:
    """Assembles ``ptx`` for ``architecture`` (``sm_90a``). Raises AssemblerFailed."""
    with TemporaryDirectory(prefix="magpy-ptx-") as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx, encoding="utf-8")
        command = [str(assembler), "-v", f"--gpu-name={architecture}", str(source), "-o", str(Path(folder) / "kernel.cubin")]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise AssemblerFailed(f"{assembler} can't be run: {error}") from error
    if done.returncode:
        raise AssemblerFailed(" ".join(done.stderr.split())[:300] or f"{assembler.name} ended with {done.returncode}")
    return read(done.stderr)


def read(report: str) -> Resources:
    """The figures in the output of ``ptxas -v`` for one kernel. Raises AssemblerFailed if they are missing."""
    registers, spills = _REGISTERS.findall(report), _SPILLS.findall(report)
    if not registers:
        raise AssemblerFailed(f"the assembler reports no registers: {' '.join(report.split())[:200]}")
    return Resources(max(map(int, registers)), max((int(stores) + int(loads) for stores, loads in spills), default=0))
