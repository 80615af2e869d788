"""``magpy-lsp mcp``: serves coding assistants, or prints the skill file for them. Key functions: serve, show_skill."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from magpy_core.distribution import DISTRIBUTION

SKILL = Path(__file__).parents[1] / "agents" / "SKILL.md"


def serve() -> int:
    """Serves until the client closes stdin; returns the exit status."""
    try:
        from lsp_server.agents.serving import serve as run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio", "pydantic"):
            raise
        click.echo(f"magpy-lsp: the package `mcp` (2.3 or later) is missing: pip install '{DISTRIBUTION}[mcp]'", err=True)
        return 2
    if sys.stdin.isatty():
        click.echo(
            "magpy-lsp: waiting for a coding assistant on stdin; `magpy-lsp docs agents` says how to connect.", err=True
        )
    run()
    return 0


def show_skill() -> int:
    """Prints the skill file; returns the exit status."""
    click.echo(SKILL.read_text(encoding="utf-8"), nl=False)
    return 0
