"""The tables of ``docs/explanation/torch-issues.md``. Key functions: tables, counts."""

from __future__ import annotations

from collections import Counter

from tests.soundness.torch_issues.case import Case, Ours

_WORDS: dict[Ours, str] = {"found": "found", "right": "right", "eager": "eager mode", "rounding": "rounding"}


def counts(cases: list[Case]) -> Counter[str]:
    """Of the cases that torch.compile gets wrong: what MagPy gives."""
    return Counter(_WORDS[case.ours] for case in cases if case.compiled == "wrong")


def tables(cases: list[Case]) -> tuple[str, str]:
    """Of the cases that torch.compile gets wrong, and of the others."""
    wrong = ["| issue | with `torch.compile` 2.13 | MagPy |", "|---|---|---|"]
    wrong += [f"| {_link(case)} | {case.wrong} | {_WORDS[case.ours]} |" for case in cases if case.compiled == "wrong"]
    others = ["| issue | with `torch.compile`, by the issue | `torch.compile` 2.13 | MagPy |", "|---|---|---|---|"]
    for case in cases:
        if case.compiled != "wrong":
            compiled = "raises an error" if case.compiled == "raises" else "right"
            others.append(f"| {_link(case)} | {case.wrong} | {compiled} | {_WORDS[case.ours]} |")
    return "\n".join(wrong), "\n".join(others)


def _link(case: Case) -> str:
    return f"[{case.issue}](https://github.com/pytorch/pytorch/issues/{case.issue})"
