"""The generated documentation is what the registry says."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpy_core.findings import REGISTRY
from magpy_core.findings.docs import main, markdown, stale, write

DOCS = Path(__file__).parents[3] / "docs"


def test_committed_pages_are_not_stale() -> None:
    assert stale(DOCS) == [], "run python -m magpy_core.findings.docs"


def test_check_sees_missing_stale_and_left_over_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    assert main(["--docs", str(tmp_path), "--check"]) == 0
    (tmp_path / "codes/MP101.md").write_text("old")
    (tmp_path / "codes/MP102.md").unlink()
    (tmp_path / "codes/MP999.md").write_text("gone")
    assert main(["--docs", str(tmp_path), "--check"]) == 1
    out = capsys.readouterr().out
    assert "MP101.md is stale" in out and "MP102.md is missing" in out and "MP999.md belongs to no code" in out
    assert main(["--docs", str(tmp_path)]) == 0
    assert stale(tmp_path) == []


def test_a_page_has_all_parts() -> None:
    page = markdown(REGISTRY["MP102"])
    for part in ("# MP102: ", "## What happened", "## What to do", "## Example", "```python", "magpy: ignore[MP102]"):
        assert part in page
