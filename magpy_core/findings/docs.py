"""Writes the generated documentation: ``docs/codes/*.md`` and ``docs/report.schema.json``.

``python -m magpy_core.findings.docs`` writes below ``docs/``; with ``--check`` it writes nothing and exits 1
if a file is missing, stale or belongs to no code. Key functions: pages, stale.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from magpy_core.findings.code import FAMILIES, Code
from magpy_core.findings.registry import REGISTRY
from magpy_core.findings.schema import report_schema

FAMILY_TITLES = {
    "1": ("Graph breaks", "Why a region is not one complete operator graph."),
    "2": ("Guards and recompiles", "What a capture depends on, and why it was captured again."),
    "3": ("Side effects", "Changes that a region makes to external state. Replay makes the same changes."),
    "4": ("Performance", "Regions that are compiled correctly but slower than they could be."),
    "5": ("Budgets", "Limits that the project sets and that a run exceeded."),
    "9": ("The tool and the entrypoint", "Problems with the run itself."),
    "D1": ("torch.compile: graph breaks", "Where TorchDynamo cuts the graph (`--engine dynamo`)."),
    "D2": ("torch.compile: recompiles", "Why TorchDynamo compiled a function again (`--engine dynamo`)."),
    "D3": ("torch.compile: skipped functions", "Functions that TorchDynamo does not compile (`--engine dynamo`)."),
}


_QUICK_FIX = "Some cases have a quick fix in the editor."


def markdown(code: Code) -> str:
    """The documentation page of one code."""
    parts = [
        f"# {code.code}: {code.title}",
        f"`{code.name}` · {code.family} · default severity: {code.severity.value}",
        f"**{code.reason}**",
        "## What happened",
        code.explanation,
        "## What to do",
        "\n".join(f"- {hint}" for hint in (*code.hints, *([_QUICK_FIX] if code.has_fix else []))),
        "## Example",
        f"```{code.language}\n{code.example.rstrip()}\n```",
    ]
    if code.fixed:
        parts += ["Without the finding:", f"```{code.language}\n{code.fixed.rstrip()}\n```"]
    if code.language == "python":
        parts += [
            "## Silence it",
            f"Put `# magpy: ignore[{code.code}]` on the line, `# magpy: ignore-file[{code.code}]` anywhere in the file, "
            f'or `ignore = ["{code.code}"]` under `[tool.magpy]` in `pyproject.toml`.',
        ]
    return "\n\n".join(parts) + "\n"


def index() -> str:
    """The table of contents of all pages, one table per family."""
    parts = [
        "# Finding codes",
        "Every finding has one of these codes. `magpy-lsp explain CODE` shows the same text in a terminal.",
    ]
    for key in FAMILIES:
        title, about = FAMILY_TITLES[key]
        rows = [
            f"| [{c.code}]({c.code}.md) | `{c.name}` | {c.title} | {c.severity.value} |"
            for c in REGISTRY.values()
            if c.family_key == key
        ]
        table = "\n".join(["| code | name | title | severity |", "|---|---|---|---|", *rows])
        parts += [f"## MP{key}xx: {title}", about, table]
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """Every generated file: path below ``docs/`` and its text."""
    generated = {f"codes/{c.code}.md": markdown(c) for c in REGISTRY.values()}
    generated["codes/index.md"] = index()
    generated["report.schema.json"] = json.dumps(report_schema(), indent=2) + "\n"
    return generated


def stale(docs: Path) -> list[str]:
    """One line for each file below ``docs`` that differs from what :func:`pages` would write."""
    wanted = pages()
    problems = []
    for name, text in wanted.items():
        file = docs / name
        if not file.is_file():
            problems.append(f"{name} is missing")
        elif file.read_text(encoding="utf-8") != text:
            problems.append(f"{name} is stale")
    left = {f"codes/{p.name}" for p in (docs / "codes").glob("*.md")} - set(wanted)
    return problems + [f"{name} belongs to no code" for name in sorted(left)]


def write(docs: Path) -> None:
    """Writes all pages and removes those of codes that no longer exist."""
    (docs / "codes").mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for name, text in wanted.items():
        (docs / name).write_text(text, encoding="utf-8")
    for page in (docs / "codes").glob("*.md"):
        if f"codes/{page.name}" not in wanted:
            page.unlink()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m magpy_core.findings.docs", description=__doc__)
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="the documentation folder (default: ./docs)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if something is stale")
    options = parser.parse_args(argv)
    if not options.check:
        write(options.docs)
        return 0
    problems = stale(options.docs)
    for problem in problems:
        print(f"{options.docs}: {problem}; run python -m magpy_core.findings.docs")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
