"""A table of the page. Key function: table."""

from __future__ import annotations


def table(head: str, rows: list[str], identity: str = "") -> str:
    named = f" id='{identity}'" if identity else ""
    return f"<div class='scroll'><table{named}><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
