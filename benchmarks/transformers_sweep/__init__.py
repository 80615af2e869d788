"""Coverage and correctness on Hugging Face transformers: architectures with tiny random configurations.

``python -m benchmarks.transformers_sweep`` builds each architecture of :mod:`.zoo` with random weights (nothing is
downloaded) and runs it in eval and train mode under MagPy and under ``torch.compile(fullgraph=True)``, each in a process of
its own, comparing outputs, gradients and state with eager.
"""
