"""What reports must not show: values of the environment, and texts under names like `token` or `password`.

Whoever reads a value of the program says under which name (``note``); whoever shows or sends text removes what was noted
(``redact``). Guards and results keep the true values. Key functions: note, redact, redact_json; key name: REDACTED.
"""

from __future__ import annotations

import functools
import os
import re
from typing import Any

REDACTED = "<redacted>"

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET = frozenset(
    {"token", "secret", "secrets", "password", "passwd", "passphrase", "pwd", "auth", "authorization", "credential",
     "credentials", "apikey", "bearer"}
)  # fmt: skip
_OF_KEY = frozenset({"api", "access", "private", "auth", "encryption", "signing", "account", "license", "master"})
_FOLDERS = frozenset({"PWD", "OLDPWD"})
"""Where a shell has the working directory, with which most paths begin."""
_LONG = 6
"""Texts of at least this length are removed wherever they stand; shorter ones only where they are quoted."""
_BEGIN = 12
"""So much of the beginning of a long text tells that it was one, even if the rest was cut off."""
_KEPT = frozenset({"file", "type", "code", "id", "severity", "kind", "region"})
"""Members of messages that other members and the reader's files are matched with."""


class _Texts:
    """The texts to remove, and a pattern of them that is made when it is needed."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._environment: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def add(self, *texts: str) -> None:
        if not self._texts.issuperset(texts):
            self._texts.update(texts)
            self._pattern = None

    def pattern(self) -> re.Pattern[str] | None:
        try:
            now = {name: value for name, value in os.environ.items() if value and is_secret(name)}
        except (KeyError, RuntimeError):  # another thread is changing it
            now = self._environment
        if now != self._environment:  # the program may change it
            self._environment = now
            for value in now.values():
                self.add(*_everywhere(value))
        if self._pattern is None and self._texts:
            longest_first = sorted(self._texts, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(_form, longest_first)))
        return self._pattern


_texts = _Texts()


@functools.lru_cache(4096)
def is_secret(name: str | bytes) -> bool:
    """Whether a variable, an attribute or a key of this name holds a secret, if its value is text: `api_key`, `hfToken`,
    not `monkey` or `keys`."""
    if isinstance(name, bytes):
        name = name.decode("utf-8", "replace")
    if name in _FOLDERS:
        return False
    words = [word.lower() for word in _WORD.findall(name)]
    return not _SECRET.isdisjoint(words) or words[-1:] == ["key"]


def note(name: str | bytes, value: Any, *, of_environment: bool = False) -> bool:
    """Whether ``value`` is not to be shown: text that was read from the environment, or under the name of a secret."""
    if type(value) not in (str, bytes) or not value or not (of_environment or is_secret(name)):
        return False
    text = value if isinstance(value, str) else value.decode("utf-8", "replace")
    if is_secret(name) and not _may_be_a_name(name, text):
        _texts.add(*_everywhere(text))
    elif of_environment:  # a path or a number, which may well stand elsewhere for something else
        _texts.add(*_quoted(text))
    return True


def redact(text: str) -> str:
    """``text`` without the texts that were noted."""
    pattern = _texts.pattern()
    return text if pattern is None else pattern.sub(REDACTED, text)


def redact_json(data: Any) -> Any:
    """A message or a report with the texts in it redacted, except the names of files."""
    pattern = _texts.pattern()
    return data if pattern is None else _redacted(data, pattern)


def _redacted(data: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(data, str):
        return pattern.sub(REDACTED, data)
    if isinstance(data, dict):
        return {name: item if name in _KEPT else _redacted(item, pattern) for name, item in data.items()}
    if isinstance(data, (list, tuple)):
        return [_redacted(item, pattern) for item in data]
    return data


def _may_be_a_name(name: str | bytes, text: str) -> bool:
    """Whether it is as likely the key of a dict: `key = "weight"`. It is hidden only as this variable's value."""
    words = [word.lower() for word in _WORD.findall(name.decode("utf-8", "replace") if isinstance(name, bytes) else name)]
    return _SECRET.isdisjoint(words) and _OF_KEY.isdisjoint(words) and text.isidentifier()


def _everywhere(text: str) -> tuple[str, ...]:
    return (text, repr(text)[1:-1]) if len(text) >= _LONG else _quoted(text)


def _quoted(text: str) -> tuple[str, ...]:
    return repr(text), repr(os.fsencode(text)), f'"{text}"'


def _form(text: str) -> str:
    """A pattern of ``text``; of a long one, also of its beginning."""
    if len(text) <= _BEGIN:
        return re.escape(text)
    rest = ""
    for char in reversed(text[_BEGIN:200]):
        rest = f"(?:{re.escape(char)}{rest})?"
    return re.escape(text[:_BEGIN]) + rest + (f"(?:{re.escape(text[200:])})?" if len(text) > 200 else "")
