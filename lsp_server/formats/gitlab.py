"""GitLab's code quality report: a JSON list with a stable, unique fingerprint for each finding. Key function: text.

Facts are omitted.
"""

from __future__ import annotations

import json

from lsp_server.fingerprint import unique
from lsp_server.formats.view import View, clean
from magpy_core.findings import Report, Severity

SEVERITIES = {
    Severity.ERROR: "critical",
    Severity.WARNING: "major",
    Severity.INFORMATION: "minor",
    Severity.HINT: "info",
}


def text(report: Report, view: View) -> str:
    issues = [
        {
            "description": f"{finding.code}: {clean(finding.message, lines=True)}",
            "check_name": finding.code,
            "fingerprint": print_,
            "severity": SEVERITIES[finding.severity],
            "location": {
                "path": view.uri_path(finding.location.file),
                "lines": {"begin": finding.location.range.start.line + 1, "end": finding.location.range.end.line + 1},
            },
        }
        for finding, print_ in unique(view.shown(report.findings), view.root, view.sources)
    ]
    return json.dumps(issues, indent=2) + "\n"
