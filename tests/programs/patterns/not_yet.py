"""Patterns that captures don't serve today: fewer than 13 hits of the last 15 calls, or more than 4 captures."""

NOT_YET: frozenset[str] = frozenset()
