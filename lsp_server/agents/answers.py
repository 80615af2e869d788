"""What the tools return, as JSON that fits into a model's context. Key types: Checked, Ran, Verified, Kernels.

What is empty or unknown is left out of an answer.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from magpy_core.runner.request import Kind


class At(BaseModel):
    """A position, as in JSON reports: both numbers from 0; `character` counts code points."""

    line: int
    character: int


class Span(BaseModel):
    """A half-open range of a file, as in JSON reports."""

    start: At
    end: At


class FixEdit(BaseModel):
    """Replaces `range` of `file`, whose text is `old_text`, with `new_text`. Edits of one fix do not overlap."""

    file: str
    range: Span
    old_text: str
    new_text: str


class FindingFix(BaseModel):
    """Edits that belong together. `results_stay_the_same`: the text and the run prove it; else it is a suggestion."""

    title: str
    results_stay_the_same: bool
    edits: list[FixEdit]


class OneFinding(BaseModel):
    """A finding. `line` and `column` count from 1. `explain` has the page of `code`."""

    code: str
    severity: Literal["error", "warning", "information", "hint"]
    message: str
    file: str
    line: int
    column: int
    function: str = ""
    hint: str = Field(default="", description="What to do.")
    times: int = Field(default=1, description="How often the run found it.")
    cost: str = Field(default="", description="What it costs per step, or each time, if that was measured.")
    fixes: list[FindingFix] = []


class Checked(BaseModel):
    """A run of a program. `outcome` is `ok` if the program could be run; the findings say what is wrong with it."""

    outcome: Kind
    problem: str = Field(default="", description="Why the outcome is not `ok`, and what to do.")
    steps: int = Field(description="Steps that the program made.")
    summary: list[str] = Field(description="A line for each model, optimizer and training loop, and the totals.")
    findings: list[OneFinding] = Field(description="The most severe and costly first.")
    findings_left_out: int = Field(default=0, description="Findings beyond `limit`.")
    facts: int = Field(default=0, description="Facts that need no action and are not in `findings`.")
    output: list[str] = Field(default=[], description="The end of the program's output, if it failed.")


class Ran(Checked):
    """A run with compiled code."""

    speed: str = Field(default="", description="Compiled and eager steps compared, and what the run has saved or lost.")
    speedup: float | None = Field(default=None, description="Eager time over compiled time of a step; absent: not measured.")
    verdict: Literal["faster", "slower", "unclear", "unmeasured"] = "unmeasured"
    compiled_steps: int = Field(default=0, description="Steps that ran with all of their compiled code.")
    why_not: str = Field(default="", description="Why few steps ran compiled, or none.")


class VerifiedRegion(BaseModel):
    """Calls of one model, optimizer or training loop. Differences are parts of the largest element of their tensor."""

    name: str
    graphs: int = Field(default=0, description="Graphs whose first compiled call was compared.")
    compared: int = Field(default=0, description="Later calls that were compared.")
    differ: int = Field(default=0, description="Calls that differ by more than rounding explains.")
    largest_difference: float = 0.0
    not_compared: list[str] = []


class Verified(Checked):
    """A run in which calls of compiled code were compared with eager mode."""

    verdict: Literal["agrees", "differs", "nothing compared"]
    graphs: int = Field(description="Graphs whose first compiled call was compared.")
    compared: int = Field(description="Later calls that were compared.")
    differ: int = Field(description="Calls that differ by more than rounding explains.")
    regions: list[VerifiedRegion]
    differences: list[str] = Field(default=[], description="Of whole runs: states, printed lines and files that differ.")


class OneKernel(BaseModel):
    """A kernel. `us`: a lower bound for one launch, by the device's published figures."""

    computes: str
    graph: str
    lines: str
    launches: int
    us: float
    bytes: int
    bound: str
    registers: int | None = None
    spill_bytes: int | None = None
    triton: str = Field(default="", description="Its Triton source; only if a line was asked for.")


class Kernels(BaseModel):
    """The kernels of a program on a device, which need not be there."""

    outcome: Kind
    problem: str = ""
    device: str = ""
    summary: list[str] = Field(default=[], description="Totals of each graph, and the hottest lines of the program.")
    kernels: list[OneKernel] = Field(default=[], description="Those that take longest first.")
    kernels_left_out: int = 0
    problems: list[str] = Field(default=[], description="What could not be compiled for the device.")
    output: list[str] = Field(default=[], description="The end of the program's output, if it failed.")
