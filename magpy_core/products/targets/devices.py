"""The devices that a program can be compiled for without having them. Key type: Device. Key function: parse_target.

Sources (dense rates: without structured sparsity; tensor cores except for float64 and float32):

- A100: "NVIDIA A100 Tensor Core GPU" data sheet (SXM, 80 GB); "NVIDIA A100 Tensor Core GPU Architecture", table 4.
- H100: "NVIDIA H100 Tensor Core GPU" data sheet (SXM); "NVIDIA H100 Tensor Core GPU Architecture", table 3.
- B200: "NVIDIA Blackwell Architecture Technical Brief" and the HGX B200 specifications (a GPU is an eighth of the board).

Registers, threads and shared memory: "CUDA C++ Programming Guide", technical specifications per compute capability.
This module imports only the standard library, because the command line names the devices.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

_T = 1e12


@dataclass(frozen=True)
class Device:
    """``target``: as in ``--target``. ``multiprocessors``: in the whole device; ``registers`` and ``threads``: the most in
    one of them; ``shared_bytes``: the most that a block can have. ``memory_bytes``: the device's memory. ``bandwidth``:
    bytes per second. ``peaks``: floating-point operations per second, by the type of the arithmetic."""

    target: str
    title: str
    capability: tuple[int, int]
    multiprocessors: int
    shared_bytes: int
    memory_bytes: int
    bandwidth: float
    peaks: Mapping[str, float]
    registers: int = 65_536
    threads: int = 2_048
    warp: int = 32

    @property
    def architecture(self) -> str:
        """The name that the assembler knows: with the instructions that only this generation has, where there are any."""
        major, minor = self.capability
        return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def _device(
    title: str, capability: tuple[int, int], multiprocessors: int, shared: int, memory: int, bandwidth: float,
    peaks: Mapping[str, float],
) -> Device:  # fmt: skip
    target = f"cuda:sm_{capability[0]}{capability[1]}"
    rates = {name: rate * _T for name, rate in peaks.items()}
    return Device(target, title, capability, multiprocessors, shared, memory << 30, bandwidth * _T, rates)


_A100 = {"float64": 9.7, "float32": 19.5, "tf32": 156, "float16": 312, "bfloat16": 312, "int8": 624}
_H100 = {"float64": 34, "float32": 67, "tf32": 495, "float16": 989, "bfloat16": 989, "int8": 1979, "float8": 1979}
_B200 = {"float64": 37, "float32": 75, "tf32": 1125, "float16": 2250, "bfloat16": 2250, "int8": 4500, "float8": 4500}

DEVICES: Mapping[str, Device] = {
    device.target: device
    for device in (
        _device("A100 SXM", (8, 0), 108, 166_912, 80, 2.039, _A100),
        _device("H100 SXM", (9, 0), 132, 232_448, 80, 3.35, _H100),
        _device("B200", (10, 0), 148, 232_448, 180, 8.0, _B200),
    )
}
"""By target."""


class UnknownTarget(ValueError):
    """No device has this name."""

    def __init__(self, text: str) -> None:
        known = ", ".join(f"{device.target} ({device.title})" for device in DEVICES.values())
        close = difflib.get_close_matches(text, DEVICES, n=1, cutoff=0.5)
        hint = f" Did you mean {close[0]}?" if close else ""
        super().__init__(f"{text!r} is not a target; known: {known}.{hint}")


def parse_target(text: str) -> Device:
    """The device of ``cuda:sm_90``, also written ``sm_90``, ``sm90`` or ``H100``. Raises UnknownTarget."""
    wanted = text.strip().lower()
    for device in DEVICES.values():
        number = "".join(map(str, device.capability))
        if wanted in (device.target, f"sm_{number}", f"sm{number}", device.title.split()[0].lower()):
            return device
    raise UnknownTarget(text)
