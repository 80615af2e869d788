"""Performance of MagPy: ratios measured in one run, interleaved by round, as process CPU time and wall time.

``python -m benchmarks`` prints a table against the targets and, with ``--json``, writes every sample.
"""
