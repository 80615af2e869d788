"""Programs that write tensors in place, under Inductor: copies, views, flips, shifts, indices, masks, buckets, lists, swaps.

A program is drawn statement by statement, on tensors that eager mode computes at once: what raises, or reads memory in the
statement that writes it (which no order is promised for), is drawn again. Some are written to memory that several inputs
share, and some after a backward pass. Results, what they share memory with, and all inputs are compared after every call.
Compiling takes seconds, so that several programs are compiled as one region, each with inputs of its own; a program that
differs is shortened alone. ``python -m tests.soundness.generators.writes --seed 1 [--programs 20] [--batches 10]``.
Key types: Written; key functions: drawn, differing, shortened.
"""

from __future__ import annotations

import argparse
import random
import re
import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

import magpy_core
from magpy_core.regions.api import region_of
from tests.soundness.harness.batch import shortest

Tensors = dict[str, torch.Tensor]
CALLS = 4
_MADE: dict[str, Callable[[], torch.Tensor]] = {
    "p": lambda: torch.randn(4, 6), "q": lambda: torch.randn(4, 6), "r": lambda: torch.randn(4, 6),
    "w": lambda: torch.randn(6, 4), "s": lambda: torch.randn(5, 5), "f": lambda: torch.randn(30),
    "v": lambda: torch.randn(6), "e": lambda: torch.randn(4), "z": lambda: torch.randn(()),
    "d": lambda: torch.randn(4, 6, dtype=torch.float64), "n": lambda: torch.randint(-9, 9, (4, 6)),
    "l": lambda: torch.randn(4, 6).t().contiguous().t(), "t3": lambda: torch.randn(2, 3, 4),
}  # fmt: skip
#: Inputs that share memory: parts of a bucket, and the bucket itself.
_SHARED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "bucket": lambda base: base, "a": lambda base: base[:24].view(4, 6), "b": lambda base: base[24:48].view(4, 6),
}  # fmt: skip
_INDEX = {f"k{n}": n for n in (2, 3, 4, 5, 6, 30, 48)}


def _table(text: str) -> tuple[str, ...]:
    """One template a line; one that is there twice is drawn twice as often."""
    return tuple(line.strip() for line in text.strip().splitlines())


_VIEWS = _table(
    """
    {}[1:]
    {}[:-1]
    {}[::2]
    {}[1::2]
    {}[1:3]
    {}[0]
    {}[-1]
    {}[:, 0]
    {}[:, 1:3]
    {}[..., -2:]
    {}.t()
    {}.diagonal()
    {}.unsqueeze(0)
    {}.view(-1)
    {}.view({1}.shape[::-1])
    {}.detach()
    {}.narrow(0, 1, 2)
    {}.chunk(2)[1]
    {}.split(2)[0]
    {}.select(-1, 1)
    {}.unbind(0)[1]
    {}.view({1}.shape)
    {}.transpose(0, -1)
    {}.squeeze()
    {}.data
    {}.view_as({1})
    {}[:]
    """
)
_COPIES = _table(
    """
    {}.clone()
    {}.clone()
    {}.flip(0)
    {}.flip(-1)
    {}.roll(1, 0)
    {}.contiguous()
    {}.float()
    {}.double().float()
    {}[k]
    {}.index_select(0, k)
    torch.cat([{0}[1:], {0}[:1]])
    {}.reshape(-1)
    torch.stack([{0}, {0}])[1]
    torch.cat([{0}, {0}])[:{0}.size(0)]
    {}.tril()
    {}.to({1}.dtype)
    torch.empty_like({0}).copy_({0})
    torch.zeros_like({0}).add_({0})
    {}.t().contiguous()
    {}.rot90()
    {}.new_tensor(1.5)
    torch.nn.functional.pad({}, (1, 1))[..., 1:-1]
    {}.repeat(2, 1)[-{0}.size(0):]
    {}.gather(0, k.unsqueeze(-1).expand_as({0}))
    """
)
_COMPUTED = _table(
    """
    ({} * 2)
    ({} + 0)
    ({0} - {1})
    {}.neg()
    {}.sin()
    ({} * 1)
    torch.maximum({0}, {1})
    ({0} + {1})
    {}.mean()
    {}.sum(0)
    {}.amax(-1, keepdim=True)
    {}.cumsum(0)
    torch.where({1} > 0.123, {0}, {1})
    ({0} @ {1})
    {}.clamp(-1, 1)
    {}.lerp({1}, 0.25)
    torch._foreach_add([{0}], [{1}])[0]
    {}.abs().sqrt()
    torch.add({0}, {1}, alpha=2)
    {}.softmax(-1)
    {}.masked_fill({1} > 0.123, 0.5)
    {}.index_fill(0, k, 0.5)
    {}.select_scatter({1}[0], 0, 1)
    {}.slice_scatter({1}[1:], 0, 1)
    {}.diagonal_scatter({1}.diagonal())
    {}.index_put((k[:2],), {1}[:2])
    {}.scatter_add(0, k.unsqueeze(-1).expand_as({1}), {1})
    """
)
_WRITES = _table(
    """
    {}.copy_({})
    {}.copy_({})
    {}[...] = {}
    {}.add_({})
    {}.sub_({}, alpha=0.5)
    {}.mul_({})
    {}.lerp_({}, 0.3)
    {0}.addcmul_({1}, {1}, value=0.5)
    {}.zero_()
    {}.fill_(1.5)
    {}.clamp_(-0.5, 0.5)
    {}.neg_()
    {0}.copy_({1}).mul_(0.5)
    {0} += {1}
    {0} *= 0.5
    torch.add({1}, 1, out={0})
    torch.neg({1}, out={0})
    {}.masked_fill_({1} > 0.123, 0.5)
    {0}[{1} > 0.123] = 0.25
    {0}.addcdiv_({1}, {1}.abs() + 1)
    {0}.tril_()
    {0}.t().copy_({1}.t())
    {0}.exp_().clamp_(0, 3)
    {0}.masked_fill_({1} > 0.123, {1}.mean())
    {0}[{1} > 0.123] += 1
    """
)
_INDEXED = _table(
    """
    {}[k] = {}
    {}.index_put_((k,), {})
    {}.index_copy_(0, k, {})
    {}.index_add_(0, k, {})
    {}[k] += {}
    {0}.index_put_((k,), {1}, accumulate=True)
    {0}.index_fill_(0, k[:2], 0.5)
    {0}[k[0]] = {1}[k[1]]
    {0}.scatter_(0, k.view(-1, *[1] * ({0}.dim() - 1)).expand_as({0}), {1})
    {0}[k[:2]] = {1}[:2]
    {0}.scatter_add_(0, k.view(-1, *[1] * ({0}.dim() - 1)).expand_as({0}), {1})
    {0}[k2, k2] = 0.25
    {0}[k2, k2] = {1}.diagonal()[:2]
    {0}.index_put_((k2, k2), {1}.diagonal()[:2])
    {0}.index_copy_(0, k[:2], {1}[1:3])
    """
)
_LISTS = _table(
    """
    torch._foreach_add_([{0}, {1}], [{2}, {3}], alpha=-0.5)
    torch._foreach_lerp_([{0}, {1}], [{2}, {3}], 0.1)
    torch._foreach_copy_([{0}, {1}], [{2}, {3}])
    torch._foreach_mul_([{0}, {1}], 0.9)
    torch._foreach_zero_([{0}, {1}])
    torch._foreach_copy_([{0}, {1}], torch._foreach_add([{1}, {0}], [{2}, {3}]))
    torch._foreach_copy_([{0}, {1}], torch._foreach_mul([{1}, {0}], 2))
    torch._foreach_addcmul_([{0}], [{1}], [{2}], value=0.5)
    x = {0}.clone(); {0}.copy_({1}); {1}.copy_(x)
    x = {0}; y = {1}.clone(); {1}.copy_(x); {0}.copy_(y)
    x = {0} + {2}; {0}.copy_({1}); {1}.copy_(x)
    x, y = {0}.clone(), {1}.clone(); {0}[...] = y; {1}[...] = x
    x = {0}.flip(0); {0}.mul_(2); {1}.copy_(x)
    {0}.mul_(0.9).add_({1}, alpha=0.1)
    {2}.copy_({0}); {0}.zero_()
    {2}[...] = {0}; {0}.sub_({1})
    torch._foreach_copy_([{0}, {1}], [{1}.clone(), {0}.clone()])
    """
)


@dataclass(frozen=True)
class Written:
    """``statements`` of a function of ``inputs``; ``results``: expressions. ``learns``: it begins with a backward pass."""

    inputs: tuple[str, ...]
    statements: tuple[str, ...]
    results: tuple[str, ...]
    learns: bool = False

    def source(self, name: str) -> str:
        lines = list(self.statements)
        if self.learns:
            lines = [f"    {line}" for line in lines]
            start = "h = r.detach().requires_grad_()"
            lines = [start, "g, = torch.autograd.grad((h * p).sin().sum(), h)", "with torch.no_grad():", *lines]
        lines.append(f"return ({''.join(f'{one}, ' for one in self.results)})")
        return f"def {name}({', '.join(self.inputs)}):\n" + textwrap.indent("\n".join(lines), "    ")


# -- drawing -------------------------------------------------------------------------------------------------------------


def _filled(template: str, *texts: str) -> str:
    """``{}`` is the first or, if there are two, the second of the texts."""
    for i in range(template.count("{}")):
        template = template.replace("{}", f"{{{i}}}", 1)
    return template.format(*texts)


class _Drawing:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.learns = rng.random() < 0.2
        names = rng.sample(list(_MADE), rng.randint(2, 6)) + (list(_SHARED) if rng.random() < 0.2 else [])
        if self.learns:
            names = list(dict.fromkeys([*names, "p", "r"]))
        self.world = made(names)
        self.given = [*names]
        if self.learns:
            self.world |= {"g": torch.randn(4, 6), "h": self.world["r"].detach()}
        self.statements: list[str] = []

    def program(self) -> Written:
        count, tries = self.rng.randint(2, 7), 0
        while len(self.statements) < count and tries < 200:
            tries += 1
            statement = self.statement()
            if statement is not None and self.runs(statement):
                self.statements.append(statement)
        results = [self.expression() for _ in range(self.rng.choice((0, 1, 1, 2)))]
        shown = [one for one in results if self.value(one) is not None]
        text = " ".join([*self.statements, *shown])
        used = [name for name in (*_MADE, *_SHARED, *_INDEX) if name in self.world and (name in text or name in self.given)]
        return Written(tuple(used), tuple(self.statements), tuple(shown), self.learns)

    def name(self) -> str:
        return self.rng.choice([name for name, value in self.world.items() if name not in _INDEX])

    def value(self, expression: str) -> Any:
        try:
            value = eval(expression, {"torch": torch}, self.copy())
        except Exception:  # drawn again
            return None
        return value if isinstance(value, torch.Tensor) and value.numel() and value.isfinite().all() else None

    def copy(self) -> Tensors:
        """The world, in other memory that is shared in the same way."""
        bases: dict[int, torch.Tensor] = {}
        out = {}
        for name, value in self.world.items():
            key = value.untyped_storage().data_ptr()
            if key not in bases:
                whole = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())  # type: ignore[call-overload]
                bases[key] = whole.clone()
            out[name] = bases[key].as_strided(value.shape, value.stride(), value.storage_offset())
        return out

    def indexed(self, text: str, size: int) -> str | None:
        """``text`` with the index of that many elements for ``k``."""
        if "k2" in text:
            self.world.setdefault("k2", torch.randperm(2))
        if not re.search(r"\bk\b", text):
            return text
        name = f"k{size}"
        if name not in _INDEX:
            return None
        self.world.setdefault(name, torch.randperm(size))
        return re.sub(r"\bk\b", name, text)

    def grown(self, text: str, kinds: Sequence[str]) -> str:
        value = self.value(text)
        template = self.rng.choice(kinds)
        other = self.fitted(self.name(), value.shape) if value is not None and "{1}" in template else self.name()
        grown = self.indexed(_filled(template, text, other), value.shape[0] if value is not None and value.dim() else 0)
        return grown if grown is not None and self.value(grown) is not None else text

    def expression(self) -> str:
        text = self.name()
        for _ in range(self.rng.choice((0, 1, 1, 2, 3))):
            text = self.grown(text, self.rng.choice((_VIEWS, _COPIES, _COPIES, _COMPUTED)))
        return text

    def fitted(self, text: str, shape: torch.Size) -> str:
        value = self.value(text)
        if value is None or value.shape == shape:
            return text
        try:
            if torch.broadcast_shapes(value.shape, shape) == shape and self.rng.random() < 0.5:
                return text
        except RuntimeError:
            pass
        size = f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
        if value.numel() == shape.numel():
            return f"{text}.reshape({size})"
        if value.numel() > shape.numel():
            return f"{text}.reshape(-1)[:{shape.numel()}].view({size})"
        return f"{text}.sum()"

    def place(self) -> str:
        text = self.name()
        for _ in range(self.rng.choice((0, 0, 1, 2))):
            text = self.grown(text, _VIEWS)
        return text

    def statement(self) -> str | None:
        kind = self.rng.random()
        if kind < 0.15:
            return f"{self.rng.choice(('x', 'y', 'o'))} = {self.expression()}"
        if kind < 0.3:
            shape = self.world[self.name()].shape
            names = [name for name, value in self.world.items() if value.shape == shape and value.is_floating_point()]
            if len(names) < 2:
                return None
            drawn = [self.rng.choice(names) for _ in range(4)]
            if drawn[0] == drawn[1]:
                return None
            return self.rng.choice(_LISTS).format(*drawn)
        place = self.place()
        target = self.value(place)
        if target is None:
            return None
        template = self.rng.choice(_WRITES if kind < 0.75 else _INDEXED)
        source = self.fitted(self.expression(), target.shape)
        if ">" in template and (found := self.value(source)) is not None and found.shape != target.shape:
            return None  # a mask of another shape
        text = _filled(template, place, self.apart(place, source))
        return self.indexed(text, target.shape[0] if target.dim() else 0)

    def apart(self, place: str, source: str) -> str:
        """``source``, in memory of its own if it is in that of the place: no order is promised there."""
        world = self.copy()
        try:
            a, b = eval(f"({place}), ({source})", {"torch": torch}, world)
        except Exception:  # drawn again
            return source
        if a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
            return source
        return self.rng.choice(("{}.clone()", "{}.clone()", "({} * 1)", "({} + 0)", "{}.flip(0)")).format(source)

    def runs(self, statement: str) -> bool:
        before, world = set(self.world), self.copy()
        try:
            with warnings.catch_warnings(action="error"):  # `out=` of another size
                exec(statement, {"torch": torch}, world)
        except Exception:  # drawn again
            return False
        values = [v for v in world.values() if isinstance(v, torch.Tensor)]
        if not all(v.numel() and v.double().abs().max() < 1e6 for v in values):
            return False
        new = {name: value for name, value in world.items() if name not in before}
        self.world = {**{name: world[name] for name in self.world}, **new}
        return True


def drawn(rng: random.Random) -> Written:
    torch.manual_seed(rng.getrandbits(32))
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        while not (program := _Drawing(rng).program()).statements:
            pass
    return program


# -- comparing -----------------------------------------------------------------------------------------------------------


def made(names: Sequence[str]) -> Tensors:
    base = torch.randn(60)
    found = {}
    for name in names:
        if name in _INDEX:
            found[name] = torch.randperm(_INDEX[name])
        else:
            found[name] = _SHARED[name](base) if name in _SHARED else _MADE[name]()
    return found


def _again(values: Tensors) -> Tensors:
    """The same values in other memory, shared in the same way."""
    base = values.get("bucket", values.get("a", values.get("b")))
    whole = None
    if base is not None:
        whole = torch.empty(0).set_(base.untyped_storage()).clone()  # type: ignore[call-overload]
    out = {}
    for name, value in values.items():
        if name in _SHARED:
            assert whole is not None
            out[name] = _SHARED[name](whole)
        else:
            out[name] = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(value)
    return out


def _region(programs: Sequence[Written]) -> Callable[..., Any]:
    """One function of all inputs of all programs."""
    lines = [program.source(f"f{i}") for i, program in enumerate(programs)]
    lines.append("def region(*groups):\n    return (" + "".join(f"f{i}(*groups[{i}]), " for i in range(len(programs))) + ")")
    namespace: dict[str, Any] = {"torch": torch}
    exec(compile("\n".join(lines), f"<{len(programs)} programs that write>", "exec"), namespace)
    region: Callable[..., Any] = namespace["region"]
    return region


def _shown(inputs: Tensors, results: Sequence[torch.Tensor]) -> list[tuple[str, torch.Tensor, list[str]]]:
    """Every tensor with the names of those that share its memory."""
    named = [*inputs.items(), *((f"result {i}", value) for i, value in enumerate(results))]
    keys = [(name, value.untyped_storage().data_ptr()) for name, value in named]
    return [
        (name, value, [other for other, there in keys if there == value.untyped_storage().data_ptr()])
        for name, value in named
    ]


def _difference(plain: list[Any], compiled: list[Any]) -> str | None:
    for (name, one, shares), (_, other, other_shares) in zip(plain, compiled, strict=True):
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"{name}: {one.dtype} {tuple(one.shape)} and {other.dtype} {tuple(other.shape)}"
        if not torch.allclose(one.double(), other.double(), rtol=1e-3, atol=1e-4, equal_nan=True):
            return f"{name}: plain {one.tolist()}, compiled {other.tolist()}"
        if shares != other_shares:
            return f"{name} shares memory with {shares}, compiled with {other_shares}"
    return None


def differing(programs: Sequence[Written], backend: str = "inductor", wait: bool = True) -> tuple[bool, dict[int, str]]:
    """Whether the programs ran compiled, as one region, and what differs in which of them."""
    region = _region(programs)
    compiled = magpy_core.compile(_region(programs), backend=backend, wait=wait)
    found: dict[int, str] = {}
    torch.manual_seed(len(programs))
    for call in range(CALLS):
        plain = [made(program.inputs) for program in programs]
        again = [_again(inputs) for inputs in plain]
        want = region(*(list(inputs.values()) for inputs in plain))
        got = compiled(*(list(inputs.values()) for inputs in again))
        for i in range(len(programs)):
            line = _difference(_shown(plain[i], want[i]), _shown(again[i], got[i]))
            if line is not None:
                found.setdefault(i, f"call {call}: {line}")
    return region_of(compiled).hits > 0, found


def captured(program: Written) -> bool:
    """Whether the engine captures the program, in a graph that compilers can trace: another would keep all of its batch from
    being compiled."""
    return differing([program], "aot_eager")[0]


def batch_of(rng: random.Random, count: int) -> list[Written]:
    found: list[Written] = []
    while len(found) < count:
        if captured(program := drawn(rng)):
            found.append(program)
    return found


def shortened(program: Written, seconds: float = 60.0) -> Written:
    """As few statements and results as still differ alone."""

    def of(parts: Sequence[tuple[bool, str]]) -> Written:
        statements = tuple(text for is_result, text in parts if not is_result)
        return Written(program.inputs, statements, tuple(text for is_result, text in parts if is_result), program.learns)

    def differs(parts: Sequence[tuple[bool, str]]) -> bool:
        try:
            return bool(differing([of(parts)])[1])
        except Exception:  # a name that is not there any more
            return False

    parts = [*((False, text) for text in program.statements), *((True, text) for text in program.results)]
    return of(shortest(parts, differs, seconds)) if differs(parts) else program


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=20, help="of a batch")
    parser.add_argument("--batches", type=int, default=1)
    parser.add_argument("--backend", default="inductor")
    options = parser.parse_args()
    torch.set_num_threads(1)
    total = compiled = different = 0
    for batch in range(options.batches):
        rng = random.Random(f"{options.seed}:{batch}")
        programs = batch_of(rng, options.programs)
        ran, found = differing(programs, options.backend)
        total += len(programs)
        compiled += len(programs) if ran else 0
        different += len(found)
        print(
            f"seed {options.seed}, batch {batch}: {len(programs)} programs, compiled: {ran}, differing: {len(found)}",
            flush=True,
        )
        for i, line in found.items():
            print(
                f"{shortened(programs[i]).source(f'seed_{options.seed}_batch_{batch}_program_{i}')}\n# {line[:400]}",
                flush=True,
            )
    print(f"{total} programs, {compiled} compiled, {different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
