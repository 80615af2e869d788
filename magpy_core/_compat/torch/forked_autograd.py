"""Autograd in a process that was forked after a backward pass on a device. Key function: allow.

The first such pass starts a thread for each device. They don't exist in a forked process, so torch's engine refuses to run
there, also for the CPU alone, which needs none of them. It notes that in a variable that only its own library can name.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from pathlib import Path

import torch

_LIBRARY = "libtorch_cpu.so"
_VARIABLE = b"_ZN5torch8autograd12_GLOBAL__N_1L20in_bad_autograd_forkE"
_ERROR = "fork-based multiprocessing"
#: Of ELF: where a file and a section header keep what is read here, a table of symbols, one of its entries.
_SECTIONS, _COUNT, _SECTION, _SYMBOLS, _ENTRY = 0x28, 0x3A, "<IIQQQQIIQQ", 2, 24


class AutogradRefused(RuntimeError):
    """This torch can't differentiate in a process that was forked after a backward pass on a device."""


def is_refused() -> bool:
    """Whether the engine refuses to run in this process because of how it was forked."""
    leaf = torch.ones((), requires_grad=True, device="cpu")
    try:
        with torch.enable_grad():
            torch.autograd.grad(leaf * leaf, leaf)
    except RuntimeError as error:
        if _ERROR not in str(error):
            raise
        return True
    return False


def allow() -> None:
    """Lets the engine run in this process, for tensors of the CPU. A forked process calls it when no device is left that the
    engine could start threads for: after `triton_device.stand_in`. Raises AutogradRefused."""
    if not is_refused():
        return
    variable = refusal()
    if not variable:
        raise AutogradRefused(f"{_VARIABLE.decode()} is not what torch's engine uses")
    variable.value = False
    if is_refused():
        raise AutogradRefused("torch's engine refuses for another reason than the one that was removed")


def refusal() -> ctypes.c_bool:
    """The engine's note that this process was forked after such a pass. Raises AutogradRefused if it is not found."""
    library = Path(torch.__file__).parent / "lib" / _LIBRARY
    try:
        return ctypes.c_bool.from_address(_loaded_at(library) + _offset(library, _VARIABLE))
    except (OSError, ValueError, struct.error) as error:
        raise AutogradRefused(
            f"torch's engine refuses to run in a forked process, and its note is not found: {error}"
        ) from error


def _loaded_at(library: Path) -> int:
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        span, _, offset, *_, path = line.split(maxsplit=5)
        if path.endswith(library.name) and int(offset, 16) == 0 and os.path.samefile(path, library):
            return int(span.partition("-")[0], 16)
    raise ValueError(f"{library} is not loaded")


def _offset(library: Path, name: bytes) -> int:
    """Where the library has a variable of one byte, also one that it does not export."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        (start,) = struct.unpack_from("<Q", data, _SECTIONS)
        size, count = struct.unpack_from("<HH", data, _COUNT)
        sections = [struct.unpack_from(_SECTION, data, start + i * size) for i in range(count)]
        table = next((section for section in sections if section[1] == _SYMBOLS), None)
        if table is None:
            raise ValueError(f"{library} has no table of symbols")
        texts = sections[table[6]]
        found = data.find(b"\0" + name + b"\0", texts[4], texts[4] + texts[5])
        if found < 0:
            raise ValueError(f"{library} has no {name.decode()}")
        entry = data.find(wanted := struct.pack("<I", found + 1 - texts[4]), table[4])
        while entry >= 0 and (entry - table[4]) % _ENTRY:
            entry = data.find(wanted, entry + 1)
        if entry < 0:
            raise ValueError(f"{library} has no entry for {name.decode()}")
        _, _, _, _, value, length = struct.unpack_from("<IBBHQQ", data, entry)
        if length != ctypes.sizeof(ctypes.c_bool):
            raise ValueError(f"{name.decode()} has {length} bytes")
        return int(value)
