"""Registry of finding codes, the source of the docs, `explain`, editors and CI formats. Key name: REGISTRY."""

from __future__ import annotations

from magpy_core.findings.code import FAMILIES, Code, Severity
from magpy_core.findings.codes import budgets, dynamo, graph_breaks, guards, performance, side_effects, tool

__all__ = ["FAMILIES", "REGISTRY", "Code", "Severity", "lookup", "matching"]

REGISTRY: dict[str, Code] = {
    c.code: c for family in (graph_breaks, guards, side_effects, performance, budgets, tool, dynamo) for c in family.CODES
}


def lookup(code: str) -> Code:
    """The registry entry of ``code``; raises KeyError, listing the known codes, if there is none."""
    try:
        return REGISTRY[code]
    except KeyError:
        raise KeyError(f"unknown finding code {code!r}; known: {', '.join(REGISTRY)}") from None


def matching(prefix: str) -> list[Code]:
    """Every code that starts with ``prefix`` (``MP1``, ``MP102``, ``MP``)."""
    return [c for c in REGISTRY.values() if prefix and c.code.startswith(prefix)]
