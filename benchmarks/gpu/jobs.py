"""Parts of the report: what runs in which child process, in which order. Key type: Job. Key function: jobs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "gpu"

#: The most important first. A file that is not named here comes after them.
FILES = (
    "test_whole_steps",
    "test_cuda_graphs",
    "test_optimizers",
    "test_gpu_backends",
    "test_mixed_precision",
    "test_examples",
    "test_device_guards",
    "test_streams",
    "test_writes",
    "test_loaders",
    "test_out_of_memory",
    "test_kernels",
    "test_trials",
    "test_dynamic_programs",
    "test_command_line",
)
SHARES = {
    "test_whole_steps": 6,
    "test_gpu_backends": 2,
    "test_optimizers": 4,
    "test_mixed_precision": 2,
    "test_examples": 3,
    "test_cuda_graphs": 4,
    "test_dynamic_programs": 3,
    "test_command_line": 2,
}
"""Files whose tests take long are divided among so many processes."""
STEPS = ("mlp", "gpt_example", "vit", "resnet18_wide", "gan", "unet", "bert", "lstm", "vit_base", "gpt_12", "checkpointed")
"""The rows of the table of whole steps."""
CALLS = ("3-layer MLP", "50-layer MLP, ModuleList", "50-layer MLP, Sequential")
"""The rows of the table of calls."""


@dataclass(frozen=True)
class Job:
    """One child process. ``are_tests``: it is pytest. ``limit_s``: how long it may take in all; ``silence_s``: how long from
    one event to the next, so how long a single test may take. ``compilers``: how many kernels it compiles at once."""

    name: str
    command: tuple[str, ...]
    are_tests: bool = False
    limit_s: float = 300.0
    silence_s: float = 120.0
    compilers: int = 1

    def only(self, tests: Sequence[str]) -> Job:
        """The same for some of its tests, those that a child which died has left."""
        return replace(self, command=pytest_command(tests))


def pytest_command(selected: Sequence[str]) -> tuple[str, ...]:
    """Without the project's options for pytest: they refuse settings of plugins that such a machine need not have."""
    options = ("-q", "-o", "addopts=", "-p", "tests.gpu.verdicts", "-p", "no:cacheprovider", "-p", "no:logging")
    return (sys.executable, "-m", "pytest", *options, *selected)


def part_command(kind: str, name: str, device: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "benchmarks.gpu.part", kind, name, "--device", device)


def probe(device: str) -> Job:
    """Asks what the device is."""
    return Job("probe", part_command("probe", "", device), limit_s=90.0)


def known_files() -> list[str]:
    found = {path.stem for path in TESTS.glob("test_*.py")}
    return [name for name in FILES if name in found] + sorted(found - set(FILES))


def _of_file(name: str) -> list[Job]:
    """A process for each share of its tests."""
    count = SHARES.get(name, 1)
    names = [f"{name} {i + 1}/{count}" if count > 1 else name for i in range(count)]
    file = f"tests/gpu/{name}.py"
    return [Job(names[i], pytest_command([file, f"--share={i}/{count}"]), are_tests=True) for i in range(count)]


def jobs(device: str) -> tuple[list[Job], list[Job]]:
    """What runs side by side, tests and compilations; and what runs alone, the measurements. Both by importance."""
    tests = [job for name in known_files() for job in _of_file(name)]
    warm = [Job(f"compile {name}", part_command("warm", name, device), silence_s=300.0) for name in STEPS]
    beside: list[Job] = []
    for i in range(max(len(tests), len(warm))):
        beside += [*tests[i : i + 1], *warm[i : i + 1]]
    steps = [Job(f"step {n}", part_command("step", n, device), limit_s=180.0, compilers=8) for n in STEPS]
    calls = [Job(f"call {n}", part_command("call", n, device), limit_s=90.0, compilers=8) for n in CALLS]
    kernels = [Job("kernels", part_command("kernels", "", device), limit_s=120.0, compilers=8)] if device == "cuda" else []
    return beside, [steps[0], calls[0], *kernels, *steps[1:4], *calls[1:], *steps[4:]]
