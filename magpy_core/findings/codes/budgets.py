"""MP5xx: limits that the project set itself, in ``[tool.magpy.budgets]``, and that a run broke. Key name: CODES."""

from __future__ import annotations

from magpy_core.findings.code import Code, Severity

_WHERE = "The limit is set under `[tool.magpy.budgets]` in `pyproject.toml`"

CODES = (
    Code(
        "MP501",
        "budget-graph-breaks",
        "A region has more graph breaks than its budget",
        Severity.ERROR,
        reason="`[tool.magpy.budgets] graph-breaks` allows fewer.",
        explanation=f"""\
{_WHERE}, for all regions or for this one. It counts the places where the region's operator graph is cut or refused:
each of them has an MP1xx finding of its own in the same report. A finding that a comment hides is counted all the same,
for the graph is cut at it.""",
        hints=(
            "See the MP1xx findings of this region: each says what to do.",
            "If the break is wanted, raise the limit for this region under `[tool.magpy.budgets.regions]`.",
        ),
        example="""\
class Net(nn.Module):  # graph-breaks = 0
    def forward(self, x):  # MP501
        if x.sum().item() > 0:
            x = x * 2
        return self.layer(x)
""",
        fixed="""\
class Net(nn.Module):
    def forward(self, x):
        x = torch.where(x.sum() > 0, x * 2, x)
        return self.layer(x)
""",
    ),
    Code(
        "MP502",
        "budget-recompiles",
        "A region was captured again after warm-up more often than its budget",
        Severity.ERROR,
        reason="`[tool.magpy.budgets] recompiles` allows fewer captures after the third step.",
        explanation=f"""\
{_WHERE}, for all regions or for this one. The first three steps are warm-up: state is made, sizes are seen to vary,
numbers are learned to vary. A capture after that means that something the graph depends on still changes, and each one
costs a compilation in a real run.

A run of three steps or fewer can't break it: check with more `--steps`.""",
        hints=(
            "The MP201 findings of this region name the value that changed.",
            "Values that change at every call belong in tensors or arguments.",
        ),
        example="""\
def step(self, x):  # MP502 (recompiles = 0)
    return self.net(x) * self.names.index(self.current)
""",
        fixed="""\
def step(self, x):
    return self.net(x) * self.scale  # a 0-d tensor
""",
    ),
    Code(
        "MP503",
        "budget-guards",
        "A capture of a region has more guards than its budget",
        Severity.ERROR,
        reason="`[tool.magpy.budgets] guards` allows fewer.",
        explanation=f"""\
{_WHERE}, for all regions or for this one. It counts the values that are checked before the largest capture of the region
is replayed. Every one is something from outside that the graph depends on, and all are checked at every call.""",
        hints=(
            "The MP204 findings of this region list what is guarded and where it is read.",
            "Keep long tables as tensors, and read configuration objects once, outside of loops.",
        ),
        example="""\
def forward(self, x):  # MP503 (guards = 100): a list of 5000 floats
    return x * sum(self.weights)
""",
        fixed="""\
def forward(self, x):
    return x * self.weights.sum()  # a buffer
""",
    ),
    Code(
        "MP504",
        "budget-side-effects",
        "A region makes more changes outside of itself than its budget",
        Severity.ERROR,
        reason="`[tool.magpy.budgets] side-effects` allows fewer.",
        explanation=f"""\
{_WHERE}, for all regions or for this one. It counts what a replay of the region writes: attributes, items, globals,
output and tensors changed in place. An optimizer changes every parameter and its state, so give it a limit of its own,
or none.""",
        hints=(
            "The MP3xx findings of this region show each of them.",
            "Leave optimizers out: `side-effects = false` under `[tool.magpy.budgets.regions.optimizer]`.",
        ),
        example="""\
def forward(self, x):  # MP504 (side-effects = 0)
    self.last = self.layer(x)
    return self.last
""",
        fixed="""\
def forward(self, x):
    return self.layer(x)
""",
    ),
    Code(
        "MP505",
        "budget-host-syncs",
        "Python waits for tensors' values more often per step than the budget",
        Severity.ERROR,
        reason="`[tool.magpy.budgets] host-syncs` allows fewer per step.",
        explanation=f"""\
{_WHERE}, for all regions or for this one. It counts the tensor values that Python asks for in a call of the region
(conditions, `.item()`, `int(t)`; one `tolist()` is one), times the calls of the region per step. At each of them the host
waits until the device has done all work so far. What the program reads outside of regions is not seen, and what torch's
own optimizers read of their step counts is not counted.

Of a region that could not be captured only the places are known, not how often a loop comes by.""",
        hints=(
            "See the findings named in the message; keep values as tensors and read them every n-th step.",
            "Reading a value after the region, once per step, costs less than inside of it.",
        ),
        example="""\
def forward(self, x):  # MP505 (host-syncs = 0)
    self.history.append(x.mean().item())
    return self.layer(x)
""",
        fixed="""\
def forward(self, x):
    self.history.append(x.mean().detach())
    return self.layer(x)
""",
    ),
    Code(
        "MP506",
        "budget-speedup",
        "Compiling a region wins less than the minimum",
        Severity.ERROR,
        reason="`[tool.magpy.budgets] min-speedup` asks for more.",
        explanation=f"""\
{_WHERE}, for all regions or for this one. `magpy-lsp run` times steady calls of each region in turn, compiled and in
plain Python. The budget is broken when even the upper end of the 95 % confidence interval of the speed-up is below the
minimum: a noisy machine does not fail it by chance.

`magpy-lsp check` compiles nothing, so it does not judge this limit.""",
        hints=(
            "Look at the region's MP1xx and MP4xx findings for what holds it back.",
            'Small regions and optimizers: set their own minimum under `[tool.magpy.budgets.regions."NAME"]`.',
        ),
        example="""\
@magpy_core.compile
def gate(x):  # MP506 (min-speedup = 1.2)
    return torch.sigmoid(x)
""",
        fixed="""\
@magpy_core.compile
def block(x):
    return x + torch.sigmoid(proj(x)) * mlp(norm(x))
""",
    ),
    Code(
        "MP507",
        "budget-not-judged",
        "A budget could not be judged in this run",
        Severity.WARNING,
        reason="A limit that is not checked must not look as if it were kept.",
        explanation="""\
Either the budgets name a region that this run never came to (an information, since another program may have it), or
`min-speedup` is set and there were too few steady calls of the region to say anything about its speed-up (six timings of
each kind are needed; a region that was not compiled has none), or this was a check, which compiles nothing (an information:
`magpy-lsp run` judges it).""",
        hints=(
            "Check the region's name: `magpy-lsp check` prints the names at the end.",
            "Run compiled, with enough steps: `magpy-lsp run --steps 40`.",
            "Lift the limit for a region with `min-speedup = false`.",
        ),
        example="""\
[tool.magpy.budgets.regions."net: Nett"]  # MP507: there is no such region
guards = 100
""",
        fixed="""\
[tool.magpy.budgets.regions."net: Net"]
guards = 100
""",
        language="toml",
    ),
)
