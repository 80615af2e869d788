"""MPDxxx: what torch.compile makes of a program (``magpy-lsp check --engine dynamo``). Key name: CODES."""

from __future__ import annotations

from magpy_core.findings.code import Code, Severity

_FOUND = "Found by `magpy-lsp check --engine dynamo`, which runs the program's regions under `torch.compile`."

CODES = (
    Code(
        "MPD101",
        "dynamo-graph-break",
        "torch.compile breaks the graph here",
        Severity.WARNING,
        reason="torch.compile can't trace this expression, so the graph is cut in two, with plain Python between.",
        explanation=f"""\
{_FOUND} At this expression TorchDynamo ended the graph: it compiled what came before, leaves this expression to Python, and
compiles the rest as a function of its own.

Each cut costs a return to Python, a second set of guards and the fusion across the cut; with `fullgraph=True` it is an
error. The message has the number that PyTorch gives this kind of break (GBnnnn); the hint has the page of PyTorch's
registry of graph breaks about it.""",
        hints=(
            "Follow the hint: it is PyTorch's own for this kind of break.",
            "Move what can't be traced (printing, logging, `.item()`) out of the compiled region.",
            "Run `magpy-lsp check` without `--engine`: MagPy captures most such places without a break.",
        ),
        example="""\
def forward(self, x):
    if x.sum() > 0:  # MPD101
        x = x * 2
    return self.layer(x)
""",
        fixed="""\
def forward(self, x):
    x = torch.where(x.sum() > 0, x * 2, x)
    return self.layer(x)
""",
    ),
    Code(
        "MPD102",
        "dynamo-library-break",
        "torch's own code asks for a graph break",
        Severity.INFORMATION,
        reason="A function of torch's breaks the graph on purpose, so this call is not one graph.",
        explanation=f"""\
{_FOUND} The function that is called here (an optimizer's `step`, most often) calls `torch._dynamo.graph_break()` itself.
Nothing is wrong with the program, and torch.compile compiles the part that matters behind the break.""",
        hints=("Nothing needs to be done.",),
        example="""\
loss.backward()
optimizer.step()  # MPD102
""",
    ),
    Code(
        "MPD201",
        "dynamo-recompile",
        "torch.compile compiled this again",
        Severity.WARNING,
        reason="A guard of every compiled version failed, so the function was compiled once more.",
        explanation=f"""\
{_FOUND} A compiled version holds while its guards hold: shapes, dtypes, numbers and attributes that were constants when it
was traced. The message names the guarded value, what it was and what it is now.

A recompile costs what the first compilation cost (seconds to minutes with Inductor). After 8 versions
(`torch._dynamo.config.recompile_limit`) torch.compile gives the function up for good: MPD202. One recompile for a size
that varies is normal: from then on torch.compile treats it as dynamic.""",
        hints=(
            "Mark a size that varies with `torch._dynamo.mark_dynamic(tensor, dim)`, or compile with `dynamic=True`.",
            "Keep a number that changes from call to call in a 0-d tensor.",
            "Use batches of one shape: `drop_last=True`, or padding.",
        ),
        example="""\
def forward(self, x):
    self.calls += 1
    return x * self.calls  # MPD201
""",
        fixed="""\
def forward(self, x):
    self.calls += 1  # registered as a buffer: a 0-d tensor
    return x * self.calls
""",
    ),
    Code(
        "MPD202",
        "dynamo-recompile-limit",
        "torch.compile gave this function up after too many recompiles",
        Severity.WARNING,
        reason="The function reached `torch._dynamo.config.recompile_limit`; other calls run as plain Python.",
        explanation=f"""\
{_FOUND} Each call with new values made one more compiled version, until the limit was reached. From now on calls that fit
one of the versions are fast, and all others run as plain Python: silently, and for the rest of the process.""",
        hints=(
            "The MPD201 findings of this function name the value that keeps changing: make it dynamic, or a tensor.",
            "If the number of versions is really bounded, raise `torch._dynamo.config.recompile_limit` above it.",
        ),
        example="""\
def scale(x, factor):  # MPD202 (called with ten different strings)
    return x * len(factor)
""",
    ),
    Code(
        "MPD301",
        "dynamo-skipped-frame",
        "torch.compile skips this function",
        Severity.WARNING,
        reason="The function as a whole runs as plain Python: no graph was made of it.",
        explanation=f"""\
{_FOUND} A graph break is only cheap where the function can be resumed behind it. Inside of a loop, a `try` or a `with` block
TorchDynamo can't resume, so it leaves the whole function to Python. Functions that it calls may still be compiled, each by
itself.""",
        hints=(
            "Remove the graph break that the message names: without it the whole function is compiled.",
            "Move the loop's body into a function of its own: then only that function is affected.",
        ),
        example="""\
def forward(self, x):  # MPD301
    for layer in self.layers:
        x = layer(x)
        print(x.shape)
    return x
""",
        fixed="""\
def forward(self, x):
    for layer in self.layers:
        x = layer(x)
    return x
""",
    ),
    Code(
        "MPD302",
        "dynamo-compile-error",
        "torch.compile failed on this function",
        Severity.WARNING,
        reason="The compiler or its backend raised an error; the function runs as plain Python here.",
        explanation=f"""\
{_FOUND} TorchDynamo or the backend failed with an error, not with a graph break. Under `magpy-lsp` the function runs as
plain Python instead; in the program itself `torch.compile` would raise this error, unless
`torch._dynamo.config.suppress_errors` is set.""",
        hints=(
            "Check with `--backend eager`: if the error is gone, the backend is the cause.",
            "Look for the error's text in PyTorch's issues, and report it there.",
        ),
        example="""\
def forward(self, x):  # MPD302
    return custom_operator(x)
""",
    ),
)
