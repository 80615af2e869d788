"""Builds what is published into dist: the wheel, the source distribution and the extension.

    python -m release.build        (make dist)

The extension comes from vscode-extension/magpy.vsix, which `make vsix` has made.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from magpy_core import __version__

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
VSIX = f"magpy-{__version__}.vsix"


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "--directory", str(DIST)], cwd=ROOT, check=True)
    shutil.copyfile(ROOT / "vscode-extension" / "magpy.vsix", DIST / VSIX)
    for file in sorted(DIST.iterdir()):
        print(f"{file.relative_to(ROOT)}  {file.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
