"""A runnable tour of MagPy: monitors, captures, guards and replays one small training-style function.

    python docs/tour.py

Read it from top to bottom; every claim in the text is asserted by the code below it. The stages are the folders of
`magpy_core`, in the order data passes through them.
"""

from __future__ import annotations

import torch
from torch import nn

import magpy_core


def title(text: str) -> None:
    print(f"\n{'=' * 8} {text} {'=' * (90 - len(text))}")


# ---------------------------------------------------------------------------------------------------------------------
# The program does not use MagPy. It reads a number from its module, counts its calls, appends to a list, prints, and calls
# a helper that reads a global: the kind of Python at which a symbolic compiler breaks the graph or loses an effect.
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
        self.calls += 1
        self.history.append(x.shape[0])
        if self.calls == 1:
            print("   (the program says: first call)")
        return {"out": helper(self.layer(x)), "input": x}


torch.manual_seed(0)
net, x = Net(), torch.randn(3, 4)

# ---------------------------------------------------------------------------------------------------------------------
# 1. One monitored run. The interpreter runs the code once, on real tensors, and the caller gets its result. At each
#    operation that reads, writes or calls, a hook of the monitor reports the event to the recording. `monitor` does
#    only this and compiles nothing.
# ---------------------------------------------------------------------------------------------------------------------

title("1. monitor: one real run")
seen = magpy_core.monitor(net)(x)
assert seen.result["input"] is x, "the result is the program's own, aliasing included"
assert net.calls == 1 and net.history == [3], "and so are its side effects"
(capture,) = seen.captures
print(capture)

# ---------------------------------------------------------------------------------------------------------------------
# 2. The reference graph: the external objects that were accessed, the path to each, its reads and its changes.
#    `SCALE` was read two calls deep, in another function's globals; it is an edge like any other.
# ---------------------------------------------------------------------------------------------------------------------

title("2. refgraph: what was read and written")
text = str(capture.refgraph)
print(text)
assert "SCALE" in text and "self.history" in text
assert capture.refgraph.to_dot().startswith("digraph")

# ---------------------------------------------------------------------------------------------------------------------
# 3. The operator graph: torch.fx, parameters as inputs (an optimizer may replace or update them without a recompile).
#    The graph contains no Python between the operations.
# ---------------------------------------------------------------------------------------------------------------------

title("3. operator graph")
graph = capture.operator_graph
print(graph.code.strip())
placeholders = [n for n in graph.graph.nodes if n.op == "placeholder"]
assert len(placeholders) == 3 and all("example_value" in n.meta for n in placeholders)
assert capture.is_complete, "one graph, no break"

# ---------------------------------------------------------------------------------------------------------------------
# 4. Guards: conditions under which the capture is valid. Plain Python; each line has the location of the read.
# ---------------------------------------------------------------------------------------------------------------------

title("4. guards")
print(capture.guards.code)
assert "SCALE" in capture.guards.code

# ---------------------------------------------------------------------------------------------------------------------
# 5. Replay: the side effects of the call. All values are computed first, then the effects are applied.
# ---------------------------------------------------------------------------------------------------------------------

title("5. replay")
print(capture.replay.code)
assert len(capture.replay.effects) >= 3, "the counter, the list, the print"

# ---------------------------------------------------------------------------------------------------------------------
# 6. Running compiled. The first call records. In the second call the counter has changed: a varying number. It becomes
#    a symbolic scalar, so the third and all later calls skip the Python.
# ---------------------------------------------------------------------------------------------------------------------

title("6. compile: record, learn, replay")
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
# 7. A guard detects any changed external value and says what changed.
# ---------------------------------------------------------------------------------------------------------------------

title("7. a guard fails")
newest = magpy_core.captures(compiled)[0]
SCALE = 3.0
(failure,) = [f for f in newest.guards.explain((x,), {}) if f.name == "SCALE"]
print(f"   {failure.message} (read at line {failure.location.range.start.line + 1 if failure.location else '?'})")
assert (failure.old, failure.new) == ("2.0", "3.0")
assert torch.equal(plain(x)["out"], compiled(x)["out"]), "so the call is recorded again, and is right"

# ---------------------------------------------------------------------------------------------------------------------
# 8. A branch depends on a tensor value: the graph is cut there, and a finding names the line.
# ---------------------------------------------------------------------------------------------------------------------

title("8. findings")


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
