"""A process with torch loaded that forks one child per file, which forks one child per case and engine.

Reads requests, one JSON object a line, from stdin, and answers each with JSON lines on stdout that end with
``{"done": FILE}``. Key function: run_file.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # imported by the first capture of a process: import it once here, not in every case

from benchmarks.paritybench.stand_ins import import_case_file
from benchmarks.sweeps.child import Verdict, Write, forked, limit, sentence, serve
from benchmarks.sweeps.engines import Case, run_case


def _run_case(case: tuple[Any, ...], name: str) -> Verdict:
    limit()
    cls, init, forward = case[:3]

    def build() -> torch.nn.Module:
        args, kwargs = init()
        module: torch.nn.Module = cls(*args, **kwargs)
        return module

    return run_case(Case(build, forward), name)


def run_file(path: Path, engines: list[str], only: int | None, write: Write) -> Verdict:
    """Imports a file and runs its cases, each in a separate process. Returns the file's results."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            module, stubs = import_case_file(path)
    except BaseException as error:
        return {"import_error": sentence(error)}
    cases = getattr(module, "TESTCASES", [])
    for number, case in enumerate(cases):
        if only is not None and number != only:
            continue
        record: Verdict = {"file": path.name, "case": number, "name": getattr(case[0], "__name__", "?"), "stubs": stubs}
        for name in engines:
            record[name] = forked(partial(_run_case, case, name))
            if record[name]["status"] in ("eager failed", "not deterministic"):
                break
        write(record)
    return {"cases": len(cases), "stubs": stubs}


def _run_request(request: dict[str, Any], write: Write) -> Verdict:
    return run_file(Path(request["path"]), request["engines"], request.get("case"), write)


if __name__ == "__main__":
    gc.freeze()  # the children's garbage collections skip torch's objects
    serve(_run_request)
