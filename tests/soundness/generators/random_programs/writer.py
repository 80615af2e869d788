"""Random programs for the soundness tests: ``program(seed)`` writes one, with a region, its world and its arguments.

What a region does is drawn from templates of statements (``statements.txt``) and expressions, typed so that most lines run.
Key function: program.
"""

from __future__ import annotations

import random

from tests.soundness.generators.random_programs.expressions import Expressions, sections
from tests.soundness.generators.random_programs.world import PRELUDE, world
from tests.soundness.harness.world import Program

_FORMS = sections("statements.txt", "\n\n")
_NAMES = {
    "t": ["x", "t0", "t1"], "n": ["n0", "a"], "i": ["i0"], "b": ["b0"], "s": ["s0"], "L": ["L0", "numbers_here"],
    "D": ["D0", "table"], "O": ["O0", "node"], "f": ["f0"], "h": ["h0"],
}  # fmt: skip
_FIRST = {"n": "{n} % 9", "s": "{s}[:5]"}
_KINDS = "ttttnnibsLDOfh"
_HEAD = "x, a=1.5, node=objects[0], numbers_here=[1, 2, 3], table={'a': 1, 'b': 2}, *rest, **kwargs"
_RESULTS = ["t0", "n0", "i0", "b0", "s0", "L0", "D0", "O0", "x", "node", "f0"]
_ARGUMENTS = [
    "(x,)",
    "(x, 2)",
    "(x, 1.0, objects[1])",
    "(x,), dict(node=objects[1], k=2)",
    "(x, 2, objects[0], [1, 2, 3], dict(a=2, b=1), 7)",
]


class _Writer:
    """Writes the statements of one region."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.expressions = Expressions(rng)

    def block(self, depth: int, count: int) -> list[str]:
        lines: list[str] = []
        for _ in range(count):
            draw = self.rng.random()
            if depth > 0 and draw < 0.25:
                lines += self.nested(self.rng.choice(_FORMS["blocks"]), depth)
            else:
                lines += self.text(self.rng.choice(_FORMS["writes" if draw < 0.6 else self.rng.choice(_KINDS)]))
        return lines or ["pass"]

    def nested(self, form: str, depth: int) -> list[str]:
        """A block, with further statements where its form has ``@``."""
        lines: list[str] = []
        for line in self.text(form):
            if line.strip() == "@":
                lines += [line[:-1] + inner for inner in self.block(depth - 1, self.rng.choice((1, 1, 2, 3)))]
            else:
                lines.append(line)
        return lines

    def text(self, form: str) -> list[str]:
        """``{n!!}`` is the name of a local that is assigned to."""
        for kind, names in _NAMES.items():
            own = [name for name in names if name[0] == kind]
            while (hole := "{" + kind + "!!}") in form:
                form = form.replace(hole, self.rng.choice(own), 1)
        return self.expressions.fill(form, 2).split("\n")


def _body(rng: random.Random) -> list[str]:
    writer = _Writer(rng)
    scope = writer.expressions.scope
    for kind, name in (("t", "x"), ("n", "a"), ("O", "node"), ("L", "numbers_here"), ("D", "table")):
        scope[kind] = [name]
    body = ["global mode, limits", "fuel = 20"]
    for kind in "nisbLDOfht":
        for name in (n for n in _NAMES[kind] if n[0] == kind):
            body += writer.text(f"{name} = " + _FIRST.get(kind, "{" + kind + "}"))
            scope[kind] = [*scope[kind], name]
    body += writer.block(3, rng.choice((3, 5, 8, 12)))
    return [*body, f"return {', '.join(rng.sample(_RESULTS, 4))}, t1 * n0"]


def source(seed: int) -> str:
    """A module with ``region``, ``args`` and what they need."""
    rng = random.Random(seed)
    lines = [world(rng)]
    body = _body(rng)
    form = rng.choice(("function", "function", "method", "module"))
    if form == "function":
        lines += [f"def region({_HEAD}):", *("    " + line for line in body)]
    elif form == "method":
        lines += ["class Run:", f"    def go(self, {_HEAD}):", *("        " + line for line in body), "region = Run().go"]
    else:
        lines += [
            "class Net(nn.Module):", "    def __init__(self):", "        super().__init__()", "        self.layer = layer",
            f"    def forward(self, {_HEAD}):", *("        " + line for line in body), "region = Net()",
        ]  # fmt: skip
    lines += ["def args(i):", "    x = torch.arange(6.0).view(2, 3) + 1", f"    return {rng.choice(_ARGUMENTS)}"]
    return "\n".join(lines)


def program(seed: int) -> Program:
    """The program of a seed: the same on every machine."""
    return Program(f"generated_{seed}", source(seed), f"<generated {seed}>", 0, frozenset(), PRELUDE)
