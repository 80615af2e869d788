"""Puts the server into the VS Code extension: vscode-extension/bundled, from where any Python with torch can run it.

    python -m release.bundle [FOLDER]

FOLDER gets ``magpy.py``, which starts it, ``sources`` (what the wheel has, without the site) and ``libs`` (the packages that
the server needs, copied from this environment, so in the versions that the tests ran with). All of it is pure Python.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

from release.packages import files_of, needed

ROOT = Path(__file__).resolve().parents[1]
INTO = ROOT / "vscode-extension" / "bundled"
LEFT_OUT = ("watchfiles",)
"""Compiled, and needed for ``--watch`` alone."""
START = '''\
"""Starts this extension's MagPy: `python -P magpy.py server`, or a command, such as `python -P magpy.py check train.py`.

Only this process imports what is in this folder. Programs run in others, which take the engine from it and nothing else.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "sources"), os.path.join(HERE, "libs")]

from lsp_server.cli.main import main

main()
'''


def bundle(into: Path) -> None:
    """Makes the folder anew."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    (into / "magpy.py").write_text(START, encoding="utf-8")
    _copy_libraries(into / "libs")
    _unpack_sources(into / "sources")


def _copy_libraries(into: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, package in needed(project["dependencies"], LEFT_OUT).items():
        if "Root-Is-Purelib: true" not in (package.read_text("WHEEL") or ""):
            raise SystemExit(f"bundle: {name} is not pure Python, so it would work on this platform only")
        for source, file in files_of(package):
            target = into / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def _unpack_sources(into: Path) -> None:
    """What the wheel has; the site would be five times as large as all the rest."""
    with tempfile.TemporaryDirectory(prefix="magpy-bundle-") as folder:
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
        built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if built.returncode:
            raise SystemExit(f"bundle: the wheel can't be built: {built.stderr}")
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            left_out = ("lsp_server/site/", "magpy_lsp-")
            archive.extractall(into, [name for name in archive.namelist() if not name.startswith(left_out)])


def main() -> None:
    parser = argparse.ArgumentParser(description="Puts the server into the VS Code extension.")
    parser.add_argument("into", type=Path, nargs="?", default=INTO, metavar="FOLDER")
    bundle(parser.parse_args().into)


if __name__ == "__main__":
    main()
