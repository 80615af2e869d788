"""MP9xx: the tool itself, its configuration and the entrypoint. Key name: CODES."""

from __future__ import annotations

from magpy_core.findings.code import Code, Severity

CODES = (
    Code(
        "MP901",
        "monitor-failed",
        "The monitor failed; the region ran as plain Python",
        Severity.WARNING,
        reason="An internal error of MagPy stopped the monitoring of this region.",
        explanation="""\
An error occurred inside MagPy while it recorded the region. Your program is not affected: the call continued
as plain Python and its result is correct. For the rest of this run the region is neither monitored nor compiled.

This is a bug in MagPy.""",
        hints=(
            "Please report it with the message and, if you can, the function on this line.",
            "No other action needed: the program runs as it would without MagPy.",
        ),
        example="""\
def forward(self, x):  # MP901
    return self.layer(x)
""",
    ),
    Code(
        "MP902",
        "backend-failed",
        "The backend can't compile a region; it runs as plain Python",
        Severity.WARNING,
        reason="The backend fails to compile the operator graph, or is known to compile it incorrectly.",
        explanation="""\
The region was captured, but the backend (Inductor by default) failed to compile its graph. The message contains the
first line of the backend's error. The region runs as plain Python, with correct results.

The usual cause is the machine: a missing C++ compiler, missing Python headers, or a Triton version that does not match
the GPU. Less often the graph contains an operator that the backend does not support.

MagPy also refuses graphs that the backend is known to compile incorrectly (a checkpointed part
that writes to external state, negative views, a write to a transposed tensor). The message says which.""",
        hints=(
            "Run `magpy-lsp doctor`: it compiles a tiny graph and reports what is missing.",
            "Try `--backend aot_eager`: if that works, the fault is in the code generator, not in the capture.",
        ),
        example="""\
def forward(self, x):  # MP902
    return torch.ops.my_library.fused_gate(x, self.weight)
""",
    ),
    Code(
        "MP903",
        "unsupported-version",
        "This Python or torch version is not supported",
        Severity.ERROR,
        reason="MagPy depends on internals of CPython and torch, and is not tested with this combination.",
        explanation="""\
MagPy instruments bytecode, so it depends on the exact Python version and on internals of torch. This interpreter or
this torch is outside the tested range (Python 3.11 to 3.13, torch 2.11 to 2.15), so MagPy refuses to run the
program.""",
        hints=(
            "Choose another interpreter with `--python`, for example that of a virtual environment with Python 3.12.",
            "Install a supported torch there: `python -m pip install 'torch>=2.11,<2.16'`.",
            "`magpy-lsp doctor --python PATH` checks an interpreter without running your program.",
        ),
        example="""\
# $ magpy-lsp check --python /usr/bin/python3.9 train.py
import torch  # MP903
""",
    ),
    Code(
        "MP904",
        "no-region",
        "The program never called a module, optimizer or named region",
        Severity.WARNING,
        reason="The program has no region to monitor.",
        explanation="""\
The program ran, but called no region: no `nn.Module`, no optimizer `step`, no function decorated with
`@magpy_core.compile` and none of the names in `[tool.magpy] regions`.

Often the entrypoint only defines functions and classes (the work is under `if __name__ == "__main__"` in another file),
needs arguments to do any work, or starts the training in another process.""",
        hints=(
            "Check the entrypoint and its arguments: everything after `--` is passed to the program.",
            "List plain functions that work on tensors in `[tool.magpy] regions`.",
            "Start the training in the process itself, without a launcher or worker processes.",
        ),
        example="""\
# $ magpy-lsp check train.py                    prints the usage of train.py and ends: MP904
# $ magpy-lsp check train.py -- --epochs 1      trains
parser.parse_args()  # MP904
""",
    ),
    Code(
        "MP905",
        "program-failed",
        "The program raised an exception",
        Severity.ERROR,
        reason="The program ended with an exception, as it would without MagPy.",
        explanation="""\
The program ended with an uncaught exception or a non-zero exit status. Its traceback is printed as Python prints it.
The report contains the findings up to that point; the exit status of `magpy-lsp` is 3.""",
        hints=(
            "Run the program without MagPy first: `python train.py`.",
            "If it fails only under MagPy, that is a bug in MagPy: please report it.",
        ),
        example="""\
model = Net()
model(torch.randn(3, 5))  # MP905: mat1 and mat2 shapes cannot be multiplied (3x5 and 4x8)
""",
    ),
    Code(
        "MP906",
        "program-killed",
        "The program was killed by a signal",
        Severity.ERROR,
        reason="A signal killed the program's process, so Python could not report an error.",
        explanation="""\
A signal killed the program's process. SIGKILL usually means that the machine ran out of memory; SIGSEGV and SIGABRT
come from native code. The report contains the findings up to that point; the exit status of `magpy-lsp` is 3.""",
        hints=(
            "SIGKILL: use a smaller batch or model for the check; the findings are the same.",
            "SIGSEGV or SIGABRT: run the program without MagPy (`python -X faulthandler train.py`) and compare.",
        ),
        example="""\
x = torch.empty(10**12)  # MP906: killed by SIGKILL (out of memory)
""",
    ),
    Code(
        "MP907",
        "program-timeout",
        "The program did not finish in time",
        Severity.ERROR,
        reason="The `--timeout` expired, so the program and its child processes were stopped.",
        explanation="""\
The program was still running when the time limit expired. It was stopped together with all processes that it had
started. The report contains the findings up to that point; the exit status of `magpy-lsp` is 3.""",
        hints=(
            "Allow more time with `--timeout`, or fewer steps with `--steps`.",
            "If the program hangs, find what it waits for: input from the terminal, a lock, a worker process.",
        ),
        example="""\
# $ magpy-lsp check --timeout 60 train.py
dataset = download_everything()  # MP907: still running after 60 seconds
""",
    ),
    Code(
        "MP908",
        "bad-entrypoint",
        "The entrypoint can't be run",
        Severity.ERROR,
        reason="Python can't start the program.",
        explanation="""\
The file or module named as the entrypoint does not exist, can't be read or is not valid Python source. The program was
not started.""",
        hints=(
            "Check the path; it is relative to the current directory.",
            "For a module use `-m package.module` and run it from the directory that contains the package.",
        ),
        example="""\
# $ magpy-lsp check trian.py
# magpy-lsp: MP908 the file trian.py does not exist
""",
    ),
    Code(
        "MP909",
        "early-exit",
        "The program exited before it reached the requested number of steps",
        Severity.WARNING,
        reason="The program made fewer steps than requested, so the report may lack findings of later steps.",
        explanation="""\
The program ended without an error before it made the number of optimizer steps (or module calls) set by `--steps`.
The report contains the findings of the steps that it made.

MagPy can see that a value varies only from the second step on, so a report of a single step is incomplete.""",
        hints=(
            "Give the program enough data or epochs for the steps, or lower `--steps`.",
            "`--steps 0` runs the program to its end, whatever the number of steps.",
        ),
        example="""\
for x, y in loader:
    train_step(x, y)
    break  # MP909: one step of three
""",
    ),
    Code(
        "MP910",
        "bad-config",
        "The [tool.magpy] configuration is not valid",
        Severity.ERROR,
        reason="MagPy never ignores an invalid setting.",
        explanation="""\
The `[tool.magpy]` table of `pyproject.toml` contains an unknown key, a value of the wrong type or an unknown finding
code, or the file is not valid TOML. The message names the key and the line. Nothing was run; the exit status is 2.""",
        hints=(
            "`magpy-lsp check --show-settings` prints the settings in use and where each one comes from.",
            "The keys are: entrypoint, steps, timeout, select, ignore, fail-on, baseline, regions, severity, backend, "
            "call-policy, budgets, entrypoints.",
        ),
        example="""\
[tool.magpy]
step = 5  # MP910: unknown key `step`, did you mean `steps`?
ignore = "MP3"  # MP910: must be a list of strings
""",
        fixed="""\
[tool.magpy]
steps = 5
ignore = ["MP3"]
""",
        language="toml",
    ),
    Code(
        "MP911",
        "no-source",
        "The source of the code is not available",
        Severity.INFORMATION,
        reason="The code has no readable source file, so its findings are reported at its caller.",
        explanation="""\
The region runs Python code without readable source: code created by `exec` or `eval`, or loaded from a `.pyc` file
alone. It is monitored and captured like any other code, but its findings can't be shown on a line of their own: they
are reported at the nearest caller that has source.""",
        hints=(
            "Write the code to a file and import it to see findings on its lines.",
            "No action needed for generated classes (`dataclass`, `namedtuple`).",
        ),
        example="""\
exec("def gate(x):\\n    return x * (x.sum() > 0)")


def forward(self, x):
    return gate(self.layer(x))  # MP911
""",
    ),
    Code(
        "MP912",
        "unused-ignore",
        "A `magpy: ignore` comment that suppresses nothing",
        Severity.HINT,
        reason="The comment suppresses nothing in this run, and may hide another finding later.",
        explanation="""\
A `# magpy: ignore[...]` or `# magpy: ignore-file[...]` comment names a code, but this run has no finding with that code
on the comment's line (or in its file). The cause was fixed, the code is misspelt, or the run did not reach this line:
a run of a few steps does not cover everything.""",
        hints=(
            "Remove the code from the comment, or the whole comment.",
            "If the line is reached only later in training, check with more `--steps`.",
        ),
        example="""\
def forward(self, x):
    return self.layer(x)  # magpy: ignore[MP102]  # MP912
""",
        fixed="""\
def forward(self, x):
    return self.layer(x)
""",
    ),
    Code(
        "MP913",
        "not-compiled",
        "A region's graphs run operator by operator, not compiled",
        Severity.WARNING,
        reason="The program uses the region's results in a way that compiled graphs don't support.",
        explanation="""\
The region is captured and replayed, but its graphs run one operator at a time, without the backend's optimisations.
Compiled graphs can't be differentiated twice (`create_graph=True`, a gradient penalty) or by forward-mode automatic
differentiation. The message says what the program does with the results.

The results are correct. Replay skips the Python of the region, but no operators are fused.""",
        hints=(
            "Put the whole computation of the gradients into one region, so that its result is differentiated only once.",
            "No action needed if the region is small compared with the rest of the step.",
        ),
        example="""\
y = critic(x)  # MP913 (shown at the forward of the critic)
(gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
penalty = ((gradient.norm(dim=1) - 1) ** 2).mean()
penalty.backward()
""",
    ),
)
