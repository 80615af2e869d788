"""The kernels of the last run that has some, where they come from in the current text.

Key functions: kernels_of_line, kernel_text (a hover), of_regions, of_functions (for lenses). A kernel of several lines
counts for each of them; lines changed since the run have none.
"""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from urllib.parse import quote

from lsp_server.features.documents import Document, key_of
from lsp_server.features.markdown import code, plain
from lsp_server.features.run_findings import RunFindings
from lsp_server.features.summary import count
from lsp_server.features.syntax import Function, enclosing_functions, parse
from magpy_core.findings import Kernel, TargetReport
from magpy_core.findings.kernels import of_a_call, total_launches, total_us

_LISTED = 8


def kernels_of_line(run: RunFindings, target: TargetReport, key: str, line: int) -> list[Kernel]:
    """Those that compute something of a line (0-based) of the current text, in the order of the program."""
    return _by_line(run, target, key).get(line, [])


def _by_line(run: RunFindings, target: TargetReport, key: str) -> dict[int, list[Kernel]]:
    """The kernels of each line of a file, by its current number."""
    found: dict[int, list[Kernel]] = defaultdict(list)
    for kernel in target.kernels:
        for at in kernel.lines:
            if key_of(at.file) != key:
                continue
            tracked = run.tracker.file(at.file)
            now = None if tracked is None else tracked.place(at.line - 1, at.line - 1)
            if now is not None:
                found[now].append(kernel)
    return found


# -- hover ---------------------------------------------------------------------------------------------------------------


def kernel_text(document: Document, line: int, runs: Iterable[RunFindings], *, links: bool) -> str | None:
    """The kernels of a line, in Markdown that is also readable as plain text. ``links``: to commands of our extension."""
    blocks = []
    for run in runs:
        kernels = kernels_of_line(run, run.kernels, document.key, line) if run.kernels is not None else []
        if run.kernels is not None and kernels:
            shown = of_a_call(kernels)
            lines = [plain(_sum(shown, run.kernels.device)), ""]
            lines += [f"- {_kernel(kernel)}" for kernel in shown[:_LISTED]]
            lines += [f"- and {len(shown) - _LISTED} more"] if len(shown) > _LISTED else []
            lines += ["", "Times are lower bounds by published figures: nothing ran there."]
            lines[-1] += f" {_link(document.uri, line)}" if links else ""
            blocks.append("\n".join(lines))
    return "\n\n".join(blocks) or None


def _sum(kernels: Sequence[Kernel], device: str) -> str:
    """``3 Triton kernels and 1 of a library on H100 SXM, at least 41.0 µs: forward 7.5 µs, backward 33.5 µs``."""
    from lsp_server.formats.kernels import us  # here, so that the server starts faster

    graphs = {graph: list(of) for graph, of in groupby(kernels, key=lambda kernel: kernel.graph)}
    parts = ", ".join(f"{graph} {us(total_us(of))}" for graph, of in graphs.items())
    return f"{_counted(kernels)} on {device}, at least {us(total_us(kernels))}" + (f": {parts}" if len(graphs) > 1 else "")


def _counted(kernels: Sequence[Kernel]) -> str:
    own = total_launches(kernel for kernel in kernels if kernel.kind == "triton")
    others = total_launches(kernels) - own
    if not own:
        return count(others, "kernel of a library", "kernels of libraries")
    more = f" and {others} of {'a library' if others == 1 else 'libraries'}" if others else ""
    return count(own, "Triton kernel") + more


def _kernel(kernel: Kernel) -> str:
    from lsp_server.formats.kernels import computes, lines, size, us

    parts = [f"{us(kernel.us)} ({kernel.bound})" + (f", {kernel.launches:,} times" if kernel.launches > 1 else "")]
    parts.append(f"moves {size(kernel.work.bytes_moved)}")
    if kernel.code is not None:
        parts.append(count(kernel.code.registers, "register"))
        parts += [f"spills {size(kernel.code.spill_bytes)}"] if kernel.code.spill_bytes else []
    others = f" of {lines(kernel)}" if len(kernel.lines) > 1 else ""
    name = f" {code(kernel.name)}" if kernel.kind == "triton" else ""
    return f"{plain(kernel.graph)}{name}: {plain(computes(kernel).plain)}{plain(others)}; {', '.join(parts)}"


def _link(uri: str, line: int) -> str:
    argument = quote(json.dumps([{"uri": uri, "first": line, "last": line}]))
    return f"[Show Triton](command:magpy.showTriton?{argument})"


# -- lenses --------------------------------------------------------------------------------------------------------------


def of_regions(document: Document, run: RunFindings, target: TargetReport) -> list[tuple[int, str, list[Kernel]]]:
    """The regions that are defined in a document: line, id, and what a call launches."""
    found = []
    for region in run.regions.values():
        place = run.region_line_of(region)
        kernels = [kernel for kernel in target.kernels if kernel.region == region.id]
        if place is not None and place[0] == document.key and kernels:
            found.append((place[1], region.id, kernels))
    return found


def of_functions(
    document: Document, run: RunFindings, target: TargetReport, taken: set[int]
) -> Iterator[tuple[int, int, list[Kernel]]]:
    """The functions of a document whose own lines have kernels: first and last line, and the kernels. ``taken``: lines of
    definitions that are left out."""
    by_line = _by_line(run, target, document.key)
    tree = parse(tuple(document.lines)) if by_line else None
    if tree is None:
        return
    found: dict[Function, dict[Kernel, None]] = defaultdict(dict)
    for line in sorted(by_line):
        if around := _innermost(tree, line):
            found[around].update(dict.fromkeys(by_line[line]))
    for function, kernels in found.items():
        if function.lineno - 1 not in taken:
            yield function.lineno - 1, (function.end_lineno or function.lineno) - 1, list(kernels)


def _innermost(tree: ast.Module, line: int) -> Function | None:
    around = enclosing_functions(tree, line)
    return around[-1] if around else None


def short_line(device: str, kernels: Sequence[Kernel]) -> str:
    """``H100 SXM: 12 Triton kernels and 3 of libraries, at least 41.0 µs``."""
    from lsp_server.formats.kernels import us

    shown = of_a_call(kernels)
    return f"{device}: {_counted(shown)}, at least {us(total_us(shown))}"
