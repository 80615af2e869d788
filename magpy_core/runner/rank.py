"""One process of a distributed run: what ``torch.distributed.run`` starts, N times. Key function: main.

It runs the request as any run (in a process of its own, under the monitor) and writes the run's messages to a file of its
rank, where ``distributed`` reads them. The user's code is never in this process, and torch is not imported here.

    python -m torch.distributed.run --nproc-per-node 2 .../magpy_core/runner/rank.py FOLDER
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from typing import IO, Any

if __name__ == "__main__":
    # This runs as a file, whether or not MagPy is installed, so the path needs the package's folder, not this file's.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from magpy_core.runner.launch import RunHandle, launch
from magpy_core.runner.request import Outcome, RunRequest

_LOOK_EVERY = 0.5


def main(folder: str) -> int:
    """Returns the program's exit status, so that the launcher ends the other ranks if one fails."""
    rank = int(os.environ["RANK"])
    with open(os.path.join(folder, "request.json"), encoding="utf-8") as stream:
        wanted: dict[str, Any] = json.load(stream)
    parent = wanted.pop("parent")
    with open(os.path.join(folder, f"rank{rank}.jsonl"), "w", encoding="ascii") as out:
        handle = launch(RunRequest(**wanted, stdin="null"))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: threading.Thread(target=handle.cancel, daemon=True).start())
        threading.Thread(target=_end_with, args=(parent, handle, folder), daemon=True).start()
        for message in handle:
            if message["type"] in ("step", "finding"):
                _write(out, message)
        outcome = handle.outcome
        _write(out, {"type": "outcome", **_as_json(outcome)})
    return 0 if outcome.kind == "ok" else outcome.exit_code or 1


def _end_with(parent: int, handle: RunHandle, folder: str) -> None:
    """Ends the program, the launcher and their files when the process that started the run has ended."""
    while _alive(parent):
        time.sleep(_LOOK_EVERY)
    shutil.rmtree(folder, ignore_errors=True)
    os.kill(os.getppid(), signal.SIGTERM)
    handle.cancel()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _write(out: IO[str], message: Any) -> None:
    out.write(json.dumps(message, default=str) + "\n")
    out.flush()


def _as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "kind": outcome.kind,
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "message": outcome.message,
        "report": outcome.report.to_json(),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
