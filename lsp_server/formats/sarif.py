"""SARIF 2.1.0, for code scanning services. Key function: text.

Paths below the project are relative to ``%SRCROOT%``; columns count Unicode code points. The call path is a code flow;
fingerprints stay the same when lines move. Facts are omitted: services show every result, whatever its level.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lsp_server.fingerprint import unique
from lsp_server.formats.view import View, clean
from lsp_server.links import web
from magpy_core import __version__
from magpy_core.findings import Code, Finding, Location, Range, Report, Severity, lookup

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFORMATION: "note", Severity.HINT: "note"}
_ROOT = "%SRCROOT%"
# Findings that report a failure of the run itself.
_FAILED = {"MP903", "MP905", "MP906", "MP907", "MP908", "MP910"}


def text(report: Report, view: View) -> str:
    shown = view.shown(report.findings)
    codes = [lookup(code) for code in sorted({f.code for f in shown})]
    index = {code.code: number for number, code in enumerate(codes)}
    run = {
        "tool": {
            "driver": {
                "name": "magpy",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(code, view.docs_url) for code in codes],
            }
        },
        "invocations": [{"executionSuccessful": not any(f.code in _FAILED for f in report.findings)}],
        "automationDetails": {"id": f"magpy/{clean(report.entrypoint)}/"},
        "originalUriBaseIds": {_ROOT: {"uri": view.root.absolute().as_uri() + "/"}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(f, p, index, view) for f, p in unique(shown, view.root, view.sources)],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, allow_nan=False) + "\n"


def _rule(code: Code, docs_url: str | None) -> dict[str, Any]:
    address = web(code, docs_url)
    help_text = "\n".join([code.explanation, "", *(f"- {hint}" for hint in code.hints)])
    return {
        "id": code.code,
        "name": "".join(word.capitalize() for word in code.name.split("-")),
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.reason},
        "help": {"text": help_text, "markdown": code.page},
        **({} if address is None else {"helpUri": address}),
        "defaultConfiguration": {"level": LEVELS[code.severity]},
        "properties": {"tags": [code.family]},
    }


def _result(finding: Finding, print_: str, index: dict[str, int], view: View) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index[finding.code],
        "level": LEVELS[finding.severity],
        "message": {"text": _message(finding)},
        "locations": [_location(finding.location, view)],
        "partialFingerprints": {"magpyFinding/v1": print_},
        "occurrenceCount": max(finding.count, 1),
        "properties": {"severity": finding.severity.value, **_facts(finding)},
    }
    if len(finding.path) > 1:
        steps = [{"location": _location(at, view)} for at in finding.path]
        result["codeFlows"] = [
            {"message": {"text": "from the region to the finding"}, "threadFlows": [{"locations": steps}]}
        ]
    return result


def _message(finding: Finding) -> str:
    """The message and the hint: services show only this field next to the line."""
    return "\n".join(filter(None, (clean(finding.message, lines=True), " ".join(clean(finding.advice).split()))))


def _facts(finding: Finding) -> dict[str, Any]:
    facts: dict[str, Any] = {"region": finding.region} if finding.region else {}
    if finding.cost_ms is not None:
        facts["costMs"] = finding.cost_ms
    if finding.at_most_ms is not None:
        facts["atMostMs"] = finding.at_most_ms
    if finding.step_ms is not None:
        facts["stepMs"] = finding.step_ms
    if finding.values:
        facts["values"] = {clean(v.name): clean(v.repr) for v in finding.values}
    return facts


def _location(at: Location, view: View) -> dict[str, Any]:
    found: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": _artifact(at.file, view), "region": _region(at.range)},
    }
    if at.function:
        found["logicalLocations"] = [{"fullyQualifiedName": clean(at.function), "kind": "function"}]
    return found


def _artifact(file: str, view: View) -> dict[str, str]:
    path = view.uri_path(file)
    if not Path(path).is_absolute():
        return {"uri": quote(path), "uriBaseId": _ROOT}
    return {"uri": "file://" + quote(path)}


def _region(span: Range) -> dict[str, int]:
    """1-based; an empty range is its line."""
    region = {"startLine": span.start.line + 1}
    if span.start != span.end:
        region |= {
            "startColumn": span.start.character + 1,
            "endLine": span.end.line + 1,
            "endColumn": span.end.character + 1,
        }
    return region
