"""What compiled code depends on besides its graph: the program's settings of compilers, torch's state, versions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch

from magpy_core._compat.torch import compiler_state
from magpy_core._compat.torch.compiler_state import changed_settings, state_of_compilers


def test_changed_settings_are_named() -> None:
    from torch._inductor import config

    assert changed_settings() == []
    with config.patch(max_fusion_size=7):
        assert changed_settings() == ["torch._inductor.config.max_fusion_size"]
        assert state_of_compilers() is None
    assert changed_settings() == []
    usual = config.max_fusion_size
    with config.patch(max_fusion_size=usual):
        assert changed_settings() == []  # it is set, to the usual value


def test_inductor_is_not_imported_to_find_out() -> None:
    code = (
        "import sys, magpy_core._compat.torch.compiler_state as s; print(s.changed_settings(), bool(s.state_of_compilers()),"
        "'torch._inductor' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "True", "False"]


def test_the_state_is_the_same_once_compilers_are_imported() -> None:
    code = (
        "import magpy_core._compat.torch.compiler_state as s; before = s.state_of_compilers();"
        "import torch._inductor.compile_fx, torch._dynamo, torch._functorch.aot_autograd;"
        "print(before is not None and before == s.state_of_compilers())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], AbstractContextManager[Any] | None]] = {
    "grad mode": lambda patch: torch.no_grad(),
    "inference": lambda patch: torch.inference_mode(),
    "autocast": lambda patch: torch.autocast("cpu", torch.bfloat16),
    "the default device": lambda patch: torch.device("meta"),
    "deterministic": lambda patch: patch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True),
    "precision": lambda patch: patch.setattr(torch, "get_float32_matmul_precision", lambda: "medium"),
    "the default dtype": lambda patch: patch.setattr(torch, "get_default_dtype", lambda: torch.float64),
    "threads": lambda patch: patch.setattr(torch, "get_num_threads", lambda: 7),
    "attention": lambda patch: torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
    "the order of products": lambda patch: patch.setattr(torch.backends.opt_einsum, "strategy", "greedy"),
    "anomalies": lambda patch: torch.autograd.detect_anomaly(),
    "oneDNN": lambda patch: torch.backends.mkldnn.flags(enabled=False),
    "an environment variable": lambda patch: patch.setenv("TORCHINDUCTOR_MAX_AUTOTUNE", "1"),
    "the C++ compiler": lambda patch: patch.setenv("CXX", "clang++"),
    "a version": lambda patch: patch.setattr(compiler_state, "_versions", lambda: "another"),
}


@pytest.mark.parametrize("what", list(CHANGES))
def test_another_state_is_another_text(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state_of_compilers()
    with monkeypatch.context() as patch:
        context = CHANGES[what](patch)
        if context is None:
            assert state_of_compilers() != before
        else:
            with context:
                assert state_of_compilers() != before
    assert state_of_compilers() == before


def test_where_code_is_kept_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    before = state_of_compilers()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/nowhere")
    assert state_of_compilers() == before
