"""Formats that are a complete document, by name; each takes (report, view). Key name: DOCUMENTS."""

from __future__ import annotations

from collections.abc import Callable

from lsp_server.formats import as_json, gitlab, junit, markdown, sarif
from lsp_server.formats.view import View
from magpy_core.findings import Report

DOCUMENTS: dict[str, Callable[[Report, View], str]] = {
    "json": as_json.text,
    "sarif": sarif.text,
    "gitlab": gitlab.text,
    "junit": junit.text,
    "markdown": markdown.text,
}
