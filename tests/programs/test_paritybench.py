"""The runner of ParityBench, on a small checkout of our own: every kind of outcome, stubs, limits, and going on later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.paritybench.report import failures, left_out, summary
from benchmarks.paritybench.sweep import ROOT, public_files, read

CASES = """
import os
import socket
import matplotlib.pyplot as plt
import torch
from torch import nn
from _paritybench_helpers import _mock_config, _mock_layer, _paritybench_base, _fails_compile, patch_functional

patch_functional()


class Whole(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = _mock_layer(4, width)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x) * self.calls


class Broken(nn.Module):
    def forward(self, x):
        return x * torch.rand(1, generator=torch.Generator().manual_seed(0))


class Failing(nn.Module):
    def forward(self, x):
        raise ValueError("no")


class Random(nn.Module):
    def forward(self, x):
        return x + int.from_bytes(os.urandom(2), "big")


class Dies(nn.Module):
    calls = 0

    def forward(self, x):
        Dies.calls += 1
        if Dies.calls > 9:  # three eager runs of three calls are over
            os.abort()
        return x


class Online(nn.Module):
    def forward(self, x):
        socket.create_connection(("127.0.0.1", 9), timeout=1)
        return x


TESTCASES = [
    (Whole, lambda: ([], {"width": 2}), lambda: ([torch.rand(3, 4)], {}), True),
    (Broken, lambda: ([], {}), lambda: ([torch.rand(3)], {}), True),
    (Failing, lambda: ([], {}), lambda: ([torch.rand(3)], {}), True),
    (Random, lambda: ([], {}), lambda: ([torch.rand(3)], {}), True),
    (Dies, lambda: ([], {}), lambda: ([torch.rand(3)], {}), True),
    (Online, lambda: ([], {}), lambda: ([torch.rand(3)], {}), True),
]
"""


def names(wanted: int, parity: int) -> list[str]:
    import hashlib

    found = (f"test_{n}.py" for n in range(1000))
    half = [f for f in found if hashlib.sha256(f"parity-split-v1:{f}".encode()).digest()[0] % 2 == parity]
    return half[:wanted]


def sweep(checkout: Path, results: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.paritybench", str(checkout), "--results", str(results)]
    subprocess.run([*command, "--engine", "magpy", "--jobs", "1"], cwd=ROOT, check=True, capture_output=True, timeout=200)
    return read(results)


def test_a_checkout(tmp_path: Path) -> None:
    folder = tmp_path / "generated"
    folder.mkdir()
    first, second = names(2, parity=0)
    (folder / first).write_text(CASES)
    (folder / second).write_text("import no_such_package.sub\nfrom torch._six import gone\nTESTCASES = []\n")
    (folder / names(1, parity=1)[0]).write_text("raise AssertionError('the other half stays unread')\n")
    assert {p.name for p in public_files(tmp_path)} == {first, second}

    records = sweep(tmp_path, tmp_path / "results.jsonl")
    cases = {r["name"]: r["magpy"] for r in records if "case" in r}
    assert {name: verdict["status"] for name, verdict in cases.items()} == {
        "Whole": "complete", "Broken": "break", "Failing": "eager failed", "Random": "not deterministic", "Dies": "crash",
        "Online": "eager failed",
    }  # fmt: skip
    assert cases["Broken"]["findings"][0]["code"] == "MP116"
    assert "OSError" in cases["Online"]["reason"] or "refused" in cases["Online"]["reason"]
    assert "matplotlib" in next(r["stubs"] for r in records if "case" in r) or "matplotlib" in sys.modules

    counted = summary(records, "magpy")
    assert (counted["cases"], counted["complete"], counted["break"], counted["crash"]) == (3, 1, 1, 1)
    assert (counted["files"], counted["files complete"]) == (1, 0)
    assert {outcome for outcome, *_ in failures(records, "magpy")} == {"break", "crash"}
    assert left_out(records)["files that do not import"] == 1

    assert sweep(tmp_path, tmp_path / "results.jsonl") == records, "what has run is not run again"


def test_what_is_compared() -> None:
    import torch

    from benchmarks.sweeps.compare import difference, observe

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))
            self.seen: list[int] = []

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            self.seen.append(len(self.seen))
            return {"y": x * self.weight}

    class Other(Net):
        how = ""

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            out = super().forward(x)
            match self.how:
                case "value":
                    out["y"] = out["y"] + 1e-3
                case "dtype":
                    out["y"] = out["y"].double()
                case "keys":
                    out["z"] = out["y"]
                case "argument":
                    x.add_(1)
                case "state":
                    self.seen.append(7)
                case "random":
                    torch.rand(1)
                case "gradient":
                    out["y"] = out["y"].detach() + (out["y"] * 2 - (out["y"] * 2).detach())
            return out

    def seen(how: str) -> Any:
        Other.how = how
        return observe(Other, lambda: ([torch.rand(3, 2)], {}), lambda module: module)

    plain = seen("")
    assert difference(plain, seen("")) is None
    for how in ("value", "dtype", "keys", "argument", "state", "random", "gradient"):
        assert difference(plain, seen(how)) is not None, how
