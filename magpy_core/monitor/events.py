"""Events of the monitor: :class:`Site` (where an event happened) and :class:`Observer` (one method per event).

Subclass Observer and override what you need: an event whose method is not overridden costs almost nothing. Methods run
*before* the operation, so they see the state before it; the ``*_result`` methods run after it and return the result, or an
equal value of the same type with a new identity.
"""

from __future__ import annotations

from types import CellType, CodeType
from typing import Any

from magpy_core._compat.cpython.assembler import Position
from magpy_core._compat.torch.eval_frame import Frame


class Site:
    """One instrumented instruction of a function.

    ``code`` is the original code object; ``index`` is unique in it; ``name`` is the attribute, global, cell or module name,
    the operator's symbol ("+", "+=", "<", "not in", "is"), or a format's conversion ("s", "r", "a"). Lines are 1-based,
    columns 0-based UTF-8 byte offsets, as in ``code.co_positions()``; 0 if unknown.
    """

    __slots__ = ("code", "col", "end_col", "end_lineno", "index", "lineno", "name", "opname")

    def __init__(
        self, code: CodeType, index: int, opname: str, name: str | None = None, position: Position = (None, None, None, None)
    ) -> None:
        self.code = code
        self.index = index
        self.opname = opname
        self.name: Any = name
        lineno, end_lineno, col, end_col = position
        self.lineno = lineno or 0
        self.end_lineno = end_lineno or self.lineno
        self.col = col or 0
        self.end_col = end_col or 0

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name is not None else ""
        return f"<{self.code.co_qualname}:{self.lineno}:{self.col} {self.opname}{name}>"


MaybeSite = Site | None
"""None: not at an instruction of the program."""


class Observer:
    """Receives a recording's events. The methods of this base class do nothing."""

    def enter_frame(self, frame: Frame) -> bool:
        """A function, generator or coroutine starts; True: report its events, False: run it uninstrumented."""
        return True

    def global_read(self, site: Site) -> None:
        """``site.name`` is read from the globals (or builtins) of the running frame: :func:`current_globals`."""

    def global_write(self, site: Site, value: object) -> None: ...

    def global_delete(self, site: Site) -> None: ...

    def cell_read(self, site: Site, cell: CellType) -> None:
        """A variable shared with an inner or outer function is read, or one that an inner function captures."""

    def cell_write(self, site: Site, cell: CellType, value: object) -> None: ...

    def cell_delete(self, site: Site, cell: CellType) -> None: ...

    def attr_read(self, site: Site, obj: object) -> None:
        """``obj.<site.name>``; methods too. ``super().x`` is a call of super, then a read of x from its result."""

    def attr_result(self, site: Site, obj: object, result: Any) -> object:
        """Only for the attributes in ``monitor.emit.WITH_RESULT``."""
        return result

    def attr_write(self, site: Site, obj: object, value: object) -> None: ...

    def attr_delete(self, site: Site, obj: object) -> None: ...

    def item_read(self, site: Site, obj: object, key: object) -> None: ...

    def item_read_result(self, site: Site, obj: object, key: object, result: Any) -> object:
        return result

    def item_write(self, site: Site, obj: object, key: object, value: object) -> None: ...

    def item_delete(self, site: Site, obj: object, key: object) -> None: ...

    def call(self, site: Site, fn: object, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> None:
        """Any call, also the ``__exit__`` that a with block calls when an exception leaves it."""

    def call_result(self, site: Site, result: Any) -> object:
        return result

    def binary(self, site: Site, lhs: object, rhs: object) -> None: ...

    def binary_result(self, site: Site, lhs: object, rhs: object, result: Any) -> object:
        return result

    def unary(self, site: Site, value: object) -> None:
        """``-``, ``+``, ``~``; ``not`` is :meth:`truth`."""

    def unary_result(self, site: Site, value: object, result: Any) -> object:
        return result

    def compare(self, site: Site, lhs: object, rhs: object) -> None:
        """``<  <=  ==  !=  >  >=``"""

    def compare_result(self, site: Site, lhs: object, rhs: object, result: Any) -> object:
        return result

    def is_(self, site: Site, lhs: object, rhs: object) -> None:
        """``is`` / ``is not``, branches on None included."""

    def is_result(self, site: Site, lhs: object, rhs: object, result: Any) -> object:
        return result  # only for `is` in the source, not for a branch on None

    def contains(self, site: Site, item: object, container: object) -> None: ...

    def truth(self, site: Site, value: object) -> None:
        """A branch or ``not`` tests the truth of ``value``."""

    def iterate(self, site: Site, obj: object) -> None: ...

    def iterate_result(self, site: Site, obj: object, result: Any) -> object:
        """``result`` is the iterator that the for loop uses; another iterator over equal elements may replace it."""
        return result

    def unpack(self, site: Site, obj: object) -> None: ...

    def extend(self, site: Site, target: object, iterable: object) -> None:
        """``[*x]``, ``{**x}``, ``f(*x)``: ``target`` is the container being filled; None for the arguments of a call."""

    def hashed(self, site: Site, key: object) -> None:
        """``{key}``, ``{key: value}`` and comprehensions: ``key`` is added to a new set or dict."""

    def match(self, site: Site, subject: object) -> None: ...

    def match_class(self, site: Site, subject: object, cls: object, names: tuple[str, ...]) -> None:
        """A class pattern with the attribute names of its keywords; its positional ones are ``cls.__match_args__``."""
        self.match(site, subject)

    def format(self, site: Site, value: object, spec: object) -> None:
        """A field of an f-string is formatted; one of a template string (3.14) is made, and never formatted by itself."""

    def format_result(self, site: Site, value: object, spec: object, result: Any) -> object:
        return result

    def joined_result(self, site: Site, parts: tuple[str, ...], result: Any) -> object:
        """The ``parts`` of an f-string, of which some are formatted values, are now one text."""
        return result

    def with_enter(self, site: Site, manager: object) -> None: ...

    def import_name(self, site: Site, name: str) -> None: ...

    def import_from(self, site: Site, module: object) -> None: ...

    def raise_(self, site: Site, exc: object) -> None:
        """``raise exc``; for a bare ``raise``, the exception being handled (None if there is none)."""

    def caught(self, site: Site, error: object, classes: object) -> None:
        """``except classes`` tests whether it catches ``error``; ``classes`` is a class or a tuple of classes."""

    def yield_(self, site: Site, value: object) -> None:
        """A generator yields ``value``."""

    def return_(self, site: Site, value: object) -> None:
        """A function returns ``value`` to its caller: another function, or native code (for example ``sorted``, from a key
        function). From 3.12 on, the return of a constant has no event."""
