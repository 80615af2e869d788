"""``%%magpy`` in a notebook or IPython: runs the cell, and shows what is found in it below. Key type: CellMagic.

`%load_ext lsp_server` loads it. Modules that an earlier cell has called are regions already: their findings are shown when
they change, or when the cell that makes the module runs again.
"""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

from lsp_server.config import ConfigError, Loaded, load_for
from lsp_server.formats.view import count
from lsp_server.in_process.new_findings import NewFindings, described
from lsp_server.sources import Sources


class _CellSources(Sources):
    """Sources whose cells are where Python's tracebacks find them."""

    def text(self, file: str) -> str | None:
        lines = linecache.cache.get(file)
        return "".join(linecache.getlines(file)) if lines is not None else super().text(file)


class CellMagic:
    """The magic of one IPython. Monitoring begins with the first cell that has it."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._sources = _CellSources()
        self._findings: NewFindings | None = None
        self._numbers: dict[str, int] = {}  # of the cells that had the magic: IPython takes what is in it for the next cell

    def __call__(self, line: str, cell: str) -> None:
        """Runs ``cell`` as IPython does. If it raises, which is shown, the cell counts as failed."""
        from IPython.core.error import UsageError

        findings = self._started()
        before = findings.regions
        number, known = self._shell.execution_count - 1, set(linecache.cache)
        result = self._shell.run_cell(cell, store_history=False)
        self._numbers.update(dict.fromkeys(set(linecache.cache) - known, number))
        error = result.error_before_exec or result.error_in_exec
        new, regions = findings.take(), findings.regions - before
        text = f"MagPy: {count(len(new), 'new finding')}, {count(regions, 'new region')}."
        names = {finding.location.file: self._name(finding.location.file) for finding in new}
        print("\n".join([text, *described(new, Path.cwd(), self._sources, names)]))
        if error is not None:
            raise UsageError(f"the cell raised {type(error).__name__}")

    def _started(self) -> NewFindings:
        if self._findings is None:
            try:
                loaded = load_for(Path.cwd())
            except ConfigError as error:
                print("\n".join(map(str, error.problems)))
                loaded = Loaded()
            self._findings = NewFindings(loaded, "notebook", Path.cwd(), self._sources)
        return self._findings

    def _name(self, file: str) -> str:
        """What a cell is called, by IPython's number; empty for a file."""
        label = self._shell.compile.format_code_name(file)
        if label is None:
            return ""
        return f"Cell In[{self._numbers[file]}]" if file in self._numbers else " ".join(label)
