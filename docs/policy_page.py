"""Writes `docs/policy.md` and the picture in `ARCHITECTURE.md` from the code: ``python docs/policy_page.py``."""

from __future__ import annotations

from pathlib import Path

from magpy_core.limits import LIMITS
from magpy_core.regions.policy.phase import Phase, mermaid

ROOT = Path(__file__).parents[1]
PAGE, ARCHITECTURE = ROOT / "docs" / "policy.md", ROOT / "ARCHITECTURE.md"
_HEADING = "## The phases of a region\n"


def page() -> str:
    phases = "".join(f"| `{phase.name}` | {phase.value} |\n" for phase in Phase)
    limits = "".join(f"| `{name}` | {value:g} | {unit} | {why} |\n" for name, value, unit, why in LIMITS.rows())
    return f"""# How a run decides

A region is what MagPy captures as a unit: a training step, a module's call, an optimizer's step. At any time it is in one
phase, which says what becomes of its calls. A capture whose guards hold is always used first; the phase is about the others.

| phase | what becomes of a call that fits no capture |
|---|---|
{phases}
{picture()}
Recording and loading compiled code make the program wait, so both have a budget: a share of the time that the program has
run, and more if the last run of the same command has shown that it pays back. Compiling runs beside the program, in a
process that takes what no one else uses, and a small share of the program's own processor time where every core is busy.

Whether compiled code is faster is answered by one test, over calls, whole steps or windows of calls. Compiled code and eager
mode alternate, neighbours are compared, and the test takes fixed numbers of pairs until the speedup's 95% interval
does not contain 1. What is slower is retired: its calls run in eager mode again.

## Limits

Every number that decides what is spent (`magpy_core/limits.py`). None of them changes what a program computes.

| name | value | unit | why |
|---|---|---|---|
{limits}"""


def picture(*, explained: bool = True) -> str:
    return f"```mermaid\n{mermaid(explained=explained)}```\n"


def architecture() -> str:
    """The page with the picture as it is now."""
    before, _, rest = ARCHITECTURE.read_text(encoding="utf-8").partition(_HEADING)
    after = rest[rest.index("\n## ") :]
    text = "Only `Policy` writes it ([how a run decides](docs/policy.md))."
    return f"{before}{_HEADING}\n{text}\n\n{picture(explained=False)}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    ARCHITECTURE.write_text(architecture(), encoding="utf-8")
