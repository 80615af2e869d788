"""The table of features names a test for each of ours: they must be there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/reference/features.md").read_text(encoding="utf-8")
ROWS = [
    line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| feature")
]


def test_every_test_named_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)
    assert len(named) >= 35
    for path, function in named:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^(async )?def {function or 'test_'}", text, re.MULTILINE), (path, function)


def test_every_yes_of_ours_is_proved() -> None:
    assert len(ROWS) >= 40
    for row in ROWS:
        name, ours, proof = row[0].strip(), row[5].strip(), row[6].strip()
        assert proof.startswith("`tests/") or ours.startswith("no"), name
