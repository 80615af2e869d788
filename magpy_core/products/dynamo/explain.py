"""Findings (MPDxxx) from TorchDynamo's events. Key functions: graph_break, recompile, skipped_function."""

from __future__ import annotations

import os
from types import CodeType

import torch

from magpy_core._compat.torch import dynamo_watch as watch
from magpy_core.findings import Finding, Location, Severity, Value
from magpy_core.monitor.positions import is_user_file, text_at
from magpy_core.products.dynamo import places
from magpy_core.products.dynamo.wording import Change, function_name, parse_break, with_page
from magpy_core.regions.lines import line_location

_TORCH = os.path.join(os.path.dirname(torch.__file__), "")


def graph_break(event: watch.Break, region: str | None, fallback: Location) -> Finding:
    """The finding for a graph break, at the user's expression."""
    cause = parse_break(event.kind, event.text)
    place, path = places.of_break(event.spots, fallback)
    values = (Value("graph break", cause.label),)
    expression = text_at(place)
    if path and "graph_break()" in cause.kind and of_torch(path[-1].file):
        text = f"`{expression}` calls torch's `{path[-1].function}`, which breaks the graph deliberately ({cause.number})."
        return Finding("MPD102", text, place, region=region, path=path, values=values)
    inside = f" (in `{path[-1].function}`)" if path else ""
    text = f"torch.compile breaks the graph at `{expression}`{inside} ({cause.label}): {cause.why}"
    return Finding("MPD101", text, place, cause.hint, region=region, path=path, values=values)


def of_torch(file: str) -> bool:
    """Whether a file is torch's own."""
    return file.startswith(_TORCH)


def recompile(code: CodeType, change: Change, versions: int, region: str | None, fallback: Location) -> Finding:
    """The finding for a recompiled function: which value changed."""
    place = places.of_line(code, change.file, change.line, change.name) or places.of_function(code, fallback)
    version = f"version {versions + 1} of at most {watch.own_code_limit()}"
    text = f"{change.sentence}, so torch.compile compiled {_quoted(code)} again ({version})."
    values = (Value(change.name, f"{change.old} -> {change.new}" if change.new else change.old or "changed"),)
    finding = Finding("MPD201", text, place, _recompile_hint(change), region=region, values=values)
    warm_up = change.name.startswith("torch's ") or change.name.partition("[")[0].endswith((".shape", ".training"))
    if versions == 1 and warm_up:
        # one recompile for a varying size (dynamic from then on) or for train and eval: nothing to fix
        finding.severity_override = Severity.INFORMATION
        finding.hint = f"No action needed if it happens once. {finding.hint}"
    return finding


def _recompile_hint(change: Change) -> str:
    tensor, _, what = change.name.rpartition(".")
    if what.startswith("shape["):
        dim = what[6:-1]
        return (
            f"If the size keeps varying, mark it before the first call: torch._dynamo.mark_dynamic({tensor}, {dim}); "
            "or use batches of one shape (drop_last=True, padding)."
        )
    if what == "requires_grad":
        return f"Call it either always or never with tensors that require a gradient (torch.no_grad(), {tensor}.detach())."
    if what == "training" or change.name.startswith("torch's "):
        return "Each combination of such settings is one more version: use few of them."
    try:
        float(change.old)
    except ValueError:
        return "Keep changing values out of the compiled function, or use few distinct values: each one is a version."
    return "Keep a number that changes in a 0-d tensor (a buffer); torch.compile treats attributes and globals as constants."


def skipped_function(event: watch.GivenUp, region: str | None, fallback: Location) -> Finding:
    """The finding for a function that runs in eager mode."""
    name = _quoted(event.code)
    place = places.of_function(event.code, fallback)
    if place is fallback:  # in a library: reported at the user's call
        place = places.running() or fallback
    if not event.kind:
        lines = [line.strip() for line in event.text.splitlines() if line.strip()] or [""]
        error = next((line for line in lines[1:] if "Error" in line), lines[0])
        text = f"torch.compile failed on {name} ({event.error}: {error[:200]}); it ran in eager mode."
        return Finding("MPD302", text, place, region=region, values=(Value("error", event.error),))
    cause = parse_break(event.kind, event.text)
    values = (Value("graph break", cause.label),)
    if "recompile limit" in event.kind:
        text = (
            f"torch.compile reached its recompile limit for {name}: it has {watch.own_code_limit()} versions, "
            f"and calls that fit none of them run in eager mode ({cause.label})."
        )
        advice = "Make the value that keeps changing dynamic, or a tensor: see the MPD201 findings."
        return Finding("MPD202", text, place, with_page(advice, cause.page), region=region, values=values)
    where = ""
    path: tuple[Location, ...] = ()
    if event.at is not None:
        file, line = event.at
        where = f" in line {line}" if file == event.code.co_filename else f" at {file.rpartition('/')[2]}:{line}"
        if is_user_file(file):
            path = (place, line_location(file, line))
    if "loop" in event.kind:
        where += " inside a loop"
        advice = "Remove that graph break, or move the loop's body into a separate function."
    else:
        advice = "Remove that graph break, or move it out of its `try` or `with` block."
    text = (
        f"torch.compile skips {name}, which runs in eager mode: it can't resume after the graph break{where} "
        f"({cause.label})."
    )
    return Finding("MPD301", text, place, with_page(advice, cause.page), region=region, path=path, values=values)


def _quoted(code: CodeType) -> str:
    name = function_name(code.co_name)
    return f"`{name}`" if name == code.co_name else f"the rest of `{name}`"  # after a graph break
