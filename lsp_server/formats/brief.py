"""A line of plain English for each region. Key function: lines.

``model GPT: one graph, 3 captures (train and eval, changing numbers), 470 guards, 1 side effect replayed``
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.text import Text

from lsp_server.formats.regions import each
from lsp_server.formats.view import View, clean, count
from magpy_core.findings import Recompile, RegionSummary, Report

_SIZE = re.compile(r"\.(shape|stride\(\))(\[\d+\])?$")


def lines(report: Report, view: View) -> Iterator[Text]:
    """The step's speedup, where it was measured, is in the line of the step."""
    yield from each(report, view, _line)


def _line(region: RegionSummary, view: View) -> Text:
    text = Text.assemble((clean(region.name).replace(": ", " ", 1), "bold"))
    if region.file:
        text.append(f" ({view.path(region.file)}" + (f":{region.line})" if region.line else ")"), "dim")
    text.append(f" in {clean(region.entrypoint)}" if region.entrypoint else "")
    text.append(": ")
    if region.engine == "dynamo":
        text.append(", ".join(_of_torch_compile(region)))
        return text
    if not region.captures:
        text.append("no graph, it runs in eager mode", "yellow")
        return text
    text.append(*_graph(region))
    text.append("".join(f", {part}" for part in _figures(region)))
    if region.shown_speedup is not None:
        text.append(f"; {region.shown_speedup:.2f}x")
    return text


def _graph(region: RegionSummary) -> tuple[str, str]:
    if region.complete:
        return "one graph", "green"
    if not region.graph_breaks:
        return "incomplete graph", "yellow"
    cut = f"cut at {count(region.graph_breaks, 'place')}"
    return (f"{count(region.graphs, 'graph')}, {cut}" if region.graphs > 1 else f"a graph {cut}"), "yellow"


def _figures(region: RegionSummary) -> Iterator[str]:
    why = list(dict.fromkeys(cause(recompile) for recompile in region.recompiles))
    often = f" in {count(region.calls, 'call')}" if region.captures > 2 and 2 * region.captures > region.calls else ""
    yield count(region.captures, "capture") + often + (f" ({', '.join(why)})" if why and region.captures > 1 else "")
    yield count(region.guards, "guard")
    if region.side_effects:
        yield f"{count(region.side_effects, 'side effect')} replayed"


def _of_torch_compile(region: RegionSummary) -> Iterator[str]:
    yield f"torch.compile traced {count(region.captures, 'graph')}"
    if region.graph_breaks:
        yield count(region.graph_breaks, "graph break")
    if region.recompiles:
        yield count(len(region.recompiles), "recompile")
    yield count(region.guards, "guard")


def cause(recompile: Recompile) -> str:
    """In a few words, why a region was captured again."""
    name, old = recompile.name, recompile.old
    if name.endswith(".training") or "grad mode" in name or "inference mode" in name:
        return "train and eval"
    if name.startswith("torch's "):
        return name.removeprefix("torch's ")
    if old in ("absent", "None"):
        return "state that the first call creates"
    if _SIZE.search(name) or name.startswith("len("):
        return "changing sizes"
    if _is_number(old) and _is_number(recompile.new):
        return "changing numbers"
    return f"changed `{name}`"


def _is_number(text: str) -> bool:
    return text.strip("-").replace(".", "", 1).replace("e-", "", 1).isdigit()
