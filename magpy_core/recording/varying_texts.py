"""VaryingTexts: texts with numbers in them that vary are symbolic, too: they may be moved, stored, printed and returned, and
replay makes them again. Code that needs the exact text guards the numbers in it. A tensor of one number is formatted as its
number is: `f"{loss:.4f}"`.

Key type: VaryingTexts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial
from types import BuiltinFunctionType, GeneratorType
from typing import Any

import torch

from magpy_core._compat.cpython.fresh import supports_fresh_text
from magpy_core.monitor.events import MaybeSite
from magpy_core.opgraph import texts
from magpy_core.opgraph.reads import holds_one_number
from magpy_core.opgraph.scalars import Sym
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds

_Made = tuple[Callable[..., Any], tuple[Any, ...]]
"""What makes a text, and of what: numbers and texts that may have symbols, and constants."""
_IN_TEXTS = kinds.PYTHON_NUMBERS | kinds.TEXT_TYPE  # how NumPy's numbers look depends on settings
_BOUNDED = ("node", "clock")  # integers of 64 bits
_CONVERTS = ((str, "s"), (repr, "r"), (ascii, "a"))


class VaryingTexts(Tracker):
    """Handles texts that are made of symbols. ``_shown``: the tensors whose numbers the text that is being made shows, by
    their ids, and the numbers as soon as they have been read."""

    _shown: dict[int, tuple[torch.Tensor, Any]] = field(default_factory=dict, init=False)

    def varies(self, value: Any) -> bool:
        """Whether a number or a text has a symbol."""
        scalars = self.ledger.scalars
        return bool(scalars) and type(value) in _IN_TEXTS and scalars.get(value) is not None

    def _any_varies(self, values: Iterable[Any]) -> bool:
        return bool(self.ledger.scalars) and any(map(self.varies, values))

    def can_format(self, value: Any, conversion: str | None, spec: Any) -> bool:
        """Whether ``f"{value!conversion:spec}"`` is a text that varies."""
        known = spec is None or (type(spec) is str and not self.varies(spec))
        return known and self.varies(value) and texts.can_format(value, conversion, spec or "")

    def formatted(self, site: MaybeSite, value: Any, conversion: str | None, spec: Any, result: Any) -> Any:
        """The text of a formatted ``value``."""
        if type(value) is torch.Tensor:
            return self._of_tensors(site, partial(_formatted, spec or ""), (value,), result) if self._shown else result
        if not self.can_format(value, conversion, spec):
            return result
        return self._made(site, (texts.formatted, (value, conversion, spec or "")), result)

    def joined(self, site: MaybeSite, parts: tuple[Any, ...], result: Any) -> Any:
        """The text that ``parts`` are joined to."""
        return self._made(site, (texts.joined, parts), result) if self._any_varies(parts) else result

    def can_percent(self, template: Any, values: Any) -> bool:
        """Whether ``template % values`` is a text that varies."""
        given = values if type(values) is tuple and self.refgraph.node(values) is None else (values,)
        known = type(template) is str and not self.varies(template)
        return known and self._any_varies(given) and texts.can_percent(template, given)

    def percent(self, site: MaybeSite, template: Any, values: Any, result: Any) -> Any:
        """The text ``template % values``."""
        if self._shown:
            given = values if type(values) is tuple else (values,)
            return self._of_tensors(site, partial(_percent, template), given, result)
        if not self.can_percent(template, values):
            return result
        given = values if type(values) is tuple else (values,)
        return self._made(site, (texts.percent, (template, *given)), result)

    def makes(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call is about to make a text that varies: then its result carries a symbol."""
        if self._shown:
            self._forget(site)
        if self._makes_of_tensors(site, fn, args, kwargs):
            return True
        if not self.ledger.scalars:
            return False
        made = self._of_call(fn, args, kwargs)
        if made is not None:
            self._expect(site, made, args, kwargs)
        return made is not None

    def dumps(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """The same of ``json.dumps``, whose arguments have been read."""
        if fn is not json.dumps or len(args) != 1 or not texts.LOOKS.issuperset(kwargs):
            return False
        values = texts.values_in(args[0])
        if values is None or not self._any_varies(values) or texts.values_in(list(kwargs.values())) is None:
            return False
        self._expect(site, (texts.Json(args[0], kwargs), tuple(values)), args, kwargs)
        return True

    def json_text(self, tree: Any, options: dict[str, Any]) -> str | None:
        """The text ``json.dumps(tree, **options)``, with a symbol if it varies; None for other trees."""
        values = texts.values_in(tree)
        if values is None or not texts.LOOKS.issuperset(options) or texts.values_in(list(options.values())) is None:
            return None
        text = json.dumps(tree, **options)
        made = texts.Json(tree, options), tuple(values)
        return self._made(self.journal.site, made, text) if self._any_varies(values) else text

    def _expect(self, site: MaybeSite, made: _Made, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.context.stack.expect(
            lambda result: self._made(site, made, result), lambda: self.context.numbers.escape_all(site, args, kwargs)
        )

    def _of_call(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Made | None:
        """What a builtin callable makes a text of."""
        if type(fn) is BuiltinFunctionType and type(fn.__self__) is str:
            return self._of_method(fn.__self__, fn.__name__, args, kwargs)
        if kwargs or not args:
            return None
        if fn is format and len(args) <= 2 and self.can_format(args[0], None, "".join(args[1:])):
            return texts.formatted, (args[0], None, "".join(args[1:]))
        conversion = next((name for known, name in _CONVERTS if fn is known), None)
        if len(args) == 1 and conversion is not None and self.varies(args[0]):
            return texts.formatted, (args[0], conversion, "")
        return None

    def _of_method(self, text: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Made | None:
        if name == "format" and not self.varies(text):
            names, values = tuple(kwargs), (*args, *kwargs.values())
            can = self._any_varies(values) and texts.can_fill(text, names, values)
            return (texts.filled, (text, names, *values)) if can else None
        if kwargs:
            return None
        if name == "join" and len(args) == 1:
            return self._of_join(text, args[0])
        plain = all(type(a) in (str, int) and not self.varies(a) for a in args)
        return (texts.METHODS[name], (text, *args)) if name in texts.METHODS and self.varies(text) and plain else None

    def _of_join(self, separator: str, parts: Any) -> _Made | None:
        if type(parts) is GeneratorType and self.refgraph.node(parts) is None and not self.varies(separator):
            self.context.followed.follow(parts, kinds.TEXT_TYPE, partial(self._joined_values, self.journal.site, separator))
        if type(parts) not in (list, tuple) or self.refgraph.node(parts) is not None:
            return None
        can = self._any_varies((separator, *parts)) and all(type(part) is str for part in parts)
        return (texts.separated, (separator, *parts)) if can else None

    def _joined_values(self, site: MaybeSite, separator: str, parts: list[Any], result: Any) -> Any:
        return self._made(site, (texts.separated, (separator, *parts)), result) if self._any_varies(parts) else result

    # -- of tensors ----------------------------------------------------------------------------------------------------

    def takes_tensor(self, value: Any, conversion: str | None, spec: Any) -> None:
        """``f"{value:spec}"`` of a tensor begins."""
        self._forget(self.journal.site)  # an earlier text may have raised
        if conversion is None and (spec is None or (type(spec) is str and not self.varies(spec))):
            self._begin(partial(_formatted, spec or ""), (value,))

    def takes_tensors(self, template: Any, values: Any) -> bool:
        """Whether ``template % values``, which begins, is a text that varies with tensors."""
        self._forget(self.journal.site)  # an earlier text may have raised
        given = values if type(values) is tuple and self.refgraph.node(values) is None else (values,)
        return type(template) is str and not self.varies(template) and self._begin(partial(_percent, template), given)

    def shows(self, tensor: torch.Tensor) -> bool:
        """Whether a number that is being read from ``tensor`` becomes part of a text that varies."""
        return id(tensor) in self._shown

    def show(self, tensor: torch.Tensor, number: Any) -> None:
        """``number`` has the symbol of what ``tensor`` holds."""
        self._shown[id(tensor)] = tensor, number

    def _makes_of_tensors(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        made: Callable[..., _Made | None]
        values = (*args, *kwargs.values())
        plain = all(type(a) is str and not self.varies(a) for a in args[1:])
        if fn is format and not kwargs and len(args) in (1, 2) and plain:
            made, values = partial(_formatted, "".join(args[1:])), args[:1]
        elif _is_format_of_text(fn) and not self.varies(fn.__self__):
            made = partial(_filled, fn.__self__, tuple(kwargs))
        else:
            return False
        if not self._begin(made, values):
            return False
        self.context.stack.expect(lambda result: self._of_tensors(site, made, values, result), lambda: self._forget(site))
        return True

    def _begin(self, made: Callable[..., _Made | None], values: tuple[Any, ...]) -> bool:
        """Whether tensors among ``values`` hold numbers that the text which ``made`` gives can show."""
        self._forget(self.journal.site)
        shown = {id(v): (v, None) for v in values if holds_one_number(v) and v.dtype is not torch.bool}
        samples = [(0.0 if v.dtype.is_floating_point else 0) if id(v) in shown else v for v in values]
        if not shown or made(*samples) is None:
            return False
        self._shown = shown
        return True

    def _forget(self, site: MaybeSite) -> None:
        """No text is made of the numbers: they are guarded."""
        read, self._shown = [number for _, number in self._shown.values() if number is not None], {}
        self.context.numbers.escape_all(site, read)

    def _of_tensors(self, site: MaybeSite, made: Callable[..., _Made | None], values: tuple[Any, ...], result: Any) -> Any:
        numbers = [self._shown.get(id(value), (value, value))[1] for value in values]
        how = None if any(number is None for number in numbers) else made(*numbers)
        if how is None:
            self._forget(site)
            return result
        self._shown = {}
        return self._made(site, how, result)

    # -- the text ------------------------------------------------------------------------------------------------------

    def _made(self, site: MaybeSite, made: _Made, result: Any) -> Any:
        """``result`` as a text that carries a symbol."""
        fn, values = made
        for value in values:
            if type(value) is int and (number := self.ledger.scalars.get(value)) is not None and number.kind not in _BOUNDED:
                self.context.decisions.decide(self.ledger.scalars.call(texts.is_small, (number,), True), True, "type", site)
        args: tuple[Any, ...] = tuple(self._symbol(value) or value for value in values)
        sym = self.ledger.scalars.call(fn, args, result)
        if type(result) is not str or not supports_fresh_text(result):
            self.context.numbers.escape(sym, site)
            return result
        return self.ledger.scalars.bind(result, sym)

    def _symbol(self, value: Any) -> Sym | None:
        return self.ledger.scalars.get(value) if type(value) in kinds.CARRYING else None


def _is_format_of_text(fn: Any) -> bool:
    return type(fn) is BuiltinFunctionType and type(fn.__self__) is str and fn.__name__ == "format"


def _formatted(spec: str, value: Any) -> _Made | None:
    return (texts.formatted, (value, None, spec)) if texts.can_format(value, None, spec) else None


def _percent(template: str, *values: Any) -> _Made | None:
    return (texts.percent, (template, *values)) if texts.can_percent(template, values) else None


def _filled(template: str, names: tuple[str, ...], *values: Any) -> _Made | None:
    return (texts.filled, (template, names, *values)) if texts.can_fill(template, names, values) else None
