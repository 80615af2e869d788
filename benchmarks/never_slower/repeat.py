"""Runs a program again and again: ``python repeat.py FILE TIMES``. A short program becomes one of any length."""

import contextlib
import io
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    file, times = sys.argv[1], int(sys.argv[2])
    sys.path.append(str(Path(file).parent / "site-packages"))  # as for the corpus' tests
    for _ in range(times):
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(file, run_name="__main__")
