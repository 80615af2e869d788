"""Coverage and correctness on ParityBench: how many real modules become one complete graph, with correct results.

``python -m benchmarks.paritybench CHECKOUT`` runs the cases of a checkout of jansel/pytorch-jit-paritybench, each in a
process of its own, under MagPy and under ``torch.compile(fullgraph=True)``, and compares both with eager.
"""
