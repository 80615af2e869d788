"""The tutorials' commands, in their order, print what the pages show.

A block ``console`` has commands and what they print; a block ``diff`` is applied to the script, and a block ``python`` is
the file that the text before it names. Lines with times and what follows from them differ: of those, the form is compared.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
_BLOCK = re.compile(r"^```(console|diff|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: What is compared of lines that are never the same twice.
_VARIES = {
    r"^Compiled \d+ graphs? in .*": "Compiled N graphs",
    r"^\d+ steps in \d.*": "N steps in N s",
    r"^(magpy-demo/)?train\.py: Equal up to rounding: .*": "equal up to rounding",
}
#: The sentences about a step say what was measured; on a busy machine, that is another one.
_STEP = re.compile(r"^Step: .*?verified against eager mode\.$|^Step: .*?(?=^\n|\Z)", re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a block with what each prints."""
    parts = re.split(r"^\$ (.+)\n", block, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def apply(change: str, file: Path) -> None:
    """A change, as `diff -u` writes its lines, which must fit one place."""
    lines = change.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{text.count(old)} places in {file} for\n{change}"
    file.write_text(text.replace(old, new), encoding="utf-8")


def compared(text: str) -> list[str]:
    lines = _STEP.sub("Step: measured", text).splitlines()
    for form, meant in _VARIES.items():
        lines = [re.sub(form, meant, line) for line in lines]
    return [line.rstrip() for line in lines]


def run(command: str, folder: Path, env: dict[str, str]) -> str:
    first, *rest = shlex.split(command)
    words = [sys.executable, "-m", "lsp_server.cli"] if first == "magpy-lsp" else [sys.executable]
    done = subprocess.run([*words, *rest], cwd=folder, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_blocks_are_taken_apart() -> None:
    assert commands("$ a b\nc\nd\n$ e\n") == [("a b", "c\nd\n"), ("e", "")]
    assert compared("Step: 1 ms, a\nb\n1 of 1 graph verified against eager mode.\n3 steps in 2 s\n") == [
        "Step: measured", "N steps in N s"
    ]  # fmt: skip


def test_every_tutorial_has_commands() -> None:
    assert len(PAGES) == 3
    assert all(len(re.findall(r"^\$ magpy-lsp ", page.read_text(encoding="utf-8"), re.MULTILINE)) >= 3 for page in PAGES)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_it_shows_is_printed(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    folder = tmp_path
    env = {name: value for name, value in os.environ.items() if name != "CI"}
    env |= {"PYTHONPATH": str(ROOT), "COLUMNS": "100", "XDG_CACHE_HOME": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    script = tmp_path / "magpy-demo" / "train.py"
    for block in _BLOCK.finditer(text):
        kind, body = block.groups()
        if kind == "diff":
            apply(body, script)
        elif kind == "python":
            (name,) = re.findall(r"`(\w+\.py)`", text[: block.start()].rstrip().rpartition("\n\n")[2])
            (folder / name).write_text(body, encoding="utf-8")
        else:
            for command, shown in commands(body):
                if command.startswith("cd "):
                    folder = folder / command.removeprefix("cd ")
                    continue
                printed, wanted = compared(run(command, folder, env)), compared(shown)
                assert wanted == [line for line in printed if line in wanted], f"{command}\n" + "\n".join(printed)
