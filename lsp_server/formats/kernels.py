"""The kernels of a program on a device, as tables for a terminal. Key functions: heading, tables, sources,
notes; of_region, for reports of checks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich import box
from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from lsp_server.formats.view import View, clean, count, shorten
from magpy_core.findings import Kernel, RegionSummary, TargetGraph, TargetReport
from magpy_core.findings.kernels import total_bytes, total_launches, total_us

_BOUND_STYLES = {"memory": "cyan", "compute": "magenta", "launch": "dim"}
_OPERATORS_SHOWN = 4
_FIGURES, _SPILLS = 48, 7  # cells that the columns of figures take
_MOVES_NOTHING = frozenset(
    {"view", "transpose", "expand", "permute", "t", "reshape", "split", "unsqueeze", "squeeze", "alias"}
)
_SHORT = {
    "scaled_dot_product_efficient_attention": "efficient_attention",
    "scaled_dot_product_efficient_attention_backward": "efficient_attention_backward",
    "scaled_dot_product_flash_attention": "flash_attention",
    "scaled_dot_product_flash_attention_backward": "flash_attention_backward",
    "to_copy": "to",
    "prepare_softmax_online": "softmax",
    "batch_norm_legit_functional": "batch_norm",
    "batch_norm_legit_no_training": "batch_norm",
    "inductor_seeds": "random seeds",
}


def heading(title: str, report: TargetReport) -> Iterator[Text]:
    """One line: what was compiled for which device."""
    text = Text.assemble((clean(title), "bold"), " on ", (report.device, "bold"), f" ({report.target}): ")
    graphs = {(kernel.region, kernel.graph) for kernel in report.kernels}
    text.append(f"{count(len(report.kernels), 'kernel')} in {count(len(graphs), 'graph')}")
    yield text


def tables(report: TargetReport, regions: Mapping[str, RegionSummary], view: View) -> Iterator[RenderableType]:
    """A table for each graph of a region, in the order of the program."""
    numbered = list(enumerate(report.kernels, 1))
    for (region, graph), group in groupby(numbered, key=lambda item: (item[1].region, item[1].graph)):
        rows = list(group)
        kernels = [kernel for _, kernel in rows]
        facts = [traffic(kernels, one) for one in report.graphs if (one.region, one.graph) == (region, graph)]
        yield Group(Text(), _title(region, graph, regions, kernels, view), *facts, _table(rows, view))


def _title(region: str, graph: str, regions: Mapping[str, RegionSummary], kernels: Sequence[Kernel], view: View) -> Text:
    known = regions.get(region)
    text = Text(clean(region), "bold")
    if graph != (known.kind if known else ""):
        text.append(f", {graph}", "bold")
    if known is not None and known.file and known.line:
        text.append(f"  {view.path(known.file)}:{known.line}", "dim")
    text.append(f"  {_launches(total_launches(kernels))}, at least {us(total_us(kernels))}", "default")
    return text


def traffic(kernels: Sequence[Kernel], graph: TargetGraph) -> Text:
    """``38 kernels, 30 of them memory-bound, move 12.0 MB; its inputs and results alone are 8.0 MB``."""
    bound = total_launches([kernel for kernel in kernels if kernel.bound == "memory"])
    head = f"{count(total_launches(kernels), 'kernel')}, {bound:,} of them memory-bound, move {size(total_bytes(kernels))}"
    return Text(f"{head}; inputs and results alone are {size(graph.least_bytes)}", "dim")


def _table(rows: Sequence[tuple[int, Kernel]], view: View) -> Table:
    spills = any(kernel.code and kernel.code.spill_bytes for _, kernel in rows)
    left = max(view.width - _FIGURES - (_SPILLS if spills else 0), 40)
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    shown.add_column("#", justify="right", style="dim", no_wrap=True, width=3)
    shown.add_column("computes", overflow="ellipsis", no_wrap=True, width=left * 3 // 5)
    shown.add_column("lines", overflow="ellipsis", no_wrap=True, width=left - left * 3 // 5)
    shown.add_column("bound", no_wrap=True, width=7)
    for name, width in (("µs", 6), ("times", 5), ("moves", 7), ("regs", 4), *((("spills", 6),) if spills else ())):
        shown.add_column(name, justify="right", no_wrap=True, width=width)
    for number, kernel in rows:
        code = kernel.code
        figures = [f"{kernel.us:,.1f}", f"{kernel.launches:,}", size(kernel.work.bytes_moved)]
        figures.append(str(code.registers) if code else "")
        if spills:
            figures.append(size(code.spill_bytes) if code and code.spill_bytes else "")
        bound = Text(kernel.bound, _BOUND_STYLES.get(kernel.bound, ""))
        shown.add_row(str(number), computes(kernel), lines(kernel), bound, *figures)
    return shown


def computes(kernel: Kernel) -> Text:
    """The operations of a kernel; a library's is marked as such."""
    names = list(dict.fromkeys(_plain(clean(name)) for name in kernel.operators if _plain(name) not in _MOVES_NOTHING))
    names = names or [_plain(clean(name)) for name in kernel.operators] or [clean(kernel.name).rpartition(".")[2]]
    if kernel.kind == "extern":
        return Text.assemble(names[0], (" (MagPy's)" if kernel.code else " (library)", "dim"))
    more = f", {len(names) - _OPERATORS_SHOWN} more" if len(names) > _OPERATORS_SHOWN else ""
    return Text(", ".join(names[:_OPERATORS_SHOWN]) + more)


def _plain(operator: str) -> str:
    """An ATen name as programs write it: without the marks of ATen's inner functions."""
    name = operator.lstrip("_").removeprefix("native_").removeprefix("unsafe_")
    return _SHORT.get(name, name)


def lines(kernel: Kernel) -> str:
    """``model.py:34-36,41 train.py:12``."""
    files = {file: sorted({at.line for at in group}) for file, group in groupby(kernel.lines, key=lambda at: at.file)}
    parts = [f"{clean(os.path.basename(file))}:{ranges(found)}" for file, found in files.items()]
    return " ".join(parts)


def ranges(numbers: Sequence[int], most: int = 12) -> str:
    """``3-5,9``: increasing numbers, shortened after ``most`` ranges."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    text = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found[:most])
    return text + ("…" if len(found) > most else "")


def us(microseconds: float) -> str:
    return f"{microseconds:,.1f} µs" if microseconds < 1000 else f"{microseconds / 1000:,.2f} ms"


def size(number: float) -> str:
    """``512 B``, ``1.5 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            break
        number /= 1000
    return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"


def sources(report: TargetReport, view: View, *, colored: bool) -> Iterator[Text]:
    """Figures and Triton source of each kernel."""
    for number, kernel in enumerate(report.kernels, 1):
        yield Text()
        yield from _source(number, kernel, view, colored)


def _source(number: int, kernel: Kernel, view: View, colored: bool) -> Iterator[Text]:
    yield Text.assemble((f"#{number} ", "dim"), (clean(kernel.name), "bold"))
    yield Text(f"  {kernel.graph} of {clean(kernel.region)}", "dim")
    for at in kernel.lines:
        place = f"  {view.path(at.file)}:{at.line}  "
        text = (view.sources.line(at.file, at.line - 1) or "").strip()
        yield Text.assemble((place, "dim"), shorten(clean(text), max(view.width - len(place), 20)))
    for line in figures(kernel):
        yield Text(f"  {line}")
    if kernel.code is None:
        yield Text("  A library's kernel: it has no Triton source.", "dim")
        return
    text = clean(kernel_text(kernel.code.triton), lines=True)
    yield Syntax("", "python", theme="ansi_dark").highlight(text) if colored else Text(text)


def figures(kernel: Kernel) -> Iterator[str]:
    """What a kernel moves and computes and, if it is Triton's, what it takes of the device."""
    work, code = kernel.work, kernel.code
    flops = f"{work.flops / 1e6:,.2f} MFLOP, {work.intensity:.2f} FLOP per byte" if work.flops else "no arithmetic"
    yield f"reads {size(work.bytes_read)}, writes {size(work.bytes_written)}; {flops} in {work.dtype}"
    if code is not None:
        blocks = " x ".join(map(str, code.grid)) if code.grid else "unknown"
        threads = f"grid {blocks}, {count(code.num_warps, 'warp')}, {count(code.registers, 'register')} per thread, "
        yield f"{threads}{size(code.shared_bytes)} shared memory, {size(code.spill_bytes)} spilled"


def kernel_text(source: str) -> str:
    """The kernel itself, without imports and the settings that Inductor passes."""
    _, found, rest = source.partition("@triton.jit\n")
    return (found + rest).rstrip() if found else source


def notes(report: TargetReport, view: View) -> Iterator[Text]:
    """What the figures are, and which regions are missing."""
    yield Text()
    rates = f"{report.bandwidth / 1e12:g} TB/s and its peak FLOP/s"
    yield Text(f"µs: a lower bound for a launch, by the published figures of {report.device} ({rates}),", "dim")
    yield Text(f"and never less than {report.launch_us:g} µs. An estimate: nothing ran on the device.", "dim")
    for problem in report.problems:
        yield Text.assemble((f"{clean(problem.region)} is not listed: ", "bold yellow"), clean(problem.message))


def of_region(region: RegionSummary, target: TargetReport) -> Iterator[Text]:
    """``  on H100 SXM: forward 38 kernels, at least 100.0 µs; backward ...``: what one call launches."""
    parts: dict[str, list[Kernel]] = {}
    for kernel in target.kernels:
        if kernel.region == region.id:
            parts.setdefault(kernel.graph, []).append(kernel)
    shown = "; ".join(
        f"{graph} {count(total_launches(of), 'kernel')}, at least {us(total_us(of))}" for graph, of in parts.items()
    )
    if shown:
        yield Text(f"  on {target.device}: {shown}")
    for problem in target.problems:
        if problem.region == region.id:
            yield Text.assemble(f"  on {target.device}: ", ("not compiled", "yellow"), f": {clean(problem.message)}")


def _launches(number: int) -> str:
    return count(number, "launch") if number == 1 else f"{number:,} launches"
