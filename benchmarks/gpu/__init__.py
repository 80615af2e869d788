"""Tests and measurements for a CUDA device, as one command with a time limit: ``python -m benchmarks.gpu.report``."""
