"""Runs a program again and again: ``python repeat.py FILE TIMES``. A short program becomes one of any length."""

import contextlib
import io
import runpy
import sys

if __name__ == "__main__":
    file, times = sys.argv[1], int(sys.argv[2])
    for _ in range(times):
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(file, run_name="__main__")
