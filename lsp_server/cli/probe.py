"""The probe of ``magpy-lsp doctor``: runs with ``-c`` in the interpreter under test and prints one fact per line.

The current folder, which ``-c`` adds to ``sys.path``, is removed from it before this code.

Each fact is a line ``magpy-fact {json}``, printed as soon as it is known, so that a hang loses only later facts. The
code runs on any Python 3, since it has to report versions that are too old. It imports torch by name: this file is data
for another interpreter, and nothing in the server imports it.
"""

import importlib
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import time
from typing import Any


def emit(fact: str, **content: Any) -> None:
    content["fact"] = fact
    sys.stdout.write("magpy-fact " + json.dumps(content) + "\n")
    sys.stdout.flush()


def first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return type(error).__name__ + ": " + (lines[0].strip() if lines else "")


def probe_python() -> None:
    emit(
        "python",
        version=list(sys.version_info[:3]),
        implementation=platform.python_implementation(),
        executable=sys.executable,
        headers=os.path.isfile(os.path.join(sysconfig.get_paths()["include"], "Python.h")),
    )


def probe_package(name: str) -> Any:
    """Emits a package's version, or why it can't be imported. Returns the module."""
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        # If the package is installed but broken, the missing name is another one.
        absent = getattr(error, "name", None) == name
        emit(name, version=None, error=None if absent else first_line(error))
        return None
    except Exception as error:
        emit(name, version=None, error=first_line(error))
        return None
    version = getattr(module, "__version__", None)
    emit(name, version=None if version is None else str(version), error=None)
    return module


def probe_compiler() -> None:
    names = [os.environ.get("CXX"), "g++", "clang++", "c++", "cl"]
    for name in names:
        path = shutil.which(name) if name else None
        if not path:
            continue
        done = subprocess.run([path, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        emit("compiler", path=path, version=lines[0].strip() if lines else "")
        return
    emit("compiler", path=None, version="", cxx=os.environ.get("CXX"))


def probe_device(torch: Any) -> None:
    if not torch.cuda.is_available():
        emit("device", cuda=False, built_for=torch.version.cuda or getattr(torch.version, "hip", None), mps=_mps(torch))
        return
    emit(
        "device",
        cuda=True,
        built_for=torch.version.cuda or getattr(torch.version, "hip", None),
        name=torch.cuda.get_device_name(0),
        capability=list(torch.cuda.get_device_capability(0)),
        count=torch.cuda.device_count(),
    )


def _mps(torch: Any) -> bool:
    return bool(hasattr(torch.backends, "mps") and torch.backends.mps.is_available())


def probe_inductor(torch: Any, device: str) -> None:
    """Compiles a tiny graph for ``device`` and compares its result with eager mode."""

    def tiny(x: Any) -> Any:
        return (x.sin() + x.cos()).relu()

    start = time.time()
    emit("inductor-start", device=device)
    try:
        x = torch.linspace(-3, 3, 64, device=device)
        got = torch.compile(tiny, backend="inductor", fullgraph=True)(x)
        right = bool(torch.allclose(got, tiny(x), atol=1e-5))
    except Exception as error:
        emit("inductor", device=device, works=False, error=first_line(error), seconds=time.time() - start)
        return
    emit("inductor", device=device, works=right, error=None, seconds=time.time() - start)


def main(inductor: bool) -> None:
    probe_python()
    probe_compiler()
    probe_package("magpy_core")
    torch = probe_package("torch")
    probe_package("triton")
    if torch is None:
        return
    try:
        probe_device(torch)
    except Exception as error:
        emit("device", cuda=False, error=first_line(error), built_for=None, mps=False)
    if inductor:
        devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
        for device in devices:
            probe_inductor(torch, device)


if __name__ == "__main__":
    main("--inductor" in sys.argv[1:])
