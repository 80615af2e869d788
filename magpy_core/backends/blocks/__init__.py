"""Repeated blocks of an operator graph are compiled once and called as often as they are repeated.

The graph is cut at the borders of its blocks into units; among units that are the same, one is compiled, forward and
backward. One function calls the compiled units in order, and autograd chains their backward passes. The whole graph is still
recorded, guarded and replayed as one. Key function: `compile_blocks`.
"""

from magpy_core.backends.blocks.compiling import compile_blocks

__all__ = ["compile_blocks"]
