"""What a capture tells the user: guard, side-effect and recompile findings. Key functions: capture_findings, recompile_finding."""

from __future__ import annotations

import os
import sysconfig
from typing import TYPE_CHECKING, Any

import torch

from magpy_core.findings import Finding, Location, Severity, Value
from magpy_core.guards.explain import Failure
from magpy_core.monitor.positions import site_location
from magpy_core.monitor.record import is_own_file
from magpy_core.refgraph.kinds import bounded_repr

if TYPE_CHECKING:
    from magpy_core.runtime.capture import Capture
    from magpy_core.runtime.region import Region

_LIBRARY = tuple(
    os.path.join(p, "")
    for p in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), sysconfig.get_path("purelib"),
              sysconfig.get_path("platlib"), os.path.dirname(torch.__file__)}
)  # fmt: skip
_TOLD = frozenset({"eq", "len", "keys", "elements", "truth", "identity"})
_EFFECT_CODES = {
    "set_attr": "MP301", "del_attr": "MP301", "set_slot": "MP301", "del_slot": "MP301", "set_field": "MP301", "set_cell": "MP304",
    "del_cell": "MP304", "print": "MP305", "log": "MP305",
}  # fmt: skip


def is_user_file(file: str) -> bool:
    """Whether a file is the user's own (not the standard library, an installed package, or ours)."""
    return not file.startswith("<") and not file.startswith(_LIBRARY) and not is_own_file(file)


def user_site(sites: list[Any]) -> Location | None:
    for site in sites:
        if site is not None and is_user_file(site.code.co_filename):
            return site_location(site)
    return None


def capture_findings(region: Region, capture: Capture) -> list[Finding]:
    """Guards at the user's lines, and every side effect."""
    out: list[Finding] = []
    for read in capture.refgraph.reads:
        if read.op in _TOLD or read.op.startswith("sym:"):
            place = user_site([read.site])
            if place is None:
                continue
            if read.op.startswith("sym:"):
                sym, outcome = read.expected
                name, value = sym.describe(), repr(outcome)
            else:
                name, value = read.source.describe(), bounded_repr(read.expected)
            out.append(
                Finding("MP204", f"The capture holds while `{name}` is {value}.", place, region=region.id, values=(Value(name, value),))
            )
    for effect in capture.replay.effects:
        code = _EFFECT_CODES.get(effect.op, "MP302")
        if code == "MP302" and effect.target is not None and "globals of" in getattr(effect.target.source, "label", ""):
            code = "MP303"
        sites = [s for s in effect.sites if s is not None and (s.name == effect.key or code != "MP301")] or effect.sites
        place = user_site(sites) or user_site(effect.sites) or region.location
        out.append(Finding(code, _effect_message(code, effect.describe), place, region=region.id, values=(Value("target", effect.describe),)))
    for _, source, site in capture._recorded.recording.tensor_writes:
        name = source.describe()
        place = user_site([site]) or region.location
        out.append(Finding("MP306", f"`{name}` is changed in place; the graph repeats it.", place, region=region.id, values=(Value("tensor", name),)))
    return out


def _effect_message(code: str, what: str) -> str:
    verb = {"MP301": "is written", "MP302": "is changed", "MP303": "is written", "MP304": "is written", "MP305": "is output"}[code]
    return f"`{what}` {verb} by the region; replay repeats it." if code != "MP305" else f"The region outputs {what}; replay repeats it."


def recompile_finding(region: Region, failure: Failure, learned: bool, recordings: int, more: int = 0) -> Finding:
    """Why a region is captured again."""
    place = failure.location or region.location
    values = (Value(failure.name, f"{failure.old} -> {failure.new}"),)
    if learned and failure.dims:
        text = f"`{failure.name}` changed from {failure.old} to {failure.new}: captured again with the dimension dynamic."
        return Finding("MP205", text, place, region=region.id, values=values)
    if learned:
        text = f"`{failure.name}` changed from {failure.old} to {failure.new}: from now on it is carried as a symbolic scalar."
        return Finding("MP202", text, place, region=region.id, values=values)
    text = f"`{failure.name}` changed from {failure.old} to {failure.new}, so {region.name} was captured again{f' (with {more} other values)' if more > 0 else ''}."
    finding = Finding("MP201", text, place, region=region.id, values=values)
    if recordings == 1 or failure.name.endswith(".training") or failure.name.startswith("torch's"):
        # the second capture is warm-up (state made on the first call, train and eval): worth knowing, nothing to mend
        finding.severity_override = Severity.INFORMATION
    return finding
