"""Notebooks as programs: converts the code cells of an ``.ipynb`` to one script and maps lines back. Key types: Notebook.

A notebook runs as its saved code cells in order, in a fresh process, like "Restart and Run All"; lines with IPython's magics
and shell commands are skipped. Findings are in the cells if the client synchronizes notebooks, else on the file's lines.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from lsprotocol import types

from lsp_server.features.positions import split_lines

SUFFIX = ".ipynb"


@dataclass(frozen=True)
class Cell:
    """A code cell; ``uri`` is the client's URI, empty if it has none."""

    lines: tuple[str, ...]
    uri: str = ""


@dataclass
class Notebook:
    """A notebook that ran: ``script`` contains its cells. ``cells`` follow the editor's."""

    path: str
    script: str
    cells: list[Cell]
    published: set[str] = field(default_factory=set)

    def lines(self) -> list[str]:
        """The script's text: each cell after a comment."""
        out: list[str] = []
        for number, cell in enumerate(self.cells, 1):
            out += [f"# %% cell {number}", *_plain(cell.lines)]
        return [*out, ""]

    def place(self, line: int) -> tuple[Cell, int] | None:
        """The cell that a line of the script is in, and the line there."""
        first = 0
        for cell in self.cells:
            first += 1
            if first <= line < first + len(cell.lines):
                return cell, line - first
            first += len(cell.lines)
        return None

    def line_of(self, uri: str, line: int) -> int | None:
        """The script's line of a line of a cell."""
        first = 0
        for cell in self.cells:
            first += 1
            if cell.uri == uri:
                return first + line if line < len(cell.lines) else None
            first += len(cell.lines)
        return None

    def shown(self, found: Sequence[types.Diagnostic], uri: str) -> list[types.PublishDiagnosticsParams]:
        """The script's diagnostics mapped to cells; empty lists for cells that no longer have any."""
        by_uri: dict[str, list[types.Diagnostic]] = {cell.uri or uri: [] for cell in self.cells}
        by_uri.update((known, []) for known in self.published)
        for diagnostic in found:
            place = self.place(diagnostic.range.start.line)
            if place is None:
                if not self.cells:
                    continue
                # The script's first line has the findings on the whole script, such as a failure without a line.
                place, diagnostic.range = (self.cells[0], 0), types.Range(types.Position(1, 0), types.Position(1, 0))
            cell, line = place
            if cell.uri:
                height = diagnostic.range.end.line - diagnostic.range.start.line
                diagnostic.range = moved(diagnostic.range, line, line + height)
                by_uri[cell.uri].append(diagnostic)
            else:
                row = self._rows().get(diagnostic.range.start.line, 0)
                diagnostic.range = types.Range(types.Position(row, 0), types.Position(row + 1, 0))
                by_uri[uri].append(diagnostic)
        self.published = {name for name, items in by_uri.items() if items}
        return [types.PublishDiagnosticsParams(name, items) for name, items in by_uri.items()]

    def _rows(self) -> dict[int, int]:
        """Each script line's row in the file: nbformat writes each source line as a JSON string in its own row."""
        try:
            with open(self.path, encoding="utf-8") as stream:
                rows = [row.strip().rstrip(",") for row in split_lines(stream.read())]
        except (OSError, UnicodeDecodeError):
            return {}
        found: dict[int, int] = {}
        row = line = 0
        for cell in self.cells:
            line += 1
            for number, text in enumerate(cell.lines):
                source = text if number == len(cell.lines) - 1 else f"{text}\n"
                forms = {json.dumps(source), json.dumps(source, ensure_ascii=False)}
                at = next((n for n in range(row, len(rows)) if rows[n] in forms), None)
                if at is not None:
                    found[line], row = at, at + 1
                line += 1
        return found


def moved(where: types.Range, first: int, last: int) -> types.Range:
    """The range with other lines and the same columns."""
    return types.Range(types.Position(first, where.start.character), types.Position(last, where.end.character))


def _plain(lines: Sequence[str]) -> list[str]:
    """A cell as Python with the same number of lines; IPython's syntax is commented out."""
    if lines and lines[0].startswith("%%"):
        return [f"# {line}" for line in lines]
    plain = []
    for line in lines:
        text = line.lstrip()
        indent = line[: len(line) - len(text)]
        plain.append(f"{indent}pass  # {text}" if text.startswith(("%", "!")) else line)
    return plain


def read_cells(path: str) -> list[Cell]:
    """The code cells of a file. Raises ValueError with a message if the file is not a notebook."""
    try:
        with open(path, encoding="utf-8") as stream:
            document = json.load(stream)
        cells = document["cells"]
        sources = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
        texts = [source if isinstance(source, str) else "".join(source) for source in sources]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{os.path.basename(path)} is not a readable notebook ({error})") from None
    return [Cell(tuple(split_lines(text))) for text in texts]
