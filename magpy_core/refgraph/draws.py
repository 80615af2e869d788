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
# Of `random.Random`, written in Python: how often they ask for a number depends on the numbers that they get.
_IN_PYTHON = frozenset(
    getattr(random.Random, name)
    for name in ("_randbelow", "betavariate", "gammavariate", "gauss", "normalvariate", "lognormvariate", "vonmisesvariate")
)
_NAMES_IN_PYTHON = frozenset(one.__name__ for one in _IN_PYTHON)
_NUMPY = frozenset({
    "rand", "randn", "random", "random_sample", "uniform", "normal", "standard_normal", "randint", "beta", "binomial",
    "exponential", "gamma", "poisson", "laplace", "lognormal", "geometric", "triangular", "standard_exponential",
    "choice", "permutation", "multinomial", "dirichlet", "random_integers", "multivariate_normal", "integers",
})  # fmt: skip


class Drawn:
    """An argument of a draw that is computed from numbers drawn before. ``sym``: the symbol."""

    def __init__(self, sym: Any) -> None:
        self.sym = sym

    def __repr__(self) -> str:
        return str(self.sym.describe())

    def __deepcopy__(self, memo: Any) -> Drawn:
        return self


def _numpy_stream(owner: Any) -> bool:
    mtrand = sys.modules.get("numpy.random.mtrand")
    return mtrand is not None and (type(owner) is mtrand.RandomState or _is_generator(owner))


def _is_generator(stream: Any) -> bool:
    """Whether this is what ``numpy.random.default_rng()`` returns."""
    module = sys.modules.get("numpy.random._generator")
    return module is not None and type(stream) is module.Generator


def _state(stream: Any) -> Any:
    if type(stream) is random.Random:
        return stream.getstate()
    return stream.bit_generator.state if _is_generator(stream) else stream.get_state(legacy=False)


def method_of_stream(fn: Any, args: tuple[Any, ...]) -> Any:
    """The bound method if ``fn`` is a method of a random stream that is written in Python, and ``args`` begin with the
    stream; None for any other function."""
    is_known = fn in _IN_PYTHON and bool(args) and _has_no_methods_of_its_own(args[0])
    return types.MethodType(fn, args[0]) if is_known else None


def _has_no_methods_of_its_own(stream: Any) -> bool:
    """Whether nothing of the program's runs when a method in Python asks the stream for numbers. ``stream.random = ...`` may
    do anything."""
    return type(stream) is random.Random and vars(stream).keys() <= {"gauss_next"}


def is_in_python(fn: Any) -> bool:
    """Whether a method that draws is written in Python."""
    return type(fn) is types.MethodType


def stream_of(fn: Any) -> Any:
    """The stream from which a bound method draws; None for any other function."""
    if not is_a(fn, (types.BuiltinMethodType, types.MethodType)):
        return None
    owner = fn.__self__
    if type(fn) is types.MethodType and type(owner) is random.Random and fn.__func__ in _IN_PYTHON:
        return owner if _has_no_methods_of_its_own(owner) else None
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
    first draw is appended to ``before``. Raises LookupError if ``stream`` is not a known kind of stream, or the program has
    replaced methods of it."""
    if type(stream) is not random.Random and not _numpy_stream(stream):
        raise LookupError("another kind of stream")
    _, method, args, kwargs = key
    if method in _NAMES_IN_PYTHON and not _has_no_methods_of_its_own(stream):
        raise LookupError("the program has replaced a method")
    if all(known is not stream for known, _ in before):
        before.append((stream, _state(stream)))
    return getattr(stream, method)(*args, **kwargs)


def rewind_streams(before: list[tuple[Any, Any]]) -> None:
    """Restore the state of every stream before its first draw. Generators may share one: the earliest state is the last."""
    for stream, state in reversed(before):
        if type(stream) is random.Random:
            stream.setstate(state)
        elif _is_generator(stream):
            stream.bit_generator.state = state
        else:
            stream.set_state(state)
