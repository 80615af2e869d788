"""Registry of finding codes, the source of `explain`, editors and CI formats. Key name: REGISTRY."""

from __future__ import annotations

from pathlib import Path

from magpy_core.findings.code import Code, Severity, read

__all__ = ["PAGES", "REGISTRY", "Code", "Severity", "lookup", "matching"]

#: The folder with a page for each code: ``MP101.md``.
PAGES = Path(__file__).with_name("codes")

# Read here and not at first use, which may be inside a recorded call.
REGISTRY: dict[str, Code] = {file.stem: read(file) for file in sorted(PAGES.glob("*.md"))}


def lookup(code: str) -> Code:
    """The registry entry of ``code``; raises KeyError, listing the known codes, if there is none."""
    try:
        return REGISTRY[code]
    except KeyError:
        raise KeyError(f"unknown finding code {code!r}; known: {', '.join(REGISTRY)}") from None


def matching(prefix: str) -> list[Code]:
    """Every code that starts with ``prefix`` (``MP1``, ``MP102``, ``MP``)."""
    return [c for c in REGISTRY.values() if prefix and c.code.startswith(prefix)]
