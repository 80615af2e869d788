"""The language server, the command line, and what runs inside tests and notebooks."""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext lsp_server` in a notebook or IPython: adds the magic `%%magpy`."""
    from lsp_server.in_process.cell_magic import CellMagic

    shell.register_magic_function(CellMagic(shell), "cell", "magpy")
