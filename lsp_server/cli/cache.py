"""``magpy-lsp cache``: the folder that keeps compiled code from run to run. Key functions: show, clear."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from magpy_core.runner import compiled_code

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size: float) -> str:
    """``size`` bytes in a readable unit."""
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 or size >= 100 else f"{size:.1f} {_UNITS[unit]}"


def show(output_format: str) -> None:
    """Prints the folder's path, size and number of graphs."""
    info = compiled_code.info()
    if output_format == "json":
        click.echo(json.dumps(asdict(info)))
        return
    click.echo(f"folder:  {info.folder}")
    click.echo(f"size:    {size_text(info.size)} of {size_text(info.limit)} (MAGPY_CACHE_SIZE)")
    click.echo(f"graphs:  {info.entries}")
    if info.problem:
        click.echo(f"not used: {info.problem}")


def clear() -> None:
    """Empties the folder."""
    freed = compiled_code.clear()
    click.echo(f"Removed {size_text(freed)} from {compiled_code.info().folder}.")
