"""Distributes cases to nests (processes that fork children) and appends the results to a JSON Lines file, which a later run
continues. Key functions: read, sweep."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
Record = dict[str, Any]


def read(results: Path) -> list[Record]:
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text().splitlines() if line.strip()]


class _Nest:
    """One nest process with one request at a time; replaced if it dies."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: subprocess.Popen[str] | None = None

    def run(self, request: Record) -> Iterable[Record]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            record = json.loads(line)
            yield record
            if "done" in record:
                return
        yield {"done": request["name"], "status": "crash", "reason": "the nest died"}

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def sweep(nest: str, requests: list[Record], results: Path, jobs: int, report_progress: Callable[[Record], None]) -> None:
    """Runs the requests that ``results`` lacks in a nest (a module's name). A request counts as done once its ``done`` line
    is written."""
    ran = {record["done"] for record in read(results) if "done" in record}
    waiting = iter([request for request in requests if request["name"] not in ran])
    lock = threading.Lock()

    def work() -> None:
        process = _Nest(nest)
        try:
            while True:
                with lock:
                    request = next(waiting, None)
                if request is None:
                    return
                for record in process.run(request):
                    with lock:
                        with results.open("a") as out:
                            out.write(json.dumps(record) + "\n")
                        report_progress(record)
        finally:
            process.close()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
