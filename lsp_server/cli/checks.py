"""The checks of ``magpy-lsp doctor``: status, meaning and fix for each probed fact. Key types: Check, Status."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from magpy_core import __version__
from magpy_core.distribution import DISTRIBUTION
from magpy_core.runner.bootstrap import SUPPORTED_PYTHON, SUPPORTED_TORCH

Fact = Mapping[str, Any]


class Status(Enum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """One result of the doctor. ``fix`` is empty exactly if the status is OK."""

    id: str
    title: str
    status: Status
    found: str
    meaning: str
    fix: str = ""


def evaluate(facts: list[dict[str, Any]], extensions: Mapping[str, str], timeout: float) -> list[Check]:
    """Every check, in order of dependency."""
    by_name: dict[str, Fact] = {f["fact"]: f for f in facts if f["fact"] not in ("inductor", "inductor-start")}
    ended = by_name["ended"]
    if "python" not in by_name:
        return [_no_python(ended), *_editor(extensions)]
    checks = [_python(by_name["python"])]
    python = by_name["python"]["executable"] or "python"
    if "magpy_core" in by_name:
        checks.append(_magpy(by_name["magpy_core"], python))
    if "torch" in by_name:
        checks.append(_torch(by_name["torch"], python))
    if "device" in by_name:
        checks.append(_device(by_name["device"]))
        checks.append(_triton(by_name.get("triton", {}), by_name["device"], python))
    if "compiler" in by_name:
        checks.append(_compiler(by_name["compiler"]))
    inductor = list(_inductor(facts, ended, timeout))
    checks.append(_headers(by_name["python"], bool(inductor) and all(c.status is Status.OK for c in inductor)))
    checks += inductor
    if (ended["how"] != "exit" or ended["code"] != 0) and not any(c.status is Status.FAIL for c in checks):
        checks.append(_incomplete(ended, timeout))
    return [*checks, *_editor(extensions)]


def _version(text: str) -> tuple[int, int]:
    """(major, minor) of a version; (0, 0) if it has another form."""
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _no_python(ended: Fact) -> Check:
    detail = {
        "not started": f"could not be started ({ended['detail']})",
        "timeout": "timed out",
        "exit": f"ended with status {ended.get('code')} ({ended['detail'] or 'no output'})",
    }[ended["how"]]
    meaning = "This interpreter can't run programs."
    return Check("python", "Python", Status.FAIL, detail, meaning, "Choose another interpreter with --python.")


def _python(fact: Fact) -> Check:
    version = tuple(fact["version"][:2])
    found = f"{fact['implementation']} {'.'.join(map(str, fact['version']))}"
    known = " or ".join(_dotted(v) for v in SUPPORTED_PYTHON)
    if version in SUPPORTED_PYTHON and fact["implementation"] == "CPython":
        return Check("python", "Python", Status.OK, found, "Supported.")
    return Check(
        "python",
        "Python",
        Status.FAIL,
        found,
        f"Not supported: MagPy works on CPython {known}.",
        f"Create a virtual environment with Python {_dotted(SUPPORTED_PYTHON[-1])} and choose it with --python.",
    )


def _magpy(fact: Fact, python: str) -> Check:
    title, fix = "MagPy", f"{python} -m pip install {DISTRIBUTION}=={__version__}"
    if fact["error"]:
        return Check("magpy", title, Status.FAIL, fact["error"], "MagPy is installed but can't be imported.", fix)
    if fact["version"] is None:
        meaning = "It need not be installed there: this command brings the engine."
        return Check("magpy", title, Status.OK, f"{__version__}, not installed", meaning)
    if fact["version"] != __version__:
        meaning = f"The tool and the engine must be the same version; this tool is {__version__}."
        return Check("magpy", title, Status.FAIL, fact["version"], meaning, fix)
    return Check("magpy", title, Status.OK, fact["version"], "The engine has the same version as the tool.")


def _torch(fact: Fact, python: str) -> Check:
    first, end = SUPPORTED_TORCH
    fix = f"{python} -m pip install 'torch>={_dotted(first)},<{_dotted(end)}'"
    if fact["version"] is None:
        found = fact["error"] or "not installed"
        return Check("torch", "torch", Status.FAIL, found, "MagPy needs torch.", fix)
    if not first <= _version(fact["version"]) < end:
        meaning = f"Not supported: MagPy needs torch >= {_dotted(first)} and < {_dotted(end)}."
        return Check("torch", "torch", Status.FAIL, fact["version"], meaning, fix)
    return Check("torch", "torch", Status.OK, fact["version"], "Supported.")


def _device(fact: Fact) -> Check:
    if fact["cuda"]:
        more = f" (and {fact['count'] - 1} more)" if fact["count"] > 1 else ""
        capability = ".".join(map(str, fact["capability"]))
        found = f"{fact['name']}{more}, compute capability {capability}, built for {fact['built_for']}"
        if fact["capability"][0] < 7:
            meaning = "The GPU is too old for Triton; its regions run in eager mode."
            return Check("device", "Device", Status.WARN, found, meaning, "Use a GPU of compute capability 7.0 or newer.")
        return Check("device", "Device", Status.OK, found, "Regions on the GPU are compiled to Triton kernels.")
    if fact.get("error"):
        fix = "Check the driver with nvidia-smi."
        return Check("device", "Device", Status.WARN, fact["error"], "torch failed to detect the GPU.", fix)
    if fact["built_for"]:
        meaning = f"This torch is built for CUDA or ROCm {fact['built_for']}, but finds no such device; it uses the CPU."
        fix = "If there is a GPU, check the driver with nvidia-smi and the variable CUDA_VISIBLE_DEVICES."
        return Check("device", "Device", Status.WARN, "CPU only", meaning, fix)
    meaning = "This torch is built for the CPU; regions are compiled to C++."
    return Check("device", "Device", Status.OK, "CPU only", meaning)


def _triton(fact: Fact, device: Fact, python: str) -> Check:
    if fact.get("error"):
        found = fact["error"]
    elif fact.get("version"):
        return Check("triton", "Triton", Status.OK, fact["version"], "Inductor can generate GPU kernels.")
    elif not device["cuda"]:
        return Check("triton", "Triton", Status.OK, "not installed", "Not needed without a GPU.")
    else:
        found = "not installed"
    if not device["cuda"]:
        return Check("triton", "Triton", Status.WARN, found, "Broken, but not needed without a GPU.", _pip_triton(python))
    return Check("triton", "Triton", Status.FAIL, found, "Inductor needs it to generate GPU kernels.", _pip_triton(python))


def _pip_triton(python: str) -> str:
    return f"{python} -m pip install triton (the version that your torch requires)"


def _compiler(fact: Fact) -> Check:
    if fact["path"]:
        return Check(
            "compiler", "C++ compiler", Status.OK, f"{fact['version']} ({fact['path']})", "Inductor can build C++ kernels."
        )
    cxx = f"CXX is {fact['cxx']!r}, which does not exist" if fact.get("cxx") else "none found"
    return Check(
        "compiler",
        "C++ compiler",
        Status.FAIL,
        cxx,
        "Inductor needs one to compile for the CPU; `check` works without it.",
        "Install g++ (Debian: sudo apt install g++; without root: conda install -c conda-forge cxx-compiler).",
    )


def _headers(fact: Fact, inductor_works: bool) -> Check:
    title = "Python headers"
    if fact["headers"]:
        return Check("headers", title, Status.OK, "Python.h found", "Compiled kernels can be loaded into this interpreter.")
    version = ".".join(map(str, fact["version"][:2]))
    return Check(
        "headers",
        title,
        Status.WARN if inductor_works else Status.FAIL,
        "Python.h not found",
        "The code that Inductor and Triton generate includes it.",
        f"Install them (Debian: sudo apt install python{version}-dev), or use a Python that includes them.",
    )


def _inductor(facts: list[dict[str, Any]], ended: Fact, timeout: float) -> Iterator[Check]:
    done = {f["device"]: f for f in facts if f["fact"] == "inductor"}
    for device in [f["device"] for f in facts if f["fact"] == "inductor-start"]:
        id_, title = f"inductor-{device}", f"Inductor on {device}"
        fact = done.get(device)
        if fact is None and ended["how"] == "timeout":
            meaning = f"Compiling a tiny graph took longer than --timeout ({timeout:g} s)."
            fix = "Raise --timeout; if compilation never ends, look for a hanging compiler or a slow disk."
            yield Check(id_, title, Status.WARN, "not finished", meaning, fix)
        elif fact is None:
            found = f"the process ended with status {ended['code']}"
            meaning = "Compiling a tiny graph crashed the interpreter."
            fix = "Reinstall torch; if it uses a GPU, check that the driver supports its CUDA version."
            yield Check(id_, title, Status.FAIL, found, meaning, fix)
        elif fact["works"]:
            meaning = "Regions can be compiled here."
            yield Check(id_, title, Status.OK, f"compiled a tiny graph in {fact['seconds']:.1f} s", meaning)
        elif fact["error"]:
            meaning = "Compiling a tiny graph failed, so regions run in eager mode."
            fix = "Fix the compiler, headers or Triton named above; `run --backend aot_eager` works without them."
            yield Check(id_, title, Status.FAIL, fact["error"], meaning, fix)
        else:
            meaning = "The compiled graph and plain torch computed different results."
            fix = "Don't use this combination of torch and compiler; update both."
            yield Check(id_, title, Status.FAIL, "wrong result", meaning, fix)


def _incomplete(ended: Fact, timeout: float) -> Check:
    if ended["how"] == "timeout":
        found, fix = f"not finished after {timeout:g} s", "Raise --timeout."
    else:
        found = f"ended with status {ended['code']} ({ended['detail'] or 'no output'})"
        fix = "Try `python -c 'import torch'` with this interpreter."
    return Check("probe", "Checks", Status.WARN, found, "Some checks could not be run.", fix)


def _editor(extensions: Mapping[str, str]) -> Iterator[Check]:
    title = "Editor extension"
    if not extensions:
        yield Check("editor", title, Status.OK, "none found", "Needed only to see findings in VS Code.")
    for folder, version in extensions.items():
        found = f"{version} ({folder})"
        if version == __version__:
            yield Check("editor", title, Status.OK, found, "The same version as this tool.")
        else:
            meaning = f"The version differs from this tool's ({__version__}): some features may be missing."
            yield Check("editor", title, Status.WARN, found, meaning, "Update the older one of the two.")
