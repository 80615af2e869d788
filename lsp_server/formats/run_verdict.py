"""The verdict of ``magpy-lsp verify`` as a document and as text. Key functions: data, lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from lsp_server.formats.view import clean, count
from magpy_core.findings import Report

VERSION = 1
_STYLES = {"equal": "green", "rounding": "green", "differs": "red"}


def data(title: str, verdict: Mapping[str, Any], report: Report, why_no_files: str) -> dict[str, Any]:
    """The document of ``--format json``, which docs/reference/json.md describes."""
    regions = [region for region in report.regions if region.calls]
    calls, hits = sum(region.calls for region in regions), sum(region.hits for region in regions)
    kind = verdict["kind"]
    if kind in ("equal", "rounding") and not hits:
        verdict = {
            **verdict,
            "kind": "nothing",
            "why": "No call used compiled code: `magpy-lsp check` shows what prevents it.",
        }
    ignored = [*verdict.get("ignored", ()), *([f"files: {why_no_files}"] if why_no_files else [])]
    dropped = [finding.message for finding in report.findings if finding.code == "MP914"]
    document = {
        "version": VERSION,
        "entrypoint": title,
        "verdict": verdict["kind"],
        "summary": "",
        "steps": verdict.get("steps", report.steps),
        "compared_steps": verdict.get("compared_steps", []),
        "compiled_calls": hits,
        "calls": calls,
        "differences": verdict.get("differences", []),
        "growth": verdict.get("growth", []),
        "noisy_runs": verdict.get("noisy_runs", 0),
        "is_chaotic": verdict.get("is_chaotic", False),
        "by_ties": verdict.get("by_ties", False),
        "origin": verdict.get("origin"),
        "why_no_origin": verdict.get("why_no_origin", ""),
        "amplified": verdict.get("amplified"),
        "not_compared": ignored,
        "dropped_code": dropped,
    }
    document["summary"] = _summary(document, verdict.get("why", ""))
    return _finite(document)  # type: ignore[no-any-return]


def _finite(value: Any) -> Any:
    """Without numbers that JSON has no text for: an infinite difference is null."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _summary(document: Mapping[str, Any], why: str) -> str:
    kind, growth = document["verdict"], document["growth"]
    if kind == "equal":
        return f"Equal: after {count(document['steps'], 'step')}, states, printed lines and files are the same, bit by bit."
    if kind == "rounding":
        first = next((one for one in growth if one["compiled"]), None)
        if first is None:
            return (
                "Equal up to rounding: states are the same bit by bit; lines or files differ as with rounding noise"
                f"{_caused(document)}."
            )
        last = growth[-1]
        return (
            f"Equal up to rounding: the first difference is {_part(first['compiled'])} {_when(first['step'])}, in "
            f"{first['where']}{_caused(document)}; at the end it is {_part(last['compiled'])}, "
            f"and with rounding noise alone {_part(last['noise'])}."
        )
    if kind == "differs":
        found = document["differences"][0]
        return f"Differs: {difference(found)}{_caused(document)}."
    if kind == "unseeded":
        after = f" after step {why}" if why else " at the end"
        return (
            f"Nothing can be compared: two eager runs differ{after}. The program uses other random numbers each time: "
            "call `torch.manual_seed(0)` at its start, and `random.seed` and `numpy.random.seed` where it uses these."
        )
    return f"Nothing could be compared. {why}"


def _caused(document: Mapping[str, Any]) -> str:
    """``, from `addmm` (step 4, train.py:12, by 2e-07), amplified about 900 times by Adadelta in step 8``."""
    text, origin, amplified = "", document["origin"], document["amplified"]
    if origin is not None:
        place = f", {origin['where']}" if origin["where"] else ""
        text = f", from `{origin['operation']}` (step {origin['step']:,}{place}, by {_part(origin['apart'])})"
    if amplified is not None:
        factor = float(f"{amplified['factor']:.0e}")
        text += f", amplified about {factor:,.0f} times by {amplified['optimizer']} in step {amplified['step']:,}"
    return text


def _when(step: int | None) -> str:
    return "at the end" if step is None else f"after step {step:,}"


def difference(found: Mapping[str, Any]) -> str:
    if found["what"] == "state":
        explained = found["explained"]
        noise = "" if explained is None else f"; rounding noise changes it by up to {explained:.3g}"
        return f"{_when(found['step'])}, {found['name']} {found['text']}{noise}"
    if found["what"] in ("stdout", "stderr"):
        return f"{found['what']}, line {found['line']:,}: {found['text']}"
    return f"the file {found['name']}: {found['text']}" if found["what"] == "file" else str(found["text"])


def lines(document: Mapping[str, Any]) -> Iterator[Text]:
    kind = document["verdict"]
    name, style = clean(document["entrypoint"]), _STYLES.get(kind, "yellow")
    yield Text.assemble((f"{name}: ", "bold"), (clean(document["summary"]), style))
    for found in document["differences"][1:]:
        yield Text(f"  also: {clean(difference(found))}")
    if kind in ("equal", "rounding", "differs"):
        yield Text(
            f"  compiled code ran in {document['compiled_calls']:,} of {count(document['calls'], 'call')} of regions, "
            f"in {count(document['steps'], 'step')}"
        )
    growth = document["growth"]
    if kind == "rounding" and growth:
        yield Text("  distance of the parameters from eager mode, relative to their norm:")
        yield Text(f"    {'step':>8} {'compiled':>10} {'noise':>10}")
        for one in growth:
            label = "end" if one["step"] is None else f"{one['step']:,}"
            yield Text(f"    {label:>8} {_part(one['compiled']):>10} {_part(one['noise']):>10}  {clean(one['where'])}")
        if document["by_ties"]:
            yield Text(
                "  only noise that separates equal values is as large: a maximum of equal values may decide in this program"
            )
        if document["is_chaotic"]:
            yield Text("  rounding alone changes the end of this program that much: compare fewer steps, with --steps")
    if kind in ("rounding", "differs") and document["why_no_origin"]:
        yield Text(f"  the operation that differs first is not known: {clean(document['why_no_origin'])}")
    for text in document["not_compared"]:
        yield Text(f"  not compared: {clean(text)}")
    for text in document["dropped_code"]:
        yield Text(f"  MP914: {clean(text)}")
    if kind == "differs":
        yield Text("  next: `magpy-lsp bisect`, with the same program, looks for the operation that is compiled wrongly")


def _part(value: float | None) -> str:
    return "NaN" if value is None or not math.isfinite(value) else "0" if not value else f"{value:.1e}"
