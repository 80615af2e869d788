"""The phases of a region, and which may follow which. Key types: Phase; key name: NEXT.

``ARCHITECTURE.md`` has the picture that `mermaid` draws from this table, ``docs/explanation/how-run-decides.md`` an SVG.
"""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """What becomes of a region's calls. Each value says it for the picture."""

    WARM_UP = "The first call runs in eager mode: it often creates what later calls find."
    RECORD = "A call is recorded as soon as the budget allows."
    SAMPLE = "Captures are held: calls that they fit are recorded once more, to see how many paths there are."
    SERVE = "Captures are used for the calls that they fit; another call is recorded, as the budget allows."
    EAGER = "Nothing more is recorded. Captures are still used; other calls run in eager mode."
    FRAGMENTS = "The region's functions are cut at what can't be captured, and each fragment is a region."


#: The phases that may follow each, with what leads there.
NEXT: dict[Phase, dict[Phase, str]] = {
    Phase.WARM_UP: {Phase.RECORD: "second call", Phase.EAGER: "own error"},
    Phase.RECORD: {
        Phase.SAMPLE: "captured, with two decisions on data or more",
        Phase.SERVE: "captured",
        Phase.EAGER: "refused",
    },
    Phase.SAMPLE: {
        Phase.SERVE: "one or two paths, or sampled enough",
        Phase.RECORD: "every capture dropped",
        Phase.EAGER: "refused",
        Phase.FRAGMENTS: "more than two paths",
    },
    Phase.SERVE: {
        Phase.SAMPLE: "code has arrived for a path in doubt",
        Phase.RECORD: "every capture dropped",
        Phase.EAGER: "refused, or recorded too often",
        Phase.FRAGMENTS: "more than two paths",
    },
    Phase.EAGER: {Phase.FRAGMENTS: "eighth call, and captures fit few"},
    Phase.FRAGMENTS: {},
}


def mermaid() -> str:
    """The phases as a state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {Phase.WARM_UP.name}"]
    lines += [
        f"    {phase.name} --> {after.name} : {why}" for phase, others in NEXT.items() for after, why in others.items()
    ]
    return "\n".join(lines) + "\n"
