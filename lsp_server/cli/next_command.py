"""The command to try next after programs that could not be run. Key function: next_commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from lsp_server.cli.follow import Finished

_FIND = "`magpy-lsp init` finds the programs of a project; `magpy-lsp demo` shows an example."
_PYTHON_SUFFIXES = ("", ".py", ".pyc", ".pyw", ".pyz", ".zip")


def next_commands(runs: Iterable[Finished]) -> list[str]:
    """One sentence for each kind of failure that a command of ours can help with."""
    return list(dict.fromkeys(text for run in runs if (text := _next_command(run)) is not None))


def _next_command(run: Finished) -> str | None:
    outcome, effective = run.outcome, run.effective
    if outcome.kind == "bad-entrypoint":
        return _FIND
    if outcome.kind == "tool-error" and any(finding.code == "MP903" for finding in outcome.report.findings):
        python = f" --python {shlex.quote(effective.python)}" if effective.python else ""
        return f"`magpy-lsp doctor{python}` checks the interpreter and says how to fix it."
    if outcome.kind == "failed" and effective.script is not None:
        return _about_file(effective.script)
    return None


def _about_file(script: str) -> str | None:
    name, suffix = os.path.basename(script), os.path.splitext(script)[1].lower()
    if suffix in _PYTHON_SUFFIXES:
        return None  # the program's own error says what to do
    if suffix == ".ipynb":
        return (
            f"{name} is a notebook: `%load_ext lsp_server` in a cell of it, or Check in VS Code (`magpy-lsp docs output`)."
        )
    return f"{name} is not a Python file: {_FIND}"
