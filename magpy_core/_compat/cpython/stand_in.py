"""Code that stands in for a function's own: a receiver gets the arguments of its calls.

Replacing ``__code__`` reaches every reference to a function: bound methods, closures, names in other modules. The stand-in
has the name, file, first line, parameters and free variables of the original. Key function: stand_in.
"""

from __future__ import annotations

import ast
import inspect
from types import CodeType
from typing import Any

_RECEIVER = "magpy: the receiver"


def can_stand_in(code: CodeType) -> bool:
    """Whether the calls of a function with ``code`` run it from start to end."""
    plain, special = inspect.CO_NEWLOCALS, inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    return bool(code.co_flags & plain) and not code.co_flags & special


def stand_in(code: CodeType, receiver: Any) -> CodeType:
    """Code whose calls return ``receiver @ (args, kwargs)``; raises ValueError if ``code`` has names that no source has."""
    names = [f"a{i}" for i in range(len(code.co_varnames))]  # as in 3.12's comprehensions, names may be `.0`
    count, positional = code.co_argcount, code.co_posonlyargcount
    keywords = names[count : count + code.co_kwonlyargcount]
    others = iter(names[count + code.co_kwonlyargcount :])
    star = next(others) if code.co_flags & inspect.CO_VARARGS else ""
    double = next(others) if code.co_flags & inspect.CO_VARKEYWORDS else ""
    only = [*names[:positional], "/"] if positional else []
    bare = ["*"] if keywords and not star else []
    parameters = [*only, *names[positional:count], *([f"*{star}"] if star else bare), *keywords]
    given = ", ".join([*names[:count], *([f"*{star}"] if star else [])])
    named = ", ".join([*(f"{code.co_varnames[count + i]!r}: {name}" for i, name in enumerate(keywords))])
    named += (", " if named and double else "") + (f"**{double}" if double else "")
    if double:
        parameters.append(f"**{double}")
    comma = "," if given else ""
    free = code.co_freevars
    source = f"def outer({', '.join(free)}):\n def inner({', '.join(parameters)}):\n"
    if free:
        source += f"  if 0: {', '.join(free)}\n"
    # an operator, not a call: calling a constant is a SyntaxWarning
    source += f"  return {_RECEIVER!r} @ (({given}{comma}), {{{named}}})\n"
    try:
        module = compile(ast.parse(source), code.co_filename, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise ValueError(f"{code.co_name}: {error}") from None
    (outer,) = (const for const in module.co_consts if isinstance(const, CodeType))
    (inner,) = (const for const in outer.co_consts if isinstance(const, CodeType))
    count_all = count + code.co_kwonlyargcount + bool(star) + bool(double)
    return inner.replace(
        co_consts=tuple(receiver if const == _RECEIVER else const for const in inner.co_consts),
        co_varnames=code.co_varnames[:count_all],
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_firstlineno=code.co_firstlineno,
        co_flags=code.co_flags & ~(inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS) | inner.co_flags,
    )
