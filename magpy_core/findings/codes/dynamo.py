"""MPDxxx: what torch.compile reports about a program (``magpy-lsp check --engine dynamo``). Key name: CODES."""

from __future__ import annotations

from magpy_core.findings.code import Code, Severity

_FOUND = "Found by `magpy-lsp check --engine dynamo`, which runs the program's regions under `torch.compile`."

CODES = (
    Code(
        "MPD101",
        "dynamo-graph-break",
        "torch.compile breaks the graph here",
        Severity.WARNING,
        has_fix=True,
        reason="torch.compile can't trace this expression, so it splits the graph in two and runs plain Python in between.",
        explanation=f"""\
{_FOUND} TorchDynamo ends the graph at this expression: it compiles the code before it, runs the expression in Python, and
compiles the rest as a separate function.

Each graph break costs a return to Python, another set of guards, and the fusion of operators across it. With
`fullgraph=True` it is an error. The message contains PyTorch's number for this kind of break (GBnnnn), and the hint links
to its page in PyTorch's registry of graph breaks.""",
        hints=(
            "Follow the hint: it is PyTorch's own advice for this kind of break.",
            "Move code that can't be traced (printing, logging, `.item()`) out of the compiled region.",
            "Run `magpy-lsp check` without `--engine`: MagPy captures most such code without a graph break.",
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
        "torch's own code requests a graph break",
        Severity.INFORMATION,
        reason="A torch function breaks the graph deliberately, so this call is more than one graph.",
        explanation=f"""\
{_FOUND} The function called here (usually an optimizer's `step`) calls `torch._dynamo.graph_break()` itself. The program
is correct, and torch.compile compiles the important part after the break.""",
        hints=("No action needed.",),
        example="""\
loss.backward()
optimizer.step()  # MPD102
""",
    ),
    Code(
        "MPD201",
        "dynamo-recompile",
        "torch.compile recompiled this function",
        Severity.WARNING,
        has_fix=True,
        reason="A guard failed in every compiled version, so the function was compiled once more.",
        explanation=f"""\
{_FOUND} A compiled version is valid while its guards hold: shapes, dtypes, numbers and attributes that were constants when
it was traced. The message names the guarded value, its old value and its new one.

A recompile costs as much as the first compilation (seconds to minutes with Inductor). After 8 versions
(`torch._dynamo.config.recompile_limit`) torch.compile stops compiling the function: MPD202. One recompile for a size
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
        "torch.compile reached the recompile limit for this function",
        Severity.WARNING,
        reason="The function reached `torch._dynamo.config.recompile_limit`; calls that fit no version run as plain Python.",
        explanation=f"""\
{_FOUND} Each call with new values added a compiled version, until the limit was reached. From now on, calls that fit
one of the versions use it, and all others run as plain Python: silently, and for the rest of the process.""",
        hints=(
            "The MPD201 findings of this function name the value that keeps changing: make it dynamic, or a tensor.",
            "If the number of versions is bounded, raise `torch._dynamo.config.recompile_limit` above it.",
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
        reason="The whole function runs as plain Python: it has no graph.",
        explanation=f"""\
{_FOUND} A graph break is cheap only if TorchDynamo can resume the function after it. Inside a loop, a `try` or a `with`
block it can't resume, so it runs the whole function as plain Python. Functions called from it may still be compiled
separately.""",
        hints=(
            "Remove the graph break that the message names: without it the whole function is compiled.",
            "Move the loop's body into a separate function: then only that function is affected.",
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
{_FOUND} TorchDynamo or the backend raised an error, which is not a graph break. Under `magpy-lsp` the function then runs
as plain Python. In the program itself `torch.compile` would raise this error, unless
`torch._dynamo.config.suppress_errors` is set.""",
        hints=(
            "Check with `--backend eager`: if the error is gone, the backend is the cause.",
            "Search PyTorch's issues for the error's text, and report it there.",
        ),
        example="""\
def forward(self, x):  # MPD302
    return custom_operator(x)
""",
    ),
)
