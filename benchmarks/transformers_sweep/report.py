"""Counts of a sweep over transformers, by mode and engine, what it cost, and why what is not complete is not.

Key functions: merged, summary, markdown.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import Any

from benchmarks.paritybench.report import OUTCOMES, reason
from benchmarks.sweeps.engines import ENGINES

MODES = ("eval", "train")
Record = dict[str, Any]


def merged(records: list[Record]) -> dict[tuple[str, str], Record]:
    """One record per architecture and mode with the verdict of each engine; of what ran twice, the last."""
    out: dict[tuple[str, str], Record] = {}
    for record in records:
        if "case" in record:
            out.setdefault((record["case"], record["mode"]), {}).update(record)
    return out


def counted(records: list[Record], mode: str) -> list[Record]:
    """What ran in a mode under every engine that ran at all, so that both are judged on the same models."""
    found = [record for (_, at), record in merged(records).items() if at == mode]
    engines = {engine for record in found for engine in ENGINES if engine in record}
    return [r for r in found if all(r.get(engine, {}).get("status") in OUTCOMES for engine in engines)]


def summary(records: list[Record], mode: str, engine: str) -> dict[str, int]:
    found = [r[engine]["status"] for r in counted(records, mode) if engine in r]
    return {"architectures": len(found), **{outcome: found.count(outcome) for outcome in OUTCOMES}}


def left_out(records: list[Record]) -> list[tuple[str, str, str]]:
    """(architecture, mode, why) of what is not counted."""
    out = []
    for (name, mode), record in merged(records).items():
        verdicts = [record[engine] for engine in ENGINES if engine in record]
        unknown = next((v for v in verdicts if v["status"] not in OUTCOMES), None)
        if unknown is not None:
            out.append((name, mode, f"{unknown['status']}: {unknown.get('reason', '')[:120]}"))
    return out


def costs(records: list[Record], mode: str) -> dict[str, dict[str, float]]:
    """Median CPU seconds that each engine adds to its first call, and to the first two, over the models that both take
    whole; and how often MagPy adds less. The second call is MagPy's first replay, where its graph is compiled."""
    both = [r for r in counted(records, mode) if all(r.get(e, {}).get("status") == "complete" for e in ENGINES)]
    if not both:
        return {}
    out: dict[str, dict[str, float]] = {}
    for what, calls in (("first call", 1), ("first two calls", 2)):
        added = {engine: [sum(r[engine]["call_seconds"][:calls]) for r in both] for engine in ENGINES}
        less = sum(m <= d for m, d in zip(added["magpy"], added["dynamo"], strict=True))
        out[what] = {engine: median(values) for engine, values in added.items()}
        out[what] |= {"models": len(both), "magpy less": less}
    return out


def markdown(records: list[Record]) -> str:
    """The tables and lists of RESULTS.md."""
    engines = [engine for engine in ENGINES if any(engine in r for r in merged(records).values())]
    columns = [(mode, engine) for mode in MODES for engine in engines]
    lines = ["| | " + " | ".join(f"{engine}, {mode}" for mode, engine in columns) + " |", "|---|" + "---:|" * len(columns)]
    rows = {column: summary(records, *column) for column in columns}
    for key in ("architectures", *OUTCOMES):
        lines.append(f"| {key} | " + " | ".join(str(rows[column][key]) for column in columns) + " |")
    shares = [f"{100 * rows[c]['complete'] / max(1, rows[c]['architectures']):.1f}%" for c in columns]
    lines += ["| **complete** | " + " | ".join(shares) + " |", ""]
    for engine in engines:  # one may have been run on more architectures than the other
        ran = [
            [r for (_, at), r in merged(records).items() if at == m and r.get(engine, {}).get("status") in OUTCOMES]
            for m in MODES
        ]
        whole = [sum(r[engine]["status"] == "complete" for r in found) for found in ran]
        parts = [f"{n} of {len(found)} in {mode}" for n, found, mode in zip(whole, ran, MODES, strict=True)]
        lines.append(f"- All that ran under {engine}: {' and '.join(parts)} mode complete.")
    for mode in MODES:
        for what, cost in costs(records, mode).items():
            lines.append(
                f"- {mode}, CPU time added to the {what} (median of {cost['models']:.0f} models both take whole): "
                f"magpy {cost['magpy']:.3f} s, dynamo {cost['dynamo']:.3f} s; magpy adds less on {cost['magpy less']:.0f}."
            )
    for engine in engines:
        lines += ["", f"Not complete under {engine}:", ""]
        grouped: dict[tuple[str, str], list[str]] = defaultdict(list)
        for mode in MODES:
            for record in (r for (_, at), r in merged(records).items() if at == mode):
                verdict = record.get(engine, {"status": "complete"})
                if verdict["status"] in OUTCOMES[1:]:
                    grouped[verdict["status"], reason(verdict)].append(f"{record['case']} ({mode})")
        for (status, text), names in sorted(grouped.items(), key=lambda item: -len(item[1])):
            lines.append(f"- **{status}** {', '.join(names)}: {text}")
    lines += ["", "Not counted:", ""]
    lines += [f"- {name} ({mode}): {why}" for name, mode, why in left_out(records)]
    kinds: dict[str, set[str]] = defaultdict(set)
    for record in merged(records).values():
        kinds[record["kind"]].add(record["case"])
    lines += [
        "",
        "What ran:",
        "",
        *(f"- {kind} ({len(names)}): {', '.join(sorted(names))}" for kind, names in kinds.items()),
    ]
    return "\n".join(lines) + "\n"
