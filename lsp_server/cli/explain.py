"""``magpy-lsp explain``: prints finding codes as text, Markdown or JSON. Key functions: explain, named."""

from __future__ import annotations

import difflib
import json
import sys
from typing import Any

import click

from lsp_server.links import web
from magpy_core.findings.registry import REGISTRY, Code, matching

_FAMILIES = {
    "1": ("Graph breaks", "Why a region is not one complete operator graph."),
    "2": ("Guards and recompiles", "What compiled code depends on, and why a region was compiled again."),
    "3": ("Side effects", "Changes that a region makes to external state. Compiled code makes the same changes."),
    "4": ("Performance", "Regions that are compiled correctly but slower than they could be."),
    "5": ("Budgets", "Limits that the project sets and that a run exceeded."),
    "9": ("The tool and the entrypoint", "Problems with the run itself."),
    "D1": ("torch.compile: graph breaks", "Where TorchDynamo cuts the graph (`--engine dynamo`)."),
    "D2": ("torch.compile: recompiles", "Why TorchDynamo compiled a function again (`--engine dynamo`)."),
    "D3": ("torch.compile: skipped functions", "Functions that TorchDynamo does not compile (`--engine dynamo`)."),
}


def explain(codes: tuple[str, ...], everything: bool, output_format: str, color: str) -> None:
    if everything and codes:
        raise click.UsageError("Use either codes or --all, not both.")
    if not everything and not codes:
        raise click.UsageError("Name a code, as in `magpy-lsp explain MP102`, or use --all.")
    wanted = list(REGISTRY.values()) if everything else named(codes)
    if output_format == "json":
        click.echo(json.dumps([_as_json(code) for code in wanted], indent=2))
    elif output_format == "markdown":
        click.echo("\n".join(code.page for code in wanted), nl=False)
    else:
        _show(wanted, color, overview=everything)


def named(names: tuple[str, ...]) -> list[Code]:
    """The codes with these numbers, names or prefixes; a usage error if there are none."""
    by_name = {code.name: code for code in REGISTRY.values()}
    found: dict[str, Code] = {}
    for name in names:
        exact = by_name.get(name.lower())
        codes = [exact] if exact else matching(name.upper())
        if not codes:
            close = difflib.get_close_matches(name, [*REGISTRY, *by_name], 1, 0.6)
            hint = f"did you mean {close[0]}?" if close else "`magpy-lsp explain --all` lists them."
            raise click.UsageError(f"{name!r} is not a finding code; {hint}")
        found.update((code.code, code) for code in codes)
    return list(found.values())


def _as_json(code: Code) -> dict[str, Any]:
    return {
        "code": code.code,
        "name": code.name,
        "title": code.title,
        "family": code.family,
        "severity": code.severity.value,
        "reason": code.reason,
        "explanation": code.explanation,
        "hints": list(code.hints),
        "example": code.example,
        "fixed": code.fixed,
        "language": code.language,
        "has_fix": code.has_fix,
        "url": web(code, None),
    }


def index() -> str:
    """The table of contents of all pages, one table per family."""
    parts = [
        "# Finding codes",
        "Every finding has one of these codes. `magpy-lsp explain CODE` shows the same text in a terminal.",
    ]
    for key, (title, about) in _FAMILIES.items():
        rows = [
            f"| [{c.code}]({c.code}.md) | `{c.name}` | {c.title} | {c.severity.value} |"
            for c in REGISTRY.values()
            if c.family_key == key
        ]
        table = "\n".join(["| code | name | title | severity |", "|---|---|---|---|", *rows])
        parts += [f"## MP{key}xx: {title}", about, table]
    return "\n\n".join(parts) + "\n"


def _show(codes: list[Code], color: str, *, overview: bool) -> None:
    from rich.markdown import Markdown

    from lsp_server.cli.console import console, show_table

    out = console(sys.stdout, color)
    if overview:
        show_table(out, Markdown(index()))
    for code in codes:
        show_table(out, Markdown(code.page, code_theme="ansi_dark", hyperlinks=False))
        if (address := web(code, None)) is not None:
            out.print(address, style="dim", soft_wrap=True)
        out.print()
