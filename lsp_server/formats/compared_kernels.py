"""How the kernels of two reports differ, as text. Key functions: lines, title, of_graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from lsp_server.formats.kernels import computes, size, us
from lsp_server.formats.kernels import lines as places
from lsp_server.formats.view import clean, count
from lsp_server.kernel_comparison import GraphChange, KernelComparison, Regrouped
from lsp_server.measures import Change
from magpy_core.findings import Kernel
from magpy_core.findings.kernels import total_bytes, total_launches, total_us

MOST = 8
"""Kernels that are listed of one kind of change."""


def lines(comparison: KernelComparison) -> Iterator[Text]:
    if not comparison.graphs:
        yield Text.assemble((f"{title(comparison)}:", "bold"), " no difference")
    else:
        yield Text(f"{title(comparison)}:", "bold")
    for graph in comparison.graphs:
        yield Text.assemble("  ", (clean(graph.region), "bold"), f", {clean(graph.graph)}")
        for text, style in of_graph(graph):
            yield Text(f"    {text}", style)
    yield Text()


def title(comparison: KernelComparison) -> str:
    old, new = comparison.old, comparison.new
    where = new.device if old.target == new.target else f"{old.device} -> {new.device}"
    return f"Kernels on {clean(where)}"


def of_graph(graph: GraphChange) -> Iterator[tuple[str, str]]:
    """Lines without indentation, each with its style."""
    for change in graph.totals:
        yield figure(change), _style(change)
    yield from _regrouped(graph.parted, "no longer fused", "red" if graph.judged else "")
    yield from _regrouped(graph.joined, "now fused", "green" if graph.judged else "")
    yield from _listed(graph.appeared, "new", "")
    yield from _listed(graph.disappeared, "gone", "")
    for one in graph.changed[:MOST]:
        yield f"changed: {kernel(one.kernel)}", ""
        for change in one.changes:
            yield f"  {figure(change)}", _style(change)
    if len(graph.changed) > MOST:
        yield f"and {count(len(graph.changed) - MOST, 'kernel')} more changed", "dim"


def _style(change: Change) -> str:
    return "red" if change.worse else "green" if change.new < change.old else ""


def figure(change: Change) -> str:
    """``moves: 4.1 MB -> 8.2 MB (+100%)``."""
    percent = f" ({change.ratio - 1:+.0%})" if change.ratio is not None and change.unit else ""
    return f"{change.label}: {_amount(change.old, change.unit)} -> {_amount(change.new, change.unit)}{percent}"


def _amount(number: float, unit: str) -> str:
    if unit == "B":
        return size(number)
    return us(number) if unit == "µs" else f"{number:,g}{f' {unit}' if unit else ''}"


def _regrouped(groups: Sequence[Regrouped], what: str, style: str) -> Iterator[tuple[str, str]]:
    for one in groups[:MOST]:
        moved = f"{size(total_bytes(one.before))} -> {size(total_bytes(one.now))}"
        took = f"{us(total_us(one.before))} -> {us(total_us(one.now))}"
        whole, parts = (one.before, one.now) if len(one.before) == 1 else (one.now, one.before)
        yield f"{what}: {kernel(whole[0])}: {len(one.before)} -> {len(one.now)} kernels, {moved}, {took}", style
        for part in parts:
            yield f"  of {kernel(part)}", "dim"
    if len(groups) > MOST:
        yield f"and {len(groups) - MOST:,} more {what}", style


def _listed(kernels: Sequence[Kernel], what: str, style: str) -> Iterator[tuple[str, str]]:
    for one in kernels[:MOST]:
        launches = f"{one.launches:,} times " if one.launches > 1 else ""
        yield f"{what}: {kernel(one)}: {launches}{size(one.work.bytes_moved)}, at least {us(one.us)}", style
    if rest := kernels[MOST:]:
        yield f"and {count(total_launches(rest), 'launch') if len(rest) == 1 else f'{len(rest):,} more'} {what}", "dim"


def kernel(one: Kernel) -> str:
    """``layer_norm, gelu at model.py:3-4,9``."""
    where = places(one)
    return computes(one).plain + (f" at {where}" if where else "")
