"""The pages of findings as the answer of a tool. Key function: page."""

from __future__ import annotations

import click

from lsp_server.agents.programs import NotPossible
from lsp_server.cli.explain import named


def page(code: str) -> str:
    """The page of a code or its name; of a family, the list of its codes."""
    try:
        found = named((code.strip(),))
    except click.ClickException as error:
        raise NotPossible(error.format_message()) from None
    if len(found) == 1:
        return found[0].page
    return "\n".join(f"- {one.code} (`{one.name}`): {one.title}" for one in found)
