"""The panel and the view of a run, from what a run has sent and printed (``run --events``, with its output between).

``MAGPY_UPDATE_GOLDEN=1 pytest tests/golden`` writes the texts anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lsp_server.cli.live_panel import HEIGHT, panel_lines
from lsp_server.formats.live import LiveRun

FOLDER = Path(__file__).parent / "formats"
RUNS = ("background", "compiled")  # compiled beside the program, which ended first; compiled while it waited


def replayed(name: str) -> Iterator[tuple[str, LiveRun]]:
    """The type of each message of a run, and what is known then. The clock is that of the recording."""
    now = [0.0]
    run = LiveRun(clock=lambda: now[0])
    for line in (FOLDER / f"live-{name}.jsonl").read_text(encoding="utf-8").splitlines():
        message: dict[str, Any] = json.loads(line)
        now[0] = message["seconds"]
        if message["type"] == "printed":
            run.output(message["text"].encode())
        else:
            run.take(message)
        yield message["type"], run


def agrees(name: str, text: str) -> None:
    golden = FOLDER / name
    if os.environ.get("MAGPY_UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", RUNS)
def test_the_panel_as_a_run_goes_on(name: str) -> None:
    shown = [panel_lines(run.text(), 60, "never") for kind, run in replayed(name) if kind == "progress"]
    assert len(shown) > 3 and all(len(panel) <= HEIGHT and len(line) < 60 for panel in shown for line in panel)
    agrees(f"live-{name}.txt", "\n".join("\n".join(panel) for panel in shown) + "\n")


@pytest.mark.parametrize("name", RUNS)
def test_the_view_at_the_end_of_a_run(name: str) -> None:
    *_, (_, run) = replayed(name)
    agrees(f"live-{name}.json", json.dumps(run.text(ended=True).to_json(), indent=2, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("name", RUNS)
def test_the_terminal_and_the_editor_say_the_same(name: str) -> None:
    for _, run in replayed(name):
        text = run.text()
        panel = " ".join(panel_lines(text, 200, "never"))
        data = text.to_json()
        assert all(line in panel for line in data["lines"]) and data["head"] in panel
