"""MP5xx: limits that the project sets in ``[tool.magpy.budgets]`` and that a run exceeded. Key name: CODES."""

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
each of them has its own MP1xx finding in the same report. Findings that a comment suppresses are counted as well, because
they cut the graph all the same.""",
        hints=(
            "See the MP1xx findings of this region: each says what to do.",
            "If the break is intended, raise the limit for this region under `[tool.magpy.budgets.regions]`.",
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
        "A region was recaptured after warm-up more often than its budget allows",
        Severity.ERROR,
        reason="`[tool.magpy.budgets] recompiles` allows fewer captures after the third step.",
        explanation=f"""\
{_WHERE}, for all regions or for this one. The first three steps are warm-up: state is created, and MagPy learns which
sizes and numbers vary. A capture after that means that something the graph depends on still changes, and each one
costs a compilation in a real run.

A run of three steps or fewer can't exceed this budget: check with more `--steps`.""",
        hints=(
            "The MP201 findings of this region name the value that changed.",
            "Keep values that change on every call in tensors or arguments.",
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
{_WHERE}, for all regions or for this one. It counts the guards of the region's largest capture. Each guard checks an
external value that the graph depends on, and all of them run on every call.""",
        hints=(
            "The MP204 findings of this region list what is guarded and where it is read.",
            "Keep long tables as tensors, and read configuration objects once, outside loops.",
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
        "A region has more side effects than its budget",
        Severity.ERROR,
        reason="`[tool.magpy.budgets] side-effects` allows fewer.",
        explanation=f"""\
{_WHERE}, for all regions or for this one. It counts what a replay of the region writes: attributes, items, globals,
output and tensors changed in place. An optimizer changes every parameter and its state, so set a separate limit for it,
or none.""",
        hints=(
            "The MP3xx findings of this region show each side effect.",
            "Exclude optimizers: `side-effects = false` under `[tool.magpy.budgets.regions.optimizer]`.",
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
        "Python waits for tensor values more often per step than the budget allows",
        Severity.ERROR,
        reason="`[tool.magpy.budgets] host-syncs` allows fewer per step.",
        explanation=f"""\
{_WHERE}, for all regions or for this one. It counts the tensor values that Python reads in a call of the region
(conditions, `.item()`, `int(t)`; one `tolist()` counts once), times the calls of the region per step. At each read the
host waits until the device has finished all queued work. Reads outside regions are not counted, nor are the step counts
that torch's own optimizers read.

For a region that could not be captured, only the places of the reads are known, not how often a loop repeats them.""",
        hints=(
            "See the findings named in the message; keep values as tensors and read them every n-th step.",
            "Reading a value once per step, after the region, costs less than reading it inside.",
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
        "A compiled region is less than the minimum speed-up faster",
        Severity.ERROR,
        reason="`[tool.magpy.budgets] min-speedup` requires more.",
        explanation=f"""\
{_WHERE}, for all regions or for this one. `magpy-lsp run` times steady calls of each region, alternating between compiled
code and plain Python. The budget is broken when even the upper end of the 95 % confidence interval of the speed-up is
below the minimum, so timing noise does not break it.

`magpy-lsp check` compiles nothing, so it does not check this limit.""",
        hints=(
            "The region's MP1xx and MP4xx findings show what slows it down.",
            'For small regions and optimizers, set a separate minimum under `[tool.magpy.budgets.regions."NAME"]`.',
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
        "A budget could not be checked in this run",
        Severity.WARNING,
        reason="A limit that was not checked must not look like one that holds.",
        explanation="""\
There are three causes. The budgets name a region that did not run (severity information, since another program may have
it). Or `min-speedup` is set and the region had too few steady calls to measure its speed-up (six timings of each kind are
needed; a region that was not compiled has none). Or this was a check, which compiles nothing (severity information:
`magpy-lsp run` checks the limit).""",
        hints=(
            "Check the region's name: `magpy-lsp check` prints the names at the end.",
            "Run the program compiled, with enough steps: `magpy-lsp run --steps 40`.",
            "Remove the limit for a region with `min-speedup = false`.",
        ),
        example="""\
[tool.magpy.budgets.regions."net: Nett"]  # MP507: the program has no such region
guards = 100
""",
        fixed="""\
[tool.magpy.budgets.regions."net: Net"]
guards = 100
""",
        language="toml",
    ),
)
