"""Random programs for the soundness tests: ``program(seed)`` writes one, with a region, its world and its arguments.

What a region does is drawn from templates of statements and expressions, typed so that most lines run. Key function: program.
"""

from __future__ import annotations

import random

from tests.soundness.generated.classes import PRELUDE, world
from tests.soundness.generated.expressions import Expressions, sections
from tests.soundness.world import Program

FORMS = sections("statements.txt", "\n\n")
NAMES = {
    "t": ["x", "t0", "t1"], "n": ["n0", "a"], "i": ["i0"], "b": ["b0"], "s": ["s0"], "L": ["L0", "numbers_here"],
    "D": ["D0", "table"], "O": ["O0", "node"], "f": ["f0"], "h": ["h0"],
}  # fmt: skip
START = {
    "t": "{t}", "n": "{n} % 9", "i": "{i}", "b": "{b}", "s": "{s}[:5]", "L": "{L}", "D": "{D}", "O": "{O}", "f": "{f}", "h": "{h}"
}  # fmt: skip


class Writer:
    """Writes the statements of one region."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.e = Expressions(rng)

    def block(self, depth: int, count: int) -> list[str]:
        lines: list[str] = []
        for _ in range(count):
            draw = self.rng.random()
            if depth > 0 and draw < 0.25:
                lines += self.nested(self.rng.choice(FORMS["blocks"]), depth)
            elif draw < 0.6:
                lines += self.text(self.rng.choice(FORMS["writes"]))
            else:
                lines += self.text(self.rng.choice(FORMS[self.rng.choice("ttttnnibsLDOfh")]))
        return lines or ["pass"]

    def nested(self, form: str, depth: int) -> list[str]:
        lines: list[str] = []
        for line in self.text(form):
            if line.strip() == "@":
                inner = self.block(depth - 1, self.rng.choice((1, 1, 2, 3)))
                lines += [line[: len(line) - 1] + one for one in inner]
            else:
                lines.append(line)
        return lines

    def text(self, form: str) -> list[str]:
        """``{n!!}`` is the name of a local that is assigned to."""
        for kind, names in NAMES.items():
            while "{" + kind + "!!}" in form:
                local = [n for n in names if n[0] == kind]
                form = form.replace("{" + kind + "!!}", self.rng.choice(local or names), 1)
        return self.e.fill(form, 2).split("\n")


def source(seed: int) -> str:
    """A module with ``region``, ``args`` and what they need."""
    rng = random.Random(seed)
    around = world(rng)
    writer = Writer(rng)
    scope = writer.e.scope
    scope["t"], scope["n"], scope["O"] = ["x"], ["a"], ["node"]
    scope["L"], scope["D"] = ["numbers_here"], ["table"]
    body = ["global mode, limits", "fuel = 20"]
    for kind in "nisbLDOfht":
        for name in NAMES[kind]:
            if name[0] == kind:
                body.append(f"{name} = {writer.e.fill(START[kind], 2)}")
                scope[kind] = [*scope[kind], name]
    body += writer.block(3, rng.choice((3, 5, 8, 12)))
    result = ", ".join(rng.sample(["t0", "n0", "i0", "b0", "s0", "L0", "D0", "O0", "x", "node", "f0"], 4))
    body.append(f"return {result}, t1 * n0")
    head = "x, a=1.5, node=objects[0], numbers_here=[1, 2, 3], table={'a': 1, 'b': 2}, *rest, **kwargs"
    lines = [
        around, "@contextlib.contextmanager", "def managed(o):", "    settings.depth = 1", "    try:", "        yield o",
        "    finally:", "        settings.depth = 0", "def limits_of(k):", "    return Limits(k, 0)",
    ]  # fmt: skip
    form = rng.choice(("function", "function", "method", "module"))
    if form == "function":
        lines += [f"def region({head}):", *("    " + line for line in body)]
    elif form == "method":
        lines += ["class Run:", f"    def go(self, {head}):", *("        " + line for line in body), "region = Run().go"]
    else:
        lines += [
            "class Net(nn.Module):", "    def __init__(self):", "        super().__init__()", "        self.layer = layer",
            f"    def forward(self, {head}):", *("        " + line for line in body), "region = Net()",
        ]  # fmt: skip
    lines += [
        "def args(i):",
        f"    x = torch.arange(6.0).view(2, 3) + 1{rng.choice(['', '', '.requires_grad_()' if False else ''])}",
    ]
    lines.append(
        f"    return {rng.choice(['(x,)', '(x, 2)', '(x, 1.0, objects[1])', '(x,), dict(node=objects[1], k=2)', '(x, 2, objects[0], [1, 2, 3], dict(a=2, b=1), 7)'])}"
    )
    return "\n".join(lines)


def program(seed: int) -> Program:
    text = source(seed)
    return Program(f"generated_{seed}", text, f"<generated {seed}>", 0, frozenset(), PRELUDE)
