"""Command line: `python -m benchmarks.dynamic [NAME ...]` times the programs of tests/programs/dynamic.

Each has a process of its own. A ratio is time over eager's, of all timed calls together, with the median over calls in
parentheses; below 1 is faster. An asterisk: still compiling when the time to warm up was over.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.timing import user_environment

ROOT = Path(__file__).resolve().parents[2]
_COLUMNS = (
    "program",
    "eager ms",
    "torch.compile",
    "MagPy",
    "captures",
    "served",
    "graphs",
    "recompiles",
    "breaks",
    "detail",
)


def names() -> list[str]:
    folder = ROOT / "tests" / "programs" / "dynamic"
    return sorted(file.stem for file in folder.glob("*.py") if file.stem not in ("__init__", "program"))


def in_child(name: str, warm: float, cap: float, *flags: str) -> dict[str, Any]:
    """The last that measure.py prints for a program, and an ``error`` if that is not all."""
    env = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1", **user_environment()}
    command = [sys.executable, "-m", "benchmarks.dynamic.measure", name, str(warm), *flags]
    error = ""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          cwd=ROOT, env=env) as child:  # fmt: skip
        try:
            output, errors = child.communicate(timeout=cap)
        except subprocess.TimeoutExpired:
            child.kill()
            output, errors = child.communicate()
            error = f"not over after {cap:.0f} s"
    if child.returncode != 0 and not error:
        error = (errors.strip().splitlines() or [f"exit status {child.returncode}"])[-1]
    lines = output.splitlines()
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    return found | ({"error": error} if error else {})


def _ratio(result: dict[str, Any], contender: str) -> str:
    found = result.get(contender, {})
    if "total" not in found:
        return "raises" if found else "-"
    return f"{found['total']:.2f} ({found['median']:.2f})" + ("" if result["warmed"][contender] else "*")


def _row(name: str, result: dict[str, Any]) -> list[str]:
    failures = [result.get(contender, {}).get("failure", "") for contender in ("torch.compile", "MagPy")]
    findings = result.get("findings", []) if not result.get("captures") else []
    return [
        name,
        f"{result['eager_ms']:.1f}" if "eager_ms" in result else "-",
        _ratio(result, "torch.compile"),
        _ratio(result, "MagPy"),
        str(result.get("captures", "-")),
        f"{result['served']:.0%}" if "served" in result else "-",
        *(str(result.get(key, "-")) for key in ("graphs", "recompiles", "breaks")),
        " ".join(filter(None, [result.get("error", ""), result.get("plain", ""), *failures, *findings])),
    ]


def show(results: dict[str, dict[str, Any]]) -> None:
    table = Table(title="Programs with data-dependent control flow (ratios of time to eager's)")
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column in ("program", "detail") else "right", overflow="fold")
    for name, result in results.items():
        table.add_row(*_row(name, result))
    Console(width=None if sys.stdout.isatty() else 180).print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dynamic", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs (default: all)")
    parser.add_argument("--warm", type=float, default=60, metavar="S", help="seconds to warm up a compiler (default: 60)")
    parser.add_argument("--cap", type=float, default=300, metavar="S", help="seconds for one program (default: 300)")
    parser.add_argument("--total", type=float, default=2700, metavar="S", help="start none after these (default: 2700)")
    parser.add_argument("--wait", action="store_true", help="calls wait for MagPy's compiler")
    parser.add_argument("--alone", action="store_true", help="MagPy and eager mode only, without torch.compile")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE as well, after each program")
    args = parser.parse_args()
    if unknown := set(args.names) - set(names()):
        parser.error(f"no program is called {', '.join(sorted(unknown))}; there are: {', '.join(names())}")
    flags = [flag for flag, given in (("--wait", args.wait), ("--alone", args.alone)) if given]
    end, results = time.monotonic() + args.total, {}
    for name in args.names or names():
        if time.monotonic() > end:
            results[name] = {"error": "not run: the time was over"}
            continue
        print(f"{name} ...", file=sys.stderr, flush=True)
        results[name] = in_child(name, args.warm, args.cap, *flags)
        if args.json:
            args.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    show(results)
    return 2 if any("error" in result for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
