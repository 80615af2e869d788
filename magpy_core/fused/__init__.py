"""Kernels of MagPy's own, which rewrites of a graph use. `backends.fusing` chooses them."""
