"""Guards that torch's caches keep with compiled code: all of them, and valid in another process."""

from __future__ import annotations

from typing import Any

import torch

from magpy_core._compat.torch.fake import fakify, new_fake_mode
from magpy_core._compat.torch.kept_guards import keep_all_guards


def sized(rows: int, columns: int) -> tuple[Any, Any]:
    """A shape environment, and a fake in it whose sizes vary."""
    mode, shape_env = new_fake_mode(dynamic=True)
    keep_all_guards(shape_env)
    return shape_env, fakify(mode, torch.empty(rows, columns), "x", {0, 1})


def kept(shape_env: Any) -> str:
    text = shape_env.produce_guards_expression([], guards=shape_env.get_pruned_guards([]))
    assert isinstance(text, str)
    return text


def test_guards_on_sizes_of_tensors_are_kept_and_hold_again() -> None:
    shape_env, fake = sized(12, 20)
    assert fake.shape[0] // 4 == 3 and fake.shape[0] + fake.shape[1] > 30
    other, again = sized(13, 40)
    assert not other.guards
    assert other.evaluate_guards_expression(kept(shape_env), [])
    assert len(other.guards) == 2, "they are guards there too"
    assert again.shape[0] * 2 == 26
    assert sized(12, 18)[0].evaluate_guards_expression(kept(shape_env), []) is False
    elsewhere = sized(16, 40)[0]
    assert elsewhere.evaluate_guards_expression(kept(shape_env), []) is False
    assert not elsewhere.guards, "nothing is assumed where they don't hold"


def test_a_size_that_became_a_constant_is_kept() -> None:
    shape_env, fake = sized(12, 20)
    assert fake.shape[0] == 12
    text = kept(shape_env)
    assert sized(12, 7)[0].evaluate_guards_expression(text, [])
    assert not sized(13, 20)[0].evaluate_guards_expression(text, [])


def test_unknown_symbols_are_no_match() -> None:
    shape_env, _ = sized(12, 20)
    assert shape_env.evaluate_guards_expression("(s_unknown == 3)", []) is False


def test_a_divisor_of_zero_is_no_match() -> None:
    shape_env, fake = sized(12, 20)
    assert fake.shape[1] % (fake.shape[0] // 6) == 0
    text = kept(shape_env)
    assert sized(13, 40)[0].evaluate_guards_expression(text, [])
    assert sized(4, 20)[0].evaluate_guards_expression(text, []) is False
