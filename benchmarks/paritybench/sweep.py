"""Runs files through nests, in hash order, and keeps what came of them in a JSON Lines file that a later run continues.

Key functions: public_files, sweep.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def _digest(name: str) -> bytes:
    return hashlib.sha256(f"parity-split-v1:{name}".encode()).digest()


def public_files(checkout: Path) -> list[Path]:
    """The half of the files that may be looked at, in the order of their hashes, so that any slice is a sample."""
    files = (checkout / "generated").glob("test_*.py")
    return sorted((f for f in files if _digest(f.name)[0] % 2 == 0), key=lambda f: _digest(f.name))


def read(results: Path) -> list[dict[str, Any]]:
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text().splitlines() if line.strip()]


class _Nest:
    """One nest process, given one file at a time; replaced when it dies."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, request: dict[str, Any]) -> Iterable[dict[str, Any]]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.paritybench.nest"],
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
        yield {"done": Path(request["path"]).name, "status": "crash", "reason": "the nest died"}

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def sweep(
    files: list[Path], results: Path, engines: list[str], jobs: int, case: int | None, tell: Callable[[dict[str, Any]], None]
) -> None:
    """Run what ``results`` does not have yet. A file counts as run once its last case is written."""
    ran = {record["done"] for record in read(results) if "done" in record}
    waiting = iter([path for path in files if path.name not in ran])
    lock = threading.Lock()

    def work() -> None:
        nest = _Nest()
        try:
            while True:
                with lock:
                    path = next(waiting, None)
                if path is None:
                    return
                for record in nest.run({"path": str(path.resolve()), "engines": engines, "case": case}):
                    with lock:
                        with results.open("a") as out:
                            out.write(json.dumps(record) + "\n")
                        tell(record)
        finally:
            nest.close()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
