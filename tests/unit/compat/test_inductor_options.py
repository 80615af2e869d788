"""What a program has changed of Inductor's settings."""

from __future__ import annotations

import sys

import pytest

from magpy_core._compat.torch.inductor_options import changed_settings


def test_changed_settings_are_named() -> None:
    from torch._inductor import config

    with config.patch(max_fusion_size=7):
        assert "max_fusion_size = 7" in changed_settings()
    assert "max_fusion_size = 7" not in changed_settings()  # it may be named, with the usual value


def test_inductor_is_not_imported_to_find_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch._inductor.config", raising=False)
    assert changed_settings() == "" and "torch._inductor.config" not in sys.modules
