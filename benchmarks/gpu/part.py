"""One part of the report, in this process: ``python -m benchmarks.gpu.part KIND NAME --device cuda``. Key name: KINDS.

Its results go to the pipe that the report made (``events.py``); without one, a table is printed.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any

import torch

from benchmarks.gpu.events import Events
from benchmarks.gpu.table import Table

_PACKAGES = ("torch", "triton", "numpy", "pytest", "transformers")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _driver() -> str:
    """The driver's version; empty if nvidia-smi does not say."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else ""


def described(device: torch.device) -> dict[str, Any]:
    """Device and libraries. Raises RuntimeError if there is no such device, or it does not compute."""
    from magpy_core._compat.versions import check_versions

    check_versions()
    if device.type == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("There is no CUDA device: torch.cuda.is_available() is False.")
    if float((torch.ones(64, 64, device=device) @ torch.ones(64, 64, device=device)).sum()) != 64**3:
        raise RuntimeError(f"The device {device} does not compute a product of ones correctly.")
    found: dict[str, Any] = {"device": device.type, "name": platform.processor() or platform.machine()}
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        capability = ".".join(map(str, torch.cuda.get_device_capability(device)))
        found |= {
            "name": properties.name,
            "capability": capability,
            "memory": f"{properties.total_memory / 2**30:.0f} GiB",
            "multiprocessors": properties.multi_processor_count,
            "CUDA": torch.version.cuda,
            "cuDNN": torch.backends.cudnn.version(),
            "driver": _driver(),
        }
    versions = {"Python": platform.python_version(), **{package: _version(package) for package in _PACKAGES}}
    return found | versions | {"platform": platform.platform()}


def _probe(name: str, device: torch.device) -> dict[str, Any]:
    return {"device": described(device)}


def _step(name: str, device: torch.device) -> dict[str, Any]:
    from benchmarks.gpu.whole_step import whole_step

    return {"table": whole_step(name, device).to_json()}


def _call(name: str, device: torch.device) -> dict[str, Any]:
    from benchmarks.gpu.replay import replay

    return {"table": replay(name, device).to_json()}


def _kernels(name: str, device: torch.device) -> dict[str, Any]:
    from benchmarks.gpu.kernels import kernels

    return {"table": kernels(device).to_json()}


def _warm(name: str, device: torch.device) -> dict[str, Any]:
    from benchmarks.gpu.whole_step import warm

    warm(name, device, "inductor")
    return {}


KINDS: dict[str, Callable[[str, torch.device], dict[str, Any]]] = {
    "probe": _probe,
    "step": _step,
    "call": _call,
    "kernels": _kernels,
    "warm": _warm,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.part", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("name", help="the program or module")
    parser.add_argument("--device", default="cuda", help="cuda or cpu (default: cuda)")
    args = parser.parse_args()
    event = KINDS[args.kind](args.name, torch.device(args.device))
    Events().send(event)
    if "table" in event:
        print("\n".join(Table.from_json(event["table"]).markdown()))
    else:
        print(event)
    return 0


if __name__ == "__main__":
    sys.exit(main())
