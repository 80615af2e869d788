"""A runnable tour of MagPy: records, freezes, captures, guards and replays one small function.

    python docs/tour.py

Read it from top to bottom; every claim in the text is asserted by the code below it. The stages are the folders of
`magpy_core`, in the order data passes through them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import magpy_core
from magpy_core.recording.ledger import Learned
from magpy_core.recording.recording import Recording
from magpy_core.recording.run import Outcome, run
from magpy_core.regions.api import location_of


def title(text: str) -> None:
    print(f"\n{'=' * 8} {text} {'=' * (90 - len(text))}")


# ---------------------------------------------------------------------------------------------------------------------
# The program does not use MagPy. It reads a number from its module, counts its calls, appends to a list, prints, and calls
# a helper that reads a global: the kind of Python where a symbolic compiler breaks the graph or loses an effect.
# ---------------------------------------------------------------------------------------------------------------------

SCALE = 2.0


def helper(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * SCALE


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.calls = 0
        self.history: list[int] = []

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        self.calls = self.calls + 1  # with `+= 1`, MagPy would know at once that the number varies
        self.history.append(x.shape[0])
        if self.calls == 1:
            print("   (the program says: first call)")
        return {"out": helper(self.layer(x)), "input": x}


def fresh() -> Net:
    torch.manual_seed(0)
    return Net()


net, x = fresh(), torch.randn(3, 4)

# ---------------------------------------------------------------------------------------------------------------------
# 1. One monitored run, step by step. The interpreter runs the code once, on real tensors. At each operation that reads,
#    writes or calls, a hook of the monitor reports an event to the recording. Each event has one handler, a method of a
#    tracker. Here every handler is wrapped to show which guarded facts it adds.
# ---------------------------------------------------------------------------------------------------------------------

title("1. recording: events, and the facts that a tracker adds")
recording = Recording(Learned(), "tour", location_of(net))
ledger, facts = recording.ledger, recording.ledger.refgraph.reads
events: list[tuple[str, str, str, list[str]]] = []


def logged(event: str, handler: Callable[..., Any]) -> Callable[..., Any]:
    def handle(site: Any, *operands: Any) -> Any:
        known = len(facts)
        result = handler(site, *operands)
        if getattr(site, "code", None) in (Net.forward.__code__, helper.__code__):
            added = list(dict.fromkeys(read.kind.text(read) for read in facts[known:]))
            events.append((event, site.name or "", type(handler.__self__).__name__, added))  # type: ignore[attr-defined]
        return result

    return handle


for event, handler in recording._handlers().items():
    setattr(recording, event, logged(event, handler))
outputs, writes = ledger.outputs, ledger.tensor_writes  # the ledger is empty when the run is over
outcome = Outcome()
recorded = run(recording, net, (x,), {}, outcome)

for event, name, tracker, added in events:
    print(f"   {event + ' ' + name:22} {tracker:10} {'; '.join(added)}")
assert outcome.result["input"] is x, "the result is the program's own, aliasing included"
assert net.calls == 1 and net.history == [3], "and so are its side effects"
assert ("global_read", "SCALE", "Globals", ["SCALE == 2.0"]) in events, "read two calls deep, a fact like any other"
assert any(event == "attr_write" and tracker == "Writes" for event, _, tracker, _ in events)
assert "self.calls == 0" in [text for *_, added in events for text in added], "a guard is about the state at entry"

# ---------------------------------------------------------------------------------------------------------------------
# 2. A tracker owns its fields; everything that a capture needs is in the ledger. After the run, the ledger is frozen into a
#    Trace, and the recording drops everything else: later stages get a value, never a recorder.
# ---------------------------------------------------------------------------------------------------------------------

title("2. ledger and trace")
trace = recorded.trace
assert trace is not None and not recorded.findings, "nothing was in doubt"
print(f"   the ledger had: {[output.what for output in outputs]} to print again, {len(writes)} writes to tensors")
print(f"   the trace has:  {', '.join(field.name for field in dataclasses.fields(trace))}")
assert vars(ledger) == {}, "the recording is closed"
try:
    trace.draws = ()  # type: ignore[misc]
    raise SystemExit("a trace can be changed")
except dataclasses.FrozenInstanceError:
    pass
held = [node.obj for node in trace.refgraph.nodes.values() if node.obj is not None]
assert not any(isinstance(obj, torch.Tensor | nn.Module | list) for obj in held), "it keeps no object of the program alive"

# ---------------------------------------------------------------------------------------------------------------------
# 3. The reference graph: the external objects that were accessed, the path to each, its reads and its changes.
#    Absence is a fact: `self.layer` is in `_modules`, so it must not appear in the instance's own dict.
# ---------------------------------------------------------------------------------------------------------------------

title("3. reference graph")
text = str(trace.refgraph)
print(text)
assert "SCALE == 2.0" in text and "self.history" in text and "self.layer is absent" in text

# ---------------------------------------------------------------------------------------------------------------------
# 4. The operator graph: torch.fx, with parameters as inputs (an optimizer may replace or update them without a
#    recompile). Each input has a source. The graph contains no Python between the operations.
# ---------------------------------------------------------------------------------------------------------------------

title("4. operator graph")
for node in trace.graph.nodes:
    print(f"   {node.format_node()}")
assert [entry.source.describe() for entry in trace.inputs] == ["x", "self.layer.weight", "self.layer.bias"]
assert not trace.decisions, "no branch depended on a tensor, so nothing cuts the graph"

# ---------------------------------------------------------------------------------------------------------------------
# 5. The plan: the result and the side effects of the call, as expressions over the inputs of a later call.
# ---------------------------------------------------------------------------------------------------------------------

title("5. plan")
print(f"   result: {trace.plan.result}")
for effect in trace.plan.effects:
    print(f"   effect: {effect.op} {effect.describe}")
assert [effect.op for effect in trace.plan.effects] == ["set_attr", "extend", "print"]

# ---------------------------------------------------------------------------------------------------------------------
# 6. The capture joins them into one generated function: guards, the graph, replay. `magpy_core.monitor` records one run
#    and builds it. Each guard names the line that caused it; replay computes everything before its first effect.
# ---------------------------------------------------------------------------------------------------------------------

title("6. capture: guards, graph and replay")
net = fresh()
(capture,) = magpy_core.monitor(net)(x).captures
print(capture.guards.code)
print(f"\n   ... the graph runs ...\n\n{capture.replay.code}")
assert "SCALE" in capture.guards.code and len(capture.replay.effects) == 3 and capture.is_complete

# The next call: `self.calls` is 1 and the capture is valid for 0, so it misses, and a guard says why. With the counter
# reset the capture is valid: the same result, the same effects, and no line of `forward` runs.
(failure,) = capture.guards.explain((net, x), {})  # a module's call takes the module, too
print(f"\n   next call: {failure.message}")
assert (failure.name, failure.old, failure.new) == ("self.calls", "0", "1")
assert repr(capture.run((net, x), {})) == "MISS" and net.calls == 1, "a miss changes nothing"
net.calls = 0
result = capture.run((net, x), {})
assert torch.equal(result["out"], outcome.result["out"]) and result["input"] is x
assert net.calls == 1 and net.history == [3, 3]

# ---------------------------------------------------------------------------------------------------------------------
# 7. Running compiled. The first call records. In the second call the counter has changed: a varying number. It becomes
#    a symbolic scalar, so the third and all later calls skip the Python.
# ---------------------------------------------------------------------------------------------------------------------

title("7. compile: record, learn, replay")
torch.manual_seed(0)
plain, fast = Net(), Net()
fast.load_state_dict(plain.state_dict())
compiled = magpy_core.compile(fast, backend="eager")  # "inductor" generates machine code, but takes longer
for step in range(6):
    batch = torch.randn(3, 4)
    want, got = plain(batch), compiled(batch)
    assert torch.equal(want["out"], got["out"]) and got["input"] is batch
    assert (fast.calls, fast.history) == (plain.calls, plain.history)
    print(f"   call {step + 1}: {len(magpy_core.captures(compiled))} captures, {fast.calls} calls, history = {fast.history}")
steady = len(magpy_core.captures(compiled))
for _ in range(5):
    plain(x), compiled(x)
assert len(magpy_core.captures(compiled)) == steady, "a counter costs no capture per call"

# ---------------------------------------------------------------------------------------------------------------------
# 8. A guard detects any changed external value and says what changed.
# ---------------------------------------------------------------------------------------------------------------------

title("8. a guard fails")
newest = magpy_core.captures(compiled)[0]
SCALE = 3.0
(failure,) = [f for f in newest.guards.explain((fast, x), {}) if f.name == "SCALE"]
print(f"   {failure.message} (read at line {failure.location.range.start.line + 1 if failure.location else '?'})")
assert (failure.old, failure.new) == ("2.0", "3.0")
assert torch.equal(plain(x)["out"], compiled(x)["out"]), "so the call is recorded again, and is right"

# ---------------------------------------------------------------------------------------------------------------------
# 9. A branch depends on a tensor value: the graph is cut there, and a finding names the line.
# ---------------------------------------------------------------------------------------------------------------------

title("9. findings")


def early_exit(x: torch.Tensor) -> torch.Tensor:
    hidden = torch.tanh(x @ x.T)
    if hidden.sum().item() > 0:
        return hidden * 2
    return hidden - 1


seen = magpy_core.monitor(early_exit)(torch.ones(3, 3))
for finding in seen.findings:
    print(f"   {finding.code} {finding.name}, line {finding.location.range.start.line + 1}: {finding.message}")
assert [f.code for f in seen.findings if f.severity.value == "warning"] == ["MP101"]
assert not seen.captures[0].is_complete

print("\nEvery claim held.")
