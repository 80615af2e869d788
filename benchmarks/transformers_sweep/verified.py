"""False alarms of verification: models of transformers, compiled by Inductor; the first call of each graph is compared.

``python -m benchmarks.transformers_sweep.verified [--slice A:B] [--only NAMES] [--precision NAME ...]``. Models are in eval
mode, as compiled code draws other random numbers in training, and their gradients are compared. All of these graphs
are right, as far as is known: a finding MP914 is a false alarm. Key function: verified.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported: a configuration must never fetch anything
os.environ["MAGPY_COMPILE"] = "foreground"
os.environ["MAGPY_VERIFY"] = "1"

import torch
import transformers

import magpy_core
from benchmarks.sweeps.child import Verdict, forked
from benchmarks.transformers_sweep.zoo import ZOO
from magpy_core.regions.api import region_of
from magpy_core.regions.reports.summary import summarise

PRECISIONS = ("float32", "autocast", "bfloat16")
_CALLS, _SECONDS = 3, 300.0


def verified(name: str, precision: str) -> Verdict:
    """What comparing the first calls of a model's graphs has shown."""
    torch.manual_seed(1)
    module = ZOO[name].build().eval()
    config: Any = module.config
    if precision == "bfloat16":
        module = module.bfloat16()
    compiled: Any = magpy_core.compile(module, wait=True)
    for n in range(_CALLS):
        torch.manual_seed(100 + n)
        arguments, keywords = ZOO[name].call(config)
        if precision == "bfloat16":
            keywords = {key: _bfloat16(value) for key, value in keywords.items()}
        with torch.autocast("cpu", dtype=torch.bfloat16) if precision == "autocast" else contextlib.nullcontext():
            compiled(*arguments, **keywords)
    region = region_of(compiled)
    summary = summarise(region)
    found = [finding.message for finding in region.findings.values() if finding.code == "MP914"]
    refused = sorted({finding.code for finding in region.findings.values()} - {"MP914"})
    return {
        "status": "found" if found else "verified" if summary.verified else "unverified",
        "verified": summary.verified, "hits": region.hits, "found": found, "codes": refused,
        "unverified": summary.unverified,
    }  # fmt: skip


def _bfloat16(value: Any) -> Any:
    return value.bfloat16() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slice", default=":", metavar="A:B", help="which of the architectures")
    parser.add_argument("--only", help="comma-separated names of architectures")
    parser.add_argument("--precision", action="append", choices=PRECISIONS, help="default: all")
    parser.add_argument("--results", type=Path, default=Path("artifacts/transformers-verified.jsonl"))
    asked = parser.parse_args()
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    first, last = (int(part) if part else None for part in asked.slice.split(":"))
    asked.results.parent.mkdir(parents=True, exist_ok=True)
    with asked.results.open("a") as file:
        for name in asked.only.split(",") if asked.only else list(ZOO)[first:last]:
            for precision in asked.precision or PRECISIONS:
                start = time.monotonic()
                record = {"case": name, "precision": precision, **forked(partial(verified, name, precision), _SECONDS)}
                record["seconds"] = round(time.monotonic() - start, 1)
                print(json.dumps(record), file=file, flush=True)
                print(
                    f"{name:24} {precision:9} {record['status']:10} {record['seconds']} s",
                    record.get("found", ""),
                    flush=True,
                )


if __name__ == "__main__":
    main()
