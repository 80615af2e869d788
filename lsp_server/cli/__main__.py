"""``python -m lsp_server.cli`` is ``magpy-lsp``."""

from lsp_server.cli.main import main

main()
