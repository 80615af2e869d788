"""Writes `how-run-decides.md` with its picture, `spending-limits.md` and the picture in `ARCHITECTURE.md` from the code:
``python -m docs.policy_page``. Key functions: page, limits_page, architecture.
"""

from __future__ import annotations

from pathlib import Path

from docs.phases_picture import svg
from magpy_core.limits import LIMITS
from magpy_core.regions.policy.phase import Phase, mermaid

ROOT = Path(__file__).parents[1]
PAGE, ARCHITECTURE = ROOT / "docs/explanation/how-run-decides.md", ROOT / "ARCHITECTURE.md"
PICTURE, LIMITS_PAGE = ROOT / "docs/images/phases.svg", ROOT / "docs/reference/spending-limits.md"
_HEADING = "## The phases of a region\n"


def page() -> str:
    phases = "".join(f"| `{phase.name}` | {phase.value} |\n" for phase in Phase)
    return f"""# How a run decides

`magpy-lsp run` starts your program in eager mode. It records a region once, compiles the graph in the background, times both, and keeps
the faster one:

```
 the program                                        a background process, in its share of the time
 ───────────                                        ──────────────────────────────────────────────
 call 1 of a region   eager mode
 call 2               monitored once: a capture
 call 3               its guards hold ──── fork ──► Inductor compiles the graph,
 calls 4 ... n        eager mode                    forward and backward, into torch's
        │                                           cache on disk
        ▼                                           │
 call n+1             loads it from there ◄─────────┘  done
 every second call    compiled, eager mode, compiled, ...: both are timed side by side
   of the next 20
 from then on         compiled; or eager mode, if that is faster
```

On a GPU, and with `--steps N`, the program waits for the compiler instead ([when](compilation.md#in-the-background)).

## Phases

A region (a training step, a module's call, an optimizer's step) is always in one phase. The phase says what becomes of a
call that fits no capture; a capture whose guards hold is always used first.

| phase | what becomes of a call that fits no capture |
|---|---|
{phases}
![The phases of a region](../images/phases.svg)

## What may be spent

Recording, loading and compiling cost time before they save any, so each has a budget:

- **Recording** may take {LIMITS.record_at_once:g} s and {LIMITS.record_share:.0%} of the time that the program has run. After
  {LIMITS.wasted_recordings} recordings whose captures were never used, its share is {LIMITS.wasted_share:.0%}.
- **Loading** compiled code may take {LIMITS.load_at_once:g} s together with recording; more once its calls
  have taken twice as long as loading would.
- **Compiling** uses idle cores. Where all cores are busy, it takes {LIMITS.compile_at_once:g} processor seconds and
  {LIMITS.compile_share:.0%} of the program's processor time. A supervising process stops the compiler when it has taken its
  share, and continues it when the share has grown. What all threads of a program lose counts. The first
  {LIMITS.alone_after:g} processor seconds show what compiling takes from the program. A compilation that the share
  does not suffice for waits, and so does one that would take more than its code will save.
- A region that takes less than {LIMITS.least_region_share:.0%} of the time is not compiled. Nor is a capture if captures fit less than
  {LIMITS.few_fit:.0%} of its calls, as when each batch has another length: the next capture, with sizes that vary, fits them all.
- If the program's loops (epochs, batches) show that compiled code is sure to save {LIMITS.payback:g} times what compiling costs, the
  compiler gets that at once. A program on several cores, whose threads would wait for each other, waits for a compiler that
  may take all that it needs.
- Monitoring a call costs about 60 µs. Short calls are sampled, so the number of a region's calls can be an estimate.

All numbers: [spending limits](../reference/spending-limits.md). None of them changes what a program computes.

## What the last run has shown

How long the same command ran, and what compiled code saved in each region, is [kept](../reference/cache.md). If that is at least twice
what recording and loading take, they start immediately in the next run. A run that ended while code was being compiled lets the next one
take a quarter of its processor time for that at once, if the code is sure to save that in a run as long.
After a run that used all cores and was too short for compiled code to pay, the next {LIMITS.verdict_runs} record nothing, unless they
take twice as long or their loops show that they will. After `magpy-lsp compile`, a run needs no such evidence.

## Which is faster

One test answers this, over calls, whole steps or windows of calls. Compiled code and eager mode alternate, neighbours are
compared, and fixed numbers of pairs are taken until the {LIMITS.confidence:.0%} interval of the speedup does not contain 1.

- In a program that trains, whole steps alternate, so that the timings include the backward pass and whatever else compiled
  code changes. Regions that are called often within a step, and programs without an optimizer, alternate call by call.
- A region that is slower compiled runs in eager mode again ([MP401](../../magpy_core/findings/codes/MP401.md)). If no single region is
  slower, but the whole step is, all of them do.
- Under `magpy_core.compile`, calls alternate in random order, at most 400 of them. `wait=True` and `fullgraph=True` switch this off.

## What a run can lose

A program that ends before its compiled code is ready has lost the time of a few recordings
([MP404](../../magpy_core/findings/codes/MP404.md)). Runs of ten seconds were 1 to 2 s slower than 1.05 times eager mode
([measured](../benchmarks.md#short-runs)). `magpy-lsp run` prints what a run has saved or lost.
"""


def limits_page() -> str:
    limits = "".join(f"| `{name}` | {value:g} | {unit} | {why} |\n" for name, value, unit, why in LIMITS.rows())
    return f"""# Spending limits

Every number that decides what a run may spend (`magpy_core/limits.py`). None of them changes what a program computes, and none is a
setting. How they act together: [how a run decides](../explanation/how-run-decides.md).

| name | value | unit | why |
|---|---|---|---|
{limits}"""


def picture() -> str:
    return f"```mermaid\n{mermaid()}```\n"


def architecture() -> str:
    """The page with the picture as it is now."""
    before, _, rest = ARCHITECTURE.read_text(encoding="utf-8").partition(_HEADING)
    after = rest[rest.index("\n## ") :]
    text = "Only `Policy` writes it ([how a run decides](docs/explanation/how-run-decides.md))."
    return f"{before}{_HEADING}\n{text}\n\n{picture()}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    PICTURE.write_text(svg(), encoding="utf-8")
    LIMITS_PAGE.write_text(limits_page(), encoding="utf-8")
    ARCHITECTURE.write_text(architecture(), encoding="utf-8")
