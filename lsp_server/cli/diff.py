"""``magpy-lsp diff old.json new.json``: compares two JSON reports. Key function: diff."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lsp_server.cli.console import console, show
from lsp_server.cli.publish import ToolError
from lsp_server.comparison import Loaded, compare
from lsp_server.formats import compared, compared_markdown
from lsp_server.formats.view import View
from magpy_core.findings import Severity


def diff(old: str, new: str, *, output_format: str, threshold: float, fail_on: str, exit_zero: bool, color: str) -> int:
    """Prints the comparison; returns 1 if the new report is worse."""
    comparison = compare(_load(old), _load(new), threshold / 100)
    least = Severity(fail_on)
    if output_format == "json":
        sys.stdout.write(json.dumps(comparison.to_json(least), indent=2) + "\n")
    elif output_format == "markdown":
        sys.stdout.write(compared_markdown.text(comparison, View(), least))
    else:
        show(console(sys.stdout, color), compared.lines(comparison, View()))
    return 1 if comparison.worse(least) and not exit_zero else 0


def _load(file: str) -> Loaded:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise ToolError(f"{file} can't be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise ToolError(f"{file} is not UTF-8 text: diff needs reports of `magpy-lsp check --format json`.") from None
    try:
        return Loaded.from_json(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError):
        message = f"{file} is not a report of this MagPy: create it with `magpy-lsp check --format json={file}`."
        raise ToolError(message) from None
