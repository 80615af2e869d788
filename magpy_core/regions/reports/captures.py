"""Findings about captures: guards, side effects, recompiles.

Key functions: capture_findings, recompile_finding.
"""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from magpy_core.findings import NO_ACTION, Finding, Location, Severity, Value
from magpy_core.guards.kinds import TRUTH
from magpy_core.monitor.positions import is_user_file, site_location, text_at
from magpy_core.opgraph.backward import LEAF_FIELDS
from magpy_core.opgraph.functions import reads_value
from magpy_core.recording.places import Place
from magpy_core.refgraph.failure import UNASSIGNED, Failure
from magpy_core.refgraph.source import Source
from magpy_core.regions.region_protocol import RegionView
from magpy_core.replay.ir import Outside

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture

_EFFECT_CODES = {
    "set_attr": "MP301", "del_attr": "MP301", "set_slot": "MP301", "del_slot": "MP301", "set_field": "MP301",
    "set_cell": "MP304", "del_cell": "MP304", "print": "MP305", "log": "MP305",
    "warn": "MP305", "write": "MP305",
}  # fmt: skip


def _of_output(source: Source) -> bool:
    """Whether it belongs to the configuration of logging or warnings, which says nothing about the program."""
    return source.kind == "logs" or source.chain()[0].key is warnings


def user_site(sites: list[Any]) -> Location | None:
    for site in sites:
        if site is not None and is_user_file(site.code.co_filename):
            return site_location(site)
    return None


_CHANGED_HINT = (
    "No action needed if the change is intended. A change that depends on the old content guards all of that content."
)


def capture_findings(region: RegionView, capture: Capture) -> list[Finding]:
    """Guards at the user's lines, and every side effect (one finding per line and kind)."""
    found = [*_guard_findings(region, capture), *_effect_findings(region, capture)]
    return found + capture.trace.places.hidden_findings(region.id)


def _guard_findings(region: RegionView, capture: Capture) -> Iterator[Finding]:
    for read in capture.refgraph.reads:
        place = user_site([read.site]) if read.kind.reported else None
        hooks = read.kind is TRUTH and read.source.describe().endswith("_hooks")
        known = _of_backward(read.source) or _of_output(read.source) or _of_text(read.source) or read.source.kind == "array"
        if place is not None and not hooks and not known:
            name, value = read.kind.subject(read)
            text = f"The compiled code is valid while `{name}` is {value}."
            yield Finding("MP204", text, place, region=region.id, values=(Value(name, value),))


def _of_backward(source: Source) -> bool:
    """Whether it is one of the settings that every backward pass inside a region depends on."""
    if source.kind == "setting":
        return source.describe().startswith("torch's is_anomaly_enabled")
    return source.kind == "field" and source.key in LEAF_FIELDS


def _of_text(source: Source) -> bool:
    """Whether it is about the digits of a number that is formatted."""
    return source.describe().startswith("result of is_small(")


def _effect_findings(region: RegionView, capture: Capture) -> Iterator[Finding]:
    places = capture.trace.places
    effects: dict[tuple[str, Location], tuple[list[str], tuple[Location, ...]]] = {}
    appended: set[tuple[str, Location]] = set()

    def note(code: str, subject: Any, sites: list[Any], name: str, op: str = "") -> None:
        found = [place for site in sites if (place := places.of(subject, [site])) is not None]
        for place in found or [Place(region.location)]:
            names, _ = effects.setdefault((code, places.reported(place)), ([], place.path))
            names.append(name)
            if op == "extend":
                appended.add((code, place.location))

    for effect in capture.replay.effects:
        code = _EFFECT_CODES.get(effect.op, "MP302")
        if code == "MP302" and isinstance(effect.target, Outside) and "globals of" in effect.target.source.label:
            code = "MP303"
        known = [s for s in effect.sites if s is not None]
        # an attribute: by a statement that names it, else by a call (``setattr``)
        sites = [s for s in known if s.name == effect.key or code != "MP301"] or [s for s in known if s.name is None]
        subject = effect.target.source if isinstance(effect.target, Outside) else None
        reached = any(places.of(subject, [site]) for site in sites)
        note(code, subject, sites if reached else effect.sites, effect.describe, effect.op)
    for source, site in capture.trace.writes.written:
        note("MP306", source, [site], source.describe())
    for (code, location), (names, path) in effects.items():
        names = list(dict.fromkeys(names))
        values = tuple(Value("changed", name) for name in names[:5])
        hint = "" if code != "MP302" or (code, location) in appended else _CHANGED_HINT
        yield Finding(code, _effect_message(code, names), location, hint, region=region.id, values=values, path=path)


_OUTPUT = {
    "print": ("calls `print`", "prints the same text"),
    "a line of a file": ("writes text to a file or stream", "writes the same text"),
    "a warning": ("issues a warning (`warnings.warn`)", "issues the same warning"),
}


def _effect_message(code: str, names: list[str]) -> str:
    what = f"`{names[0]}`" if len(names) == 1 else f"`{names[0]}` and {len(names) - 1} more"
    are = "is" if len(names) == 1 else "are"
    if code == "MP305":
        done, repeated = _OUTPUT.get(names[0], ("writes a log record (`logging`)", "writes the same record"))
        return f"The region {done} here; a compiled call {repeated}."
    if code == "MP306":
        return f"{what} {are} changed in place; the graph does the same."
    verb = {"MP301": "written", "MP302": "changed", "MP303": "written", "MP304": "written"}[code]
    return f"{what} {are} {verb} here; compiled calls do the same."


_NOT_MADE = ("absent", "None")  # what state is before the first call creates it
_FUNCTION_HINT = "Define the function once, outside the loop: each new function object needs another graph."
_NUMBERS_HINT = "Let it be a float from the start (`0.0` instead of `0`): an int and a float need a graph each."
_KIND_HINT = (
    "Let the expression be a float for every value (`min(1.0, x)` instead of `min(1, x)`): an int and a float need a graph "
    "each."
)
_FOR_ONE_CHANGE = (_FUNCTION_HINT, _NUMBERS_HINT)
"""Hints that save a capture although the value changes once."""
_BRANCH_HINT = (
    "If it goes both ways often, compute both sides and choose with `torch.where(condition, a, b)`, or decide outside the "
    "region and pass the choice in."
)
_VALUE_HINT = "If the value differs on every call, keep it out of the region or limit it to a few distinct values."


def own_error_finding(region: RegionView, error: Exception) -> Finding:
    """An error of MagPy's own, after which ``region`` runs in eager mode."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}: {str(error)[:160]}"
    at = f"{where.filename.rsplit('/', 2)[-1]}:{where.lineno}"
    text = f"MagPy's monitor failed on {region.name} ({what}): the region runs in eager mode."
    return Finding("MP901", text, region.location, region=region.id, values=(Value("at", at),))


def recompile_finding(region: RegionView, failure: Failure, learned: bool, recordings: int, more: int = 0) -> Finding:
    """Why a region is captured again."""
    place = next(filter(lambda at: is_user_file(at.file), failure.branches), failure.location)
    path: tuple[Location, ...] = ()
    if place is None or not is_user_file(place.file):
        calls = [at for at in (*failure.path, *(() if place is None else (place,))) if is_user_file(at.file)]
        path = () if place is None else (region.location, place)
        place = calls[-1] if calls else region.location
    values = (Value(failure.name, f"{failure.old} -> {failure.shown_new}"),)
    old, new = _short(failure.old, failure.new)
    if failure.source is None and failure.old == "as before":
        changed = _other_way(failure)
    elif failure.name.endswith(".__code__"):
        changed = f"`{failure.name.removesuffix('.__code__')}` has other code than before"
    elif new == old:
        changed = f"`{failure.name}` is another object than before ({new})"
    else:
        changed = f"`{failure.name}` changed from {old} to {new}"
    if learned and failure.dims:
        text = f"{changed}: the region is compiled again with this dimension dynamic."
        return Finding("MP205", text, place, region=region.id, values=values, path=path)
    if learned:
        text = f"{changed}: it may vary from now on, without another recompile."
        return Finding("MP202", text, place, region=region.id, values=values, path=path)
    others = f" ({more} other value{'' if more == 1 else 's'} changed too)" if more > 0 else ""
    text = f"{changed}, so {region.name} was compiled again{others}."
    finding = Finding("MP201", text, place, hint=_recompile_hint(failure), region=region.id, values=values, path=path)
    is_repeated = any(
        known.code == "MP201" and known.location == place and known.values[0].name == failure.name
        for known in region.findings.values()
    )
    is_state = failure.old in _NOT_MADE or failure.new == UNASSIGNED
    once = not is_repeated and finding.hint not in _FOR_ONE_CHANGE
    if recordings == 1 or once or _has_two_states(failure) or (is_state and more > 0):
        # warm-up (state made on the first call, train and eval, another object): worth knowing, nothing to fix
        finding.severity_override = Severity.INFORMATION
        if not finding.hint.startswith(NO_ACTION):
            finding.hint = f"{NO_ACTION} if it happens once. {finding.hint}"
    elif failure.old in _NOT_MADE:
        finding.hint = _VALUE_HINT
    return finding


def _other_way(failure: Failure) -> str:
    """Which branch went the other way, as far as it is known."""
    texts = [f"`{text}`" for at in failure.branches if (text := text_at(at))]
    if not texts:
        return f"{failure.name[:1].upper()}{failure.name[1:]} went the other way"
    if len(texts) == 1:
        return f"{texts[0]}, which depends on tensor data or a random number, went the other way"
    return f"One of {len(texts)} expressions of tensor data or random numbers ({', '.join(texts[:3])}) went the other way"


def _short(old: str, new: str) -> tuple[str, str]:
    """Two values for a sentence, floats rounded: the finding's values have all digits."""

    def rounded(text: str) -> str:
        try:
            return text if "." not in text else f"{float(text):.6g}" if float(text) % 1 else f"{float(text):.1f}"
        except ValueError:
            return text

    short = rounded(old), rounded(new)
    return short if short[0] != short[1] else (old, new)


def _recompile_hint(failure: Failure) -> str:
    """What to do about this value."""
    if failure.branches:
        return _BRANCH_HINT
    if _has_two_states(failure):
        return "No action needed: each of the two states gets one graph, once."
    if failure.new == UNASSIGNED:
        return "No action needed for a variable that the first step assigns: that step gets one graph, once."
    if failure.old in _NOT_MADE:
        return (
            "No action needed for state that the first call creates: the second call is compiled again, later ones are not."
        )
    if failure.name.endswith((".shape", ".stride()")):
        return "Use batches of one shape (`drop_last=True`, padding), or let the dimension vary from the start."
    if failure.old.startswith("<function") and failure.new.startswith("<function"):
        return _FUNCTION_HINT
    if failure.name.startswith("type(") and {failure.old, failure.new} == {"<class 'int'>", "<class 'float'>"}:
        return _KIND_HINT
    if {_number_type(failure.old), _number_type(failure.new)} == {"int", "float"}:
        return _NUMBERS_HINT
    if failure.number:
        return "The region depends on the exact number: keep it in a 0-d tensor, or out of conditions and sizes."
    return _VALUE_HINT


def _number_type(text: str) -> str:
    """The type of the number that ``text`` is or describes; empty: no number."""
    if text in ("an int", "a float"):
        return text.split()[1]
    try:
        return "int" if text.lstrip("-").isdigit() else type(float(text)).__name__
    except ValueError:
        return ""


def _has_two_states(failure: Failure) -> bool:
    """Train and eval, a setting of torch, or a comparison of numbers: a second capture serves the other state."""
    is_comparison = failure.source is None and {failure.old, failure.new} == {"True", "False"}
    return is_comparison or failure.name.startswith("torch's") or failure.name.endswith(".training")


_OPTIMIZERS = os.path.join("torch", "optim") + os.sep


def host_reads(region: RegionView) -> int:
    """How many tensor values Python waits for in one call: the most of any capture, or without captures the number of such
    findings. torch's own optimizers read step counts that they keep on the host: no wait, so not counted."""
    if not region.captures:
        return len({f.location for f in region.findings.values() if f.code in ("MP101", "MP102", "MP109")})
    return max(len({_read_at(node) for node in c.nodes if _is_read(node)}) for c in region.captures)


def _is_read(node: Any) -> bool:
    site = node.meta.get("magpy_site")
    return reads_value(node) and (site is None or _OPTIMIZERS not in site.code.co_filename)


def _read_at(node: Any) -> Any:
    """What distinguishes one wait from another: the node itself, or the site of a ``tolist``, which has many nodes."""
    of = node.args[0] if node.args else None
    one_of_many = getattr(of, "op", "") == "call_function" and "magpy_site" not in getattr(of, "meta", {})
    return node.meta.get("magpy_site") if one_of_many else node
