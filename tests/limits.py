"""Limits for tests that wait for code: other tests may leave no core free, and what tests compile saves nothing.
Key name: WITHOUT_SHARES.
"""

from magpy_core.limits import Limits

WITHOUT_SHARES = Limits(compile_at_once=1000.0, most_gain=1e6)
