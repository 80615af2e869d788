"""Tries what `make dist` has built, in empty environments, as a user would. Exit status 1: something does not work.

    python -m release.try_out      (make try-dist)

pip installs the wheel, and a second one that it builds from the source distribution. uvx and pipx get the wheel, too, where
they are installed. Torch is linked from this environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

from magpy_core import __version__
from release.build import DIST, ROOT, VSIX
from release.packages import link, with_packages

EXAMPLE = ROOT / "examples" / "early_exit"
WHOLE = ROOT / "examples" / "step_function" / "train.py"
_FROM_HERE = ("PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PIP_USER")
_LONGEST_S = 240.0


class Failed(Exception):
    """A command did not do what it should."""


class Place:
    """An empty folder in which commands run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._env = {name: value for name, value in os.environ.items() if name not in _FROM_HERE}
        self._env |= {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(folder / "cache"), "NO_COLOR": "1"}

    def with_variables(self, more: Mapping[str, str]) -> Place:
        """The same folder, with more environment variables."""
        other = Place(self.folder)
        other._env |= more
        return other

    def run(self, *command: str | Path, status: int = 0, says: str = "") -> None:
        """Runs a command; raises Failed unless it ends with ``status`` and prints ``says``."""
        shown = " ".join(Path(str(word)).name if "/" in str(word) else str(word) for word in command)
        start = time.monotonic()
        done = subprocess.run(
            list(map(str, command)), cwd=self.folder, env=self._env, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=_LONGEST_S, check=False,
        )  # fmt: skip
        text = done.stdout + done.stderr
        if done.returncode != status or says not in text:
            raise Failed(f"{shown}: exit status {done.returncode}, not {status} with {says!r}\n{text}")
        print(f"{time.monotonic() - start:6.1f} s  {shown}", flush=True)


def try_light(place: Place, wheel: Path) -> None:
    """Without torch: all that needs none works, and a check says which command installs it."""
    folder = place.folder / "light"
    place.run(sys.executable, "-m", "venv", folder)
    place.run(folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    magpy = folder / "bin" / "magpy-lsp"
    place.run(magpy, "--version", says=__version__)
    place.run(magpy, "explain", "MP101", says="MP101")
    place.run(magpy, "docs", "cli", says="The command line")
    shutil.copytree(EXAMPLE, place.folder / "early_exit", ignore=shutil.ignore_patterns("__pycache__"))
    place.run(magpy, "check", "early_exit/train.py", status=2, says="has no torch: run")


def try_installers(place: Place, wheel: Path) -> None:
    """The tools that put a command into an environment of its own, where this machine has them."""
    folders = {"UV_CACHE_DIR": "uv-cache", "PIPX_HOME": "pipx", "PIPX_BIN_DIR": "pipx-bin"}
    own = place.with_variables({name: str(place.folder / folder) for name, folder in folders.items()})
    if (uvx := shutil.which("uvx")) is not None:
        for _ in ("first", "second"):
            own.run(uvx, "--python", sys.executable, "--from", wheel, "magpy-lsp", "--help", says="check")
    if (pipx := shutil.which("pipx")) is not None:
        own.run(pipx, "install", "--python", sys.executable, wheel, says="magpy-lsp")
        own.run(place.folder / "pipx-bin" / "magpy-lsp", "explain", "MP101", says="MP101")
    if uvx is None or pipx is None:
        missing = " and ".join(name for name, found in (("uvx", uvx), ("pipx", pipx)) if found is None)
        print(f"not tried: {missing}, which this machine does not have")


def try_with_torch(place: Place) -> None:
    """The same environment with torch: a check finds the graph break, and a run compiles whole steps."""
    folder = place.folder / "light"
    link(folder, ["torch", "numpy"])
    shutil.copyfile(WHOLE, place.folder / "train.py")
    magpy = folder / "bin" / "magpy-lsp"
    place.run(magpy, "check", "early_exit/train.py", status=1, says="confidence.item() > self.threshold")
    place.run(magpy, "run", "--steps", "60", "train.py", says="compiled")


def try_extension(place: Place) -> None:
    """What the extension brings, for an interpreter that has torch alone."""
    with zipfile.ZipFile(DIST / VSIX) as archive:
        archive.extractall(place.folder / "vsix")
    python = with_packages(place.folder / "torch-alone", ["torch", "numpy"])
    magpy = place.folder / "vsix" / "extension" / "bundled" / "magpy.py"
    place.run(python, "-P", magpy, "--version", says=__version__)
    place.run(python, "-P", magpy, "check", "early_exit/train.py", status=1, says="confidence.item() > self.threshold")


def try_source(place: Place, source: Path, wheel: Path) -> None:
    """The source distribution gives the same wheel, but for the site, which is built before."""
    into = place.folder / "rebuilt"
    shutil.unpack_archive(source, place.folder / "source")
    (unpacked,) = (place.folder / "source").iterdir()
    Place(unpacked).run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", into)
    if (missing := _names(wheel) - _names(next(into.glob("*.whl")))) != set():
        raise Failed(f"not in the wheel that is built from {source.name}: {', '.join(sorted(missing))}")


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.startswith("lsp_server/site/")}


def main() -> int:
    (wheel,), (source,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory(prefix="magpy-try-") as folder:
        place = Place(Path(folder))
        try:
            try_light(place, wheel)
            try_installers(place, wheel)
            try_with_torch(place)
            try_extension(place)
            try_source(place, source, wheel)
        except Failed as error:
            print(f"try_out: {error}", file=sys.stderr)
            return 1
    print(f"{wheel.name}, {source.name} and {VSIX} work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
