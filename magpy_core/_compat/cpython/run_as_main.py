"""``python -m``: CPython's own way of running a module as ``__main__`` (private names of ``runpy``)."""

from __future__ import annotations

import runpy
from types import TracebackType
from typing import Any


def run_module_as_main(name: str, *, alter_argv: bool) -> None:
    """Run ``name`` in the existing ``__main__``, as the interpreter does for ``-m`` (and for folders and zip files)."""
    run: Any = runpy._run_module_as_main  # type: ignore[attr-defined]
    run(name, alter_argv)


def was_not_found(tb: TracebackType | None) -> bool:
    """Whether a SystemExit with this traceback is runpy's "No module named ...", so that the module's code has not run."""
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    if tb is None:
        return False
    code = tb.tb_frame.f_code
    return code.co_name == "_run_module_as_main" and code.co_filename == runpy._run_code.__code__.co_filename  # type: ignore[attr-defined]
