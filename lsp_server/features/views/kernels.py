"""The code of kernels as one text: Triton or PTX, with links to the lines of the program. Key function: kernels_of.

The response says where each kernel is in the text, and which lines it computes: an editor shows both in step.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from lsp_server.features.documents import key_of, path_of
from lsp_server.features.entrypoint import entrypoint_line
from lsp_server.features.kernels import kernels_of_line
from lsp_server.features.positions import split_lines
from lsp_server.features.tracking import read_source
from lsp_server.features.views.shown import Json, NotShown, Shown
from lsp_server.features.views.texts import Page
from lsp_server.formats.view import clean, count
from magpy_core.findings import Kernel, TargetReport
from magpy_core.findings.kernels import total_launches, total_us
from magpy_core.runner.request import DEVICES

CODES = ("triton", "ptx")


def kernels_of(runs: Sequence[Shown], params: Mapping[str, Any]) -> Json:
    """``params``: ``{run?, uri?, line?, code?, text?}``. Without ``line``, all kernels of the run; ``text: false``: only
    where they are in the text, because lines of the program have moved.

    If no kernels were made, ``missing``: the program to check, and the devices that it can be checked for.
    """
    path = path_of(params["uri"]) if isinstance(params.get("uri"), str) else None
    key = key_of(path) if path is not None else None
    shown = _chosen(runs, params.get("run"), path)
    if shown is None or shown.found.kernels is None:
        return _missing(shown, params.get("uri"))
    target, line = shown.found.kernels, params.get("line")
    kernels = list(enumerate(target.kernels, 1))
    if key is not None and isinstance(line, int):
        of_line = set(map(id, kernels_of_line(shown.found, target, key, line)))
        kernels = [(number, kernel) for number, kernel in kernels if id(kernel) in of_line]
        if not kernels:
            raise NotShown(f"No kernel of {shown.label} computes anything of line {line + 1}; {_lines_with(shown, key)}.")
    code, wanted = str(params.get("code") or CODES[0]), params.get("text") is not False
    if code not in CODES:
        raise NotShown(f"Unknown kind of code: {code!r}.")
    page = Page(shown.lines)
    sections = _Writer(page, shown, code).write(kernels)
    return {
        "missing": False,
        "run": shown.key,
        "label": shown.label,
        "target": target.target,
        "device": target.device,
        "text": "\n".join(page.text) + "\n" if wanted else "",
        "language": "python" if code == "triton" else "plaintext",
        "links": page.links if wanted else [],
        "kernels": sections,
    }


def _chosen(runs: Sequence[Shown], run: object, path: str | None) -> Shown | None:
    """The named run; else the latest with kernels, of those that know the file. A file that none knows may be a program
    itself; otherwise, it may be a part of the last one."""
    if run is not None:
        return next((shown for shown in runs if shown.key == run), None)
    about = [shown for shown in runs if path is not None and _knows(shown, key_of(path))]
    if not about and path is not None and entrypoint_line(split_lines(read_source(path) or "")) is not None:
        return None
    about = about or list(runs)
    made = [shown for shown in about if shown.found.kernels is not None]
    return next(reversed(made or about), None)


def _knows(shown: Shown, key: str) -> bool:
    kernels = shown.found.kernels
    of_kernels = {key_of(at.file) for kernel in kernels.kernels for at in kernel.lines} if kernels is not None else set()
    return key in of_kernels or key in shown.found.files()


def _missing(shown: Shown | None, uri: object) -> Json:
    """``program``: the argument of ``magpy.check`` for the program that the file belongs to."""
    program = {"uri": uri}
    if shown is not None and shown.run is not None:
        run, target = shown.run, shown.run.target
        if run.lowering is not None and run.state.active:
            raise NotShown(f"The kernels of {shown.label} are being made: wait for the end of the check.")
        program = {"uri": target.uri, **({"name": target.name} if target.name else {})}
    devices = [{"target": device.target, "title": device.title} for device in DEVICES.values()]
    return {"missing": True, "program": program, "devices": devices}


def _lines_with(shown: Shown, key: str) -> str:
    from lsp_server.formats.kernels import ranges

    assert shown.found.kernels is not None
    at = [place for kernel in shown.found.kernels.kernels for place in kernel.lines if key_of(place.file) == key]
    places = [shown.lines.place(place.file, place.line) for place in at]
    lines = sorted({place["line"] + 1 for place in places if place is not None})
    return f"kernels compute something of lines {ranges(lines)}" if lines else "no line of this file has one"


class _Writer:
    """Writes kernels on a page, each with a head of comments."""

    def __init__(self, page: Page, shown: Shown, code: str) -> None:
        self._page = page
        self._shown = shown
        self._code = code
        self._mark = "//" if code == "ptx" else "#"

    def write(self, kernels: Sequence[tuple[int, Kernel]]) -> list[Json]:
        """The kernels with their first and last line on the page, and the lines that they compute."""
        target = self._shown.found.kernels
        assert target is not None
        self._comment(f"{self._shown.label} on {target.device} ({target.target}): {count(len(kernels), 'kernel')}, in order")
        self._comment("Times are lower bounds by the device's published figures: nothing ran there.")
        sections = []
        for (region, graph), group in groupby(kernels, key=lambda item: (item[1].region, item[1].graph)):
            of = list(group)
            self._page.add("")
            self._comment(f"==== {region}, {graph}: {_sums([kernel for _, kernel in of], target)}")
            for number, kernel in of:
                self._page.add("")
                first = len(self._page.text)
                self._kernel(number, kernel)
                places = [self._shown.lines.place(at.file, at.line) for at in kernel.lines]
                sections.append({
                    "name": kernel.name, "region": region, "graph": graph, "first": first,
                    "last": len(self._page.text) - 1, "places": [place for place in places if place is not None],
                })  # fmt: skip
        return sections

    def _kernel(self, number: int, kernel: Kernel) -> None:
        from lsp_server.formats.kernels import computes, figures, kernel_text, us

        launches = f", {kernel.launches:,} times" if kernel.launches > 1 else ""
        head = f"#{number} {kernel.name}: {computes(kernel).plain}"
        self._comment(f"{head}; at least {us(kernel.us)} ({kernel.bound}){launches}")
        for at in kernel.lines:
            text = (self._shown.found.tracker.lines(at.file) or [])[at.line - 1 : at.line]
            where = f"{os.path.basename(at.file)}:{at.line}"
            self._comment(f"  {where}  {' '.join(text).strip()}")
            start = len(self._mark) + 3
            self._page.link(start, start + len(clean(where)), at.file, at.line)
        for line in figures(kernel):
            self._comment(f"  {line}")
        if kernel.code is None:
            self._comment("  A library's kernel: it has no Triton source.")
            return
        source = kernel.code.ptx if self._code == "ptx" else kernel_text(kernel.code.triton)
        self._page.text += clean(source, lines=True).rstrip().split("\n")

    def _comment(self, text: str) -> None:
        self._page.add(f"{self._mark} {text}")


def _sums(kernels: Sequence[Kernel], target: TargetReport) -> str:
    from lsp_server.formats.kernels import us

    return f"{count(total_launches(kernels), 'kernel')}, at least {us(total_us(kernels))}"
