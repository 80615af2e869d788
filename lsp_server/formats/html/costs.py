"""What lines of the source cost, as far as the report knows. Key types: LineCosts, Cost, Kind.

``step``: what findings of the line cost in a step. ``region``: a step's time in the whole region that begins there.
``again``: capturing or compiling again, each time. ``device``: the least time of the line's kernels in a step, on a device
that is not there. The first three were measured on the machine of the run.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from html import escape

from lsp_server.formats.kernels import us
from lsp_server.formats.step_parts import rows
from lsp_server.formats.step_text import milliseconds
from lsp_server.formats.view import clean, cost, is_each_time
from magpy_core.findings import Report


@dataclass(frozen=True)
class Kind:
    name: str
    words: str  # in the legend
    measured: bool = True


_KINDS = (
    Kind("step", "of one step: what the findings of the line cost"),
    Kind("region", "of one step: the whole region that begins here"),
    Kind("again", "capturing or compiling again, each time"),
    Kind("device", "of one step: at least, by the line's kernels", measured=False),
)


@dataclass(frozen=True)
class Cost:
    """``text``: the figure with its unit; ``words``: what it is."""

    ms: float
    text: str
    words: str


class LineCosts:
    """By kind, file and 0-based line."""

    def __init__(self, report: Report) -> None:
        self._costs: dict[str, dict[str, dict[int, Cost]]] = defaultdict(lambda: defaultdict(dict))
        self._device = report.kernels.device if report.kernels is not None else ""
        self._of_findings(report)
        self._of_regions(report)
        self._of_kernels(report)
        self._most = {kind: max((c.ms for lines in files.values() for c in lines.values()), default=0.0)
                      for kind, files in self._costs.items()}  # fmt: skip

    def lines(self, file: str) -> set[int]:
        return {line for files in self._costs.values() for line in files.get(file, ())}

    @property
    def files(self) -> set[str]:
        return {file for files in self._costs.values() for file in files}

    def _of_findings(self, report: Report) -> None:
        costly = [finding for finding in report.findings if finding.cost_ms]
        for finding in costly:
            kind = "again" if is_each_time(finding) else "step"
            file, line = finding.location.file, finding.location.range.start.line
            here = [f for f in costly if f.location.file == file and f.location.range.start.line == line]
            same = [f for f in here if is_each_time(f) == is_each_time(finding)]
            figures = [f.cost_ms or 0.0 for f in same]
            ms = max(figures) if kind == "again" else sum(figures)  # as the words say
            codes = ", ".join(dict.fromkeys(f.code for f in same))
            self._add(kind, file, line, ms, f"{codes}: {cost(same)}")

    def _of_regions(self, report: Report) -> None:
        """The compiled time if there is one, else that of eager mode."""
        places = {region.id: region for region in report.regions if region.file and region.line}
        for row in rows(report.step) if report.step is not None else ():
            region = places.get(row.region)
            split = row.plain if row.compiled.total is None else row.compiled
            if region is None or not split.total:
                continue
            how = "in eager mode" if split is row.plain else "compiled"
            words = f"{clean(row.name)}, the whole region, {how}: {milliseconds(split.total)} ms of one step{split.note}"
            self._add("region", region.file, region.line - 1, split.total, words)

    def _of_kernels(self, report: Report) -> None:
        """Regions that share a line add up."""
        costs: dict[tuple[str, int], float] = defaultdict(float)
        for one in report.kernels.lines if report.kernels is not None else ():
            if one.file and one.line and one.us:
                costs[one.file, one.line - 1] += one.us
        for (file, line), total in costs.items():
            words = f"kernels of this line on {clean(self._device)}: at least {us(total)} of one step"
            self._add("device", file, line, total / 1e3, words, us(total))

    def _add(self, kind: str, file: str, line: int, ms: float, words: str, text: str = "") -> None:
        self._costs[kind][file][line] = Cost(ms, text or f"{milliseconds(ms)} ms", words)

    def cells(self, file: str, line: int) -> str:
        """The cells left of a 0-based line: one for what was measured, one for the device."""
        shown = []
        for measured in (True, False):
            kinds = [kind for kind in _KINDS if kind.measured is measured and kind.name in self._costs]
            if kinds:
                found = "".join(self._figure(kind, file, line) for kind in kinds)
                shown.append(f"<span class='costs'>{found}</span>")
        return "".join(shown)

    def _figure(self, kind: Kind, file: str, line: int) -> str:
        found = self._costs[kind.name].get(file, {}).get(line)
        if found is None:
            return ""
        part = 100 * found.ms / self._most[kind.name]
        words = escape(found.words, quote=True)
        return f"<span class='cost {kind.name}' style='--part: {part:.0f}%' title='{words}'>{found.text}</span>"

    def legend(self) -> str:
        """Empty if nothing is known of any line."""
        shown = []
        for kind in _KINDS:
            if kind.name not in self._costs:
                continue
            on = f", on {escape(clean(self._device))}" if not kind.measured else ""
            longest = max((c for lines in self._costs[kind.name].values() for c in lines.values()), key=lambda c: c.ms)
            swatch = f"<span class='cost {kind.name}' style='--part: 100%'>{longest.text}</span>"
            shown.append(f"<li>{swatch} {kind.words}{on}</li>")
        if not shown:
            return ""
        note = "Left of a line is what it costs, where the run has measured or estimated it. The longest bar of each kind:"
        return f"<div class='legend soft'><p>{note}</p><ul>{''.join(shown)}</ul></div>"
