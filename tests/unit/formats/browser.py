"""Chromium without a window, for tests of the page. Key functions: dumped, measured, evaluated, on_paper."""

from __future__ import annotations

import json
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

_FRAME = """
const frame = document.getElementById('page');
frame.onload = () => {
  const page = frame.contentDocument;
  const run = (page) => {%s};
  document.getElementById('out').textContent = JSON.stringify(run(page));
};
"""

# What is wider than its window or its box; pictures and lines of code may be scrolled in theirs.
_MEASURE = """
  for (const part of page.querySelectorAll('details')) part.open = true;
  const boxes = [...page.querySelectorAll('.scroll')].filter((box) => box.querySelector('table'));
  const wide = boxes.filter((box) => box.scrollWidth > box.clientWidth);
  const root = page.documentElement;
  return {
    tables: page.querySelectorAll('table').length,
    page: [root.scrollWidth, root.clientWidth],
    boxes: wide.map((box) => [box.scrollWidth, box.clientWidth, box.textContent.slice(0, 60)]),
  };
"""


def dumped(address: str, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The document after its scripts have run, and the console on stderr. Skips the test if there is no browser."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    command = [
        chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
        *options, "--dump-dom", address,
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def measured(page: str, width: int, folder: Path) -> dict[str, Any]:
    """The widths of the page and of its tables."""
    measured: dict[str, Any] = evaluated(page, _MEASURE, folder, width)
    return measured


def on_paper(page: str) -> str:
    """The page with its style for paper on the screen; that of the screen never applies."""
    assert "@media print" in page and "@media screen" in page
    return page.replace("@media print", "@media all").replace("@media screen", "@media speech")


def evaluated(page: str, script: str, folder: Path, width: int = 1280) -> Any:
    """What the function body ``script`` returns for the document ``page``.

    It is in a frame: a window can't be as narrow as a phone, and the page's policy allows no other script.
    """
    framed = (
        f"<iframe id='page' width='{width}' height='800' style='border: 0' srcdoc=\"{escape(page, quote=True)}\"></iframe>"
    )
    file = folder / "framed.html"
    run = _FRAME % script
    file.write_text(f"<!DOCTYPE html><meta charset='utf-8'><pre id='out'></pre>{framed}<script>{run}</script>", "utf-8")
    done = dumped(file.as_uri(), folder / "profile", "--virtual-time-budget=10000")
    out = done.stdout.partition('<pre id="out">')[2].partition("</pre>")[0]
    assert out, done.stderr[-2000:]
    return json.loads(unescape(out))
