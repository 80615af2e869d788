"""Guards, graphs and generated code as text with links from its lines to the program's. Key function: text_of.

A link is ``{line, start, end, place}``: columns of the text in UTF-16 units, and where it leads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from lsp_server.features.positions import to_units
from lsp_server.features.views.graphs import user_line
from lsp_server.features.views.shown import Json, Lines, NotShown
from lsp_server.formats.view import clean
from magpy_core.findings.details import CaptureDetail

_COLUMN = 64
_COMMENT = re.compile(r"#.*?(\S+\.py:(\d+))")
_SOURCE_NODES = re.compile(r"Source Nodes: \[([^\]]*)\]")


class _Page:
    """Lines of text, and the links in them."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.text: list[str] = []
        self.links: list[Json] = []

    def add(self, text: str, file: str = "", line: int = 0) -> None:
        """One line, with its place at the end where it has one."""
        text = clean(text).replace("\n", " ")
        if not line:
            self.text.append(text)
            return
        where = f"{file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{line}"
        full = f"{text:<{_COLUMN}}  # {where}"
        self.text.append(full)
        self.link(len(full) - len(where), len(full), file, line)

    def link(self, start: int, end: int, file: str, line: int) -> None:
        """A link in the last line."""
        place = self._lines.place(file, line)
        if place is not None:
            last = self.text[-1]
            units = [to_units(last, column, "utf-16") for column in (start, end)]
            self.links.append({"line": len(self.text) - 1, "start": units[0], "end": units[1], "place": place})


def text_of(kind: str, capture: CaptureDetail, title: str, lines: Lines) -> Json:
    """The text of ``kind``, its language, and its links."""
    if kind not in _KINDS:
        raise NotShown(f"There is no view of the kind {kind!r}.")
    language, write = _KINDS[kind]
    page = _Page(lines)
    write(page, capture, title)
    return {"text": "\n".join(page.text) + "\n", "language": language, "links": page.links}


def _guards(page: _Page, capture: CaptureDetail, title: str) -> None:
    page.add(f"# {title}: what is checked before a replay, in this order")
    page.add("")
    before = None
    for guard in capture.guards:
        said = (guard.text or f"{guard.name} {guard.check} {guard.value}", guard.file, guard.line)
        if said != before:  # the same name may be absent from several tables, one after the other
            page.add(*said)
        before = said


def _operators(page: _Page, capture: CaptureDetail, title: str) -> None:
    page.add(f"# {title}: the operations recorded, in order")
    segment = 0
    for node in capture.nodes:
        if node.segment > segment:
            segment = node.segment
            page.add("")
            page.add(f"# graph break: Python decides here, graph {segment} begins")
        gives = f": {node.tensor}" if node.tensor else ""
        if node.kind == "placeholder":
            page.add(f"{node.name} = input  {node.label}{gives}")
        else:
            page.add(f"{node.name} = {node.label}({', '.join(node.inputs)}){gives}", *user_line(node))
    _listed(page, capture.rest, capture.cut)


def _references(page: _Page, capture: CaptureDetail, title: str) -> None:
    page.add(f"# {title}: the objects from outside, in the order of first touch, with what was read and written")
    page.add("")
    for o in capture.objects:
        page.add(f"{o.name}: {o.kind}")
        for fact in (*o.reads, *o.writes):
            page.add(f"    {fact.text}", fact.file, fact.line)
    _listed(page, capture.objects_rest, capture.objects_cut)


def _listed(page: _Page, rest: str, number: int) -> None:
    """What is not drawn, of a very large graph."""
    if not number:
        return
    page.add("")
    page.add(f"# {number:,} more, which the picture leaves out")
    lines = clean(rest).split("\n")
    for line in lines:
        page.add(line)
    if len(lines) < number:
        page.add(f"# and {number - len(lines):,} more")


def _commented(code: Callable[[CaptureDetail], str], what: str) -> Callable[[_Page, CaptureDetail, str], None]:
    """Our own generated Python: a comment at a line's end names the line that caused it, by the file's base name."""

    def write(page: _Page, capture: CaptureDetail, title: str) -> None:
        known = {(g.file.rsplit("/", 1)[-1], g.line): g.file for g in capture.guards if g.line}
        page.add(f"# {title}: {what}")
        page.add("")
        for line in clean(code(capture)).split("\n"):
            page.text.append(line)
            for match in _COMMENT.finditer(line):
                base, number = match[1].rsplit(":", 1)[0], int(match[2])
                if (base, number) in known:
                    page.link(match.start(1), match.end(1), known[(base, number)], number)

    return write


def _generated(page: _Page, capture: CaptureDetail, title: str) -> None:
    """The backend's: Inductor says in comments which nodes a kernel computes."""
    if not any(code.strip() for code in capture.generated_code):
        raise NotShown("No code was generated: Check compiles nothing. Run compiled, with the backend inductor.")
    at = {node.name: user_line(node) for node in capture.nodes}
    for number, code in enumerate(capture.generated_code):
        page.add(f"# {title}: what the backend generated for graph {number}")
        for line in clean(code).split("\n"):
            page.text.append(line)
            for start, end, name in _names(line):
                if at.get(name, ("", 0))[1]:
                    page.link(start, end, *at[name])


def _names(line: str) -> Iterator[tuple[int, int, str]]:
    for match in _SOURCE_NODES.finditer(line):
        for name in re.finditer(r"\w+", match[1]):
            yield match.start(1) + name.start(), match.start(1) + name.end(), name[0]


_KINDS: dict[str, tuple[str, Callable[[_Page, CaptureDetail, str], None]]] = {
    "guards": ("python", _guards),
    "operators": ("python", _operators),
    "references": ("python", _references),
    "guardCode": ("python", _commented(lambda c: c.guard_code, "the code that checks the guards")),
    "replayCode": ("python", _commented(lambda c: c.replay_code, "the code of a replay")),
    "generatedCode": ("python", _generated),
}
