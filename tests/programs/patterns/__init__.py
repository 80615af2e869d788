"""Ways in which training steps keep state, as people write them. Key name: PATTERNS (name -> Pattern)."""

from tests.programs.patterns import data_decisions, numbers, random_decisions, schedules, structures
from tests.programs.patterns.pattern import PATTERNS, Pattern

__all__ = ["KINDS", "PATTERNS", "Pattern"]

KINDS = tuple(m.__name__.rsplit(".", 1)[-1] for m in (numbers, random_decisions, data_decisions, schedules, structures))
