"""Texts with numbers in them that vary: which are made again by replay, and which uses need the exact text."""

# ruff: noqa: B009, UP031, UP032

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import itertools
import json
import logging
import operator
import pickle
import re
import types
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch

from magpy_core._compat.cpython.fresh import fresh_text, supports_fresh_text
from magpy_core.opgraph import texts
from magpy_core.recording.call_stack import Consumer
from magpy_core.recording.followed import Followed
from magpy_core.recording.varying_texts import VaryingTexts
from tests.unit.engine_pair import Pair
from tests.unit.recording.help import World, site

CALLS = 9


def pair(use: Callable[[float, int], Any], calls: int = CALLS) -> Pair:
    """Calls of a region that counts, reads a number from a tensor, and keeps what ``use`` makes of both."""

    def world() -> Any:
        kept: list[Any] = []
        count = [0]

        def region(x: torch.Tensor) -> Any:
            count[0] += 1
            made = use(x.sum().item(), count[0])
            kept.append(made)
            return made

        return region, kept

    return Pair(world).calls(*[(torch.ones(2) * (i + 0.25),) for i in range(calls)])


def upper_and_wide(value: float, n: int) -> str:
    return f" {value} ".strip().upper().rjust(20).replace(" ", "_").center(30, "*").zfill(32)


def joined(value: float, n: int) -> list[str]:
    parts = [f"{n}", "b", f"{value:.2f}"]
    return [", ".join(parts), f"{n}".join(["a", "b"]), "+".join(f"{k}{n}" for k in "xy"), "".join(p.strip() for p in parts)]


def moved(value: float, n: int) -> Any:
    texts = [f"{value:.1f}", f"{n}"]
    table = {"a": texts[0], "b": tuple(reversed(texts))}
    first, *rest = texts
    return [
        list(texts),
        table,
        {k: v for k, v in table.items()},
        first,
        rest,
        len(texts),
        type(texts),
        isinstance(first, str),
    ]


SERVED: list[Callable[[float, int], Any]] = [
    lambda value, n: f"{value}",
    lambda value, n: f"{n}",
    lambda value, n: f"{n % 10}",
    lambda value, n: f"{value:8.3f}|{n:03d}|{n:x}|{value!r:>20}|{n!s}|{n!a}",
    lambda value, n: f"{f'{value:.2f}':>12}",
    lambda value, n: f"{n}" + "a" + f"{value:e}",
    lambda value, n: "%d/%s %5.2f%% %r %x" % (n, "a", value, value, n),
    lambda value, n: "%s" % value,
    lambda value, n: "{} [{}] {:.2f} {!r}".format("a", n, value, value),
    lambda value, n: "{loss:.3f} {0} {loss!s:>10}".format(n, loss=value),
    lambda value, n: str(value) + repr(n) + format(value, ".1e") + ascii(n) + format(n),
    lambda value, n: json.dumps({"step": n, "loss": round(value, 3), "tags": ["a", {"n": f"{n}"}], "none": None}),
    lambda value, n: json.dumps([n, (value, True)], indent=2) + json.dumps({"b": value, "a": n}, sort_keys=True),
    upper_and_wide,
    joined,
    moved,
]


@pytest.mark.parametrize("use", SERVED, ids=range(len(SERVED)))
def test_made_again(use: Callable[[float, int], Any]) -> None:
    captures, hits = pair(use).counts
    assert captures <= 1 and hits == CALLS - 1


def of_tensors(use: Callable[[torch.Tensor, int], Any], x: Callable[[int], torch.Tensor]) -> Pair:
    """Calls of a region that counts, and keeps what ``use`` makes of a tensor."""

    def world() -> Any:
        kept: list[Any] = []

        def region(x: torch.Tensor, n: int) -> Any:
            made = use(x.sum(), n)
            kept.append(made)
            return made

        return region, kept

    return Pair(world).calls(*[(x(i), i) for i in range(CALLS)])


def tries_an_error(loss: torch.Tensor, n: int) -> str:
    template = "{:.3f} {missing}"
    with contextlib.suppress(KeyError):
        template.format(loss)
    return "{:.3f}".format(loss)


OF_TENSORS: list[Callable[[torch.Tensor, int], Any]] = [
    lambda loss, n: f"{loss} {n}",
    lambda loss, n: f"{n}: {loss:.4f} {loss:>10.1e} {loss.detach():.2f} {loss.sqrt():.2f}",
    lambda loss, n: f"{(loss > 3).sum():d} {100.0 * (loss > 3).float():.1f}%",
    lambda loss, n: "{:.4f} {}".format(loss, n),
    lambda loss, n: "{0:.2f} {0:.3f} {loss} {n:d}".format(loss, loss=loss * 2, n=n),
    lambda loss, n: "%.4f %d" % (loss, n),
    lambda loss, n: "%5.1f%%" % loss.detach(),
    lambda loss, n: format(loss, ".3f") + format(loss),
]


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True")
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("use", OF_TENSORS, ids=range(len(OF_TENSORS)))
def test_made_again_of_tensors(use: Callable[[torch.Tensor, int], Any], gradient: bool) -> None:
    captures, hits = of_tensors(use, lambda i: (torch.ones(2) * (i + 0.25)).requires_grad_(gradient)).counts
    assert captures <= 2 and hits >= CALLS - 2


OF_TENSORS_EXACT: list[Callable[[torch.Tensor, int], Any]] = [
    tries_an_error,
    lambda loss, n: f"{loss:.2f}" == "3.00",
    lambda loss, n: {"{:.1f}".format(loss): 1},
    lambda loss, n: len("%.3f" % loss),
    lambda loss, n: list(map("{:.1f}".format, [loss, loss + 1])),
    lambda loss, n: f"{loss > 3}" + f"{loss != loss}",
    lambda loss, n: str(loss) + f"{loss!r}",
    lambda loss, n: "{} {}".format(loss, [n]),
    lambda loss, n: "{0.shape} {0:.2f}".format(loss),
    lambda loss, n: f"{loss:{n + 5}.1f}",
    lambda loss, n: "%s %.2f" % (loss, loss),
    lambda loss, n: "%d" % loss,
]


@pytest.mark.parametrize("use", OF_TENSORS_EXACT, ids=range(len(OF_TENSORS_EXACT)))
def test_other_texts_of_tensors(use: Callable[[torch.Tensor, int], Any]) -> None:
    assert of_tensors(use, lambda i: torch.ones(2) * (i + 0.25)).region.calls == CALLS


def test_texts_of_whole_numbers_in_tensors() -> None:
    pair = of_tensors(
        lambda total, n: f"{total} {total:04d}" + "%d" % total + "%.1f" % total, lambda i: torch.tensor([i, 2])
    )
    assert pair.region.hits > 0


def opened(value: float, n: int) -> Any:
    a, *rest = f"{n}{value}"
    return a, rest


EXACT: list[Callable[[float, int], Any]] = [
    lambda value, n: f"{n}" == "4",
    lambda value, n: f"{n}" in ("4", "5"),
    lambda value, n: f"{n}" in "345",
    lambda value, n: "4" in f"{n}",
    lambda value, n: f"{n}" < "5",
    lambda value, n: len(f"{value}"),
    lambda value, n: f"{n}{value}"[0],
    lambda value, n: [*f"{n}"],
    lambda value, n: [c for c in f"{n}"],
    lambda value, n: "".join(reversed(f"{value}")),
    lambda value, n: {f"{n}": 1},
    lambda value, n: {f"{n}"},
    lambda value, n: {"3": "x"}.get(f"{n}"),
    lambda value, n: int(f"{n}") + float(f"{value:.2f}"),
    lambda value, n: f"{n}" * 2,
    lambda value, n: f"{value}".split("."),
    lambda value, n: f"{value}".partition("."),
    lambda value, n: f"{n}".encode(),
    lambda value, n: sorted([f"{n}", "5"]),
    lambda value, n: max(f"{n}", "5"),
    lambda value, n: list(map(f"{n}".__add__, ["a"])),
    lambda value, n: hash(f"{n}") == hash("3"),
    lambda value, n: list(f"{n}"),
    lambda value, n: list(zip(f"{n}", "a", strict=False)),
    lambda value, n: "x" if f"{n}".isdigit() else "y",
    lambda value, n: f"{65 + n:c}",
    lambda value, n: "%c" % (65 + n),
    lambda value, n: "%*d" % (n, 3),
    lambda value, n: "%(n)d" % {"n": n},
    lambda value, n: "%d" % value,
    lambda value, n: "{:{}}".format(value, n + 5),
    lambda value, n: f"{value:{n + 5}}",
    lambda value, n: "{v[0]}".format(v=[n]),
    lambda value, n: json.dumps({n: value}),
    lambda value, n: json.dumps(n, default=str),
    opened,
]


@pytest.mark.parametrize("use", EXACT, ids=range(len(EXACT)))
def test_exact_texts_are_guarded(use: Callable[[float, int], Any]) -> None:
    assert pair(use).region.hits < CALLS - 2


def loops(value: float, n: int) -> Any:
    found = []
    for a, b in [f"{n}x", f"{n}y"[:2], (f"{n}", 1)]:
        found.append((a, b))
    i = 0
    while f"{i}" != f"{n}":
        i += 1
    return found, i


def changed_containers(value: float, n: int) -> Any:
    values, names = ["3", f"{n}", "5"], {"3"}
    values.sort()
    names.update([f"{n}"])
    names.discard(f"{n - 1}")
    table = {"3": 1}
    table.setdefault(f"{n}", 2)
    table.update({"b": n})
    return values.index(f"{n}"), values.count("4"), values, len(names), table.pop(f"{n - 1}", None), list(table)


def hashed(value: float, n: int) -> Any:
    return hash((f"{n}",)) == hash(("3",)), dict.fromkeys([f"{n}", "3"]), frozenset([f"{n}", "3"]), Counter([f"{n}", "3"])


OTHER: list[Callable[[float, int], Any]] = [
    loops,
    changed_containers,
    hashed,
    lambda value, n: (bool(f"{n}"), not f"{n}", f"{n}" or "x", f"{n}" and "x", any([f"{n}"]), all([f"{n}"])),
    lambda value, n: (operator.eq(f"{n}", "3"), operator.add(f"{n}", "b"), operator.contains("345", f"{n}")),
    lambda value, n: (f"{n}".__len__(), str.upper(f"{n}e"), str.__eq__(f"{n}", "3"), getattr(f"{n}", "zfill")(3)),
    lambda value, n: operator.methodcaller("zfill", 3)(f"{n}"),
    lambda value, n: functools.reduce(operator.add, [f"{n}", "b"], "c"),
    lambda value, n: bool(re.match("[345]", f"{n}")),
    lambda value, n: (copy.deepcopy([f"{n}"]), copy.copy({"a": f"{n}"})),
    lambda value, n: pickle.dumps(f"{n}"),
    lambda value, n: (next(iter(f"{n}")), list(enumerate(f"{n}")), list(zip(*[f"{n}", "a"], strict=False))),
    lambda value, n: (min([f"{n}", "44"], key=len), sorted([f"{n}", "3"], key=lambda text: text), [f"{n}"] < ["4"]),
    lambda value, n: (f"{n} {{}}".format(2), f"{n} %d" % 2, "{a}".format_map({"a": f"{n}"}), f"{'3'}".join(f"{n}{value}")),
    lambda value, n: list(filter(None, map(str.strip, [f"{n}", " "]))),
    lambda value, n: [*map(lambda text: text == "3", [f"{n}"])],
    lambda value, n: dict([(f"{n}", 1), ("3", 2)]),
    lambda value, n: dict(zip([f"{n}", "3"], [1, 2], strict=True)),
    lambda value, n: types.SimpleNamespace(text=f"{n}") == types.SimpleNamespace(text="3"),
    lambda value, n: (lambda **options: list(options))(**{f"k{n}": 1}),
    lambda value, n: (str(ValueError(f"{n}")), repr([f"{n}"]), f"{[f'{n}']}", "%s" % [f"{n}"]),
    lambda value, n: {"3": "x", "4": "y"}[f"{n % 2 + 3}"],
    lambda value, n: "a" if f"{n}" is None else "b",
    lambda value, n: [f"{n}", "3"].index("3"),
    lambda value, n: collections.deque([f"{n}", "3"], maxlen=1).count("3"),
    lambda value, n: itertools.groupby([f"{n}", "3"]).__next__()[0] == "3",
    lambda value, n: list(itertools.chain(f"{n}", ["a"])),
    lambda value, n: isinstance(f"{n}", str) and issubclass(type(f"{n}"), str),
    lambda value, n: f"{n}".translate({51: "x"}) + f"{n}".casefold() + "-".join(f"{n}".splitlines()),
    lambda value, n: logging.getLogger(f"a{n % 2}").name,
]


@pytest.mark.parametrize("use", OTHER, ids=range(len(OTHER)))
def test_any_other_use(use: Callable[[float, int], Any]) -> None:
    logging.getLogger("a0"), logging.getLogger("a1")
    assert pair(use).region.calls == CALLS


def test_a_number_that_can_not_be_shown() -> None:
    """An integer may have too many digits, or be too large for a float: then eager mode raises."""

    def world() -> Any:
        numbers = [2]

        def region(x: torch.Tensor) -> Any:
            numbers[0] *= numbers[0]
            return f"{numbers[0]:.3e}"

        return region, numbers

    assert Pair(world).calls(*[(torch.ones(1),)] * 12).region.hits > 5


def test_private_copies() -> None:
    for text in ("a", "7", "ab", "", "\N{GREEK SMALL LETTER ALPHA}"):
        assert supports_fresh_text(text) is (text in ("a", "7", "ab"))
    for text in ("a", "7", "ab"):
        copy = fresh_text(text)
        assert copy == text and copy is not text and {text: 1}[copy] == 1


def test_what_can_be_filled() -> None:
    assert texts.can_fill("{} {a:.2f} {1!r}", ("a",), (1, 2.0, 3))
    for template in ("{0.real}", "{0[a]}", "{:{}}", "{:c}", "{"):
        assert not texts.can_fill(template, (), (1, 2))
    assert texts.can_percent("%d %% %5.1f %s", (1, 2.0, "a"))
    for template in ("%c", "%*d", "%(a)d", "%"):
        assert not texts.can_percent(template, (1,))
    assert not texts.can_percent("%d", (1.0,))
    assert texts.values_in({"a": [1, (2.0, None)], "b": "c"}) == [1, 2.0, None, "c"]
    assert texts.values_in({1: 2}) is None and texts.values_in([object()]) is None
    deep: list[Any] = []
    deep.append(deep)
    assert texts.values_in(deep) is None


def test_a_text_carries_a_symbol() -> None:
    world = World()
    world.context.followed = world.build(Followed)
    tracker = world.build(VaryingTexts)
    number = world.ledger.scalars.bind(2.5, world.ledger.scalars.source(world.argument(), 2.5))
    text = tracker.formatted(site(), number, None, ".1f", "2.5")
    assert tracker.varies(text) and not tracker.varies("2.5") and not tracker.can_format(number, None, text)
    assert tracker.joined(site(), ("a", "b"), "ab") == "ab" and tracker.varies(tracker.joined(site(), ("a", text), "a2.5"))


def test_a_generator_is_followed_until_its_values_are_used_up() -> None:
    world = World()
    followed = world.build(Followed)
    values: list[Any] = []
    generator = (n for n in (1, 2))
    world.stack.enter(site(), Consumer.KEEPS)
    followed.follow(generator, frozenset({int}), lambda found, result: values.append((found, result)))
    assert followed and followed.takes(generator.gi_frame, 1) and not followed.takes(generator.gi_frame, "a")
    call = world.stack.frames[-1]
    assert call.returned is not None
    call.returned(3)
    assert values == [([1], 3)] and not followed
