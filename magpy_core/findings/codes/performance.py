"""MP4xx: regions that are compiled correctly but slower than they could be. Key name: CODES."""

from __future__ import annotations

from magpy_core.findings.code import Code, Severity

CODES = (
    Code(
        "MP401",
        "slower-than-eager",
        "The compiled region is slower than eager",
        Severity.WARNING,
        reason="Measured in this run, a compiled call took longer than the same call in plain Python.",
        explanation="""\
`magpy-lsp run` measures some steady calls of each region in plain Python and compares them with compiled ones.
For this region, plain Python was faster.

Usual causes: the region is tiny, so checking its guards and calling the compiled code takes longer than the
operators; it consists of a few large matrix products, which leave nothing to fuse; graph breaks cut it into many
segments; or its shapes are dynamic.""",
        hints=(
            "Compile a larger region (the whole model instead of one layer) so that the fixed cost is paid once.",
            "Remove the graph breaks of this region first: see its MP1xx findings.",
            "If it is a function that you decorated with `@magpy_core.compile`, remove the decorator.",
        ),
        example="""\
@magpy_core.compile
def scale(x):  # MP401
    return x * 2
""",
        fixed="""\
@magpy_core.compile
def block(x):
    return layer_norm(mlp(x * 2) + x)
""",
    ),
    Code(
        "MP402",
        "costly-guards",
        "Guards take a large part of a compiled call",
        Severity.INFORMATION,
        reason="Checking that the capture is still valid takes long compared with running it.",
        explanation="""\
Before a capture is replayed, every value that it depends on is checked. One check takes tens of nanoseconds, but this
region has so many that they are a large part of the call: typically a deep model with small layers, or a
loop over a long list or dict of Python objects.

The cost is per call of the region, so it is the same for a batch of 1 and a batch of 1000.""",
        hints=(
            "Compile a larger region: guards of an inner module are then checked once, not per layer call.",
            "Keep long tables as tensors, not as lists of numbers: a tensor needs one check.",
            "Do not read configuration objects inside loops; read them once before the loop.",
        ),
        example="""\
def forward(self, x):  # MP402: a list of 5000 floats, one guard for each
    return x * sum(self.weights)
""",
        fixed="""\
def forward(self, x):
    return x * self.weights.sum()  # a buffer
""",
    ),
    Code(
        "MP403",
        "long-compile",
        "Compiling took much longer than the time it saved in this run",
        Severity.INFORMATION,
        reason="Compiling this region took more than twice the time that its calls in this run saved.",
        explanation="""\
The backend took long to compile the region, and the region's calls saved less time than that before the program ended:
there were too few calls, or the speed-up per call is too small. In a longer training run the same region may well be
worth compiling.

Inductor caches compiled code on disk, so a second run of the same program usually starts much faster.""",
        hints=(
            "Use a longer run, or run the program again: the compiled code is cached on disk.",
            "Use `--backend aot_eager` or `eager` while you are developing.",
        ),
        example="""\
model = Transformer(layers=48)
for x in batches[:10]:  # ten steps do not pay for compiling 48 layers
    model(x)  # MP403 (shown at the forward of Transformer)
""",
    ),
)
