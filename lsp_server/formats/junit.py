"""JUnit XML: a suite per file, a case per finding, and one per region without a failure. Key function: text.

Findings at or above ``--fail-on`` are failures; all others are passed cases with the finding as their output, so the
test report agrees with the exit status. Facts, and hints below ``--fail-on``, are omitted.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from lsp_server.formats.view import View, clean, first_line
from lsp_server.links import in_text
from magpy_core.findings import Finding, RegionSummary, Report, Severity, lookup


def text(report: Report, view: View) -> str:
    suites: dict[str, list[ET.Element]] = {}
    failing = [f for f in report.findings if f.severity.rank <= view.fail_on.rank]
    for finding in view.shown(report.findings):
        if finding.severity is Severity.HINT and finding not in failing:
            continue
        suites.setdefault(view.uri_path(finding.location.file), []).append(_case(finding, finding in failing, view))
    bad = {f.region for f in failing}
    for region in report.regions:
        if region.id not in bad:
            suites.setdefault(_file(region, view), []).append(_passed(region, view))
    if not suites:
        suites[clean(report.entrypoint)] = [ET.Element("testcase", name="no findings", classname=clean(report.entrypoint))]
    root = ET.Element("testsuites", name="magpy")
    for name, cases in suites.items():
        failures = sum(case.find("failure") is not None for case in cases)
        counts = {"tests": str(len(cases)), "failures": str(failures), "errors": "0", "skipped": "0"}
        suite = ET.SubElement(root, "testsuite", {"name": name, **counts})
        suite.extend(cases)
    root.set("tests", str(sum(map(len, suites.values()))))
    root.set("failures", str(len(failing)))
    root.set("errors", "0")
    root.set("time", f"{report.timings.get('total', 0.0):.3f}")
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False).join(
        ('<?xml version="1.0" encoding="utf-8"?>\n', "\n")
    )


def _file(region: RegionSummary, view: View) -> str:
    return view.uri_path(region.file) if region.file else "regions without source"


def _passed(region: RegionSummary, view: View) -> ET.Element:
    case = ET.Element("testcase", name=f"region {clean(region.name)}", classname=_file(region, view))
    if region.line:
        case.set("line", str(region.line))
    return case


def _case(finding: Finding, failed: bool, view: View) -> ET.Element:
    start, code = finding.location.range.start, lookup(finding.code)
    path = view.uri_path(finding.location.file)
    case = ET.Element(
        "testcase",
        name=f"{finding.code} {code.name} at {start.line + 1}:{start.character + 1}",
        classname=path,
        file=path,
        line=str(start.line + 1),
    )
    hint, message = " ".join(clean(finding.advice).split()), clean(finding.message, lines=True)
    lines = [
        f"{path}:{start.line + 1}:{start.character + 1}: {finding.code} [{finding.severity.value}] {message}",
        clean(code.reason),
        f"hint: {hint}",
        in_text(code, view.docs_url),
    ]
    if failed:
        inner = ET.SubElement(case, "failure", message=first_line(finding.message), type=finding.code)
    else:
        inner = ET.SubElement(case, "system-out")
    inner.text = "\n".join(lines)
    return case
