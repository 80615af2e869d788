"""MP2xx: guards and recompiles. Key name: CODES."""

from __future__ import annotations

from magpy_core.findings.code import Code, Severity

CODES = (
    Code(
        "MP201",
        "recompile",
        "A guarded value changed: the region was recaptured",
        Severity.WARNING,
        has_fix=True,
        reason="No capture fits the new value, so the region was monitored and compiled once more.",
        explanation="""\
A capture is valid only while the external values that it read (shapes, flags, attributes, globals) stay the same.
On this call one of them was different. The finding names its access path, the old and the new value, and the
line that reads it.

The region was captured once more for the new value. Both captures are kept, so neither value needs a further one. A
number that keeps varying becomes a symbolic scalar after its second change (MP202), a varying dimension a dynamic one
(MP205).

A recompile costs one monitored call and one run of the backend, which takes seconds to minutes for Inductor.
Recompiles in the first steps are normal; a recompile on every step is not.""",
        hints=(
            "If the value is the size of the last, smaller batch, use `drop_last=True` in the DataLoader or pad the batch.",
            "If the value is a flag that changes by step, make it an argument with few distinct values.",
            "If it is a number used in tensor arithmetic, keep it in a 0-d tensor: tensors are inputs, not guards.",
        ),
        example="""\
def forward(self, x):
    if self.mode == "warmup-%d" % self.step:  # MP201
        x = x * 0.1
    return self.layer(x)
""",
        fixed="""\
def forward(self, x):
    if self.warming_up:  # two values, two captures
        x = x * 0.1
    return self.layer(x)
""",
    ),
    Code(
        "MP202",
        "varying-value",
        "A varying number becomes a symbolic scalar",
        Severity.INFORMATION,
        has_fix=True,
        reason="This number changes from call to call, so it is an input of the capture and not a guard.",
        explanation="""\
A Python number read here (a counter, a learning rate, the length of a growing list) had another value on a later
call. MagPy doesn't capture the region for each value. The number is now a symbolic scalar: each call reads it and uses
its current value in the graph and in the side effects.

This cost one more capture, once. If the number is later compared, used as a key or passed to a function that
needs its exact value, it is guarded again at that place, and a finding there reports it.""",
        hints=(
            "No action needed: the region needs no further captures for this number.",
            "To avoid even this capture, keep the number in a 0-d tensor.",
        ),
        example="""\
def forward(self, x):
    self.calls += 1  # MP202
    return self.layer(x) * (1.0 / self.calls)
""",
    ),
    Code(
        "MP203",
        "recompile-limit",
        "Too many captures: the region is not captured again",
        Severity.WARNING,
        reason="Each capture so far fits too few calls, so more captures would only cost time.",
        explanation="""\
The region has reached the limit of captures (8 by default), and none of them fits this call. From now on, calls that
fit a capture still use it; all others run as plain Python and are not monitored.

The MP201 findings of the same region name the values that kept changing. The region did not regain the time spent
compiling it.""",
        hints=(
            "The MP201 findings of this region name the value that keeps changing.",
            "Turn that value into a tensor, or round it to a few buckets (for example padded sequence lengths).",
            "Raise the limit only if the number of different values is small and bounded.",
        ),
        example="""\
@magpy_core.compile
def step(x, tag):  # MP203
    return model(x) if tag.startswith("batch") else x


for i, x in enumerate(batches):
    step(x, f"batch-{i}")
""",
        fixed="""\
@magpy_core.compile
def step(x):
    return model(x)


for x in batches:
    step(x)
""",
    ),
    Code(
        "MP204",
        "guard",
        "The capture is valid only while this value stays the same",
        Severity.HINT,
        reason="The recorded graph depends on this value, so it is checked before every replay.",
        explanation="""\
The region reads this external value (an argument's shape, an attribute, a global, an item, a type), and the rest of the
region may depend on it. Before a replay, the value is read and compared. If it differs, the call is captured again, and
an MP201 finding reports it.

A guard is not a problem by itself. One check takes tens of nanoseconds, and checks on the structure of a module
are combined. These hints show what the region depends on. Look for values that you expect to vary, and for values that
you did not expect the region to read.""",
        hints=(
            "No action needed if the value is a constant of the program.",
            "If the value changes on every call, make it a tensor or pass it in as an argument.",
        ),
        example="""\
def forward(self, x):
    if self.training:  # MP204
        x = F.dropout(x, self.p)  # MP204
    return self.layer(x)
""",
    ),
    Code(
        "MP205",
        "dynamic-shape",
        "A varying dimension is captured as dynamic",
        Severity.INFORMATION,
        reason="The size of this dimension changed, so the new capture accepts any size.",
        explanation="""\
The size of one dimension of an input tensor changed. The second capture treats that dimension as dynamic, so a third
size usually needs no further capture. (It does if the program, or torch itself, branches on the size: `x[:, :5]` of a
tensor with three columns.)

Code for a dynamic dimension is a little slower than for a fixed one (strides are computed at run time and some
vectorisation is lost), and it costs one more capture, once. A dimension of size 0 or 1 is always captured
separately, since broadcasting treats it differently.""",
        hints=(
            "No action needed if the sizes are meant to vary.",
            "If only the last batch is smaller, `drop_last=True` in the DataLoader keeps the shape fixed.",
            "`torch._dynamo.mark_dynamic(x, 0)` before the first call saves the first, fixed capture.",
        ),
        example="""\
for x, y in DataLoader(dataset, batch_size=64):  # 1000 samples: the last batch has 40
    loss = F.cross_entropy(model(x), y)  # MP205
""",
        fixed="""\
for x, y in DataLoader(dataset, batch_size=64, drop_last=True):
    loss = F.cross_entropy(model(x), y)
""",
    ),
)
