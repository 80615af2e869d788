"""Shortens TorchDynamo's texts to a message and a hint. Key names: BreakCause, Change, parse_break, read_reason.

Its texts have a fixed form: title, ``Explanation:``, ``Hint:`` lines, developer context, a link. A break that occurs while
another one is handled follows it in the text. The first one is the cause.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from magpy_core._compat.torch.dynamo_watch import graph_break_page
from magpy_core.refgraph.kinds import bounded_repr

_NEXT = "*** While handling this graph break, another graph break occurred: ***"
_LONGEST = 240
_HINT = 260
# Hints for the compiler's developers, not for readers of a finding.
_NO_HINT = re.compile(r"report an issue|tracing rules|This graph break may have been caused by|fundamental|Dynamo bug", re.I)
_NOISE = re.compile(r" \(has_kwargs (?:True|False)\)| at 0x[0-9a-f]+")
_GB = re.compile(r"/gb(\d+)\.html")


@dataclass(frozen=True)
class BreakCause:
    """The cause of a graph break: its type, an explanation, a hint, and its entry in torch's registry."""

    kind: str
    why: str
    hint: str
    number: str
    page: str

    @property
    def label(self) -> str:
        """``GB0170, Data-dependent branching``."""
        return f"{self.number}, {self.kind}" if self.number else self.kind


def parse_break(kind: str, text: str) -> BreakCause:
    """The first cause in ``text``; ``kind`` is the type of the last one in it."""
    first, _, rest = text.partition(_NEXT)
    title, _, body = first.strip().partition("\n")
    kind = title.strip() if rest or not kind else kind
    why = _section(body, "Explanation:") or title
    hints = [h for h in map(_plain, re.findall(r"^  Hint: (.*(?:\n    .*)*)", body, re.M)) if not _NO_HINT.search(h)]
    page = graph_break_page(kind)
    found = _GB.search(page)
    hint = with_page(_sentences(" ".join(hints[:2]), _HINT), page)
    return BreakCause(kind, _sentences(why, _LONGEST), hint, f"GB{found[1]}" if found else "", page)


def with_page(hint: str, page: str) -> str:
    return f"{hint} See {page}".strip() if page else hint


def _section(body: str, name: str) -> str:
    """The first paragraph after ``name``; traces and developers' notes follow it."""
    found = re.search(rf"^\s*{name}\s*(.*?)(?=\n\s*\n|\n\s*Hint:|\n\s*Developer debug|\Z)", body, re.S | re.M)
    return _plain(found[1]) if found else ""


def _plain(text: str) -> str:
    return " ".join(_NOISE.sub("", text).split())


def _sentences(text: str, longest: int) -> str:
    """As many complete sentences of ``text`` as fit; the first one is shortened if necessary."""
    kept = ""
    for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text):
        if kept and len(kept) + len(sentence) + 1 > longest:
            break
        kept = f"{kept} {sentence}".strip()
    return kept if len(kept) <= longest + 60 else kept[: longest - 3].rstrip() + "..."


_TENSOR = re.compile(
    r"tensor '(?P<name>.+?)' (?P<what>[\w ]+) mismatch(?: at index (?P<index>\d+))?\. "
    r"expected (?P<old>.+?)(?:, actual (?P<new>.+))?$",
    re.S,
)
_IDENTITY = re.compile(r"___check_(?P<what>obj|type)_id\((?P<name>.+), \d+\)(?:, type=<class '(?P<type>.+)'>)?")
_AT = re.compile(r"# (?P<text>[^#]*?)\s+# (?P<file>\S+):(?P<line>\d+) in (?P<function>\S+)")
_EQUALS = re.compile(r"^(?P<name>[\w.\[\]'\"]+) == (?P<old>.+)$")
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+$")
_SETTING = "torch's "
_WHAT = {"size": "shape", "stride": "stride", "dispatch key set": "dispatch keys", "rank": "dim()"}


@dataclass(frozen=True)
class Change:
    """Why a compiled version does not fit: the value, its old and new value, and where it is read (if known)."""

    name: str
    old: str
    new: str
    file: str = ""  # the last parts of a path
    line: int = 0
    text: str = ""  # the source line

    @property
    def sentence(self) -> str:
        if self.name.startswith(_SETTING):
            return f"{self.name} changed"
        if self.new:
            return f"`{self.name}` changed from {self.old} to {self.new}"
        if self.old:
            return f"`{self.name}` is no longer {self.old}"
        return f"`{self.name}` no longer holds"


def read_reason(reason: str, variables: Mapping[str, Any]) -> Change:
    """One reason for a recompile, such as ``0/0: tensor 'x' size mismatch at index 0. expected 3, actual 5``."""
    text = re.sub(r"^\[?\d+/\d+\]?: ", "", reason.partition("\nUser stack trace")[0].strip())
    if tensor := _TENSOR.match(text):
        what = _WHAT.get(tensor["what"], tensor["what"])
        index = f"[{tensor['index']}]" if tensor["index"] else ""
        if tensor["old"].startswith("requires_grad="):
            had = tensor["old"].endswith("1")
            return Change(f"{_name(tensor['name'])}.requires_grad", str(had), str(not had))
        return Change(f"{_name(tensor['name'])}.{what}{index}", _cut(tensor["old"]), _cut(_plain(tensor["new"] or "")))
    at = _AT.search(text)
    place = (at["file"], int(at["line"]), at["text"].strip()) if at is not None else ("", 0, "")
    condition = _plain(text.partition("  #")[0].partition(" (HINT:")[0])
    if identity := _IDENTITY.match(condition):
        same = "the same object" if identity["what"] == "obj" else f"of type {identity['type'] or 'it was'}"
        return Change(_name(identity["name"]), same.replace("__main__.", ""), "", *place)
    if condition.startswith("GLOBAL_STATE changed: "):
        return Change(_SETTING + condition.partition(": ")[2].strip().replace("_", " "), "", "", *place)
    if equals := _EQUALS.match(_paths(condition)):
        return Change(_name(equals["name"]), _cut(equals["old"]), value_text(equals["name"], variables), *place)
    return Change(_cut(_name(condition)), "", "", *place)


def _name(text: str) -> str:
    """Dynamo's names for guarded state, in plain words."""
    return re.sub(r"___stack\d+", "value before the break", _paths(text))


def _paths(text: str) -> str:
    """Dynamo's names for guarded values, as the program writes them."""
    text = re.sub(r"[LG]\['(\w+)'\]", r"\1", text)
    return re.sub(r"\.(?:__dict__|_modules|_parameters|_buffers)\['(\w+)'\]", r".\1", text)


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def value_text(name: str, variables: Mapping[str, Any]) -> str:
    """The value of a path such as ``self.groups[0]['lr']`` among a frame's variables; empty if reading it would run user
    code (a property, a user-defined container)."""
    try:
        return bounded_repr(_value(ast.parse(name, mode="eval").body, variables))
    except (SyntaxError, LookupError, TypeError, AttributeError):
        return ""


def _value(node: ast.expr, variables: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return variables[node.id]
    if isinstance(node, ast.Attribute):
        table = object.__getattribute__(_value(node.value, variables), "__dict__")
        return dict.__getitem__(table, node.attr)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        container = _value(node.value, variables)
        if type(container) in (dict, list, tuple) and type(node.slice.value) in (int, str):
            return container[node.slice.value]
    raise LookupError(ast.dump(node))


def function_name(name: str) -> str:
    """The function's name in the source: Dynamo's resume functions have derived names."""
    while found := _RESUMED.match(name):
        name = found[1]
    return name
