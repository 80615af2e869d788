"""What a run says that it is compiling."""

from __future__ import annotations

import pytest

from lsp_server.formats import compiling
from lsp_server.formats.compiling import CompileProgress


def test_what_is_compiled_for_how_long_and_what_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(compiling.time, "monotonic", lambda: now[0])
    progress = CompileProgress()
    assert progress.text() == ""
    progress.take({"running": ["model: Net"], "waiting": ["optimizer: SGD"], "ready": []})
    now[0] += 12.2
    assert progress.text() == "compiling model: Net for 12 s, 1 waiting"
    progress.take({"running": ["model: Net"], "waiting": [], "ready": ["optimizer: SGD"]})
    now[0] += 1
    assert progress.text() == "compiling model: Net for 13 s; compiled: optimizer: SGD"
    progress.take({"running": [], "waiting": [], "ready": ["model: Net", "optimizer: SGD"]})
    assert progress.text() == "compiled: 2 regions"


def test_names_are_the_programs_own() -> None:
    progress = CompileProgress()
    progress.take({"running": ["a\x1b[31m"], "waiting": [], "ready": [3]})
    assert "\x1b" not in progress.text() and progress.text().endswith("compiled: 3")
    with pytest.raises(KeyError):
        progress.take({"running": []})
