"""What torch's symbolic sizes tell: expressions, numbers they stood for, and what was assumed about them."""

from __future__ import annotations

import logging

import pytest
import torch
import torch.nn.functional as F

from magpy_core._compat.torch.fake import assumptions, fakify, hint_of, new_fake_mode, sym_expression, symbolic_shapes


def test_a_slice_that_ends_before_the_end() -> None:
    mode, env = new_fake_mode(dynamic=True)
    x = fakify(mode, torch.ones(2, 9), "x", {1})
    with symbolic_shapes(), mode:
        inside, joined = x[:, :5], torch.cat([x, x], 1)
    assert sym_expression(inside.shape[1]) is None and inside.shape[1] == 5
    assert hint_of(joined.shape[1]) == 18 and sym_expression(joined.shape[1]).free_symbols
    (relation,) = assumptions(env, 0)
    (symbol,) = relation.free_symbols
    assert relation.subs(symbol, 5) and not relation.subs(symbol, 4)
    assert assumptions(env, 1) == []


@pytest.mark.parametrize(
    ("operation", "size"),
    [
        (lambda x: F.pad(x, (1, 2)), lambda n: n + 3),
        (lambda x: F.interpolate(x[None], scale_factor=2)[0], lambda n: 2 * n),
        (lambda x: torch.fft.rfft(x), lambda n: n // 2 + 1),
    ],
    ids=["pad", "interpolate", "rfft"],
)
def test_composite_operations_carry_symbols(operation, size) -> None:
    mode, env = new_fake_mode(dynamic=True)
    x = fakify(mode, torch.ones(2, 9), "x", {1})
    with symbolic_shapes(), mode:
        expression = sym_expression(operation(x).shape[1])
    (symbol,) = expression.free_symbols
    assert [int(expression.subs(symbol, n)) for n in (9, 10, 31)] == [size(n) for n in (9, 10, 31)]
    assert assumptions(env, 0) == []


def test_a_shape_function_that_fails_prints_nothing() -> None:
    log = logging.getLogger("torch._subclasses.fake_tensor")
    seen: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())  # type: ignore[method-assign]
    log.addHandler(handler)
    try:
        with symbolic_shapes():
            log.error("failed while attempting to run meta")
        log.error("the program's own")
    finally:
        log.removeHandler(handler)
    assert seen == ["the program's own"]
    assert not log.filters
