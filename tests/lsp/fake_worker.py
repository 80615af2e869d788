"""A stand-in for the user's Python: speaks the runner's protocol as a scenario says, hangs, crashes, babbles.

Installed as an executable by the ``lab`` fixture; the runner starts it as it starts any interpreter
(``-c SOURCE COMMANDS OUT``). The scenario is Python text beside it, run with the names defined below.
"""

import json
import os
import signal  # noqa: F401  for scenarios
import subprocess  # noqa: F401  for scenarios
import sys
from pathlib import Path

HERE = Path(sys.argv[0]).resolve().parent
COMMANDS, OUT = int(sys.argv[-2]), int(sys.argv[-1])


def read_request():
    data = b""
    while not data.endswith(b"\n"):
        chunk = os.read(COMMANDS, 65536)
        if not chunk:
            sys.exit(1)
        data += chunk
    return json.loads(data)


def raw(data):
    os.write(OUT, data)


def send(**message):
    raw(json.dumps(message).encode() + b"\n")


def hello():
    send(type="hello", pid=os.getpid())
    send(type="started")


def span(line, start, end, last=None):
    last = line if last is None else last
    return {"start": {"line": line, "character": start}, "end": {"line": last, "character": end}}


def finding(
    code,
    line,
    start,
    end,
    message,
    *,
    file=None,
    path=(),
    values=(),
    count=1,
    severity="warning",
    region="r0",
    way=None,
    steps=0,
    last=None,
    hint="Do it outside.",
):
    said["findings"].append({
            "code": code, "name": "", "severity": severity, "message": message, "hint": hint,
            "file": file or request["script"], "range": span(line, start, end, last), "function": "main", "region": region,
            "count": count, "cost_ms": 1.5, "values": [{"name": n, "repr": r} for n, r in values],
            "steps": steps,
            "path": way or [{"file": file or request["script"], "range": span(*at), "function": "main"} for at in path],
    })  # fmt: skip
    send(type="finding", finding=said["findings"][-1])


def region(line, **fields):
    seen.append(line)
    base = {
        "id": "r0", "kind": "module", "name": "Net", "file": request["script"], "line": line, "calls": 3, "captures": 1,
        "complete": True, "graph_breaks": 0, "guards": 14, "side_effects": 2, "hits": 2,
    }  # fmt: skip
    said["regions"].append({**base, **fields})
    send(type="region", region=said["regions"][-1])


def done(guards=(), nodes=(), step=None, kernels=None, as_type="done"):
    """The report, with one capture in full: guards (name, check, value, line) and nodes (kind, label, tensor, line)."""
    file = request["script"]
    capture = {
        "guards": [{"name": n, "check": c, "value": v, "file": file, "line": at} for n, c, v, at in guards],
        "nodes": [
            {"name": f"n{i}", "kind": k, "label": label, "inputs": [], "segment": 0, "line": at, "tensor": t,
             "file": library[0] if library else file, "user_file": file, "user_line": at}
            for i, (k, label, t, at, *library) in enumerate(nodes)
        ],
        "guard_code": "", "replay_code": "", "generated_code": [], "cut": 0,
    }  # fmt: skip
    details = {"regions": [{"region": said["regions"][0]["id"], "captures": [capture]}], "calls": []}
    report = {"version": "1.0", "entrypoint": file, "timings": {}, "steps": request["steps"], "details": details, **said}
    more = {"step": step, "kernels": kernels}
    send(type=as_type, report={**report, **{key: value for key, value in more.items() if value is not None}})


def captured(**parts):
    """The report without kernels, before they are made."""
    done(**parts, as_type="captured")


def lowering(done, of):
    send(type="lowering", done=done, of=of)


def kernel(name, *lines, graph="forward", code=True, us=2.5, launches=1, operators=("gelu",), spills=0, file=None):
    """A kernel of lines of the program (1-based)."""
    made = {
        "triton": f"import triton\n@triton.jit\ndef {name}(x):\n    pass", "ptx": f".entry {name}", "registers": 40,
        "spill_bytes": spills, "shared_bytes": 0, "num_warps": 4, "grid": [8, 1, 1],
    }  # fmt: skip
    return {
        "region": "r0", "graph": graph, "name": name, "kind": "triton" if code else "extern", "operators": list(operators),
        "lines": [{"file": file or request["script"], "line": line} for line in lines], "launches": launches,
        "work": {"bytes_read": 1000, "bytes_written": 500, "flops": 3000, "dtype": "float32"}, "us": us, "bound": "launch",
        "code": made if code else None,
    }  # fmt: skip


def on_h100(*kernels, problems=()):
    """What a run for an H100 has made."""
    return {
        "target": "cuda:sm_90", "device": "H100 SXM", "bandwidth": 3.35e12, "launch_us": 2.5, "kernels": list(kernels),
        "problems": [{"region": region, "message": message} for region, message in problems],
    }  # fmt: skip


def gate(name):
    """Blocks until the test opens the gate (a FIFO)."""
    with open(HERE / f"gate.{name}") as fifo:
        fifo.read()


def note(name, text):
    """Leaves a fact for the test; appears whole or not at all."""
    partial = HERE / f"{name}.partial"
    partial.write_text(text)
    partial.rename(HERE / name)


def end(code=0, number=None):
    """The end of the process; a good one has done its steps and called a region, or the runner would remark on it."""
    if code == 0:
        send(type="step", n=request["steps"])
        if not seen:
            region(5)
    send(type="exit", code=code, signal=number, requested=False)
    sys.exit(0)


seen = []
said = {"findings": [], "regions": []}
request = read_request()
note("request.json", json.dumps(request))
exec(compile((HERE / "scenario.py").read_text(), "scenario", "exec"))
