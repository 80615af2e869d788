"""Expressions of random programs, by the kind of value they give.

A kind is a letter: ``t`` a (2, 3) float tensor, ``n`` a number, ``i`` a small int, ``b`` a truth, ``s`` a str, ``L`` a list
of numbers, ``D`` a dict of numbers by str, ``O`` an object of a class of the program, ``f`` a function of a number to a
number, ``h`` one of a tensor to a tensor. ``FORMS`` has templates in which ``{t}``, ``{n}``, ... stand for further
expressions. Key type: Expressions.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

KINDS = "tnibsLDOfh"

_HERE = Path(__file__).parent


def sections(name: str, between: str) -> dict[str, list[str]]:
    """What a file of templates has under each of its headings."""
    found: dict[str, list[str]] = {}
    for part in (_HERE / name).read_text().split("=== ")[1:]:
        heading, _, text = part.partition("\n")
        found[heading] = [form for form in text.strip("\n").split(between) if form]
    return found


FORMS = sections("expressions.txt", "\n")
_HOLE = re.compile(r"\{\{|\}\}|\{([tnibsLDOfh])(!?)\}")
"""``{n}`` an expression, ``{n!}`` a name."""


class Expressions:
    """Writes expressions; ``scope`` has the names of each kind that can be read where the expression stands."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.scope: dict[str, list[str]] = {k: [] for k in KINDS}

    def write(self, kind: str, depth: int) -> str:
        names = self.scope[kind]
        if names and (depth <= 0 or self.rng.random() < 0.4):
            return self.rng.choice(names)
        forms = FORMS[kind] if depth > 0 else [f for f in FORMS[kind] if "{" not in f] or names
        return self.fill(self.rng.choice(forms), depth - 1)

    def fill(self, form: str, depth: int) -> str:
        """``form`` with an expression for each of its holes, in parentheses where it is more than a name."""

        def one(hole: re.Match[str]) -> str:
            if hole[1] is None:
                return hole[0][0]
            return self.rng.choice(self.scope[hole[1]]) if hole[2] else _operand(self.write(hole[1], depth))

        return _HOLE.sub(one, form)


def _operand(text: str) -> str:
    return text if re.fullmatch(r"[\w.]+|'\w*'|\([^()]*\)|\[[^\[\]]*\]", text) else f"({text})"
