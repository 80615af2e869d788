"""Quick fixes: edits that remove a finding and leave the program's results unchanged.

Each module creates fixes of one kind from a ``Problem``: a finding and the current text. A fix is offered only if the text
and the data of the run show that nothing else changes; one that assumes more says so in its title, and is a `rewrite`.
Key function: fixes_for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lsp_server.features.fixes.branches import cond_sketch, where_instead
from lsp_server.features.fixes.causal import say_if_causal
from lsp_server.features.fixes.detaching import detach_instead
from lsp_server.features.fixes.dynamic import mark_dynamic
from lsp_server.features.fixes.identity import compare_values
from lsp_server.features.fixes.moving import move_logging_out
from lsp_server.features.fixes.problem import Fix, Problem
from lsp_server.features.fixes.scalars import number_as_tensor

_FIXERS: dict[str, tuple[Callable[[Problem], Fix | None], ...]] = {
    "MP101": (where_instead, say_if_causal),  # MagPy can't capture regions with torch.cond
    "MP102": (move_logging_out, detach_instead),
    "MP103": (compare_values,),
    "MP202": (number_as_tensor,),
    "MP201": (number_as_tensor,),
    "MP305": (move_logging_out,),
    "MP308": (detach_instead,),
    "MPD101": (where_instead, cond_sketch, move_logging_out, detach_instead),
    "MPD201": (number_as_tensor, mark_dynamic),
}

FIXABLE_CODES = frozenset(_FIXERS)
"""The codes with quick fixes; their registry entries have ``has_fix``."""


def fixes_for(problem: Problem) -> Iterator[Fix]:
    """The fixes of a finding, the most reliable first."""
    for fixer in _FIXERS.get(problem.finding.code, ()):
        fix = fixer(problem)
        if fix is not None:
            yield fix


__all__ = ["FIXABLE_CODES", "Fix", "Problem", "fixes_for"]
