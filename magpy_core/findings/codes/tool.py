"""MP9xx: the tool itself, its configuration and the entrypoint. Key name: CODES."""

from __future__ import annotations

from magpy_core.findings.code import Code, Severity

CODES = (
    Code(
        "MP901",
        "monitor-failed",
        "The monitor itself failed; the program ran as plain Python",
        Severity.WARNING,
        reason="MagPy ran into an error of its own, so it stepped aside for this region.",
        explanation="""\
An error happened inside MagPy while it recorded the region. Your program was not touched by it: the call went on
as plain Python and its result is the ordinary one. The region is not monitored or compiled any more in this run.

This is a defect of MagPy.""",
        hints=(
            "Please report it with the message and, if you can, the function on this line.",
            "Nothing else needs to be done: the program runs as it would without MagPy.",
        ),
        example="""\
def forward(self, x):  # MP901
    return self.layer(x)
""",
    ),
    Code(
        "MP902",
        "backend-failed",
        "The backend could not compile a capture; it runs as plain Python",
        Severity.WARNING,
        reason="The operator graph is complete, but the backend raised an error while compiling it.",
        explanation="""\
The region was captured, and the backend (Inductor unless told otherwise) failed to turn the graph into code. The
message has the backend's own first line. The region runs as plain Python, with the right results.

Most often the machine is the cause: no C++ compiler, no Python headers, a Triton that does not fit the GPU. Less
often the graph contains an operator that the backend does not know.

Some graphs are not given to the compilers though they would take them: those that they are known to compile into
something else (tensors made in inference mode, a checkpointed part that writes, negative views, a transposed tensor
that is written). The message says which.""",
        hints=(
            "Run `magpy-lsp doctor`: it compiles a tiny graph here and says what is missing.",
            "Try `--backend aot_eager`: if that works, the code generator is at fault and not the capture.",
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
        reason="MagPy depends on details of CPython and torch, and has not been tested with this pair.",
        explanation="""\
MagPy works beside the interpreter, so it needs to know the bytecode of the Python version and some internals of
torch exactly. This interpreter or this torch is outside the tested range (Python 3.11 to 3.13, torch 2.11 to
2.15). Rather than run on luck, it refuses.""",
        hints=(
            "Choose another interpreter with `--python`, for example that of a virtual environment with Python 3.12.",
            "Install a supported torch in it: `python -m pip install 'torch>=2.11,<2.16'`.",
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
        reason="There was nothing to monitor.",
        explanation="""\
The program ran, but MagPy saw no region: no `nn.Module` was called, no optimizer made a step, no function was
decorated with `@magpy_core.compile` and none of the names in `[tool.magpy] regions` was called.

Often the entrypoint only defines things (the work is behind `if __name__ == "__main__"` of another file), needs
arguments to do something, or starts the training in another process.""",
        hints=(
            "Check the entrypoint and its arguments: everything after `--` goes to the program.",
            "Name plain functions that work on tensors in `[tool.magpy] regions`.",
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
        reason="The program ended with an exception of its own, as it would have without MagPy.",
        explanation="""\
The program ended with an exception that nobody caught, or asked for a non-zero exit status. Its traceback is
shown as Python would show it. What was found until then is in the report; the exit status of `magpy-lsp` is 3.""",
        hints=(
            "Run the program without MagPy first: `python train.py`.",
            "If it fails only under MagPy, that is a defect of MagPy: please report it.",
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
        reason="The operating system ended the program's process; Python had no chance to say more.",
        explanation="""\
The process of the program was ended by a signal. SIGKILL most often means that the machine ran out of memory;
SIGSEGV and SIGABRT come from native code. What was found until then is in the report; the exit status of
`magpy-lsp` is 3.""",
        hints=(
            "SIGKILL: use a smaller batch or model for the check; the findings are the same.",
            "SIGSEGV or SIGABRT: run the program without MagPy with `python -X faulthandler train.py` and compare.",
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
        reason="The time given by `--timeout` was over, so the program and its child processes were stopped.",
        explanation="""\
The program was still running when the time limit was reached. It was stopped together with everything it had
started. What was found until then is in the report; the exit status of `magpy-lsp` is 3.""",
        hints=(
            "Give it more time with `--timeout`, or fewer steps with `--steps`.",
            "If it hangs, look for something that waits: input from the terminal, a lock, a worker process.",
        ),
        example="""\
# $ magpy-lsp check --timeout 60 train.py
dataset = download_everything()  # MP907: still here after 60 seconds
""",
    ),
    Code(
        "MP908",
        "bad-entrypoint",
        "The entrypoint can't be run",
        Severity.ERROR,
        reason="Python could not even start the program.",
        explanation="""\
The file or module named as the entrypoint does not exist, cannot be read or is not Python source that can be
compiled. Nothing was run.""",
        hints=(
            "Check the path; it is relative to the current directory.",
            "For a module use `-m package.module` and run it from the directory that contains the package.",
        ),
        example="""\
# $ magpy-lsp check trian.py
# magpy-lsp: MP908 there is no file trian.py
""",
    ),
    Code(
        "MP909",
        "early-exit",
        "The program exited before the requested steps were done",
        Severity.WARNING,
        reason="Fewer steps were seen than asked for, so later ones may have findings that are not in this report.",
        explanation="""\
The program came to its end, without an error, before it had made the number of optimizer steps (or module calls)
that `--steps` asks for. The findings are those of the steps it made.

Values that vary between calls show up only from the second step on, so a report of a single step is incomplete.""",
        hints=(
            "Give the program enough data or epochs for the steps, or lower `--steps`.",
            "`--steps 0` runs it to its end without expecting a number.",
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
        reason="A setting that is not understood is never ignored.",
        explanation="""\
The `[tool.magpy]` table of `pyproject.toml` has a key that does not exist, a value of the wrong type or a code
that is not in the registry, or the file is not valid TOML. The message names the key and the line. Nothing was
run; the exit status is 2.""",
        hints=(
            "`magpy-lsp check --show-settings` prints the settings in use and where each one comes from.",
            "The keys are: entrypoint, steps, timeout, select, ignore, fail-on, baseline, regions, severity, backend, "
            "call-policy, budgets, entrypoints.",
        ),
        example="""\
[tool.magpy]
step = 5  # MP910: there is no key `step`, did you mean `steps`?
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
        "Code without source: findings can't be placed on lines",
        Severity.INFORMATION,
        reason="The code has no readable source file, so what was found in it is reported at its caller.",
        explanation="""\
The region ran Python code that was made by `exec` or `eval`, comes from a compiled `.pyc` file without its
source, or whose file is not readable. It is monitored and captured as any other, but there is no line to show a
finding on: findings inside it are reported at the nearest caller that has source.""",
        hints=(
            "Write the code to a file and import it if you want to see findings inside it.",
            "Generated classes (`dataclass`, `namedtuple`) need nothing.",
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
        reason="The comment hides nothing in this run; left there, it may hide something else later.",
        explanation="""\
A `# magpy: ignore[...]` or `# magpy: ignore-file[...]` comment names a code, and no finding with that code was
made on its line (or in its file) in this run. Either the cause is gone, the code is misspelt, or the run did not
come to this line: a run of a few steps does not see everything.""",
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
)
