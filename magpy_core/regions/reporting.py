"""What a capture tells the user: guard, side-effect and recompile findings.

Key functions: ``capture_findings``, ``recompile_finding``.
"""

from __future__ import annotations

import os
import warnings
from statistics import median
from typing import TYPE_CHECKING, Any

from magpy_core.findings import Finding, Location, Severity, Value
from magpy_core.guards.explain import Failure
from magpy_core.guards.kinds import TRUTH
from magpy_core.monitor.positions import is_user_file, site_location
from magpy_core.opgraph.functions import SCALAR_READS
from magpy_core.recording.places import Place
from magpy_core.refgraph.source import Source
from magpy_core.replay.ir import Outside

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture
    from magpy_core.regions.region import Region

_EFFECT_CODES = {
    "set_attr": "MP301", "del_attr": "MP301", "set_slot": "MP301", "del_slot": "MP301", "set_field": "MP301",
    "set_cell": "MP304", "del_cell": "MP304", "print": "MP305", "log": "MP305",
    "warn": "MP305",
}  # fmt: skip


def _of_output(source: Source) -> bool:
    """Whether logging or warnings are set up as they were: nothing about the program."""
    return source.kind == "logs" or source.chain()[0].key is warnings


def user_site(sites: list[Any]) -> Location | None:
    for site in sites:
        if site is not None and is_user_file(site.code.co_filename):
            return site_location(site)
    return None


_CHANGED_HINT = "Nothing needs to be done if the change is wanted; one that depends on the old content guards all of it."


def capture_findings(region: Region, capture: Capture) -> list[Finding]:
    """Guards at the user's lines, and every side effect (one finding a line and kind)."""
    out: list[Finding] = []
    for read in capture.refgraph.reads:
        if read.kind.reported:
            place = user_site([read.site])
            if (
                place is None
                or (read.kind is TRUTH and read.source.describe().endswith("_hooks"))
                or _of_output(read.source)
            ):
                continue
            name, value = read.kind.subject(read)
            out.append(
                Finding(
                    "MP204",
                    f"The capture holds while `{name}` is {value}.",
                    place,
                    region=region.id,
                    values=(Value(name, value),),
                )
            )
    places = capture.trace.places
    effects: dict[tuple[str, Location], tuple[list[str], tuple[Location, ...]]] = {}

    appended: set[tuple[str, Location]] = set()

    def tell(code: str, subject: Any, sites: list[Any], name: str, op: str = "") -> None:
        place = places.of(subject, sites) or Place(region.location)
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
        tell(code, subject, [*sites, *effect.sites], effect.describe, effect.op)
    for source, site in capture.trace.writes.written:
        tell("MP306", source, [site], source.describe())
    for (code, location), (names, path) in effects.items():
        names = list(dict.fromkeys(names))
        values = tuple(Value("changed", name) for name in names[:5])
        hint = "" if code != "MP302" or (code, location) in appended else _CHANGED_HINT
        out.append(Finding(code, _effect_message(code, names), location, hint, region=region.id, values=values, path=path))
    return out + places.hidden_findings(region.id)


_OUTPUT = {
    "print": ("calls `print`", "prints the same"),
    "a warning": ("gives a warning (`warnings.warn`)", "gives the same warning"),
}


def _effect_message(code: str, names: list[str]) -> str:
    what = f"`{names[0]}`" if len(names) == 1 else f"`{names[0]}` and {len(names) - 1} more"
    are = "is" if len(names) == 1 else "are"
    if code == "MP305":
        done, again = _OUTPUT.get(names[0], ("writes a log record (`logging`)", "writes the same record"))
        return f"The region {done} here; replay {again} again."
    if code == "MP306":
        return f"{what} {are} changed in place; the graph repeats it."
    verb = {"MP301": "written", "MP302": "changed", "MP303": "written", "MP304": "written"}[code]
    return f"{what} {are} {verb} by the region; replay repeats it."


def recompile_finding(region: Region, failure: Failure, learned: bool, recordings: int, more: int = 0) -> Finding:
    """Why a region is captured again."""
    place = failure.location
    path: tuple[Location, ...] = ()
    if place is None or not is_user_file(place.file):
        path = () if place is None else (region.location, place)
        place = region.location
    values = (Value(failure.name, f"{failure.old} -> {failure.new}"),)
    old, new = _short(failure.old, failure.new)
    if failure.source is None and failure.old == "as captured":
        changed = f"{failure.name[:1].upper()}{failure.name[1:]} went another way than before"
    else:
        changed = f"`{failure.name}` changed from {old} to {new if new != old else 'another ' + new}"
    if learned and failure.dims:
        text = f"{changed}: captured again with the dimension dynamic."
        return Finding("MP205", text, place, region=region.id, values=values, path=path)
    if learned:
        text = f"{changed}: from now on it is carried as a symbolic scalar, and its changes need no new capture."
        return Finding("MP202", text, place, region=region.id, values=values, path=path)
    others = f" (with {more} other values)" if more > 0 else ""
    text = f"{changed}, so {region.name} was captured again{others}."
    finding = Finding("MP201", text, place, hint=_recompile_hint(failure), region=region.id, values=values, path=path)
    if recordings == 1 or failure.name.endswith(".training") or failure.name.startswith("torch's"):
        # the second capture is warm-up (state made on the first call, train and eval): worth knowing, nothing to mend
        finding.severity_override = Severity.INFORMATION
    return finding


def _short(old: str, new: str) -> tuple[str, str]:
    """Two values for a sentence: all the digits of a float would bury it, and the finding's values have them."""

    def rounded(text: str) -> str:
        try:
            return f"{float(text):.6g}" if "." in text else text
        except ValueError:
            return text

    short = rounded(old), rounded(new)
    return short if short[0] != short[1] else (old, new)


def _recompile_hint(failure: Failure) -> str:
    """What to do about this very value; empty for the general advice of the code."""
    if failure.name.startswith("torch's") or failure.name.endswith(".training"):
        return "Nothing needs to be done: each of the two states gets a capture of its own, once."
    if failure.old == "absent" or failure.old == "None":
        return "Nothing needs to be done for state that the first call makes: the second call is captured, and then no more."
    if failure.name.endswith((".shape", ".stride()")):
        return "Use batches of one shape (`drop_last=True`, padding), or let the dimension vary from the start."
    if failure.number:
        return "The exact number decides what the region does: keep it in a 0-d tensor, or out of conditions and sizes."
    return "If the value differs at every call, keep it out of the region or give it few distinct values: each is a capture."


_VALUE_READS = SCALAR_READS | {"__bool__"}


_OPTIMIZERS = os.path.join("torch", "optim") + os.sep


def host_reads(region: Region) -> int:
    """How many tensor values Python waits for in one call: the most of any capture; of a region without one, as far as
    its findings tell. torch's own optimizers read step counts that they keep on the host: no wait, so not counted."""
    if not region.captures:
        return len({f.location for f in region.findings.values() if f.code in ("MP101", "MP102", "MP109")})
    return max(len({_read_at(node) for node in c.nodes if _is_read(node)}) for c in region.captures)


def _is_read(node: Any) -> bool:
    site = node.meta.get("magpy_site")
    asks = node.op == "call_method" and node.target in _VALUE_READS
    return asks and (site is None or _OPTIMIZERS not in site.code.co_filename)


def _read_at(node: Any) -> Any:
    """What tells one wait from another: the node itself, or (of ``tolist``, many nodes at once) the site."""
    of = node.args[0] if node.args else None
    whole = getattr(of, "op", "") == "call_function" and "magpy_site" not in getattr(of, "meta", {})
    return node.meta.get("magpy_site") if whole else node


_SAMPLES = 5  # fewer timings of either kind prove nothing
_SLOWER = 1.1  # compiled / eager
_GUARD_SHARE = 0.3
_GUARD_SECONDS = 50e-6
_LONG_COMPILE_SECONDS = 1.0


def performance_findings(region: Region, steps: int) -> list[Finding]:
    """What the side-by-side timings of a region's steady calls prove; nothing where there are too few."""
    if min(len(region.eager_seconds), len(region.compiled_seconds)) < _SAMPLES:
        return []
    eager, compiled = median(region.eager_seconds), median(region.compiled_seconds)
    out = []

    def tell(code: str, text: str, cost: float | None = None, **values: str) -> None:
        shown = tuple(Value(name, value) for name, value in values.items())
        per_step = None if cost is None else round(cost * 1e3 * (region.calls / steps if steps else 1), 4)
        out.append(Finding(code, text, region.location, region=region.id, values=shown, cost_ms=per_step))

    slower = compiled > eager * _SLOWER
    if slower:
        ratio = compiled / eager
        tell(
            "MP401",
            f"A compiled call of {region.name} takes {ratio:.2g} times as long as plain Python "
            f"({_ms(compiled)}, not {_ms(eager)}).",
            compiled - eager,
            eager=_ms(eager),
            compiled=_ms(compiled),
        )
    guards = min(median(region.guard_seconds), compiled) if region.guard_seconds else 0.0
    if guards > _GUARD_SECONDS and guards > compiled * _GUARD_SHARE:
        count = max(len(c.guards) for c in region.captures) if region.captures else 0
        tell(
            "MP402",
            f"Checking the {count} guards of {region.name} takes {_ms(guards)} of the {_ms(compiled)} of a compiled call.",
            guards,
            guards=_ms(guards),
            compiled=_ms(compiled),
        )
    spent = sum(c.compile_seconds or 0.0 for c in region.captures)
    saved = max(eager - compiled, 0.0) * region.hits
    if not slower and spent > _LONG_COMPILE_SECONDS and spent > 2 * saved:
        tell(
            "MP403",
            f"Compiling {region.name} took {spent:.1f} s; its {region.hits} compiled calls of this run saved {saved:.2g} s.",
            compile=f"{spent:.1f} s",
            saved=f"{saved:.2g} s",
        )
    return out


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def again(finding: Finding, known: Finding) -> bool:
    """Whether a recompile is one more of a kind that has been told: of the same value, read at the same place."""
    return (
        finding.code == known.code == "MP201"
        and finding.location == known.location
        and finding.region == known.region
        and finding.severity == known.severity
        and finding.values[0].name == known.values[0].name
    )
