"""``magpy-lsp diff old.json new.json``: compares two JSON reports. Key function: diff."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from lsp_server.cli.console import console, show
from lsp_server.cli.publish import ToolError
from lsp_server.comparison import Loaded, compare
from lsp_server.formats import compared, compared_markdown
from lsp_server.formats.view import View
from magpy_core.findings import Severity


def diff(
    old: str,
    new: str,
    *,
    output_format: str,
    output: str | None,
    threshold: float,
    fail_on: str,
    exit_zero: bool,
    color: str,
) -> int:
    """Prints the comparison, or writes it to the file ``output``; returns 1 if the new report is worse."""
    before, now = _load(old), _load(new)
    comparison = compare(before, now, threshold / 100)
    least = Severity(fail_on)
    if output_format == "json":
        _put(json.dumps(comparison.to_json(least), indent=2) + "\n", output)
    elif output_format == "markdown":
        _put(compared_markdown.text(comparison, View(), least), output)
    elif output_format == "html":
        from lsp_server.formats.html import compared as page

        names = (Path(old).name, before.report), (Path(new).name, now.report)
        _put(page.text(comparison, *names, View(), least), output)
    elif output is None:
        show(console(sys.stdout, color), compared.lines(comparison, View()))
    else:
        _put("".join(f"{line.plain}\n" for line in compared.lines(comparison, View())), output)
    return 1 if comparison.worse(least) and not exit_zero else 0


def _put(text: str, output: str | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    try:
        Path(output).write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise ToolError(f"The comparison can't be written to {output}: {error.strerror or error}.") from None
    click.echo(f"magpy-lsp: the comparison is in {output}.", err=True)


def _load(file: str) -> Loaded:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise ToolError(f"{file} can't be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise ToolError(f"{file} is not UTF-8 text: diff needs reports of `magpy-lsp check --format json`.") from None
    try:
        return Loaded.from_json(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        message = f"{file} is not a report of this MagPy: create it with `magpy-lsp check --format json={file}`."
        raise ToolError(message) from None
