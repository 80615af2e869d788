"""Speed of MagPy itself: ratios taken in one run, interleaved round by round, as process CPU time and wall time.

``python -m benchmarks`` prints a table against the targets and, with ``--json``, writes every sample.
"""
