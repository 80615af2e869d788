"""The verdict about a compiled run of a program, from what it and eager runs have left. Key type: RunVerdict; key functions:
judge, main.

``python -m magpy_core.verification.runs.verdict FOLDER`` prints it as JSON; lsp_server/cli/verify.py does so, as it has no
torch. What is compared, and why so: README.md.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from magpy_core.limits import LIMITS
from magpy_core.verification.runs import printed, states, written
from magpy_core.verification.runs.run_files import END, RunFiles, runs_in
from magpy_core.verification.runs.states import Compared
from magpy_core.verification.runs.updates import Amplified, amplified

Kind = Literal["equal", "rounding", "differs", "unseeded", "nothing"]
Need = Literal["", "again", "noise", "origin"]


@dataclass(frozen=True)
class Found:
    """A difference that rounding does not explain. ``what``: state, steps, stdout, stderr or file. ``name``: of the tensor
    or the file. ``step``: after which it is there; None: at the end. ``line``: of the output. ``largest``: the largest
    difference of an element, and ``explained``: what noise changes there, at most; None if it is no number."""

    what: str
    name: str
    text: str
    step: int | None = None
    line: int | None = None
    largest: float | None = None
    explained: float | None = None


@dataclass(frozen=True)
class Growth:
    """How far runs are from the eager one after ``step`` (None: at the end), as a part of a tensor's largest element."""

    step: int | None
    compiled: float
    noise: float
    where: str


@dataclass
class RunVerdict:
    """``need``: the run that has to be made before the verdict is final. ``ignored``: what was not compared, and why.
    ``is_chaotic``: rounding noise alone changes the state at the end so much that comparing it says little. ``by_ties``:
    only noise that separates equal values explains a difference. ``origin``: the operation that first differs, as
    ``verification.origin.Origin``; None: ``why_no_origin``. ``amplified``: by which optimizer. ``between``: the last step
    after which states are equal, and the first after which they differ; 0: none."""

    kind: Kind = "equal"
    need: Need = ""
    steps: int = 0
    compared_steps: list[int] = field(default_factory=list)
    differences: list[Found] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    noisy_runs: int = 0
    is_chaotic: bool = False
    by_ties: bool = False
    origin: dict[str, Any] | None = None
    why_no_origin: str = ""
    amplified: Amplified | None = None
    between: tuple[int, int] = (0, 0)
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def judge(base: Path) -> RunVerdict:
    """The verdict from the runs in ``base``, as far as it can be known from them."""
    eager, compiled, again, noisy = runs_in(base)
    labels = [label for label in eager.labels if label in compiled.labels]
    verdict = RunVerdict(steps=eager.steps, noisy_runs=len(noisy))
    verdict.compared_steps = [int(label) for label in labels if label != END]
    if END not in labels:
        reason = compiled.error or eager.error or "the process ended before it could be saved"
        return RunVerdict("nothing", why=f"The state at the end was not saved: {reason}.")
    if again is not None and (label := _first_unequal(eager, again, labels)) is not None:
        verdict.kind, verdict.why = "unseeded", "" if label == END else label
        return verdict
    differ = _states(verdict, eager, compiled, noisy, labels)
    verdict.is_chaotic = any(one.noise > LIMITS.chaos for one in verdict.growth if one.step is None)
    differ |= _steps(verdict, eager, compiled, noisy)
    differ |= _output(verdict, eager, compiled, again, noisy)
    differ |= _files(verdict, eager, compiled, again, noisy)
    if differ:
        _explain(verdict, eager, compiled, labels, base)
    verdict.kind = "differs" if verdict.differences else "rounding" if differ else "equal"
    verdict.by_ties = verdict.kind == "rounding" and len(noisy) >= LIMITS.noisy_programs
    if differ and again is None:
        verdict.need = "again"
    elif differ and len(noisy) < (LIMITS.noisy_programs if verdict.differences else 1):
        verdict.need = "noise"
    elif (
        differ
        and verdict.origin is None
        and _is_too_early(compiled.first_difference, verdict)
        and not (base / "origin").exists()
    ):
        verdict.need = "origin"
    return verdict


def _first_unequal(eager: RunFiles, again: RunFiles, labels: list[str]) -> str | None:
    for label in labels:
        if label in again.labels and not states.same_bits(eager.state(label), again.state(label)):
            return label
    return None


def _states(verdict: RunVerdict, eager: RunFiles, compiled: RunFiles, noisy: Any, labels: list[str]) -> bool:
    """Adds how states differ. Whether there is any difference."""
    unexplained: list[Found] = []
    found = Compared(is_equal=True)
    for label in labels:
        others = [run.state(label) for run in noisy if label in run.labels]
        plain, other = eager.state(label), compiled.state(label)
        if label == END and (alone := plain.keys() ^ other.keys()):
            verdict.ignored.append(f"tensors that only one run has ({len(alone)}, such as {min(alone)})")
        found = states.compare(plain, other, others)
        step = None if label == END else int(label)
        verdict.growth.append(Growth(step, found.by_code, found.by_noise, found.where))
        if found.worst is not None:
            worst = found.worst
            unexplained.append(
                Found("state", worst.what, worst.text, step, None, worst.largest, _noise(eager, noisy, label, worst.what))
            )
    if found.is_equal and unexplained:  # the end is equal, so the runs were not at the same point before
        verdict.ignored.append("states before the end: the runs were not at the same point of a step")
        return False
    verdict.differences += unexplained[:1]  # later ones follow from it
    return any(one.compiled for one in verdict.growth) or not found.is_equal


def _is_too_early(looked: dict[str, Any], verdict: RunVerdict) -> bool:
    """Whether the first difference of a call has left no trace in the state, or no call differed until the time was up,
    before a state does."""
    origin, until = looked.get("origin"), looked.get("until")
    step = origin["step"] if origin else until
    return step is not None and int(step) <= verdict.between[0]


def _explain(verdict: RunVerdict, eager: RunFiles, compiled: RunFiles, labels: list[str], base: Path) -> None:
    """Adds which operation differs first, and which optimizer makes more of it."""
    first = next((one.step for one in verdict.growth if one.compiled), None)
    before = (
        one.step for one in verdict.growth if not one.compiled and one.step is not None and one.step < (first or math.inf)
    )
    if any(one.compiled for one in verdict.growth):
        verdict.between = (max(before, default=0), first or 0)
    looked = compiled.first_difference
    if _is_too_early(looked, verdict):
        looked = RunFiles(base / "origin").first_difference
    found, reasons = looked.get("origin"), looked.get("why", ())
    if found is not None and (first is None or found["step"] <= first):
        verdict.origin = found
    elif found is not None:
        verdict.why_no_origin = f"the first difference in compiled code is in step {found['step']:,}, which is later"
    else:
        verdict.why_no_origin = "; ".join(reasons) or "all calls of compiled code that were compared gave the same bits"
    steps = {int(label): (eager.updates(label), compiled.updates(label)) for label in labels if label != END}
    verdict.amplified = amplified({step: pair for step, pair in steps.items() if pair[0] and pair[1]})


def _noise(eager: RunFiles, noisy: Any, label: str, name: str) -> float | None:
    from magpy_core.verification.difference import elementwise

    value: Any = eager.state(label).get(name)
    others: list[Any] = [run.state(label).get(name) for run in noisy if label in run.labels]
    sizes = [float(elementwise(value, one).max()) for one in others if one is not None and one.shape == value.shape]
    return max(sizes, default=None)


def _steps(verdict: RunVerdict, eager: RunFiles, compiled: RunFiles, noisy: Any) -> bool:
    if eager.steps == compiled.steps:
        return False
    if all(run.steps == eager.steps for run in noisy):
        text = f"eager mode makes {eager.steps:,} steps, compiled code {compiled.steps:,}"
        verdict.differences.append(Found("steps", "steps", text))
    return True


def _output(verdict: RunVerdict, eager: RunFiles, compiled: RunFiles, again: RunFiles | None, noisy: Any) -> bool:
    differ = False
    for stream in ("stdout", "stderr"):
        a, b = eager.printed(stream), compiled.printed(stream)
        second = None if again is None else again.printed(stream)
        found = printed.compare(a, b, second, [run.printed(stream) for run in noisy])
        if found.difference:
            verdict.differences.append(Found(stream, stream, found.difference, line=found.line))
        if found.ignored:
            verdict.ignored.append(f"{stream}: {found.ignored}")
        differ |= bool(found.difference) or found.is_rounding
    return differ


def _files(verdict: RunVerdict, eager: RunFiles, compiled: RunFiles, again: RunFiles | None, noisy: Any) -> bool:
    differ = False
    for name in sorted(eager.files.keys() | compiled.files.keys()):
        found = written.compare(
            eager.files.get(name),
            compiled.files.get(name),
            None if again is None else again.files.get(name),
            [run.files.get(name) for run in noisy],
            is_repeated=again is not None,
        )
        if found.difference:
            verdict.differences.append(Found("file", name, found.difference))
        if found.ignored:
            verdict.ignored.append(f"{name}: {found.ignored}")
        differ |= bool(found.difference) or found.is_rounding
    return differ


def main() -> None:
    sys.stdout.write(json.dumps(judge(Path(sys.argv[1])).to_json()) + "\n")


if __name__ == "__main__":
    main()
