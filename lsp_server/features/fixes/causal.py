"""Passes ``is_causal=`` where a layer of torch looks at its mask's values to find that out. Key function: say_if_causal.

The run shows what torch found. Whether the mask is the same in each call, nothing shows: the title says what it assumes.
"""

from __future__ import annotations

import ast

from lsp_server.features.fixes.problem import Edit, Fix, Problem
from magpy_core.findings import Range

_DETECTS = "_detect_is_causal_mask"
_ARGUMENTS = {
    "TransformerEncoder.forward": ("mask", "is_causal"),
    "TransformerDecoder.forward": ("tgt_mask", "tgt_is_causal"),
}


def say_if_causal(problem: Problem) -> Fix | None:
    path, call = problem.finding.path[-3:], problem.expression()
    if (
        len(path) < 3
        or path[0] != problem.finding.location
        or path[2].function != _DETECTS
        or not isinstance(call, ast.Call)
    ):
        return None
    mask, argument = _ARGUMENTS.get(path[1].function, ("", ""))
    passed = {keyword.arg for keyword in call.keywords}
    if mask not in passed or argument in passed or None in passed:
        return None  # passed already, maybe in `**options`, or the mask is positional, and what follows may be, too
    found = {value.repr for value in problem.finding.values if value.name == "value"}
    if found not in ({"True"}, {"False"}):
        return None  # it differs from call to call
    (causal,) = found
    last = problem.range_of(call.keywords[-1].value).end
    when = "always" if causal == "True" else "never"
    title = f"Pass `{argument}={causal}`, if `{mask}` is {when} causal"
    return Fix(title, (Edit(Range(last, last), f", {argument}={causal}"),), rewrite=True)
