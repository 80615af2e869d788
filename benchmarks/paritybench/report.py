"""Counts of a sweep, and the reasons for incomplete cases. Key functions: summary, markdown."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

Record = dict[str, Any]
OUTCOMES = ("complete", "break", "error", "wrong", "crash", "hang")


def cases(records: list[Record], engine: str) -> list[Record]:
    """The deterministic cases that ran under ``engine``; for a case that ran twice, the last run."""
    last = {(r["file"], r["case"]): r for r in records if "case" in r}
    return [r for r in last.values() if engine in r and r[engine]["status"] in OUTCOMES]


def summary(records: list[Record], engine: str) -> dict[str, Any]:
    """Numbers of cases and files by outcome; a file is complete if all its deterministic cases are."""
    found = cases(records, engine)
    files: dict[str, bool] = defaultdict(lambda: True)
    for record in found:
        files[record["file"]] &= record[engine]["status"] == "complete"
    return {
        "cases": len(found),
        **{outcome: sum(r[engine]["status"] == outcome for r in found) for outcome in OUTCOMES},
        "files": len(files),
        "files complete": sum(files.values()),
    }


def reason(verdict: Record) -> str:
    """The normalised reason why a case is incomplete."""
    findings = verdict.get("findings") or []
    text = findings[0]["message"] if findings else verdict.get("reason", "")
    text = re.sub(r"\d+", "N", re.sub(r"`[^`]*`", "`…`", text))
    return (f"{findings[0]['code']} {text}" if findings else text)[:160]


def failures(records: list[Record], engine: str) -> list[tuple[str, str, list[Record]]]:
    """(outcome, reason, cases) of all incomplete cases, the most frequent first."""
    grouped: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in cases(records, engine):
        verdict = record[engine]
        if verdict["status"] != "complete":
            grouped[verdict["status"], reason(verdict)].append(record)
    return [(*key, found) for key, found in sorted(grouped.items(), key=lambda item: -len(item[1]))]


def left_out(records: list[Record]) -> Counter[str]:
    """Why files or cases are not counted."""
    count: Counter[str] = Counter()
    for record in records:
        if "done" in record and "import_error" in record:
            count["files that do not import"] += 1
        elif "done" in record and not record.get("cases"):
            count["files without cases"] += 1
        elif "case" in record:
            first = next((v for v in record.values() if isinstance(v, dict) and "status" in v), {})
            if first.get("status") in ("eager failed", "not deterministic"):
                count[f"cases: {first['status']}"] += 1
    return count


def markdown(records: list[Record], engines: list[str]) -> str:
    """The complete report in Markdown."""
    rows = {engine: summary(records, engine) for engine in engines}
    lines = ["| | " + " | ".join(engines) + " |", "|---|" + "---:|" * len(engines)]
    for key in next(iter(rows.values())):
        lines.append(f"| {key} | " + " | ".join(str(rows[engine][key]) for engine in engines) + " |")
    for label, part, whole in (("cases complete", "complete", "cases"), ("files complete", "files complete", "files")):
        shares = [f"{100 * rows[e][part] / max(1, rows[e][whole]):.2f}%" for e in engines]
        lines.append(f"| **{label}** | " + " | ".join(shares) + " |")
    lines += ["", "Not counted: " + "; ".join(f"{n} {what}" for what, n in sorted(left_out(records).items())) + ".", ""]
    for outcome, text, found in failures(records, "magpy"):
        places = ", ".join(f"{r['file'].removesuffix('.py')}:{r['case']}" for r in found[:3])
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        lines.append(f"- {len(found)} x **{outcome}**: {text} ({places}{more})")
    return "\n".join(lines) + "\n"
