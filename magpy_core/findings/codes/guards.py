"""MP2xx: guards and recompiles. Key name: CODES."""

from __future__ import annotations

from magpy_core.findings.code import Code, Severity

CODES = (
    Code(
        "MP201",
        "recompile",
        "A guarded value changed: the region was captured again",
        Severity.WARNING,
        reason="No capture fits the new value, so the region was monitored and compiled once more.",
        explanation="""\
A capture is valid only while the values it read from outside (shapes, flags, attributes, globals) are the same.
On this call one of them was different. The finding names its access path, the old and the new value, and the
line where the value was read.

A second capture was made. When both values come again, both captures are kept and no further one is needed; a
number that keeps varying is carried as a symbolic scalar after the second time (MP202), a varying dimension as a
dynamic one (MP205).

A recompile costs one monitored call and one run of the backend, which for Inductor takes seconds to minutes.
Recompiles in the first steps are normal. One on every step is not.""",
        hints=(
            "If the value is the last, smaller batch, use `drop_last=True` in the DataLoader or pad the batch.",
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
        "A number that varies is carried as a symbolic scalar",
        Severity.INFORMATION,
        reason="This number changes from call to call, so it is an input of the capture and not a guard.",
        explanation="""\
A Python number read here (a counter, a learning rate, the length of a growing list) had another value on a later
call. Instead of making a capture per value, MagPy now carries it as a symbolic scalar: it is read on each call
and used in the graph or in the side effects as it is then.

That cost one more capture, once. If the number is later compared, used as a key or handed to a function that
needs its exact value, it is guarded again at that place, and a finding says so there.""",
        hints=(
            "Nothing needs to be done; the region reaches its steady state by itself.",
            "To save even the one capture, keep the number in a 0-d tensor.",
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
        "Too many captures: the region runs in plain Python from now on",
        Severity.WARNING,
        reason="Every capture so far was valid for too few calls, so making more would only cost time.",
        explanation="""\
The region has as many captures as the limit allows (8 unless set otherwise) and a call came that none of them
fits. From now on, calls that fit a capture still use it; all others run as plain Python and are not monitored.

The values that kept changing are named in the MP201 findings of the same region. Compiling cost time that was
not won back.""",
        hints=(
            "Look at the MP201 findings of this region: they name the value that keeps changing.",
            "Turn that value into a tensor, or round it to a few buckets (for example padded sequence lengths).",
            "Raise the limit only if the number of different values really is small and bounded.",
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
The region read this value from outside (an argument's shape, an attribute, a global, an item, a type), and what
it did next may depend on it. Before a capture is used again, the value is read and compared; if it differs, the
call is captured again and an MP201 finding tells.

A guard is not a problem by itself. One check takes tens of nanoseconds, and checks on a module's own structure
are folded together. These hints show what the region depends on: a value you expected to vary, or one you did
not know was read, is worth a second look.""",
        hints=(
            "Nothing needs to be done if the value is a constant of the program.",
            "If the value changes every call, make it a tensor or pass it in as an argument.",
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
        "A dimension varies and is captured as dynamic",
        Severity.INFORMATION,
        reason="The size of this dimension changed, so the new capture accepts any size.",
        explanation="""\
A tensor that enters the region had another size in one dimension than before. The second capture is made with
that dimension dynamic, so a third size needs no further capture.
(It needs one where the program, or torch itself, goes another way for it: `x[:, :5]` of a tensor of three columns.)

Code for a dynamic dimension is a little slower than for a fixed one (strides are computed at run time and some
vectorisation is lost), and it cost one more capture, once. A dimension of size 0 or 1 is always captured
separately, since broadcasting makes it behave differently.""",
        hints=(
            "Nothing needs to be done if the sizes really vary.",
            "For the last, smaller batch only: `drop_last=True` in the DataLoader keeps the fixed shape.",
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
