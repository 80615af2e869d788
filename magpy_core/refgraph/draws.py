"""Draws: random numbers that the region takes from a random stream of Python or NumPy, in order.

A draw is a read from outside that changes what it reads: replay draws again, in the recorded order, before the graph runs,
and rewinds the streams if the capture is not valid. Key functions: ``stream_of``, ``draw``, ``rewind_streams``.
"""

from __future__ import annotations

import _random
import random
import sys
import types
from typing import Any

from magpy_core.refgraph.kinds import is_a

# Methods that draw a number, or (NumPy) an array of numbers.
_PYTHON = frozenset({"random", "getrandbits"})
_NUMPY = frozenset({
    "rand", "randn", "random", "random_sample", "uniform", "normal", "standard_normal", "randint", "beta", "binomial",
    "exponential", "gamma", "poisson", "laplace", "lognormal", "geometric", "triangular", "standard_exponential",
    "choice", "permutation", "multinomial", "dirichlet", "random_integers", "multivariate_normal",
})  # fmt: skip


def _numpy_stream(owner: Any) -> bool:
    mtrand = sys.modules.get("numpy.random.mtrand")
    return mtrand is not None and type(owner) is mtrand.RandomState


def stream_of(fn: Any) -> Any:
    """The stream from which a bound native method draws; None for any other function."""
    if not is_a(fn, (types.BuiltinMethodType, types.MethodType)):
        return None
    owner = fn.__self__
    name = fn.__name__
    if is_a(owner, _random.Random):
        # a subclass may keep its state somewhere else
        return owner if name in _PYTHON and type(owner) is random.Random else None
    return owner if name in _NUMPY and _numpy_stream(owner) else None


def is_module_stream(stream: Any) -> bool:
    """Whether this is the stream of the module functions of ``random`` or ``numpy.random``, which is never replaced."""
    mtrand = sys.modules.get("numpy.random.mtrand")
    return stream is random._inst or (mtrand is not None and stream is mtrand._rand)


def is_seed(args: tuple[Any, ...]) -> bool:
    """Whether a ``random.Random`` created or seeded with these arguments is determined by them."""
    return len(args) == 1 and type(args[0]) in (int, float, str, bytes)


def draw(stream: Any, key: tuple[int, str, tuple[Any, ...], dict[str, Any]], before: list[tuple[Any, Any]]) -> Any:
    """Draw as recorded: ``key`` is (number of the draw, method, arguments, keyword arguments). The stream's state before its
    first draw is appended to ``before``. Raises LookupError if ``stream`` is not a known kind of stream."""
    if type(stream) is not random.Random and not _numpy_stream(stream):
        raise LookupError("another kind of stream")
    if all(known is not stream for known, _ in before):
        before.append((stream, stream.get_state(legacy=False) if _numpy_stream(stream) else stream.getstate()))
    _, method, args, kwargs = key
    return getattr(stream, method)(*args, **kwargs)


def rewind_streams(before: list[tuple[Any, Any]]) -> None:
    """Restore the state of every stream before its first draw."""
    for stream, state in before:
        if _numpy_stream(stream):
            stream.set_state(state)
        else:
            stream.setstate(state)
