"""``magpy-lsp mcp``: tools for coding assistants, over the Model Context Protocol. Only ``serving`` imports ``mcp``."""
